//! How much of a landing is made ready.

use super::super::changes::Item;
use cofferdam_core::{Progress, Step, Unit};

/// Files of this size on average take their time one by one, so that their bytes are told.
const LARGE_BYTES: u64 = 64 << 10;

/// The share of what lands that is made ready, and who is told.
pub(super) struct Share<'s> {
    progress: &'s Progress,
    unit: Unit,
    total: u64,
    done: u64,
}

impl<'s> Share<'s> {
    /// Of all these: in bytes where files are large, otherwise in entries.
    pub(super) fn of(items: &[Item], progress: &'s Progress) -> Self {
        let entries = items.len() as u64;
        let bytes = items.iter().fold(0_u64, |sum, item| sum.saturating_add(size(item)));
        let (unit, total) = match bytes > entries.saturating_mul(LARGE_BYTES) {
            true => (Unit::Bytes, bytes),
            false => (Unit::Entries, entries),
        };
        Self { progress, unit, total, done: 0 }
    }

    /// So much of the file at hand is there.
    pub(super) fn within(&self, bytes: u64) {
        if self.unit == Unit::Bytes {
            self.tell(bytes);
        }
    }

    /// One more is done.
    pub(super) fn pass(&mut self, item: &Item) {
        self.done = self.done.saturating_add(match self.unit {
            Unit::Bytes => size(item),
            Unit::Entries | Unit::Repositories => 1,
        });
        self.tell(0);
    }

    fn tell(&self, more: u64) {
        let done = self.done.saturating_add(more);
        self.progress.tell(Step { done, total: Some(self.total), unit: self.unit });
    }
}

/// How many bytes are made ready for one.
fn size(item: &Item) -> u64 {
    item.change.after.as_ref().map_or(0, |after| after.size)
}
