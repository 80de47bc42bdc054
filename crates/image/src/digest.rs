//! Names of content.

use cofferdam_core::{Error, ErrorKind, Result, hexadecimal};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

/// The SHA-256 of some bytes, written `sha256:` and 64 hexadecimal digits. No other algorithm is
/// understood.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// What leads a digest.
const LEAD: &str = "sha256:";

impl Digest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_hash(Sha256::new_with_prefix(bytes))
    }

    fn from_hash(hash: Sha256) -> Self {
        Self(format!("{LEAD}{}", hexadecimal(hash.finalize())))
    }

    /// The digits alone. They are a safe name of a file.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix(LEAD).unwrap_or_default()
    }

    /// The whole.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let hex = text.strip_prefix(LEAD).unwrap_or_default();
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if hex.len() == 64 && hex.bytes().all(is_digit) {
            return Ok(Self(text.to_owned()));
        }
        let shown: String = text.chars().take(80).collect();
        Err(Error::new(ErrorKind::Unsupported, format!("{shown:?} is no digest of SHA-256")).hint(
            "Write sha256: and all of its 64 hexadecimal digits; no other algorithm is used.",
        ))
    }
}

impl TryFrom<String> for Digest {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

/// A reader that hashes and counts what passes.
pub(crate) struct Hashing<R> {
    inner: R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> Hashing<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0 }
    }

    /// How much has passed.
    pub(crate) fn passed(&self) -> u64 {
        self.bytes
    }

    /// Of all that has passed.
    pub(crate) fn digest(&self) -> Digest {
        Digest::from_hash(self.hash.clone())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(buffer.get(..count).unwrap_or_default());
        self.bytes += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of nothing at all.
    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_is_that_of_the_standard() {
        assert_eq!(Digest::of(b"").as_str(), EMPTY);
        let mut hashing = Hashing::new(&b"abc"[..]);
        io::copy(&mut hashing, &mut io::sink()).unwrap();
        assert_eq!((hashing.digest(), hashing.passed()), (Digest::of(b"abc"), 3));
    }

    #[test]
    fn only_sha256_in_small_digits_is_a_digest() {
        assert!(EMPTY.parse::<Digest>().is_ok());
        let hex = &EMPTY[7..];
        for text in [
            hex.to_owned(),
            format!("sha512:{hex}"),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha256:../{}", &hex[3..]),
            format!("{EMPTY}0"),
        ] {
            assert_eq!(text.parse::<Digest>().unwrap_err().kind, ErrorKind::Unsupported, "{text}");
        }
    }
}
