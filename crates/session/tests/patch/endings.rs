//! How lines end, and the last one of a file.

use crate::stage::{check, check_forward, check_refused, files, hunk_outcomes};
use cofferdam_session::patch::{HunkOutcome, PatchNote};

const CHANGE: &str = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n";

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// The lines of hunks with a carriage return, the patch's own without, as git writes them.
fn crlf_in_hunks(patch: &str) -> String {
    let (head, hunks) = patch.split_once(" @@\n").unwrap();
    format!("{head} @@\n{}", crlf(hunks))
}

#[test]
fn a_file_keeps_its_line_endings_whatever_the_patch_has() {
    let check = |patch: &str, before: &str, after: &str, notes: &[PatchNote]| {
        let report = check(patch, &files(&[("x", before)]), &files(&[("x", after)]));
        assert_eq!(report.files[0].notes, notes);
    };
    let (before, after) = ("a\nb\n", "a\nc\nd\n");
    check(CHANGE, before, after, &[]);
    check(&crlf_in_hunks(CHANGE), &crlf(before), &crlf(after), &[]);
    check(CHANGE, &crlf(before), &crlf(after), &[PatchNote::KeptCrlf]);
    check(&crlf_in_hunks(CHANGE), before, after, &[PatchNote::KeptLf]);
    // A patch that got its carriage returns on the way is as it was before that.
    check(&crlf(CHANGE), before, after, &[]);
    check(&crlf(CHANGE), &crlf(before), &crlf(after), &[PatchNote::KeptCrlf]);
}

#[test]
fn endings_are_mixed_only_where_the_patch_says_so() {
    let before = "a\r\nb\r\nc\n";
    let report = check_refused(CHANGE, &files(&[("x", before)]));
    assert_eq!(hunk_outcomes(&report), [HunkOutcome::NotFound]);
    let literal = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n";
    check(literal, &files(&[("x", "a\r\nb\r\n")]), &files(&[("x", "a\r\nb\n")]));
    check(literal, &files(&[("x", before)]), &files(&[("x", "a\r\nb\nc\n")]));
    let converted = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n-b\n+a\r\n+b\r\n";
    check(converted, &files(&[("x", "a\nb\n")]), &files(&[("x", "a\r\nb\r\n")]));
}

#[test]
fn a_new_file_has_the_endings_that_the_patch_has() {
    let patch = "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\r\n";
    check(patch, &files(&[]), &files(&[("x", "a\r\n")]));
}

#[test]
fn a_missing_final_newline_is_kept_made_and_taken_away() {
    let end = "\\ No newline at end of file\n";
    let check = |hunk: &str, before: &str, after: &str| {
        let patch = format!("--- a/x\n+++ b/x\n{hunk}");
        check(patch, &files(&[("x", before)]), &files(&[("x", after)]));
    };
    check(&format!("@@ -1,2 +1,2 @@\n a\n-b\n{end}+c\n{end}"), "a\nb", "a\nc");
    check(&format!("@@ -1,2 +1,2 @@\n a\n-b\n+b\n{end}"), "a\nb\n", "a\nb");
    check(&format!("@@ -1,2 +1,2 @@\n-a\n+c\n b\n{end}"), "a\nb", "c\nb");
    check(&format!("@@ -1,2 +1,3 @@\n a\n-b\n{end}+b\n+c\n{end}"), "a\nb", "a\nb\nc");
    check(&format!("@@ -1 +0,0 @@\n-a\n{end}"), "a", "");
    check("@@ -1,2 +1,2 @@\n a\n-b\n\\ Kein Zeilenumbruch\n+b\n", "a\nb", "a\nb\n");
    check(&format!("@@ -1 +1 @@\n-a\r\n{end}+b\r\n{end}"), "a\r", "b\r");
}

#[test]
fn a_line_without_a_newline_is_put_nowhere_but_at_the_end() {
    let end = "\\ No newline at end of file\n";
    let patch = format!("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n{end}");
    check_refused(&patch, &files(&[("x", "a\nb\nmore\n")]));
    let (before, after) = ("a\nb\nmore\na\nb\n", "a\nb\nmore\na\nc");
    let report = check_forward(&patch, &files(&[("x", before)]), &files(&[("x", after)]));
    assert_eq!(report.files[0].hunks[0].line, Some(4));
}

#[test]
fn contents_need_not_be_text() {
    let bytes = |text: &[u8]| crate::stage::tree(&[("x", crate::stage::file(text))]);
    let patch = b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n \xff\x00\xfe\n-\x00\n+\x80\r\r\n";
    check(patch, &bytes(b"\xff\x00\xfe\n\x00\n"), &bytes(b"\xff\x00\xfe\n\x80\r\r\n"));
}
