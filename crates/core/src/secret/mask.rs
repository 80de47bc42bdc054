//! A filter that covers values in a stream of bytes.

use super::forms::{self, MAX_PATTERN_BYTES, Pattern};
use super::given::{MAX_GIVEN_BYTES, MAX_MASKED};
use super::value::SecretValue;
use crate::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// What stands for a covered value. Values that touch or overlap are covered together.
pub const MASK: &[u8] = b"***";

/// The texts that are covered. Cheap to clone.
#[derive(Clone)]
pub struct Mask(Arc<Texts>);

struct Texts {
    /// In order, each once.
    patterns: Vec<Pattern>,
    /// With which bytes they begin.
    begins: [bool; 256],
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mask").field("texts", &self.0.patterns.len()).finish_non_exhaustive()
    }
}

impl Mask {
    /// Covers these values in the forms that programs give them: as they are, in base64 wherever in
    /// an encoded text they stand, in hexadecimal digits, percent-encoded as usual and letter by letter, as
    /// strings of JSON, and line by line; each of them also where its lines are broken.
    pub fn new<'v>(values: impl IntoIterator<Item = &'v SecretValue>) -> Result<Self> {
        let (mut count, mut bytes) = (0, 0);
        let mut patterns = Vec::new();
        for value in values {
            (count, bytes) = (count + 1, bytes + value.expose().len());
            if count > MAX_MASKED || bytes > MAX_GIVEN_BYTES {
                let what = format!(
                    "the secrets are more than {MAX_MASKED}, or longer than {MAX_GIVEN_BYTES} bytes together"
                );
                return Err(Error::new(ErrorKind::TooLarge, what)
                    .hint("Give a sandbox fewer secrets, or use a new one for others."));
            }
            patterns.append(&mut forms::of(value));
        }
        Ok(Self::of(patterns))
    }

    /// Covers these texts as they are.
    pub fn of_texts(texts: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let texts = texts.into_iter().filter(|text| !text.is_empty());
        Self::of(texts.map(Zeroizing::new).collect())
    }

    fn of(mut patterns: Vec<Pattern>) -> Self {
        patterns.sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
        patterns.dedup();
        let mut begins = [false; 256];
        for first in patterns.iter().filter_map(|pattern| pattern.first()) {
            if let Some(place) = begins.get_mut(usize::from(*first)) {
                *place = true;
            }
        }
        Self(Arc::new(Texts { patterns, begins }))
    }

    /// Covers whole bytes at once.
    pub fn cover(&self, bytes: &[u8]) -> Vec<u8> {
        let (mut masker, mut out) = (Masker::new(self.clone()), Vec::with_capacity(bytes.len()));
        masker.push(bytes, &mut out);
        masker.finish(&mut out);
        out
    }

    fn may_begin(&self, byte: u8) -> bool {
        self.0.begins.get(usize::from(byte)).copied().unwrap_or_default()
    }

    /// What begins here: the longest text that stands here whole, and whether more bytes could make
    /// a longer one. A line may be broken in a text where so many of its bytes came before.
    fn look(&self, rest: &[u8], before_break: usize) -> Look {
        let mut look = Look { longest: 0, may_grow: false };
        let mut range = self.0.patterns.as_slice();
        // How many bytes are in common, and how many of the rest they take.
        let (mut depth, mut taken, mut breaks) = (0, 0, 0);
        while depth <= MAX_LOOK {
            // What is as long as the bytes in common comes first in the order.
            if let Some((first, others)) = range.split_first()
                && first.len() == depth
            {
                (look.longest, range) = (taken, others);
            }
            let Some(next) = rest.get(taken) else {
                look.may_grow = !range.is_empty();
                return look;
            };
            let at = |pattern: &Pattern| pattern.get(depth).copied().unwrap_or_default();
            let from = range.partition_point(|pattern| at(pattern) < *next);
            let to = range.partition_point(|pattern| at(pattern) <= *next);
            match range.get(from..to).unwrap_or_default() {
                [] if is_break(*next) && depth >= before_break && breaks < MAX_BREAK => {
                    breaks += 1;
                }
                [] => return look,
                narrower => (range, depth, breaks) = (narrower, depth + 1, 0),
            }
            taken += 1;
        }
        look
    }
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// LIMIT: texts as they are may be longer than those of values, and are compared this far.
const MAX_LOOK: usize = 4 * MAX_PATTERN_BYTES;
/// How much of a text comes before its line may be broken. With less, the end of about any line would wait for
/// the next one.
pub(super) const MIN_BEFORE_BREAK: usize = 4;
/// The bytes of one line break, which a text may have between any two of its bytes: encoders break lines, and
/// where depends on what they encode beside it.
const MAX_BREAK: usize = 2;

struct Look {
    longest: usize,
    may_grow: bool,
}

/// Covers values in a stream that comes in pieces, wherever the pieces are cut.
///
/// It holds back only what may be the beginning of a text: less than one text and the breaks of its lines.
#[derive(Debug)]
pub struct Masker {
    mask: Mask,
    held: Held,
    /// How many of the bytes that come next are covered.
    covered: usize,
    /// Whether the byte before was.
    is_covering: bool,
    /// Whether any was.
    has_covered: bool,
}

/// Bytes that are not to be printed.
struct Held(Zeroizing<Vec<u8>>);

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Masker {
    /// Begins a stream.
    pub fn new(mask: Mask) -> Self {
        Self {
            mask,
            held: Held(Zeroizing::new(Vec::new())),
            covered: 0,
            is_covering: false,
            has_covered: false,
        }
    }

    /// Covers more texts from here on. What was held back is looked at again.
    pub fn set_mask(&mut self, mask: Mask) {
        self.mask = mask;
    }

    /// Takes a piece, and adds to `out` what can be said of it.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if self.held.0.is_empty() {
            let rest = self.pass(piece, out, false);
            self.held.0.extend_from_slice(rest);
            return;
        }
        let mut held = std::mem::take(&mut self.held.0);
        held.extend_from_slice(piece);
        let rest = self.pass(&held, out, false).len();
        let done = held.len() - rest;
        held.drain(..done);
        self.held.0 = held;
    }

    /// Adds what was held back: nothing more comes.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held.0);
        self.pass(&held, out, true);
        (self.covered, self.is_covering) = (0, false);
    }

    /// Whether there was something to cover.
    pub fn has_covered(&self) -> bool {
        self.has_covered
    }

    /// How many bytes wait for what follows them.
    pub fn held(&self) -> usize {
        self.held.0.len()
    }

    /// Gives what has to wait.
    fn pass<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>, is_last: bool) -> &'b [u8] {
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            if self.covered == 0 && !self.mask.may_begin(*first) {
                let begins = rest.iter().position(|byte| self.mask.may_begin(*byte));
                let (plain, others) = rest.split_at(begins.unwrap_or(rest.len()));
                out.extend_from_slice(plain);
                (self.is_covering, rest) = (false, others);
                continue;
            }
            // What continues a covered text may be broken anywhere.
            let before_break = if self.is_covering { 1 } else { MIN_BEFORE_BREAK };
            let look = self.mask.look(rest, before_break);
            if look.may_grow && !is_last {
                return rest;
            }
            self.covered = self.covered.max(look.longest);
            self.has_covered |= look.longest > 0;
            match self.covered.checked_sub(1) {
                None => {
                    out.push(*first);
                    self.is_covering = false;
                }
                Some(left) => {
                    if !self.is_covering {
                        out.extend_from_slice(MASK);
                    }
                    (self.covered, self.is_covering) = (left, true);
                }
            }
            rest = after;
        }
        rest
    }
}
