//! Names of images in registries, as people write them for other tools.

use crate::digest::Digest;
use cofferdam_core::{Error, ErrorKind, Result};
use std::fmt;

/// The registry that is meant where none is named.
const DEFAULT_REGISTRY: &str = "docker.io";

/// Where that registry keeps what nobody's name leads.
const DEFAULT_NAMESPACE: &str = "library/";

/// The tag that is meant where neither tag nor digest is given.
const DEFAULT_TAG: &str = "latest";

/// The longest repository, registry included.
const MAX_REPOSITORY_BYTES: usize = 255;

/// The longest tag.
const MAX_TAG_BYTES: usize = 128;

/// An image in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// The registry: a name or an address, and perhaps a port.
    pub registry: String,
    /// The repository in it.
    pub repository: String,
    /// The tag. It is only shown where there is a digest too.
    pub tag: Option<String>,
    /// What the content must be.
    pub digest: Option<Digest>,
}

impl Remote {
    /// Reads `[REGISTRY/]REPOSITORY[:TAG][@DIGEST]`.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.parse::<Digest>()?)),
            None => (text, None),
        };
        let (name, tag) = match name.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            Some(_) | None => (name, None),
        };
        let (registry, path) = match name.split_once('/') {
            Some((first, rest)) if is_registry(first) => (first, rest),
            Some(_) | None => (DEFAULT_REGISTRY, name),
        };
        let registry = if registry == "index.docker.io" { DEFAULT_REGISTRY } else { registry };
        let lead = match registry == DEFAULT_REGISTRY && !path.contains('/') {
            true => DEFAULT_NAMESPACE,
            false => "",
        };
        let repository = format!("{lead}{path}");
        if !is_host(registry) || registry.len() + 1 + repository.len() > MAX_REPOSITORY_BYTES {
            return Err(malformed(text, "its registry or its length is not one that there can be"));
        }
        if !repository.split('/').all(is_component) {
            return Err(malformed(
                text,
                "a repository has small letters, digits, `.`, `_`, `-`, `/`",
            ));
        }
        if !tag.is_none_or(is_tag) {
            return Err(malformed(text, "a tag has letters, digits, `_`, `.` and `-`"));
        }
        let default = digest.is_none().then_some(DEFAULT_TAG);
        let tag = tag.or(default).map(str::to_owned);
        Ok(Self { registry: registry.to_owned(), repository, tag, digest })
    }

    /// Registry and repository.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// What a registry is asked for: the digest, or else the tag.
    pub fn version(&self) -> &str {
        let tag = self.tag.as_deref().unwrap_or(DEFAULT_TAG);
        self.digest.as_ref().map_or(tag, Digest::as_str)
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        self.tag.as_ref().map_or(Ok(()), |tag| write!(f, ":{tag}"))?;
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

/// Whether a text says a tag or a digest, so that nobody means a path by it.
pub(crate) fn says_version(text: &str) -> bool {
    let last = text.rsplit('/').next().unwrap_or(text);
    text.contains('@') || last.contains(':')
}

/// What stands before the first slash is a registry if no user could be called so.
fn is_registry(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost"
}

fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
                ("v6", port.strip_prefix(':').or(port.is_empty().then_some("0")))
            }
            Some(_) | None => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, Some("0")),
        },
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_plain);
    host.split('.').all(is_label) && port.is_some_and(is_port)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

fn is_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_known = |byte: u8| is_word(byte) || b"._-".contains(&byte);
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.into_iter().all(|end| end.is_some_and(is_word))
        && text.bytes().all(is_known)
        && !text.contains("..")
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= MAX_TAG_BYTES
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || b".-".contains(&byte))
}

fn malformed(text: &str, why: &str) -> Error {
    let shown: String = text.chars().take(MAX_REPOSITORY_BYTES).collect();
    Error::new(ErrorKind::Usage, format!("{shown:?} names no image of a registry: {why}"))
        .hint("Write it as REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGITS.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn check(text: &str, shown: &str) {
        let read = Remote::parse(text).unwrap();
        assert_eq!(read.to_string(), shown, "{text}");
        assert_eq!(Remote::parse(shown).unwrap(), read);
    }

    #[test]
    fn a_name_means_what_other_tools_mean_by_it() {
        check("debian", "docker.io/library/debian:latest");
        check("debian:12", "docker.io/library/debian:12");
        check("user/tool", "docker.io/user/tool:latest");
        check("index.docker.io/debian", "docker.io/library/debian:latest");
        check("localhost/x", "localhost/x:latest");
        check("localhost:5000/x/y:tag", "localhost:5000/x/y:tag");
        check("[::1]:5000/x", "[::1]:5000/x:latest");
        check("a.example/b__c/d-e:V_1.2", "a.example/b__c/d-e:V_1.2");
        let pinned = format!("debian@{DIGEST}");
        check(&pinned, &format!("docker.io/library/{pinned}"));
        check(&format!("x/y:1@{DIGEST}"), &format!("docker.io/x/y:1@{DIGEST}"));
        let both = Remote::parse(&format!("x/y:1@{DIGEST}")).unwrap();
        assert_eq!((both.version(), both.name().as_str()), (DIGEST, "docker.io/x/y"));
    }

    #[test]
    fn what_no_registry_could_hold_is_refused() {
        let long = "a/".repeat(130) + "a";
        let tag = format!("a:{}", "t".repeat(129));
        for text in [
            "",
            "Debian",
            "a//b",
            "/a",
            "a/",
            "a/../b",
            "-a",
            "a:",
            "a:b:c",
            "a b",
            "a@",
            "a:-x",
            "localhost:99999/x",
            "localhost:/x",
            "[::1/x",
            "[x]:1/y",
            "a..b/c",
            ".a/b",
            "a\u{e9}",
            "u:p@localhost/x",
            "localhost:5000?/x",
            "a@sha256:12",
            &long,
            &tag,
        ] {
            assert!(Remote::parse(text).is_err(), "{text}");
        }
    }
}
