//! How much of a file has passed, and its hash.

use cofferdam_wire::hexadecimal;
use sha2::{Digest, Sha256};

/// How much passes between two signs of life to the host.
const SIGN_EVERY_BYTES: u64 = 16 << 20;

/// The bytes that passed.
pub(super) struct Tally {
    hash: Sha256,
    bytes: u64,
    signed: u64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self { hash: Sha256::new(), bytes: 0, signed: 0 }
    }

    pub(super) fn add(&mut self, piece: &[u8]) {
        self.hash.update(piece);
        self.bytes += piece.len() as u64;
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether so much has passed since the last time that a sign of life is due.
    pub(super) fn owes_a_sign(&mut self) -> bool {
        let owes = self.bytes - self.signed >= SIGN_EVERY_BYTES;
        if owes {
            self.signed = self.bytes;
        }
        owes
    }

    /// The hash in hexadecimal.
    pub(super) fn sha256(self) -> String {
        hexadecimal(self.hash.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From FIPS 180-4.
    #[test]
    fn a_hash_is_what_everybody_else_gets() {
        let mut tally = Tally::new();
        tally.add(b"a");
        tally.add(b"bc");
        assert_eq!(tally.bytes(), 3);
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(tally.sha256(), known);
    }
}
