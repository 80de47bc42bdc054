//! Secrets that a command has to have as they are.

use super::name::SecretName;
use super::value::{MAX_SECRET_BYTES, SecretValue};
use crate::{Error, ErrorKind, Result};
use std::fmt;

/// Where files with secrets are inside: in memory, and in no workspace, layer or snapshot.
pub const SECRETS_DIRECTORY: &str = cofferdam_wire::message::HANDED_DIRECTORY;
/// How many secrets a command may be given.
pub const MAX_GIVEN: usize = cofferdam_wire::message::MAX_HANDED;
/// How many secrets one sandbox may ever be given.
pub(super) const MAX_MASKED: usize = 64;
/// How long all secrets of a sandbox may be together, in bytes.
pub const MAX_GIVEN_BYTES: usize = 4 * MAX_SECRET_BYTES;
/// The first descriptor that is not one of the three streams.
const FIRST_DESCRIPTOR: u32 = 3;
/// The last descriptor that a command may be given a secret as.
const LAST_DESCRIPTOR: u32 = 99;
/// The longest name of a file.
const MAX_FILE_NAME_BYTES: usize = 255;

/// How a command gets a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretPlace {
    /// As a file of this name in [`SECRETS_DIRECTORY`] that it alone may read, until the command ends.
    File(String),
    /// As this descriptor.
    Descriptor(u32),
}

/// A secret by its name, and how a command is to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretWish {
    /// Which.
    pub name: SecretName,
    /// How.
    pub place: SecretPlace,
}

/// A secret that a command gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenSecret {
    /// Its value.
    pub value: SecretValue,
    /// How the command gets it.
    pub place: SecretPlace,
}

impl SecretWish {
    /// Reads `NAME` or `NAME=PATH`, where the path is one of [`SECRETS_DIRECTORY`].
    pub fn file(text: &str) -> Result<Self> {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (SecretName::new(name)?, path),
            None => (SecretName::new(text)?, text),
        };
        let file = path.strip_prefix(SECRETS_DIRECTORY).and_then(|rest| rest.strip_prefix('/'));
        let file = file.unwrap_or(path);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if file.is_empty()
            || file.len() > MAX_FILE_NAME_BYTES
            || file.starts_with('.')
            || !file.chars().all(is_plain)
        {
            let what = format!("{path:?} cannot be the file of secret {name}");
            return Err(Error::new(ErrorKind::Usage, what).hint(format!(
                "Write {name}=FILE or {name}={SECRETS_DIRECTORY}/FILE, with letters, digits, '-', '_' and '.'."
            )));
        }
        Ok(Self { name, place: SecretPlace::File(file.to_owned()) })
    }

    /// Reads `NAME=N`.
    pub fn descriptor(text: &str) -> Result<Self> {
        let Some((name, number)) = text.split_once('=') else {
            return Err(Error::new(ErrorKind::Usage, "the number of a descriptor is missing")
                .hint("Write NAME=N, as in TOKEN=3."));
        };
        let name = SecretName::new(name)?;
        let allowed = FIRST_DESCRIPTOR..=LAST_DESCRIPTOR;
        match number.parse().ok().filter(|number| allowed.contains(number)) {
            Some(number) => Ok(Self { name, place: SecretPlace::Descriptor(number) }),
            None => {
                let what = format!("{number:?} cannot be the descriptor of secret {name}");
                Err(Error::new(ErrorKind::Usage, what).hint(format!(
                    "Use a number from {FIRST_DESCRIPTOR} to {LAST_DESCRIPTOR}, as in {name}=3."
                )))
            }
        }
    }

    /// Fails where there are too many, or two want one place.
    pub fn check(all: &[Self]) -> Result<()> {
        if all.len() > MAX_GIVEN {
            let what = format!("a command cannot be given more than {MAX_GIVEN} secrets");
            return Err(Error::new(ErrorKind::Usage, what).hint("Put some of them into one."));
        }
        for (at, wish) in all.iter().enumerate() {
            if all.iter().skip(at + 1).any(|other| other.place == wish.place) {
                let what = format!("two secrets are to be {}", wish.place);
                return Err(Error::new(ErrorKind::Usage, what)
                    .hint("Give each a place of its own, with NAME=PLACE."));
            }
        }
        Ok(())
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => write!(f, "{SECRETS_DIRECTORY}/{name}"),
            Self::Descriptor(number) => write!(f, "descriptor {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Option<String> {
        match SecretWish::file(text).ok()?.place {
            SecretPlace::File(name) => Some(name),
            SecretPlace::Descriptor(_) => None,
        }
    }

    #[test]
    fn a_file_of_a_secret_stays_in_its_directory() {
        assert_eq!(file("TOKEN").as_deref(), Some("TOKEN"));
        assert_eq!(file("TOKEN=key.pem").as_deref(), Some("key.pem"));
        assert_eq!(file("TOKEN=/run/secrets/x").as_deref(), Some("x"));
        for bad in
            ["", "=x", "T=", "T=/etc/x", "T=../x", "T=a/b", "T=.x", "T=/run/secrets/", "T=a b"]
        {
            assert_eq!(file(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_descriptor_of_a_secret_is_none_of_the_three_streams() {
        let number = |text: &str| SecretWish::descriptor(text).ok().map(|wish| wish.place);
        assert_eq!(number("T=3"), Some(SecretPlace::Descriptor(3)));
        assert_eq!(number("T=99"), Some(SecretPlace::Descriptor(99)));
        for bad in ["T", "T=", "T=2", "T=100", "T=x", "=3", "T=-1"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }

    #[test]
    fn places_are_given_once_and_only_so_many() {
        let wish = |text: &str| SecretWish::file(text).unwrap();
        assert!(SecretWish::check(&[wish("A"), wish("B"), wish("A=c")]).is_ok());
        assert!(SecretWish::check(&[wish("A"), wish("B=A")]).is_err());
        let many: Vec<SecretWish> = (0..=MAX_GIVEN).map(|n| wish(&format!("S{n}"))).collect();
        assert!(SecretWish::check(&many[1..]).is_ok() && SecretWish::check(&many).is_err());
    }
}
