//! Which of several images is for this machine.

use crate::document::{self, Descriptor};
use cofferdam_core::{Error, ErrorKind, Result};
use std::fmt;
use std::str::FromStr;

/// What an image is for: Linux, on some processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// The processor in the words of images, as `amd64`.
    pub architecture: String,
    /// Which sort of it, as `v7`, if that matters.
    pub variant: Option<String>,
}

impl Platform {
    /// This machine.
    pub fn host() -> Self {
        Self { architecture: host().to_owned(), variant: None }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "linux/{}", self.architecture)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

impl FromStr for Platform {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split('/').map(str::to_owned);
        let is_part = |part: &String| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(os), Some(architecture), variant, None)
                if os == "linux"
                    && is_part(&architecture)
                    && variant.as_ref().is_none_or(is_part) =>
            {
                Ok(Self { architecture, variant })
            }
            _ => Err(Error::new(ErrorKind::Usage, format!("{text:?} is no platform"))
                .hint("Write linux/ARCHITECTURE, as linux/amd64 or linux/arm/v7.")),
        }
    }
}

/// This machine in the words of images.
pub(crate) fn host() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

/// The one for a platform. Where none says what it is for, the only one is.
pub(crate) fn choose<'a>(
    manifests: &[&'a Descriptor],
    wanted: &Platform,
) -> Result<&'a Descriptor> {
    let is_ours = |found: &document::Platform| {
        let is_sort = wanted.variant.is_none() || wanted.variant == found.variant;
        found.os == "linux" && found.architecture == wanted.architecture && is_sort
    };
    let ours = manifests.iter().find(|one| one.platform.as_ref().is_some_and(is_ours));
    match (ours, manifests) {
        (Some(ours), _) => Ok(ours),
        (None, [only]) if only.platform.is_none() => Ok(only),
        (None, several) => Err(none_for(wanted, several)),
    }
}

/// Fails where a configuration says that it is for another machine.
pub(crate) fn check(os: &str, found: &str, wanted: &Platform) -> Result<()> {
    let is_ours = found.is_empty() || found == wanted.architecture;
    if (os.is_empty() || os == "linux") && is_ours {
        return Ok(());
    }
    Err(wrong(wanted, &format!("{os}/{found}")))
}

fn none_for(wanted: &Platform, manifests: &[&Descriptor]) -> Error {
    let mut found: Vec<String> = manifests.iter().map(|one| shown(one)).collect();
    found.dedup();
    found.truncate(20);
    wrong(wanted, &found.join(", "))
}

fn wrong(wanted: &Platform, found: &str) -> Error {
    let what = format!("the image is not for {wanted}; there is {found}");
    Error::new(ErrorKind::Unsupported, what)
        .hint("Get the image for this machine's architecture, or name one that there is.")
}

fn shown(descriptor: &Descriptor) -> String {
    let names: Vec<&str> = descriptor.names().collect();
    match (&descriptor.platform, names.first()) {
        (Some(document::Platform { architecture, os, variant }), _) => {
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

    fn for_linux(architecture: &str) -> Platform {
        format!("linux/{architecture}").parse().unwrap()
    }

    #[test]
    fn a_platform_is_linux_and_a_processor() {
        let platform: Platform = "linux/arm/v7".parse().unwrap();
        assert_eq!(platform.to_string(), "linux/arm/v7");
        for text in ["", "linux", "linux/", "windows/amd64", "linux/a/b/c", "linux/a-b"] {
            assert!(text.parse::<Platform>().is_err(), "{text}");
        }
    }

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
        assert_eq!(choose(&all, &for_linux("amd64")).unwrap().digest, all[2].digest);
        assert_eq!(choose(&all, &for_linux("arm64")).unwrap().digest, all[0].digest);
        let error = choose(&all, &for_linux("riscv64")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains("linux/arm64, windows/amd64, linux/amd64"), "{error}");
    }

    #[test]
    fn the_only_one_is_chosen_where_nothing_says_what_it_is_for() {
        let (one, two) = (descriptor("one", None), descriptor("two", None));
        assert!(choose(&[&one], &for_linux("amd64")).is_ok());
        assert!(choose(&[&one, &two], &for_linux("amd64")).is_err());
        assert!(
            check("", "", &for_linux("amd64")).is_ok()
                && check("linux", "amd64", &for_linux("amd64")).is_ok()
        );
        assert!(
            check("linux", "arm64", &for_linux("amd64")).is_err()
                && check("windows", "amd64", &for_linux("amd64")).is_err()
        );
    }
}
