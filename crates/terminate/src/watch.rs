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
/// It finds words as they are, in base64, and however percent-encoded, once or letter by letter.
#[derive(Debug)]
pub struct Watch {
    words: Vec<Word>,
    plain: Vec<Masker>,
    /// The same stream decoded, from its first percent sign on.
    decoded: Option<(Decoder, Vec<Masker>)>,
    /// What came last before that: a word may begin in there.
    tail: Vec<u8>,
    host: String,
}

/// As much as the longest form of a word that is looked for.
const TAIL_BYTES: usize = 1024;

impl Watch {
    /// For these words, on the way to this host.
    pub(crate) fn new(words: &[Word], host: &str) -> Self {
        let (plain, words) = (maskers(words), words.to_vec());
        Self { words, plain, decoded: None, tail: Vec::new(), host: host.to_owned() }
    }

    /// Looks at the next piece.
    pub fn look(&mut self, piece: &[u8]) -> Option<Sighting> {
        let seen = seen(&mut self.plain, piece).or_else(|| self.look_decoded(piece))?;
        self.sighting(seen)
    }

    fn look_decoded(&mut self, piece: &[u8]) -> Option<usize> {
        if self.decoded.is_none() && !piece.contains(&b'%') {
            let last = piece.len().saturating_sub(TAIL_BYTES);
            self.tail.extend_from_slice(piece.get(last..).unwrap_or_default());
            let old = self.tail.len().saturating_sub(TAIL_BYTES);
            self.tail.drain(..old);
            return None;
        }
        let (decoder, maskers) = match &mut self.decoded {
            Some(decoded) => decoded,
            None => {
                let mut maskers = maskers(&self.words);
                seen(&mut maskers, &std::mem::take(&mut self.tail));
                self.decoded.insert((Decoder::default(), maskers))
            }
        };
        seen(maskers, &decoder.decode(piece))
    }

    fn sighting(&self, seen: usize) -> Option<Sighting> {
        let secret = self.words.get(seen)?.secret.clone();
        Some(Sighting { secret, host: self.host.clone() })
    }

    /// Looks at the end: nothing more comes.
    pub fn finish(&mut self) -> Option<Sighting> {
        let mut unused = Vec::new();
        let decoded =
            self.decoded.iter_mut().flat_map(|(_, maskers)| maskers.iter_mut().enumerate());
        let mut all = self.plain.iter_mut().enumerate().chain(decoded);
        let seen = all.find_map(|(number, masker)| {
            masker.finish(&mut unused);
            masker.has_covered().then_some(number)
        })?;
        self.sighting(seen)
    }
}

fn maskers(words: &[Word]) -> Vec<Masker> {
    words.iter().map(|word| Masker::new(word.mask.clone())).collect()
}

/// Which of them found its word, with the next piece.
fn seen(maskers: &mut [Masker], piece: &[u8]) -> Option<usize> {
    let mut unused = Vec::new();
    maskers.iter_mut().position(|masker| {
        unused.clear();
        masker.push(piece, &mut unused);
        masker.has_covered()
    })
}

/// Undoes percent-encoding, wherever pieces are cut. What is none stays as it is.
#[derive(Debug, Default)]
struct Decoder {
    /// A percent sign and the digit after it.
    begun: Vec<u8>,
}

impl Decoder {
    fn decode(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(piece.len());
        for &byte in piece {
            match (self.begun.as_slice(), byte.is_ascii_hexdigit()) {
                ([], _) if byte != b'%' => out.push(byte),
                ([_], true) => self.begun.push(byte),
                ([_, high], true) => {
                    out.push(digit(*high) << 4 | digit(byte));
                    self.begun.clear();
                }
                (_, _) => {
                    out.append(&mut self.begun);
                    if byte == b'%' {
                        self.begun.push(byte);
                    } else {
                        out.push(byte);
                    }
                }
            }
        }
        out
    }
}

/// What a hexadecimal digit is worth.
fn digit(byte: u8) -> u8 {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;

    const PLACEHOLDER: &str = "cofferdam-0123456789abcdef-secret";

    fn found(pieces: &[&[u8]]) -> bool {
        let word = Word::new(None, PLACEHOLDER).unwrap();
        let mut watch = Watch::new(&[word], "h");
        pieces.iter().any(|piece| watch.look(piece).is_some()) || watch.finish().is_some()
    }

    fn encoded(which: impl Fn(usize) -> bool, lower: bool) -> Vec<u8> {
        let letters = PLACEHOLDER.bytes().enumerate().map(|(place, byte)| match which(place) {
            true if lower => format!("%{byte:02x}"),
            true => format!("%{byte:02X}"),
            false => char::from(byte).to_string(),
        });
        format!("GET /?q={}&x=1 ", letters.collect::<String>()).into_bytes()
    }

    #[test]
    fn a_word_is_found_however_it_is_percent_encoded_and_cut() {
        for lower in [false, true] {
            for text in [
                encoded(|_| false, lower),
                encoded(|_| true, lower),
                encoded(|place| place % 2 == 1, lower),
                encoded(|place| place == 9, lower),
                encoded(|place| place == PLACEHOLDER.len() - 1, lower),
                // What precedes it is not part of it.
                [b"100%".as_slice(), &encoded(|place| place == 3, lower)].concat(),
                [b"%".as_slice(), PLACEHOLDER.as_bytes()].concat(),
                [b"%c".as_slice(), PLACEHOLDER.as_bytes()].concat(),
            ] {
                assert!(found(&[&text]), "{}", String::from_utf8_lossy(&text));
                let bytes: Vec<&[u8]> = text.chunks(1).collect();
                assert!(found(&bytes), "byte by byte: {}", String::from_utf8_lossy(&text));
            }
        }
        assert!(!found(&[b"GET /?q=%63%6f%66%66 cofferdam-0123456789abcde-%73ecret"]));
    }
}
