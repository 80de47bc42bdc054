//! How much is copied at most, what was, and who is told meanwhile.

use crate::layers::listing::Listing;
use crate::layers::walk::MAX_LAYER_ENTRIES;
use cofferdam_core::{Error, ErrorKind, LayerTier, Result};
use std::sync::OnceLock;

/// How many entries of a workspace are copied: as many as can be looked at afterwards.
pub const MAX_COPIED_ENTRIES: usize = MAX_LAYER_ENTRIES;
/// How many bytes of content are copied, holes and what is shared on disk left out.
pub const MAX_COPIED_BYTES: u64 = 16 << 30;
/// How many of those that are left out are named.
const MAX_NAMED: usize = 16;
/// The longest name of those, in characters.
const MAX_NAME: usize = 200;

/// What came of copying.
#[derive(Debug)]
pub(crate) struct Copied {
    /// How it was copied.
    pub(crate) tier: LayerTier,
    /// What is not in the copy, or not as of one moment.
    pub(crate) left_out: LeftOut,
    /// Files and directories.
    pub(crate) entries: u64,
    /// Bytes of content that were written.
    pub(crate) bytes: u64,
    pub(in crate::layers) listing: Listing,
    /// The last time of change in the copy. Nobody may change it before that is over, or it would be seen as nothing.
    pub(in crate::layers) last_ns: u64,
}

/// What was left out, each with the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// The first of them.
    pub(crate) first: Vec<String>,
    /// How many more.
    pub(crate) more: u64,
}

/// How far a copy has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files and directories so far.
    pub entries: u64,
    /// Bytes of content so far.
    pub bytes: u64,
    /// Whether that was all.
    pub is_over: bool,
}

/// Who is told how far copies have come, many times a second.
static WATCHER: OnceLock<fn(Progress)> = OnceLock::new();

/// Has this called while a workspace is copied in this process. The first who asks is told.
pub fn watch(watcher: fn(Progress)) {
    // Somebody else is told already.
    let _ = WATCHER.set(watcher);
}

/// What a copy may cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) entries: usize,
    pub(super) bytes: u64,
}

impl Bounds {
    pub(super) const DEFAULT: Self = Self { entries: MAX_COPIED_ENTRIES, bytes: MAX_COPIED_BYTES };

    pub(super) fn count(self, copied: &mut Copied, entries: u64, bytes: u64) -> Result<()> {
        copied.entries += entries;
        copied.bytes = copied.bytes.saturating_add(bytes);
        if copied.entries > self.entries as u64 {
            return Err(self.too_many());
        }
        if copied.bytes > self.bytes {
            return Err(too_large(&format!("{} bytes", self.bytes)));
        }
        copied.tell(false);
        Ok(())
    }

    pub(super) fn too_many(self) -> Error {
        too_large(&format!("{} entries", self.entries))
    }
}

fn too_large(most: &str) -> Error {
    let what = format!("the workspace cannot be copied: it holds more than {most}");
    Error::new(ErrorKind::TooLarge, what).hint(
        "Name a smaller directory, or leave --cow out; `cofferdam doctor` says why there is no \
         overlay, which copies nothing.",
    )
}

impl Copied {
    pub(super) fn tell(&self, is_over: bool) {
        if let Some(watcher) = WATCHER.get() {
            watcher(Progress { entries: self.entries, bytes: self.bytes, is_over });
        }
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.tell(true);
    }
}

impl Default for Copied {
    fn default() -> Self {
        Self {
            tier: LayerTier::Copy,
            left_out: LeftOut::default(),
            entries: 0,
            bytes: 0,
            listing: Listing::default(),
            last_ns: 0,
        }
    }
}

impl LeftOut {
    pub(super) fn add(&mut self, path: &[u8], why: &str) {
        if self.first.len() >= MAX_NAMED {
            self.more += 1;
            return;
        }
        let path: String = String::from_utf8_lossy(path).chars().take(MAX_NAME).collect();
        self.first.push(format!("{path}: {why}"));
    }
}
