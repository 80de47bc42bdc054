//! Rows as they were read last: most of a row is a specification that never changes, and to understand it
//! takes longer than to ask whether it is still the same.

use super::Row;
use crate::SessionId;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How many rows are remembered; those that were read longest ago go first.
const MAX_ROWS: usize = 64;

/// The rows that were read last, oldest first.
#[derive(Debug, Default)]
pub(super) struct ReadBefore(Mutex<VecDeque<Row>>);

impl ReadBefore {
    /// The row of this session, if it was read at this revision. Whatever changes a row gives it another.
    pub(super) fn get(&self, id: &SessionId, revision: i64) -> Option<Row> {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().rev().find(|row| row.id == *id && row.revision == revision).cloned()
    }

    pub(super) fn put(&self, row: &Row) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.retain(|known| known.id != row.id);
        rows.push_back(row.clone());
        if rows.len() > MAX_ROWS {
            rows.pop_front();
        }
    }
}
