//! Where people keep what they are to registries: the files of `docker login` and `podman login`.

use crate::credential_program;
use crate::limits::MAX_CREDENTIALS_BYTES;
use crate::secret::{Credentials, Secret};
use base64::Engine;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_image::Remote;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the default registry is called in these files.
const OLD_NAME: &str = "https://index.docker.io/v1/";

/// As the tools that write these files read them, which ask nothing of the bits behind the last byte.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Where credentials are looked for, in this order; the first that knows the registry counts.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `$REGISTRY_AUTH_FILE`, if it is set. It must be there then.
    pub named: Option<PathBuf>,
    /// `$DOCKER_CONFIG/config.json`, `~/.docker/config.json`, `$XDG_RUNTIME_DIR/containers/auth.json`.
    pub usual: Vec<PathBuf>,
    /// `$PATH`, for credential helpers.
    pub search: OsString,
}

impl Places {
    /// Those of an environment.
    pub fn of(variables: &BTreeMap<OsString, OsString>, home: Option<&Path>) -> Self {
        let path = |name: &str| {
            let value = variables.get(OsStr::new(name)).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let usual = [
            path("DOCKER_CONFIG").map(|directory| directory.join("config.json")),
            home.map(|home| home.join(".docker/config.json")),
            path("XDG_RUNTIME_DIR").map(|directory| directory.join("containers/auth.json")),
        ];
        Self {
            named: path("REGISTRY_AUTH_FILE"),
            usual: usual.into_iter().flatten().collect(),
            search: variables.get(OsStr::new("PATH")).cloned().unwrap_or_default(),
        }
    }
}

/// What was found, and where was looked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) credentials: Option<Credentials>,
    /// A line for each place, without a secret.
    pub(crate) looked: Vec<String>,
}

/// A file of credentials, as far as it is used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
    #[serde(default)]
    creds_store: Option<String>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
}

/// What a file says of one registry.
#[derive(Default, Deserialize)]
struct Entry {
    #[serde(default)]
    auth: Option<String>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    identitytoken: Option<String>,
    #[serde(default)]
    registrytoken: Option<String>,
}

/// Looks for what the caller is to the registry of an image.
pub(crate) fn look(places: &Places, remote: &Remote, within: Duration) -> Result<Found> {
    let mut found = Found::default();
    for path in places.named.iter().chain(&places.usual) {
        let shown = path.display();
        let Some(kept) = read(path, places.named.as_ref() == Some(path))? else {
            found.looked.push(format!("{shown} is not there"));
            continue;
        };
        let (wanted, unreadable) = of_file(&kept, remote);
        let mut why = unreadable.map(|name| {
            format!("its entry for {name} cannot be read, so log in anew or remove it")
        });
        let credentials = match wanted {
            Wanted::Known(credentials) => Some(credentials),
            Wanted::Helper(name, server) => {
                credential_program::ask(name, server, &places.search, within).unwrap_or_else(
                    |error| {
                        why.get_or_insert(error);
                        None
                    },
                )
            }
            Wanted::Nothing => None,
        };
        let what = match (&credentials, why) {
            (Some(_), _) => format!("knows {}", remote.registry),
            (None, Some(why)) => why,
            (None, None) => format!("does not know {}", remote.registry),
        };
        found.looked.push(format!("{shown}: {what}"));
        if credentials.is_some() {
            found.credentials = credentials;
            return Ok(found);
        }
    }
    Ok(found)
}

/// What a file says of a registry that can be used.
enum Wanted<'a> {
    Known(Credentials),
    Helper(&'a str, &'a str),
    Nothing,
}

/// What a file says of a registry, and by which name it says of it what cannot be read.
fn of_file<'a>(kept: &'a Kept, remote: &'a Remote) -> (Wanted<'a>, Option<String>) {
    let server = server(remote);
    let names = names(remote);
    let helper = names.iter().find_map(|name| kept.cred_helpers.get(name));
    if let Some(helper) = helper {
        return (Wanted::Helper(helper, server), None);
    }
    let mut unreadable = None;
    for name in names {
        let is_it = |key: &&String| {
            bare(key) == name || (key.as_str(), name.as_str() == server) == (OLD_NAME, true)
        };
        let entry = kept.auths.keys().find(is_it).and_then(|key| kept.auths.get(key));
        match entry.map_or(Entered::Nothing, of_entry) {
            Entered::Credentials(credentials) => return (Wanted::Known(credentials), None),
            Entered::Nothing => {}
            // A less exact name may be enough.
            Entered::Unreadable => unreadable = unreadable.or(Some(name)),
        }
    }
    let store = kept.creds_store.as_deref();
    (store.map_or(Wanted::Nothing, |store| Wanted::Helper(store, server)), unreadable)
}

/// What a registry is called in `auths`, the most exact first: a repository and what is above it may
/// have credentials of their own.
fn names(remote: &Remote) -> Vec<String> {
    let whole = remote.name();
    let mut names = vec![whole.clone()];
    names.extend(
        whole.rmatch_indices('/').filter_map(|(end, _)| whole.get(..end)).map(str::to_owned),
    );
    if remote.registry == "docker.io" {
        names.extend(["index.docker.io", "registry-1.docker.io"].map(str::to_owned));
        names.push(OLD_NAME.to_owned());
    }
    names
}

/// What a helper is asked for.
fn server(remote: &Remote) -> &str {
    if remote.registry == "docker.io" { OLD_NAME } else { &remote.registry }
}

/// A key without the scheme and the path that older tools wrote.
fn bare(key: &str) -> &str {
    let scheme = ["https://", "http://"].iter().find_map(|lead| key.strip_prefix(lead));
    match scheme {
        Some(rest) => rest.split('/').next().unwrap_or(rest),
        None => key.strip_suffix('/').unwrap_or(key),
    }
}

/// What an entry comes to.
enum Entered {
    Credentials(Credentials),
    Nothing,
    Unreadable,
}

fn of_entry(entry: &Entry) -> Entered {
    let some = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(token) = some(&entry.registrytoken) {
        return Entered::Credentials(Credentials::Token(Secret::new(token)));
    }
    if let Some(token) = some(&entry.identitytoken) {
        return Entered::Credentials(Credentials::Identity(Secret::new(token)));
    }
    if let (Some(name), Some(password)) = (some(&entry.username), some(&entry.password)) {
        return Entered::Credentials(Credentials::Password(name, Secret::new(password)));
    }
    match some(&entry.auth) {
        None => Entered::Nothing,
        Some(auth) => packed(auth.trim()).map_or(Entered::Unreadable, Entered::Credentials),
    }
}

/// A name and a password as they are kept in one word.
fn packed(auth: &str) -> Option<Credentials> {
    let text = String::from_utf8(BASE64.decode(auth).ok()?).ok()?;
    let (name, password) = text.trim_end_matches('\0').split_once(':')?;
    Some(Credentials::Password(name.to_owned(), Secret::new(password)))
}

/// Reads a file. `None` where there is none and none was named.
fn read(path: &Path, is_named: bool) -> Result<Option<Kept>> {
    let failed = |what: &str| {
        Error::new(ErrorKind::Config, format!("read the credentials in {}: {what}", path.display()))
    };
    // What can be read may be a pipe; it would keep us waiting.
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return match is_named {
            true => Err(failed("there is no such file")
                .hint("Set REGISTRY_AUTH_FILE to the file of your credentials, or unset it.")),
            false => Ok(None),
        };
    }
    let mut text = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| {
        failed("it cannot be opened").hint("Check its permissions.").source(error)
    })?;
    file.take(MAX_CREDENTIALS_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| failed("it cannot be read").source(error))?;
    if text.len() as u64 > MAX_CREDENTIALS_BYTES {
        return Err(failed("it is too long").hint("Log in anew."));
    }
    // The text of the cause may hold a part of the file.
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        failed(&format!("line {} is malformed", error.line())).hint("Log in anew, or mend it.")
    })
}

#[cfg(test)]
mod tests;
