//! Looks for words in a stream that must not go where it goes.

use cofferdam_core::Result;
use cofferdam_core::secret::{Mask, Masker, SecretName, SecretValue};

/// A word that was on its way to where it must not go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The secret whose placeholder it is; `None` for a canary.
    pub secret: Option<SecretName>,
    /// The host that it was on its way to.
    pub host: String,
}

/// Looks through one direction of one connection, wherever its pieces are cut.
///
/// It finds words as they are, in base64 and percent-encoded.
#[derive(Debug)]
pub struct Watch {
    words: Vec<(Option<SecretName>, Masker)>,
    host: String,
}

impl Watch {
    /// For these words, on the way to this host.
    pub(crate) fn new(words: &[Word], host: &str) -> Self {
        let words = words.iter().map(|word| (word.secret.clone(), Masker::new(word.mask.clone())));
        Self { words: words.collect(), host: host.to_owned() }
    }

    /// Looks at the next piece.
    pub fn look(&mut self, piece: &[u8]) -> Option<Sighting> {
        let mut unused = Vec::new();
        let seen = self.words.iter_mut().find_map(|(secret, masker)| {
            unused.clear();
            masker.push(piece, &mut unused);
            masker.has_covered().then(|| secret.clone())
        })?;
        Some(Sighting { secret: seen, host: self.host.clone() })
    }

    /// Looks at the end: nothing more comes.
    pub fn finish(&mut self) -> Option<Sighting> {
        let mut unused = Vec::new();
        let seen = self.words.iter_mut().find_map(|(secret, masker)| {
            masker.finish(&mut unused);
            masker.has_covered().then(|| secret.clone())
        })?;
        Some(Sighting { secret: seen, host: self.host.clone() })
    }
}

/// A word to look for.
#[derive(Debug, Clone)]
pub(crate) struct Word {
    pub(crate) secret: Option<SecretName>,
    mask: Mask,
}

impl Word {
    pub(crate) fn new(secret: Option<SecretName>, text: &str) -> Result<Self> {
        let value = SecretValue::new(text.as_bytes().to_vec())?;
        Ok(Self { secret, mask: Mask::new([&value])? })
    }
}
