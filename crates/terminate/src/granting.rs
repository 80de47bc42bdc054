//! All that a sandbox needs for the secrets that it is granted, from their values.

use crate::authority::{Authority, pem};
use crate::injector::placeholder;
use crate::trust::{SYSTEM_BUNDLES, WHOLE_BUNDLE, trust};
use crate::upstream::Upstream;
use cofferdam_core::secret::{
    Cover, GateGrant, Granted, SecretGrant, SecretName, SecretValue, Trusted, Vault,
};
use cofferdam_core::{Image, Result, Spec};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The longest bundle of an image that is added to, in bytes.
const MAX_BUNDLE_BYTES: u64 = 4 << 20;

/// Makes an authority and placeholders for the grants of this spec. `value` is asked once for each
/// secret, `sandbox` names the authority.
pub fn granted(
    spec: &Spec,
    sandbox: &str,
    value: impl Fn(&SecretName) -> Result<SecretValue>,
) -> Result<Granted> {
    SecretGrant::check(&spec.secrets)?;
    let mut known: BTreeMap<&SecretName, (String, SecretValue)> = BTreeMap::new();
    for name in SecretGrant::names(&spec.secrets) {
        known.insert(name, (placeholder()?, value(name)?));
    }
    let (mut grants, mut values) = (Vec::new(), Vec::new());
    for grant in &spec.secrets {
        if let Some((placeholder, value)) = known.get(&grant.name) {
            crate::Injector::default().grant(grant.clone(), placeholder, value.clone())?;
            grants.push(GateGrant { grant: grant.clone(), placeholder: placeholder.clone() });
            values.push(value.clone());
        }
    }
    let authority = Authority::new(sandbox)?;
    let roots = Upstream::of_system();
    let outside: String = roots.iter().map(|root| pem(root)).collect();
    let mut trusted = trusted(&authority, spec.image.as_ref(), &outside);
    let stand_ins = known.iter().map(|(name, (held, _))| (name.to_string(), held.clone()));
    trusted.variables.extend(stand_ins);
    let vault = Vault {
        authority: sandbox.to_owned(),
        certificate: authority.certificate().to_vec(),
        key: authority.key(),
        values,
        roots: roots.iter().map(|root| root.to_vec()).collect(),
    };
    Ok(Granted { grants, vault, trusted })
}

/// What programs inside trust: what they would trust anyway, and this authority.
fn trusted(authority: &Authority, image: Option<&Image>, outside: &str) -> Trusted {
    let (system, covers) = match image {
        None => (outside.to_owned(), of_host()),
        Some(image) => of_image(image),
    };
    let trust = trust(&authority.pem(), &system, &[]);
    let cover = |path: String| Cover { from: WHOLE_BUNDLE.to_owned(), path };
    Trusted {
        files: trust.files.into_iter().map(|(path, bytes)| (path, bytes.into())).collect(),
        covers: covers.into_iter().map(cover).collect(),
        variables: trust.variables,
    }
}

/// The bundles of this system, each by the name that no link leads on from.
fn of_host() -> Vec<String> {
    let real = SYSTEM_BUNDLES.iter().filter_map(|path| fs::canonicalize(path).ok());
    let mut real: Vec<String> = real
        .filter(|path| path.is_file())
        .filter_map(|path| path.to_str().map(Into::into))
        .collect();
    real.sort();
    real.dedup();
    real
}

/// What an image trusts, and in which plain files of it that is. Links of an image are not followed.
fn of_image(image: &Image) -> (String, Vec<String>) {
    let (mut system, mut covers) = (String::new(), Vec::new());
    for path in SYSTEM_BUNDLES {
        let found = image.layers.iter().find_map(|layer| plain_file(&layer.tree, path));
        let Some(found) = found else { continue };
        if system.is_empty() {
            system = fs::read_to_string(found).unwrap_or_default();
        }
        covers.push(path.to_owned());
    }
    (system, covers)
}

fn plain_file(tree: &Path, path: &str) -> Option<PathBuf> {
    let mut at = tree.to_owned();
    let mut parts = path.trim_start_matches('/').split('/').peekable();
    while let Some(part) = parts.next() {
        at.push(part);
        let found = fs::symlink_metadata(&at).ok()?;
        let is_wanted = match parts.peek() {
            Some(_) => found.is_dir(),
            None => found.is_file() && found.len() <= MAX_BUNDLE_BYTES,
        };
        if !is_wanted {
            return None;
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{Caller, Workspace};

    #[test]
    fn a_secret_has_one_placeholder_and_no_value_is_inside() {
        let mut spec = Spec::new(Workspace::Private, Caller::default());
        for grant in ["T@a.example", "T@b.example", "U@a.example:query=k"] {
            spec.secrets.push(grant.parse().unwrap());
        }
        let of = |name: &SecretName| SecretValue::new(format!("the value of {name}").into_bytes());
        let Granted { grants, vault, trusted } = granted(&spec, "s", of).unwrap();
        assert_eq!(grants[0].placeholder, grants[1].placeholder);
        assert_ne!(grants[0].placeholder, grants[2].placeholder);
        let values: Vec<&[u8]> = vault.values.iter().map(SecretValue::expose).collect();
        assert_eq!(values, [b"the value of T", b"the value of T", b"the value of U"]);
        let variable = |name: &str| trusted.variables.iter().find(|(known, _)| known == name);
        assert_eq!(variable("T").unwrap().1, grants[0].placeholder);
        assert!(!serde_json::to_string(&trusted).unwrap().contains("the value of"));
        let two_lines = |_: &SecretName| SecretValue::new(b"two\nlines".to_vec());
        assert!(granted(&spec, "s", two_lines).is_err(), "it cannot stand in a request");
    }
}
