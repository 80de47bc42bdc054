//! Where a server is.

use cofferdam_core::{Error, ErrorKind, Result};
use reqwest::Url;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// The name that every machine has for itself.
const LOCALHOST: &str = "localhost";

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(pub(crate) Way);

/// The way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// Over TCP, perhaps with TLS.
    Tcp(Url),
    /// By the file of a socket.
    Unix(PathBuf),
}

impl Address {
    /// Reads `http://HOST[:PORT]`, `https://HOST[:PORT]`, each perhaps with a path that a proxy has the
    /// server under, or `unix:///PATH`.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("unix://") {
            if !path.starts_with('/') || path.contains('\0') {
                return Err(wrong(text, "the path of a socket is absolute"));
            }
            return Ok(Self(Way::Unix(PathBuf::from(path))));
        }
        let Ok(mut url) = Url::parse(text) else {
            return Err(wrong(text, "it is no address"));
        };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(text, "it is neither http, https nor unix"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            // Not repeated: somebody took it for the place of a key.
            let what = "the address of the server holds a name or a password";
            return Err(Error::new(ErrorKind::Usage, what)
                .hint("Leave it out; a key is given by COFFERDAM_KEY or in a file."));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong(text, "it holds a ? or a #"));
        }
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        Ok(Self(Way::Tcp(url)))
    }

    /// Whether nobody else hears what is said there: this machine, or TLS.
    pub(crate) fn is_private(&self) -> bool {
        match &self.0 {
            Way::Unix(_) => true,
            Way::Tcp(url) => url.scheme() == "https" || self.is_near(),
        }
    }

    /// The path that a proxy has the server under, if the address has one.
    pub(crate) fn path(&self) -> Option<&str> {
        match &self.0 {
            Way::Tcp(url) => Some(url.path().trim_end_matches('/')).filter(|path| !path.is_empty()),
            Way::Unix(_) => None,
        }
    }

    /// Whether it is on this machine.
    pub(crate) fn is_near(&self) -> bool {
        match &self.0 {
            Way::Unix(_) => true,
            Way::Tcp(url) => {
                let host = url.host_str().unwrap_or_default();
                let digits = host.trim_start_matches('[').trim_end_matches(']');
                let is_loopback = |address: IpAddr| address.is_loopback();
                host == LOCALHOST || digits.parse().is_ok_and(is_loopback)
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Way::Tcp(url) => f.write_str(url.as_str().trim_end_matches('/')),
            Way::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

fn wrong(text: &str, why: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("{text:?} is no server: {why}"))
        .hint("Write http://HOST:PORT, https://HOST or unix:///PATH.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_an_address_or_a_socket() {
        for (text, shown, private) in [
            ("http://127.0.0.1:7070", "http://127.0.0.1:7070", true),
            ("http://[::1]:7070/", "http://[::1]:7070", true),
            ("http://localhost", "http://localhost", true),
            ("http://10.0.0.1:80", "http://10.0.0.1", false),
            ("http://127.0.0.1.example", "http://127.0.0.1.example", false),
            ("https://a.example/cofferdam", "https://a.example/cofferdam", true),
            ("unix:///run/c.sock", "unix:///run/c.sock", true),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(address.is_private(), private, "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused_with_what_to_write() {
        for text in [
            "",
            "127.0.0.1:7070",
            "ftp://a",
            "unix://run/c",
            "unix:/run/c",
            "http://",
            "http://a?x",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{text}");
            assert!(error.hint.is_some(), "{text}");
        }
        let error = Address::parse("http://canary@a").unwrap_err();
        assert!(!format!("{error:?}").contains("canary"));
    }
}
