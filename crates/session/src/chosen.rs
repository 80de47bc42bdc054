//! Parts of changes that somebody has looked at and chosen to land.

use crate::Session;
use crate::apply::sha256;
use crate::diff::FileDiff;
use cofferdam_core::{ApplyOrder, Error, ErrorKind, GuestPath, Held, Result, Standing};
use std::collections::{BTreeMap, BTreeSet};

/// Parts of a file's change that are to land, as somebody has seen them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenHunks {
    /// The file.
    pub path: GuestPath,
    /// What [`FileDiff::sha256`] was of the change that was looked at.
    pub sha256: String,
    /// What of it is to land.
    pub parts: ChosenParts,
}

/// What of a change is to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenParts {
    /// These parts, by their numbers from 0.
    These(BTreeSet<usize>),
    /// All of it, whether it has parts or not.
    Whole,
}

impl FileDiff {
    /// What tells it from any other state of the same path, in hexadecimal: the SHA-256 of its text, and of
    /// what a text does not tell where it has no parts.
    pub fn sha256(&self) -> String {
        let mut told = self.text();
        if !self.has_hunks() {
            told.extend(self.change.version.to_le_bytes());
            told.extend(self.content.into_iter().flatten());
        }
        sha256(&told)
    }
}

impl Session {
    /// The order by which these parts land, and nothing else. A change that is not as it was looked at, or
    /// that cannot land, is a conflict. What the session changes afterwards does not land.
    pub async fn chosen(&self, chosen: &[ChosenHunks]) -> Result<ApplyOrder> {
        let mut wanted: BTreeMap<&GuestPath, &ChosenHunks> = BTreeMap::new();
        for one in chosen {
            if wanted.insert(&one.path, one).is_some() {
                let what = format!("the parts of {:?} are chosen twice", one.path);
                return Err(Error::new(ErrorKind::Usage, what).hint("Name each file once."));
            }
        }
        let scope: Vec<GuestPath> = wanted.keys().map(|path| (*path).clone()).collect();
        let mut diffs = Vec::new();
        self.diff(&scope, |diff| {
            if wanted.contains_key(&diff.change.path) {
                diffs.push(diff);
            }
            Ok(())
        })
        .await?;
        // What is below a directory was looked at by itself, or not at all.
        let mut order = ApplyOrder { exact: true, ..ApplyOrder::default() };
        for one in chosen {
            let diff = diffs.iter().find(|diff| diff.change.path == one.path);
            let diff = diff.ok_or_else(|| changed(&one.path))?;
            check(one, diff)?;
            if let ChosenParts::These(hunks) = &one.parts {
                let before = self.workspace_file(&one.path).await?;
                let content = diff.with_hunks(&before, |at| hunks.contains(&at));
                order.contents.insert(one.path.clone(), content);
            }
            order.sums.extend(diff.content.map(|sum| (one.path.clone(), sum)));
            order.versions.insert(one.path.clone(), diff.change.version);
            order.paths.push(one.path.clone());
        }
        Ok(order)
    }
}

fn check(one: &ChosenHunks, diff: &FileDiff) -> Result<()> {
    if diff.sha256() != one.sha256 {
        return Err(changed(&one.path));
    }
    // What is protected is named by being chosen.
    if !matches!(diff.change.standing, Standing::Lands | Standing::Held(Held::Protected)) {
        let what = format!("{:?} cannot land: {}", one.path, diff.change.standing.reason());
        let error = Error::new(ErrorKind::Conflict, what);
        return Err(error.hint("Leave it out of what is chosen."));
    }
    let ChosenParts::These(hunks) = &one.parts else { return Ok(()) };
    let parts = diff.hunks().len();
    if parts == 0 {
        let what = format!("the change of {:?} has no parts", one.path);
        return Err(Error::new(ErrorKind::Usage, what).hint("Choose it as a whole."));
    }
    match hunks.iter().find(|number| **number >= parts) {
        None if hunks.is_empty() => {
            let what = format!("no part of {:?} is chosen", one.path);
            Err(Error::new(ErrorKind::Usage, what).hint("Leave the file out."))
        }
        None => Ok(()),
        Some(number) => {
            let what = format!("{:?} has {parts} parts, and none of number {number}", one.path);
            Err(Error::new(ErrorKind::Usage, what).hint("Number them from 0."))
        }
    }
}

fn changed(path: &GuestPath) -> Error {
    Error::new(ErrorKind::Conflict, format!("the change of {path:?} is not as it was looked at"))
        .hint("Look at it again, then choose anew.")
}
