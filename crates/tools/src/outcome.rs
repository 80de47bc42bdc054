//! What a call comes to, within its limit.

mod shortened;

use crate::plain::middle_cut;
use cofferdam_core::{Error, ErrorKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The most bytes of a result, its text and its structured content together as they stand in JSON.
pub const MAX_RESULT_BYTES: usize = 64 << 10;
/// What an envelope around a result may take of these.
const ENVELOPE_BYTES: usize = 512;
/// What a text has at least where the structured content would take all: some lines of both ends.
const MIN_TEXT_BYTES: usize = 4 << 10;
/// What stands behind a text that is not all of a result.
const SHORTENED: &str = "shortened here: the whole result is in the structured content; ask for less, or for parts \
                         of it, to have it here";
/// The longest message or hint of an error, in bytes: a chain of causes may quote what is inside.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// What a call came to. A call never fails otherwise: errors are outcomes that a model can read.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Short, for a model.
    pub text: String,
    /// The same for a program, and whole: what [`Tool::output`](crate::Tool::output) says, or, of an
    /// error, `{"error": {"kind", "message", "hint", "retryable"}}` in Cofferdam's own pack.
    pub structured: Value,
    /// Whether what was asked for was not done.
    pub is_error: bool,
}

/// An error as every tool of Cofferdam's own pack tells it. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolError {
    /// What sort of failure it is.
    pub kind: String,
    /// What happened, with its causes.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

impl ToolError {
    pub(crate) fn new(error: &Error) -> Self {
        Self {
            kind: error.kind.name().to_owned(),
            message: cut(&error.chain(), MAX_MESSAGE_BYTES),
            hint: error.hint.as_deref().map(|hint| cut(hint, MAX_MESSAGE_BYTES)),
            retryable: error.kind.is_retryable(),
        }
    }

    /// It in words.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("error ({}): {}", self.kind, self.message);
        if let Some(hint) = &self.hint {
            text.push('\n');
            text.push_str(hint);
        }
        text
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", text.get(..text.floor_char_boundary(most)).unwrap_or_default())
}

impl Outcome {
    /// What was asked for was done.
    pub(crate) fn done(text: impl Into<String>, structured: Value) -> Self {
        Self { text: text.into(), structured, is_error: false }
    }

    /// The same, where the text is what a program would read: all of it, if there is room for it twice,
    /// and else its beginning and its end.
    pub(crate) fn json(structured: Value) -> Self {
        let text = serde_json::to_string(&structured).unwrap_or_default();
        let outcome = Self::done(text, structured);
        if outcome.fits() {
            return outcome;
        }
        let text = outcome.shortened(|most| shortened::json(&outcome.structured, most));
        Self { text, ..outcome }
    }

    /// The same, where the text is for a reader.
    pub(crate) fn said(text: String, structured: Value) -> Self {
        let outcome = Self::done(text, structured);
        if outcome.fits() {
            return outcome;
        }
        let text = outcome.shortened(|most| middle_cut(&outcome.text, most));
        Self { text, ..outcome }
    }

    /// The longest such text that there is room for beside the structured content, and that it is none
    /// of all: a model may be shown the text alone.
    fn shortened(&self, make: impl Fn(usize) -> String) -> String {
        let all = bytes_in_json(&self.structured);
        let room = MAX_RESULT_BYTES.saturating_sub(ENVELOPE_BYTES + all).max(MIN_TEXT_BYTES);
        let made = |most: usize| format!("{}\n[{SHORTENED}]", make(most));
        largest(room, made, |text| bytes_in_json(text) <= room)
    }

    /// It was not.
    pub(crate) fn failed(error: &Error) -> Self {
        let error = ToolError::new(error);
        Self { text: error.text(), structured: json!({ "error": error }), is_error: true }
    }

    /// How many bytes it has in JSON.
    pub fn bytes(&self) -> usize {
        bytes_in_json(&self.text).saturating_add(bytes_in_json(&self.structured))
    }

    /// Whether it is within the limit.
    pub(crate) fn fits(&self) -> bool {
        self.bytes() <= MAX_RESULT_BYTES - ENVELOPE_BYTES
    }

    /// Itself, or an error where it is over the limit.
    pub(crate) fn within_limit(self) -> Self {
        if self.fits() {
            return self;
        }
        let what = format!("the result is larger than {MAX_RESULT_BYTES} bytes");
        let error = Error::new(ErrorKind::TooLarge, what);
        Self::failed(&error.hint("It was done. Ask for less, or look at parts of it."))
    }

    /// The largest of these that fits, or near to it: made with this budget, or with less, to none.
    pub(crate) fn fitting(most: usize, make: impl FnMut(usize) -> Self) -> Self {
        largest(most, make, Self::fits)
    }
}

/// The largest of these that fits, or near to it: made with this budget, or half of it, and so on to
/// none; then with more again, as long as that fits.
///
/// Bytes grow when they become JSON, and by how much is only seen when they have.
fn largest<T>(most: usize, mut make: impl FnMut(usize) -> T, fits: impl Fn(&T) -> bool) -> T {
    let (mut budget, mut over) = (most, None);
    let mut best = loop {
        let made = make(budget);
        if fits(&made) || budget == 0 {
            break made;
        }
        over = Some(budget);
        budget /= 2;
    };
    let Some(mut over) = over else { return best };
    while over - budget > most / 64 + 1 {
        let between = budget + (over - budget) / 2;
        let made = make(between);
        if fits(&made) {
            (best, budget) = (made, between);
        } else {
            over = between;
        }
    }
    best
}

fn bytes_in_json(value: &(impl Serialize + ?Sized)) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_as_large_as_it_may_be() {
        for char in ["x", "\u{1}", "€", "\""] {
            let make =
                |budget: usize| Outcome::done(char.repeat(budget), json!(char.repeat(budget)));
            let made = Outcome::fitting(MAX_RESULT_BYTES, make);
            assert!(made.bytes() <= MAX_RESULT_BYTES, "{char:?}");
            assert!(made.bytes() > MAX_RESULT_BYTES * 9 / 10, "{char:?}: {}", made.bytes());
        }
    }

    #[test]
    fn what_fits_once_is_not_said_twice() {
        let small = Outcome::json(json!("x"));
        assert_eq!((small.text.as_str(), small.structured), ("\"x\"", json!("x")));
        let large = Outcome::json(json!("x".repeat(MAX_RESULT_BYTES * 3 / 4)));
        assert!(large.fits() && large.text.ends_with(&format!("\n[{SHORTENED}]")));
    }

    #[test]
    fn a_text_that_has_no_room_shows_both_ends_and_the_hint() {
        for char in ["x", "\u{1}", "€", "\"", "\n"] {
            let output = format!("begin{}end", char.repeat(300_000 / bytes_in_json(char)));
            let cut = |budget: usize| middle_cut(&output, budget);
            let json = |budget| Outcome::json(json!({ "stdout": cut(budget), "hint": "Do." }));
            let said = |budget| Outcome::said(cut(budget) + "\n[Do.]", json!(cut(budget)));
            for made in
                [Outcome::fitting(MAX_RESULT_BYTES, json), Outcome::fitting(MAX_RESULT_BYTES, said)]
            {
                assert!(made.fits(), "{char:?}: {}", made.bytes());
                let bytes = bytes_in_json(&made.text);
                assert!(bytes > MIN_TEXT_BYTES * 3 / 4, "{char:?}: {bytes}");
                let ends = ["begin", "bytes omitted", "end", "Do.", SHORTENED];
                let missing = ends.iter().find(|part| !made.text.contains(**part));
                assert_eq!(missing, None, "{char:?}: {}", made.text);
            }
        }
    }

    #[test]
    fn of_many_small_things_the_text_shows_the_first_and_says_how_many_follow() {
        let all: Vec<String> = (0..4000).map(|number| format!("name-{number}")).collect();
        let made = Outcome::json(json!({ "hint": "Do.", "names": all, "total": 4000 }));
        assert!(made.fits(), "{}", made.bytes());
        let (shown, note) = made.text.rsplit_once('\n').unwrap();
        assert_eq!(note, format!("[{SHORTENED}]"));
        let shown: Value = serde_json::from_str(shown).unwrap();
        assert_eq!((&shown["total"], &shown["hint"]), (&json!(4000), &json!("Do.")));
        let (last, names) = shown["names"].as_array().unwrap().split_last().unwrap();
        assert!(names.len() > 100 && names[99] == "name-99", "{}", names.len());
        assert_eq!(*last, format!("[... {} more ...]", 4000 - names.len()));
    }

    #[test]
    fn a_result_that_is_too_large_is_an_error_and_errors_are_short() {
        let large = Outcome::done("x".repeat(MAX_RESULT_BYTES), json!({}));
        let error = large.within_limit();
        assert!(error.is_error && error.structured["error"]["kind"] == "too_large");
        let long = Error::new(ErrorKind::Io, "ä\u{1}".repeat(100_000)).hint("y".repeat(100_000));
        assert!(Outcome::failed(&long).fits());
        assert!(small(Outcome::failed(&Error::new(ErrorKind::TimedOut, "wait"))));
    }

    fn small(outcome: Outcome) -> bool {
        outcome.structured["error"]["retryable"] == true && outcome.is_error
    }
}
