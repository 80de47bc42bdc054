//! A git repository that a manifest wants, as far as it can be judged without looking.

use super::host::{Last, open_named};
use super::wrong;
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use std::path::{Path, PathBuf};

/// The most bytes of an address, of the name of a branch or tag, and of a name of a user.
pub const MAX_ADDRESS_BYTES: usize = 2048;
/// Who the owner of a token is where a manifest does not say: most servers look at the token alone.
const USER: &str = "x-access-token";

/// A repository, and how it is fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    pub(super) address: Address,
    pub(super) reference: Option<Reference>,
    pub(super) depth: Option<u32>,
    pub(super) credential: Option<Credential>,
    /// Of all that is said of it, to know it again.
    pub(super) fingerprint: String,
}

/// Where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// On a server, with the scheme and host that a credential is for.
    Web { url: String, origin: String },
    /// On a server, behind the caller's own keys.
    Ssh { url: String },
    /// A directory of the host.
    Directory(PathBuf),
}

/// What is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    Name(String),
    Commit(String),
}

/// Where a token is, never the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credential {
    pub(super) variable: String,
    pub(super) user: String,
}

/// What an entry says of a repository.
pub(super) struct Said<'a> {
    pub(super) url: &'a str,
    pub(super) reference: Option<&'a str>,
    pub(super) depth: Option<u32>,
    pub(super) credential_env: Option<&'a str>,
    pub(super) credential_user: Option<&'a str>,
    pub(super) insecure_loopback: bool,
}

impl Address {
    /// The one protocol that git may speak for it.
    pub(super) fn protocol(&self) -> &str {
        match self {
            Self::Web { origin, .. } => origin.split(':').next().unwrap_or_default(),
            Self::Ssh { .. } => "ssh",
            Self::Directory(_) => "file",
        }
    }

    /// Relative to the manifest.
    pub(super) fn below(self, base: &Path) -> Self {
        match self {
            Self::Directory(directory) => Self::Directory(base.join(directory)),
            Self::Web { .. } | Self::Ssh { .. } => self,
        }
    }

    /// Fails where the way to a directory passes a link that a command may have made.
    ///
    /// It is asked again when it is copied. What is no directory yet is refused then.
    pub(super) fn refuse_planted(&self) -> Result<()> {
        let Self::Directory(directory) = self else { return Ok(()) };
        match open_named(directory, "the repository", Last::Followed) {
            Err(error) if error.kind != ErrorKind::NotFound => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl Said<'_> {
    pub(super) fn repository(&self, path: &GuestPath) -> Result<Repository> {
        let address = address(path, self.url, self.insecure_loopback)?;
        let reference = self.reference.map(|name| reference(path, name)).transpose()?;
        match (self.depth, &reference) {
            (Some(0), _) => return Err(wrong(path, "has a depth of 0")),
            (Some(_), Some(Reference::Commit(_))) => {
                return Err(wrong(path, "has a depth, which goes with a branch or a tag only"));
            }
            (_, _) => {}
        }
        let credential = self.credential(path, &address)?;
        let said = format!("{:?}", (self.url, self.reference, self.depth));
        let fingerprint = crate::apply::sha256(said.as_bytes());
        Ok(Repository { address, reference, depth: self.depth, credential, fingerprint })
    }

    fn credential(&self, path: &GuestPath, address: &Address) -> Result<Option<Credential>> {
        let Some(variable) = self.credential_env else {
            return match self.credential_user {
                None => Ok(None),
                Some(_) => Err(wrong(path, "has credential_user without credential_env")),
            };
        };
        if !matches!(address, Address::Web { .. }) {
            return Err(wrong(path, "has a credential_env, which is for https only"));
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if variable.is_empty() || !variable.bytes().all(is_name) {
            return Err(wrong(path, "has a credential_env that is no name of a variable"));
        }
        let user = self.credential_user.unwrap_or(USER);
        if user.is_empty() || user.len() > MAX_ADDRESS_BYTES || user.contains(char::is_control) {
            return Err(wrong(path, "has a credential_user that is no name"));
        }
        Ok(Some(Credential { variable: variable.to_owned(), user: user.to_owned() }))
    }
}

/// What is refused is not shown: there may be a password in it.
fn address(path: &GuestPath, url: &str, insecure_loopback: bool) -> Result<Address> {
    let odd = |byte: u8| byte.is_ascii_control();
    if url.is_empty() || url.len() > MAX_ADDRESS_BYTES || url.bytes().any(odd) {
        return Err(wrong(path, "has a url that is none"));
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        let first = url.split('/').next().unwrap_or_default();
        return match first.contains(':') {
            true => Err(wrong(path, "has a url like host:path").hint("Write ssh://host/path.")),
            false => Ok(Address::Directory(PathBuf::from(url))),
        };
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    let is_shown = |byte: u8| byte.is_ascii_graphic() && !b"?#\\".contains(&byte);
    match scheme {
        "https" | "http" if authority.contains('@') || rest.contains(['?', '#']) => {
            return Err(wrong(path, "has a url with more than a host and a path").hint(
                "Take user, password and query out of the url, and name the variable that holds the \
                 token: credential_env = \"NAME\".",
            ));
        }
        "ssh" if user.contains(':') => {
            return Err(wrong(path, "has a url with a password").hint("Use a key of ssh's agent."));
        }
        "https" | "http" | "ssh" => {}
        _ => {
            return Err(wrong(path, "has a url of another protocol")
                .hint("Use https://, ssh:// or the path of a directory of the host."));
        }
    }
    if host.is_empty() || host.starts_with(['-', ':']) || !host.bytes().all(is_host) {
        return Err(wrong(path, "has a url without a host"));
    }
    if user.starts_with('-') || !rest.bytes().all(is_shown) {
        return Err(wrong(path, "has a url that is none"));
    }
    let url = url.to_owned();
    if scheme == "ssh" {
        return Ok(Address::Ssh { url });
    }
    if scheme == "http" && !(insecure_loopback && is_loopback(host)) {
        return Err(wrong(path, "has a url that anybody on the way can read and change")
            .hint("Use https://; for a server of this machine set insecure_loopback = true."));
    }
    Ok(Address::Web { url, origin: format!("{scheme}://{host}") })
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn reference(path: &GuestPath, name: &str) -> Result<Reference> {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-".contains(&byte);
    let is_hex = |byte: u8| byte.is_ascii_hexdigit();
    if matches!(name.len(), 40 | 64) && name.bytes().all(is_hex) {
        return Ok(Reference::Commit(name.to_ascii_lowercase()));
    }
    let is_good = !name.is_empty()
        && name.len() <= MAX_ADDRESS_BYTES
        && !name.starts_with(['-', '/', '.'])
        && !name.contains("..")
        && name.bytes().all(is_usual);
    match is_good {
        true => Ok(Reference::Name(name.to_owned())),
        false => Err(bad_reference(path)),
    }
}

fn bad_reference(path: &GuestPath) -> Error {
    wrong(path, "has a ref that is none").hint(
        "Name a branch or a tag, in letters, digits and . _ / + -, or write a whole commit id.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(url: &str) -> Said<'_> {
        Said {
            url,
            reference: None,
            depth: None,
            credential_env: None,
            credential_user: None,
            insecure_loopback: false,
        }
    }

    fn check(said: Said<'_>) -> Result<Repository> {
        said.repository(&GuestPath::new("r").unwrap())
    }

    #[test]
    fn a_repository_is_reached_by_few_protocols_and_never_with_a_password_in_its_url() {
        for bad in [
            "",
            "http://example.org/r",
            "http://127.0.0.1/r",
            "https://user@example.org/r",
            "https://user:s3cret@example.org/r",
            "https://example.org/r?token=s3cret",
            "https://example.org/r#s3cret",
            "https:///r",
            "https://-oProxy/r",
            "https://exa mple/r",
            "https://example.org/a\nb",
            "ssh://git:s3cret@example.org/r",
            "ssh://-oProxyCommand=x/r",
            "ssh://-o@example.org/r",
            "git@example.org:s3cret",
            "ext::sh -c s3cret",
            "git://example.org/r",
            "file:///r",
            "ftp://example.org/r",
        ] {
            let error = check(said(bad)).unwrap_err();
            assert!(!error.chain().contains("s3cret"), "{bad}: {error:?}");
        }
        assert!(check(said(&"a".repeat(MAX_ADDRESS_BYTES + 1))).is_err());
        let loopback = |url| check(Said { insecure_loopback: true, ..said(url) });
        assert!(loopback("http://example.org/r").is_err());
        assert!(loopback("http://127.0.0.1.example.org/r").is_err());
        // The controls.
        assert!(loopback("http://127.0.0.1:80/r").is_ok());
        assert!(loopback("http://[::1]:80/r").is_ok());
        assert!(check(said(&"a".repeat(MAX_ADDRESS_BYTES))).is_ok());
        for (good, protocol) in [
            ("https://example.org:8443/a/r.git", "https"),
            ("ssh://git@example.org:22/r", "ssh"),
            ("../r", "file"),
            ("/a/r:s", "file"),
        ] {
            assert_eq!(check(said(good)).unwrap().address.protocol(), protocol);
        }
    }

    #[test]
    fn a_ref_is_a_name_or_a_whole_commit_and_a_depth_goes_with_a_name() {
        let with = |reference, depth| {
            check(Said { reference: Some(reference), depth, ..said("https://example.org/r") })
        };
        for bad in ["", "-b", "--upload-pack=x", "a..b", "a b", "a:b", "@{1}", "/a", "a\n"] {
            assert!(with(bad, None).is_err(), "{bad:?}");
        }
        let commit = "0123456789abcdef0123456789abcdef01234567";
        assert!(with(commit, Some(1)).is_err());
        assert!(with("main", Some(0)).is_err());
        // The controls.
        assert_eq!(
            with(commit, None).unwrap().reference,
            Some(Reference::Commit(commit.to_owned()))
        );
        let name = with("release/v1.0-rc_1", Some(1)).unwrap().reference;
        assert_eq!(name, Some(Reference::Name("release/v1.0-rc_1".to_owned())));
    }

    #[test]
    fn a_credential_is_named_and_for_web_addresses_alone() {
        let with = |url, credential_env, credential_user| {
            check(Said { credential_env, credential_user, ..said(url) })
        };
        let web = "https://example.org/r";
        assert!(with("ssh://git@example.org/r", Some("TOKEN"), None).is_err());
        assert!(with("../r", Some("TOKEN"), None).is_err());
        assert!(with(web, Some("A=B"), None).is_err());
        assert!(with(web, Some("TOKEN"), Some("a\npassword=b")).is_err());
        assert!(with(web, None, Some("me")).is_err());
        // The control.
        let credential = with(web, Some("TOKEN"), None).unwrap().credential.unwrap();
        assert_eq!((credential.variable.as_str(), credential.user.as_str()), ("TOKEN", USER));
    }
}
