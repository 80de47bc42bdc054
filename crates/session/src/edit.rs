//! Edits: a text that stands in a file is replaced by another. Pure, without any I/O.
//!
//! Several edits apply one after the other, each to what those before it have made; all of them apply
//! or none. An edit either means the only place where its old text stands, and is refused with the
//! lines of all of them if there are several, or it means every place. A dry run is a plan that nobody
//! carries out.
//!
//! Where all lines of an edit end with a line feed and all lines of the file with carriage return and
//! line feed, or the other way round, the edit's lines get the file's ending. Texts are bytes.

use crate::occurrences::occurrences;
use crate::patch::{Ending, common_ending, split};
use cofferdam_core::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The largest content, before and after each edit, in bytes.
pub const MAX_EDITED_BYTES: usize = 64 << 20;
/// The most edits at once.
pub const MAX_EDITS: usize = 1000;
/// How many bytes all edits at once may pass over.
pub const MAX_SEARCHED_BYTES: usize = 1 << 30;
/// The most places that one edit replaces.
pub const MAX_REPLACEMENTS: usize = 1_000_000;

/// The most lines that are told of one edit.
const SHOWN_LINES: usize = 16;

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What stands in the file. Not empty.
    pub old: Vec<u8>,
    /// What is to stand there instead; nothing, to remove the old.
    pub new: Vec<u8>,
    /// Which of several places are meant.
    pub places: Places,
}

/// Which places an edit means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Places {
    /// The only one there is.
    Only,
    /// Every one, from the beginning, without those that overlap one before.
    All,
}

/// What edits make of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditPlan {
    /// What the file is to hold; none if an edit is refused.
    pub content: Option<Vec<u8>>,
    /// What came of each edit.
    pub report: EditReport,
}

/// What edits do, or why they do nothing. Format 1. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditReport {
    /// Whether all of them apply; if not, none does.
    pub applies: bool,
    /// How many places are replaced in all.
    pub replacements: usize,
    /// Each edit that was looked at, in order. The first that is refused is the last.
    pub edits: Vec<EditedText>,
}

/// What came of one edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditedText {
    /// What came of it.
    pub outcome: EditOutcome,
    /// How many places have the old text.
    pub places: usize,
    /// The lines where these begin, in the file as the edits before it have made it; at most 16.
    pub lines: Vec<usize>,
    /// Where the old text is nowhere: lines that are its first one but for white space; at most 16.
    pub similar: Vec<usize>,
    /// Where the old text is nowhere: lines where the new one stands already; at most 16.
    pub already: Vec<usize>,
    /// The edit's line endings were made those of the file.
    pub kept_line_endings: bool,
}

/// What came of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditOutcome {
    /// It applies.
    Applies,
    /// The old text is nowhere.
    NotFound,
    /// The old text stands in several places, and the edit means the only one.
    Ambiguous,
}

/// What the edits make of the content. An error is one of the request and not of the content: no edit,
/// an empty old text, an edit that changes nothing, or a limit that is passed.
pub fn plan_edits(content: &[u8], edits: &[Edit]) -> Result<EditPlan> {
    checked(edits)?;
    within(content.len())?;
    let mut report = EditReport { applies: true, replacements: 0, edits: Vec::new() };
    let mut present = content.to_vec();
    let mut left = MAX_SEARCHED_BYTES;
    for edit in edits {
        left = without(left, present.len())?;
        let (edit, kept) = with_endings_of(&present, edit);
        let found = found(&present, &edit)?;
        let mut told = told(&present, &edit, &found);
        told.kept_line_endings = kept;
        let outcome = told.outcome;
        report.edits.push(told);
        match outcome {
            EditOutcome::Applies => {
                report.replacements += found.len();
                present = replaced(&present, &edit, &found)?;
            }
            EditOutcome::NotFound | EditOutcome::Ambiguous => {
                (report.applies, report.replacements) = (false, 0);
                return Ok(EditPlan { content: None, report });
            }
        }
    }
    Ok(EditPlan { content: Some(present), report })
}

fn checked(edits: &[Edit]) -> Result<()> {
    let wrong = |what: &str, hint: &str| Err(Error::new(ErrorKind::Usage, what).hint(hint));
    if edits.is_empty() {
        return wrong("there is no edit", "Say which text is to be replaced.");
    }
    if edits.len() > MAX_EDITS {
        return Err(too_much(format!(
            "there are {} edits, and {MAX_EDITS} are the limit",
            edits.len()
        )));
    }
    for (at, edit) in edits.iter().enumerate() {
        if edit.old.is_empty() {
            let what = format!("edit {} has no old text", at + 1);
            return wrong(&what, "Say which text is to be replaced, or write the file as a whole.");
        }
        if edit.old == edit.new {
            let what = format!("the old and the new text of edit {} are the same", at + 1);
            return wrong(&what, "Leave the edit out.");
        }
    }
    Ok(())
}

/// What is left of the bytes that all edits pass over.
fn without(left: usize, bytes: usize) -> Result<usize> {
    let what = || too_much(format!("the edits pass over more than {MAX_SEARCHED_BYTES} bytes"));
    left.checked_sub(bytes).ok_or_else(what)
}

fn within(bytes: usize) -> Result<()> {
    if bytes <= MAX_EDITED_BYTES {
        return Ok(());
    }
    Err(too_much(format!(
        "the file has {bytes} bytes, and {MAX_EDITED_BYTES} are the limit of an edit"
    )))
}

fn too_much(what: String) -> Error {
    Error::new(ErrorKind::Usage, what).hint("Edit less at once, or write the file as a whole.")
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// The edit with the file's line endings, and whether they are others than its own.
fn with_endings_of(content: &[u8], edit: &Edit) -> (Edit, bool) {
    let own = common_ending(lines(&edit.old).chain(lines(&edit.new)));
    let (Some(file), Some(own)) = (common_ending(lines(content)), own) else {
        return (edit.clone(), false);
    };
    if file == own {
        return (edit.clone(), false);
    }
    let converted = |text: &[u8]| -> Vec<u8> {
        let line = |line| match split(line) {
            (text, Ending::None) => text.to_vec(),
            (text, Ending::Lf | Ending::CrLf) => [text, file.bytes()].concat(),
        };
        lines(text).flat_map(line).collect()
    };
    let edit = Edit { old: converted(&edit.old), new: converted(&edit.new), places: edit.places };
    (edit, true)
}

/// Where the old text stands: every place if the only one is meant, those to be replaced otherwise.
fn found(content: &[u8], edit: &Edit) -> Result<Vec<usize>> {
    let mut free = 0;
    let all = occurrences(&edit.old, content, 0).filter(|at| match edit.places {
        Places::Only => true,
        Places::All => {
            let is_free = *at >= free;
            free = if is_free { at + edit.old.len() } else { free };
            is_free
        }
    });
    let found: Vec<usize> = all.take(MAX_REPLACEMENTS + 1).collect();
    if found.len() > MAX_REPLACEMENTS {
        return Err(too_much(format!(
            "the old text stands in more than {MAX_REPLACEMENTS} places"
        )));
    }
    Ok(found)
}

fn told(content: &[u8], edit: &Edit, found: &[usize]) -> EditedText {
    let outcome = match (found.len(), edit.places) {
        (0, Places::Only | Places::All) => EditOutcome::NotFound,
        (1, Places::Only) | (_, Places::All) => EditOutcome::Applies,
        (_, Places::Only) => EditOutcome::Ambiguous,
    };
    let mut told = EditedText {
        outcome,
        places: found.len(),
        lines: lines_of(content, found.iter().copied()),
        similar: Vec::new(),
        already: Vec::new(),
        kept_line_endings: false,
    };
    if outcome == EditOutcome::NotFound {
        told.already = lines_of(content, occurrences(&edit.new, content, 0));
        let first = lines(&edit.old).map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
        let is_similar = |line: &[u8]| Some(line.trim_ascii()) == first;
        let similar = lines(content).enumerate().filter(|(_, line)| is_similar(line));
        told.similar = similar.map(|(at, _)| at + 1).take(SHOWN_LINES).collect();
    }
    told
}

/// The lines, from 1, of the first places, which are in order.
fn lines_of(content: &[u8], places: impl Iterator<Item = usize>) -> Vec<usize> {
    let (mut line, mut counted) = (1, 0);
    let mut lines = BTreeSet::new();
    for place in places {
        let passed = content.get(counted..place).unwrap_or_default();
        line += passed.iter().filter(|byte| **byte == b'\n').count();
        counted = place;
        lines.insert(line);
        if lines.len() == SHOWN_LINES {
            break;
        }
    }
    lines.into_iter().collect()
}

fn replaced(content: &[u8], edit: &Edit, places: &[usize]) -> Result<Vec<u8>> {
    // LIMIT: of the result before it is made; a few bytes can be replaced by many, many times.
    let kept = content.len() - places.len() * edit.old.len();
    let length = kept.saturating_add(places.len().saturating_mul(edit.new.len()));
    within(length)?;
    let mut made = Vec::with_capacity(length);
    let mut copied = 0;
    for place in places {
        made.extend_from_slice(content.get(copied..*place).unwrap_or_default());
        made.extend_from_slice(&edit.new);
        copied = place + edit.old.len();
    }
    made.extend_from_slice(content.get(copied..).unwrap_or_default());
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit(old: &str, new: &str, places: Places) -> Edit {
        Edit { old: old.into(), new: new.into(), places }
    }

    fn check(content: &str, edits: &[Edit], expected: &str) -> EditReport {
        let plan = plan_edits(content.as_bytes(), edits).unwrap();
        let made = plan.content.map(|made| String::from_utf8(made).unwrap());
        assert_eq!(made.as_deref(), Some(expected), "{:?}", plan.report);
        assert!(plan.report.applies);
        plan.report
    }

    fn check_refused(content: &str, edits: &[Edit]) -> EditedText {
        let plan = plan_edits(content.as_bytes(), edits).unwrap();
        assert_eq!((plan.content, plan.report.applies, plan.report.replacements), (None, false, 0));
        plan.report.edits.last().cloned().unwrap()
    }

    #[test]
    fn the_only_place_is_replaced_and_several_are_told_with_their_lines() {
        let only = [edit("b", "c", Places::Only)];
        let report = check("a\nb\n", &only, "a\nc\n");
        assert_eq!((report.replacements, report.edits[0].lines.as_slice()), (1, &[2][..]));
        let told = check_refused("b\na\nb b\n", &only);
        assert_eq!((told.outcome, told.places), (EditOutcome::Ambiguous, 3));
        assert_eq!(told.lines, [1, 3]);
        // Places that overlap are two.
        let told = check_refused("aaa", &[edit("aa", "b", Places::Only)]);
        assert_eq!((told.outcome, told.places), (EditOutcome::Ambiguous, 2));
    }

    #[test]
    fn every_place_is_replaced_if_all_are_meant() {
        let report = check("b\na\nb b\n", &[edit("b", "cc", Places::All)], "cc\na\ncc cc\n");
        assert_eq!(report.replacements, 3);
        check("aaaaa", &[edit("aa", "b", Places::All)], "bba");
        check("aba", &[edit("a", "", Places::All)], "b");
        check("a", &[edit("a", "aa", Places::All)], "aa");
    }

    #[test]
    fn edits_apply_one_after_the_other_and_all_or_none() {
        let edits = [edit("a", "b", Places::Only), edit("b\n", "c\n", Places::Only)];
        check("a\n", &edits, "c\n");
        let told = check_refused("a\nb\n", &edits);
        assert_eq!((told.outcome, told.lines.as_slice()), (EditOutcome::Ambiguous, &[1, 2][..]));
        let told = check_refused("a\n", &[edits[0].clone(), edit("x", "y", Places::All)]);
        assert_eq!(told.outcome, EditOutcome::NotFound);
    }

    #[test]
    fn what_comes_near_an_old_text_that_is_nowhere_is_told() {
        let told =
            check_refused("\tfn a() {\n}\n", &[edit("  fn a() {\n", "fn b() {\n", Places::Only)]);
        assert_eq!((told.outcome, told.similar.as_slice()), (EditOutcome::NotFound, &[1][..]));
        let told = check_refused("x\nb\n", &[edit("a", "b", Places::Only)]);
        assert_eq!((told.outcome, told.already.as_slice()), (EditOutcome::NotFound, &[2][..]));
        let told = check_refused("x\n", &[edit("a", "", Places::Only)]);
        assert_eq!((told.already.len(), told.similar.len()), (0, 0));
    }

    #[test]
    fn a_file_keeps_its_line_endings() {
        let edits = [edit("a\nb", "c\nd\n", Places::Only)];
        let report = check("a\r\nb\r\n", &edits, "c\r\nd\r\n\r\n");
        assert!(report.edits[0].kept_line_endings);
        let report = check("a\nb\n", &edits, "c\nd\n\n");
        assert!(!report.edits[0].kept_line_endings);
        let report = check("a\nb\n", &[edit("a\r\n", "c\r\n", Places::Only)], "c\nb\n");
        assert!(report.edits[0].kept_line_endings);
        check("a\r\nb\r\n", &[edit("b", "c\nd", Places::Only)], "a\r\nc\r\nd\r\n");
        let told = check_refused("a\r\nb\n", &[edit("a\nb", "c", Places::Only)]);
        assert_eq!(told.outcome, EditOutcome::NotFound);
    }

    #[test]
    fn a_request_that_makes_no_sense_or_passes_a_limit_is_refused() {
        let refused = |content: &[u8], edits: &[Edit], what: &str| {
            let error = plan_edits(content, edits).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage);
            assert!(error.message.contains(what), "{}", error.message);
        };
        refused(b"a", &[], "no edit");
        refused(b"a", &[edit("", "b", Places::All)], "edit 1 has no old text");
        refused(b"a", &[edit("a", "a", Places::All)], "the same");
        let swap = [edit("a", "b", Places::All), edit("b", "a", Places::All)];
        let many = |count: usize| swap.iter().cloned().cycle().take(count).collect::<Vec<_>>();
        assert!(plan_edits(b"a", &many(MAX_EDITS)).is_ok());
        refused(b"a", &many(MAX_EDITS + 1), "edits");
        let longer = [edit("a", &"b".repeat(1 << 20), Places::All)];
        assert!(plan_edits(&[b'a'; 64], &longer).is_ok());
        refused(&[b'a'; 65], &longer, "limit of an edit");
        refused(&vec![b'a'; MAX_EDITED_BYTES + 1], &longer, "limit of an edit");
        refused(&vec![b'a'; MAX_REPLACEMENTS + 1], &[edit("a", "b", Places::All)], "places");
        assert!(plan_edits(&vec![b'a'; MAX_REPLACEMENTS], &[edit("a", "b", Places::All)]).is_ok());
    }

    #[test]
    fn edits_have_a_limit_together() {
        let most = MAX_SEARCHED_BYTES / MAX_EDITED_BYTES;
        let left = |edits: usize| {
            (0..edits).try_fold(MAX_SEARCHED_BYTES, |left, _| without(left, MAX_EDITED_BYTES))
        };
        assert!(left(most).is_ok());
        assert!(left(most + 1).is_err());
    }

    proptest! {
        #[test]
        fn every_place_is_that_of_a_plain_search(
            content in "[ab\n]{0,40}", old in "[ab\n]{1,3}", new in "[abc\n]{0,3}",
        ) {
            prop_assume!(old != new);
            let all = plan_edits(content.as_bytes(), &[edit(&old, &new, Places::All)]).unwrap();
            let plain = content.contains(&old).then(|| content.replace(&old, &new).into_bytes());
            prop_assert_eq!(all.content, plain);
            let only = plan_edits(content.as_bytes(), &[edit(&old, &new, Places::Only)]).unwrap();
            let starts = (0..content.len()).filter(|at| content[*at..].starts_with(&old)).count();
            prop_assert_eq!(only.report.edits[0].places, starts);
            let plain = (starts == 1).then(|| content.replacen(&old, &new, 1).into_bytes());
            prop_assert_eq!(only.content, plain);
        }
    }
}
