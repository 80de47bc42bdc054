//! Which of several images is for this machine.

use crate::document::{Descriptor, Platform};
use cofferdam_core::{Error, ErrorKind, Result};

/// This machine in the words of images.
pub(crate) fn host() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

/// The one for an architecture. Where none says what it is for, the only one is.
pub(crate) fn choose<'a>(
    manifests: &[&'a Descriptor],
    architecture: &str,
) -> Result<&'a Descriptor> {
    let is_ours =
        |platform: &Platform| platform.os == "linux" && platform.architecture == architecture;
    let ours = manifests.iter().find(|one| one.platform.as_ref().is_some_and(is_ours));
    match (ours, manifests) {
        (Some(ours), _) => Ok(ours),
        (None, [only]) if only.platform.is_none() => Ok(only),
        (None, several) => Err(none_for(architecture, several)),
    }
}

/// Fails where a configuration says that it is for another machine.
pub(crate) fn check(os: &str, found: &str, architecture: &str) -> Result<()> {
    if (os.is_empty() || os == "linux") && (found.is_empty() || found == architecture) {
        return Ok(());
    }
    Err(wrong(architecture, &format!("{os}/{found}")))
}

fn none_for(architecture: &str, manifests: &[&Descriptor]) -> Error {
    let mut found: Vec<String> = manifests.iter().map(|one| shown(one)).collect();
    found.dedup();
    found.truncate(20);
    wrong(architecture, &found.join(", "))
}

fn wrong(architecture: &str, found: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("the image is not for linux/{architecture}; there is {found}"),
    )
    .hint("Get the image for this machine's architecture.")
}

fn shown(descriptor: &Descriptor) -> String {
    let names: Vec<&str> = descriptor.names().collect();
    match (&descriptor.platform, names.first()) {
        (Some(Platform { architecture, os, variant }), _) => {
            let variant = variant.as_ref().map(|variant| format!("/{variant}"));
            format!("{os}/{architecture}{}", variant.unwrap_or_default())
        }
        (None, Some(name)) => (*name).to_owned(),
        (None, None) => descriptor.digest.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    fn descriptor(name: &str, platform: Option<&str>) -> Descriptor {
        let platform = platform.map(|platform| {
            let (os, architecture) = platform.split_once('/').unwrap();
            serde_json::json!({"os": os, "architecture": architecture})
        });
        let digest = Digest::of(name.as_bytes());
        let json = serde_json::json!({"digest": digest, "size": 1, "platform": platform});
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_image_for_this_machine_is_chosen() {
        let all = ["linux/arm64", "windows/amd64", "linux/amd64"];
        let all = all.map(|platform| descriptor(platform, Some(platform)));
        let all: Vec<_> = all.iter().collect();
        assert_eq!(choose(&all, "amd64").unwrap().digest, all[2].digest);
        assert_eq!(choose(&all, "arm64").unwrap().digest, all[0].digest);
        let error = choose(&all, "riscv64").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains("linux/arm64, windows/amd64, linux/amd64"), "{error}");
    }

    #[test]
    fn the_only_one_is_chosen_where_nothing_says_what_it_is_for() {
        let (one, two) = (descriptor("one", None), descriptor("two", None));
        assert!(choose(&[&one], "amd64").is_ok());
        assert!(choose(&[&one, &two], "amd64").is_err());
        assert!(check("", "", "amd64").is_ok() && check("linux", "amd64", "amd64").is_ok());
        assert!(
            check("linux", "arm64", "amd64").is_err()
                && check("windows", "amd64", "amd64").is_err()
        );
    }
}
