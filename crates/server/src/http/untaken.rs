//! Answers that nobody has taken yet, which lie in memory until then.

use super::error::Problem;
use axum::http::StatusCode;
use cofferdam_core::{Error, ErrorKind};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes of one owner's answers that were not taken yet, the largest of them aside: who waits for one large
/// answer has others beside it, however large that is.
pub(crate) const MAX_UNTAKEN_BYTES: u64 = 64 << 20;

/// How long the answers of each owner are that were not taken yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Untaken(Arc<Mutex<HashMap<String, Vec<u64>>>>);

/// One of them, until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    all: Untaken,
    owner: String,
    bytes: u64,
}

impl Untaken {
    /// Refuses what an owner asks for of whom so much waits that nothing more has room.
    pub(crate) fn check(&self, owner: &str) -> Result<(), Problem> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        has_room(all.get(owner).map(Vec::as_slice).unwrap_or_default(), 1)
    }

    /// One more answer, if it has room.
    pub(crate) fn take(&self, owner: &str, bytes: u64) -> Result<Waiting, Problem> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        has_room(all.get(owner).map(Vec::as_slice).unwrap_or_default(), bytes)?;
        Ok(self.count(&mut all, owner, bytes))
    }

    /// One more answer that is given in any case.
    pub(crate) fn add(&self, owner: &str, bytes: u64) -> Waiting {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.count(&mut all, owner, bytes)
    }

    fn count(&self, all: &mut HashMap<String, Vec<u64>>, owner: &str, bytes: u64) -> Waiting {
        all.entry(owner.to_owned()).or_default().push(bytes);
        Waiting { all: self.clone(), owner: owner.to_owned(), bytes }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(waiting) = all.get_mut(&self.owner) else { return };
        // Of several of the same length any will do.
        if let Some(at) = waiting.iter().position(|bytes| *bytes == self.bytes) {
            waiting.swap_remove(at);
        }
        if waiting.is_empty() {
            all.remove(&self.owner);
        }
    }
}

/// Refuses an answer of so many bytes beside those that wait.
fn has_room(waiting: &[u64], bytes: u64) -> Result<(), Problem> {
    let largest = waiting.iter().copied().fold(bytes, u64::max);
    let beside = waiting.iter().fold(bytes, |sum, more| sum.saturating_add(*more)) - largest;
    if beside <= MAX_UNTAKEN_BYTES {
        return Ok(());
    }
    let what = format!(
        "answers of this caller that nobody has read yet would have more than \
         {MAX_UNTAKEN_BYTES} bytes, the largest of them aside"
    );
    let error = Error::new(ErrorKind::Unavailable, what)
        .hint("Read the answers that were asked for, or hang up, and ask again.");
    Err(Problem::with_status(StatusCode::TOO_MANY_REQUESTS, error).retry_after(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_one_owner_that_wait_have_a_limit_and_one_of_them_none() {
        let untaken = Untaken::default();
        let half = MAX_UNTAKEN_BYTES / 2;
        let one = untaken.take("a", 1 << 40).unwrap();
        let two = [untaken.take("a", half).unwrap(), untaken.take("a", half - 1).unwrap()];
        assert!(untaken.check("a").is_ok() && untaken.take("a", 1).is_ok(), "up to it");
        assert!(untaken.take("a", 2).is_err(), "not beyond");
        let deed = untaken.add("a", half);
        assert!(untaken.check("a").is_err() && untaken.take("a", 1).is_err());
        assert!(untaken.check("b").is_ok() && untaken.take("b", 1 << 40).is_ok(), "others");
        drop(one);
        // Now one of the three is the largest.
        assert!(untaken.check("a").is_ok());
        drop((two, deed));
        assert!(untaken.0.lock().unwrap().is_empty());
    }
}
