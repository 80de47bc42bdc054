//! Points that somebody named: snapshots.

use super::evict;
use super::point::{PointKind, PointReport};
use super::store::{History, NewTree};
use crate::now_ms;
use cofferdam_core::{Error, ErrorKind, Result};

impl History {
    /// The snapshots, oldest first.
    pub(crate) fn snapshots(&self) -> Result<Vec<PointReport>> {
        let until = self.state()?.map_or(0, |state| state.next_point);
        let mut all = self.reports(until)?;
        all.retain(|point| point.kind == PointKind::Snapshot);
        Ok(all)
    }

    /// The point of this number, or the snapshot that is called so.
    pub(crate) fn named(&self, text: &str) -> Result<u32> {
        if let Ok(number) = text.parse() {
            return self.header(number).map(|_| number);
        }
        let all = self.snapshots()?;
        let called = all.iter().filter(|point| point.label.as_deref() == Some(text));
        let found: Vec<u32> = called.map(|point| point.point).collect();
        match found.as_slice() {
            [one] => Ok(*one),
            [] => Err(Error::new(ErrorKind::NotFound, format!("there is no snapshot {text:?}"))
                .hint("List the snapshots with `cofferdam snapshot ls`.")),
            several => {
                let what = format!("snapshots {} are all called {text:?}", in_words(several));
                Err(Error::new(ErrorKind::Conflict, what).hint("Name one by its number."))
            }
        }
    }

    /// The snapshot of this number, or that is called so.
    pub(crate) fn named_snapshot(&self, text: &str) -> Result<u32> {
        let number = self.named(text)?;
        if self.header(number)?.said.kind != PointKind::Snapshot {
            return Err(Error::new(ErrorKind::Conflict, format!("point {number} is no snapshot"))
                .hint("Go back to any point with `cofferdam undo SESSION --to POINT`."));
        }
        Ok(number)
    }

    /// Refuses a label that a snapshot has already.
    pub(crate) fn refuse_taken(&self, label: &str) -> Result<()> {
        let all = self.snapshots()?;
        match all.iter().find(|point| point.label.as_deref() == Some(label)) {
            None => Ok(()),
            Some(known) => {
                let what = format!("snapshot {} is called {label:?} already", known.point);
                Err(Error::new(ErrorKind::Conflict, what)
                    .hint("Use another label, or remove that one first (`cofferdam snapshot rm`)."))
            }
        }
    }

    /// Names the state that the session stands at, on disk when this returns.
    pub(crate) fn name_present(&self, label: Option<String>) -> Result<PointReport> {
        if let Some(label) = &label {
            self.refuse_taken(label)?;
        }
        let mut work = self.work()?;
        let Some(file) = &work.state.tree else {
            return Err(Error::new(ErrorKind::NotFound, "the session has no layer yet")
                .hint("Run a command in it first."));
        };
        let (files, bytes) = self.read_tree(file)?.size();
        let said = PointReport::new(PointKind::Snapshot, now_ms());
        let said = work.add(PointReport { label, files, bytes, ..said }, NewTree::Same)?;
        work.settle()?;
        Ok(said)
    }

    /// Removes a snapshot, and says what it was. The points after it come after the one before it.
    pub(crate) fn remove_snapshot(&self, number: u32) -> Result<PointReport> {
        let removed = self.header(number)?.said;
        if removed.kind != PointKind::Snapshot {
            return Err(Error::new(ErrorKind::Conflict, format!("point {number} is no snapshot"))
                .hint("Points that nobody named go by themselves when there are too many."));
        }
        let mut work = self.work()?;
        // ORDER: nothing leads to it any more before it is gone.
        for later in self.numbers()?.into_iter().filter(|later| *later > number) {
            let mut header = match self.header(later) {
                Ok(header) if header.said.parent == Some(number) => header,
                Ok(_) | Err(_) => continue,
            };
            header.said.parent = removed.parent;
            self.write_header(&header)?;
        }
        if work.state.at == Some(number) {
            work.state.at = removed.parent.or(Some(number));
        }
        evict::remove(&mut work, &[number])?;
        Ok(removed)
    }
}

/// Numbers as people say them: `2, 3 and 4`.
fn in_words(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_as_people_say_them() {
        let check = |numbers: &[u32], expected: &str| assert_eq!(in_words(numbers), expected);
        check(&[2], "2");
        check(&[2, 3], "2 and 3");
        check(&[2, 3, 4], "2, 3 and 4");
    }
}
