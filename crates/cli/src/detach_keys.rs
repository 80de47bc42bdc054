//! Keys that leave a terminal: found among what is typed, and never passed on.

use crate::args::DetachKeys;

/// Looks for the keys that leave a terminal in what is typed.
#[derive(Debug)]
pub(crate) struct KeyWatch {
    keys: Vec<u8>,
    /// How many of the keys were typed last; they are held back.
    held: usize,
}

/// What is passed on of what was typed, and whether the keys came after it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    /// To be passed on.
    pub(crate) bytes: Vec<u8>,
    /// The keys were typed; what follows them is dropped.
    pub(crate) leaves: bool,
}

impl KeyWatch {
    /// Looks for these keys.
    pub(crate) fn new(keys: &DetachKeys) -> Self {
        Self { keys: keys.bytes().to_vec(), held: 0 }
    }

    /// Takes what was typed.
    pub(crate) fn take(&mut self, typed: &[u8]) -> Typed {
        let mut bytes = Vec::with_capacity(typed.len() + self.held);
        for byte in typed {
            // Keys are few: what is held back is tried again from each of its places.
            let mut tail: Vec<u8> = self.keys.iter().copied().take(self.held).collect();
            tail.push(*byte);
            while !self.keys.starts_with(&tail) {
                bytes.push(tail.remove(0));
            }
            self.held = tail.len();
            if self.held > 0 && self.held == self.keys.len() {
                return Typed { bytes, leaves: true };
            }
        }
        Typed { bytes, leaves: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &str, typed: &[&[u8]], passed: &[u8], leaves: bool) {
        let mut watch = KeyWatch::new(&DetachKeys::parse(keys).unwrap());
        let mut bytes = Vec::new();
        for piece in typed {
            let taken = watch.take(piece);
            bytes.extend(taken.bytes);
            if taken.leaves {
                assert!(leaves);
                assert_eq!(bytes, passed);
                return;
            }
        }
        assert!(!leaves);
        assert_eq!(bytes, passed);
    }

    #[test]
    fn keys_are_found_however_they_arrive_and_others_pass() {
        check("ctrl-p,ctrl-q", &[b"ab\x10\x11cd"], b"ab", true);
        check("ctrl-p,ctrl-q", &[b"ab\x10", b"\x11"], b"ab", true);
        check("ctrl-p,ctrl-q", &[b"\x10", b"x\x10\x10\x11"], b"\x10x\x10", true);
        check("a,a,b", &[b"aaab"], b"a", true);
        check("a,b,a,c", &[b"ababac"], b"ab", true);
        check("ctrl-p,ctrl-q", &[b"\x11\x10"], b"\x11", false);
        check("none", &[b"\x10\x11x"], b"\x10\x11x", false);
    }
}
