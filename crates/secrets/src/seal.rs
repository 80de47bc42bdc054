//! Encryption that also tells who changed something: ChaCha20 with Poly1305.

use cofferdam_core::{Error, ErrorKind, Result};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// How long a key is.
pub(crate) const KEY_BYTES: usize = 32;

/// A key in memory. It is overwritten when it is dropped.
pub(crate) type Key = Zeroizing<[u8; KEY_BYTES]>;

/// A new key.
pub(crate) fn random_key() -> Result<Key> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    fill(key.as_mut_slice())?;
    Ok(key)
}

/// Fills with random bytes of the kernel's.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<()> {
    let wanted = bytes.len();
    match rustix::rand::getrandom(bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(got) if got == wanted => Ok(()),
        Ok(_) => Err(Error::new(ErrorKind::Io, "get random bytes")),
        Err(errno) => Err(Error::new(ErrorKind::Io, "get random bytes").source(errno)),
    }
}

/// Encrypts; `about` is not hidden, and nothing else opens it again.
///
/// The nonce is random and stands before the result. A key seals a few thousand values in its life, so
/// that two are alike is out of the question.
pub(crate) fn seal(key: &Key, about: &[u8], plain: &[u8]) -> Result<Vec<u8>> {
    let failed = || Error::new(ErrorKind::Io, "encrypt the value");
    let mut nonce = [0; NONCE_LEN];
    fill(&mut nonce)?;
    let key = cipher(key).ok_or_else(failed)?;
    let mut buffer = Zeroizing::new(plain.to_vec());
    let nonce_of = Nonce::assume_unique_for_key(nonce);
    let tag = key
        .seal_in_place_separate_tag(nonce_of, Aad::from(about), buffer.as_mut_slice())
        .map_err(|_| failed())?;
    Ok([&nonce[..], &buffer, tag.as_ref()].concat())
}

/// Decrypts what [`seal`] made of the same key and `about`. `None` where it is anything else.
pub(crate) fn open(key: &Key, about: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, rest) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let mut buffer = Zeroizing::new(rest.to_vec());
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let len = cipher(key)?.open_in_place(nonce, Aad::from(about), &mut buffer).ok()?.len();
    buffer.truncate(len);
    Some(buffer)
}

/// LIMIT: `ring` keeps a copy of the key as long as this lives, and does not overwrite it.
fn cipher(key: &Key) -> Option<LessSafeKey> {
    UnboundKey::new(&CHACHA20_POLY1305, key.as_slice()).ok().map(LessSafeKey::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_words_open_what_was_sealed() {
        let (key, other) = (random_key().unwrap(), random_key().unwrap());
        let sealed = seal(&key, b"about", b"value").unwrap();
        assert_eq!(open(&key, b"about", &sealed).unwrap().as_slice(), b"value");
        assert!(open(&other, b"about", &sealed).is_none());
        assert!(open(&key, b"About", &sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(&key, b"about", &changed).is_none(), "{at}");
            assert!(open(&key, b"about", &sealed[..at]).is_none(), "{at}");
        }
        assert_ne!(sealed, seal(&key, b"about", b"value").unwrap());
        assert!(!sealed.windows(5).any(|bytes| bytes == b"value"));
    }
}
