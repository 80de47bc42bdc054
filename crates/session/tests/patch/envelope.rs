//! The envelope that begins with `*** Begin Patch`.

use crate::stage::{check, check_forward, check_refused, files, hunk_outcomes, plan, refusals};
use cofferdam_session::patch::{
    HunkOutcome, Patch, PatchAction, PatchFormat, PatchNote, PatchOutcome, PatchRefusalKind,
};

fn envelope(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

#[test]
fn files_are_added_updated_moved_and_deleted() {
    let patch = envelope(
        "*** Add File: new/x.txt\n+one\n+\n+two\n\
         *** Update File: src/a.rs\n@@ fn a() {\n-    1\n+    2\n }\n\
         *** Update File: old name\n*** Move to: new name\n@@\n a\n-b\n+c\n\
         *** Delete File: gone\n",
    );
    let before = files(&[
        ("src/a.rs", "fn a() {\n    1\n}\n"),
        ("old name", "a\nb\n"),
        ("gone", "anything\n"),
    ]);
    let after = files(&[
        ("new/x.txt", "one\n\ntwo\n"),
        ("src/a.rs", "fn a() {\n    2\n}\n"),
        ("new name", "a\nc\n"),
    ]);
    let report = check_forward(&patch, &before, &after);
    assert_eq!(report.format, PatchFormat::Envelope);
    let actions: Vec<PatchAction> = report.files.iter().map(|file| file.action).collect();
    let expected =
        [PatchAction::Create, PatchAction::Modify, PatchAction::Rename, PatchAction::Delete];
    assert_eq!(actions, expected);
    let around = format!("Here it is:\n\n{patch}\nThat is all.\n");
    check_forward(around, &before, &after);
    check_forward(patch.replace('\n', "\r\n"), &before, &after);
}

#[test]
fn an_envelope_is_taken_back_unless_it_does_not_say_what_it_deletes() {
    let patch = envelope(
        "*** Add File: x\n+1\n*** Add File: empty\n*** Update File: y\n*** Move to: z\n@@\n-1\n+2\n",
    );
    let after = files(&[("x", "1\n"), ("empty", ""), ("z", "2\n")]);
    check(patch, &files(&[("y", "1\n")]), &after);
    let gone = Patch::parse(envelope("*** Delete File: x\n").as_bytes()).unwrap();
    let error = gone.reversed().unwrap_err();
    assert_eq!(error.kind, cofferdam_core::ErrorKind::Unsupported);
    assert!(error.message.contains("line 2"), "{}", error.message);
}

#[test]
fn a_hunk_goes_where_it_fits_and_nowhere_if_there_are_several_places() {
    let patch = envelope("*** Update File: x\n@@\n a\n-b\n+c\n");
    check(&patch, &files(&[("x", "1\na\nb\n")]), &files(&[("x", "1\na\nc\n")]));
    let report = check_refused(&patch, &files(&[("x", "a\nb\n\na\nb\n")]));
    assert_eq!(hunk_outcomes(&report), [HunkOutcome::Ambiguous]);
    assert_eq!(report.files[0].hunks[0].candidates, [1, 4]);
    let report = check_refused(&patch, &files(&[("x", "a\nB\n")]));
    assert_eq!(hunk_outcomes(&report), [HunkOutcome::NotFound]);
    assert_eq!(report.files[0].hunks[0].nearest.as_ref().unwrap().differs_at, 2);
}

#[test]
fn a_hunk_stands_behind_the_lines_that_it_names() {
    let before = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n";
    let after = before.replacen("return 1", "return 2", 2).replacen("return 2", "return 1", 1);
    let hunk = " \n-        return 1\n+        return 2\n".trim_start_matches(" \n");
    let named = envelope(&format!("*** Update File: x\n@@ class B:\n@@ def f(self):\n{hunk}"));
    check_forward(named, &files(&[("x", before)]), &files(&[("x", &after)]));
    let first = envelope(&format!("*** Update File: x\n@@ class A:\n{hunk}"));
    let changed = before.replacen("return 1", "return 2", 1);
    check_forward(first, &files(&[("x", before)]), &files(&[("x", &changed)]));
    let unclear = envelope(&format!("*** Update File: x\n@@ def f(self):\n{hunk}"));
    let report = check_refused(unclear, &files(&[("x", before)]));
    assert_eq!(hunk_outcomes(&report), [HunkOutcome::Ambiguous]);
    let nowhere = envelope(&format!("*** Update File: x\n@@ class C:\n{hunk}"));
    let report = check_refused(nowhere, &files(&[("x", before)]));
    assert_eq!(hunk_outcomes(&report), [HunkOutcome::AnchorNotFound]);
}

#[test]
fn lines_are_added_behind_a_named_line_or_at_the_end_of_the_file() {
    let before = files(&[("x", "a\nb\n")]);
    let behind = envelope("*** Update File: x\n@@ a\n+new\n");
    check_forward(behind, &before, &files(&[("x", "a\nnew\nb\n")]));
    let end = envelope("*** Update File: x\n@@\n+new\n*** End of File\n");
    check_forward(&end, &before, &files(&[("x", "a\nb\nnew\n")]));
    let again = plan(end, &files(&[("x", "a\nb\nnew\n")]));
    assert_eq!(again.report.outcome, PatchOutcome::AlreadyApplied);
    let report = check_refused(envelope("*** Update File: x\n@@\n+new\n"), &before);
    assert_eq!(hunk_outcomes(&report), [HunkOutcome::NoContext]);
}

#[test]
fn the_end_of_a_file_is_its_end() {
    let patch = envelope("*** Update File: x\n@@\n a\n-b\n+c\n*** End of File\n");
    check(&patch, &files(&[("x", "a\nb\na\nb\n")]), &files(&[("x", "a\nb\na\nc\n")]));
    check_refused(&patch, &files(&[("x", "a\nb\nmore\n")]));
}

#[test]
fn hunks_follow_one_another_and_a_blank_line_parts_them() {
    let patch =
        envelope("*** Update File: x\n@@\n-a\n+1\n\n@@\n-a\n+2\n\n\n*** Add File: y\n+y\n\n");
    let report = check_refused(&patch, &files(&[("x", "a\nb\na\n")]));
    assert_eq!(hunk_outcomes(&report)[0], HunkOutcome::Ambiguous);
    let clear = patch.replacen("-a\n+1\n", "-a\n+1\n b\n", 1);
    check(clear, &files(&[("x", "a\nb\na\n")]), &files(&[("x", "1\nb\n2\n"), ("y", "y\n")]));
    let first = envelope("*** Update File: x\n a\n\n-b\n+c\n");
    check(first, &files(&[("x", "a\n\nb\n")]), &files(&[("x", "a\n\nc\n")]));
}

#[test]
fn a_file_keeps_its_final_newline_or_its_want_of_one() {
    let patch = envelope("*** Update File: x\n@@\n a\n-b\n+c\n");
    for (before, after) in [("a\nb", "a\nc"), ("a\nb\nd", "a\nc\nd"), ("a\r\nb", "a\r\nc")] {
        let report = check(&patch, &files(&[("x", before)]), &files(&[("x", after)]));
        assert!(report.files[0].notes.contains(&PatchNote::KeptMissingFinalNewline));
    }
    let end = envelope("*** Update File: x\n@@\n a\n+b\n*** End of File\n");
    check(end, &files(&[("x", "a")]), &files(&[("x", "a\nb")]));
}

#[test]
fn what_is_there_is_not_added_and_what_is_not_there_not_updated() {
    let refused = |body: &str, kind: PatchRefusalKind| {
        let report = check_refused(envelope(body), &files(&[("x", "1\n"), ("y", "1\n")]));
        assert_eq!(refusals(&report), [Some(kind)], "{body}");
    };
    refused("*** Add File: x\n+2\n", PatchRefusalKind::Exists);
    refused("*** Update File: z\n@@\n-1\n+2\n", PatchRefusalKind::NotFound);
    refused("*** Update File: x\n*** Move to: y\n@@\n-1\n+2\n", PatchRefusalKind::Exists);
    refused("*** Add File: x/y\n+2\n", PatchRefusalKind::NoDirectory);
}

#[test]
fn an_envelope_that_is_not_understood_is_refused_with_its_line() {
    let check = |text: &str, line: usize, what: &str| {
        let error = Patch::parse(text.as_bytes()).unwrap_err();
        let expected = format!("line {line} of the patch: ");
        assert!(error.message.starts_with(&expected), "{text}: {}", error.message);
        assert!(error.message.contains(what), "{text}: {}", error.message);
    };
    check("*** Begin Patch\n*** Add File: x\n+1\n", 4, "ends before");
    check("*** Begin Patch\n*** Add File: x\nline\n*** End Patch\n", 3, "no line of an envelope");
    check("*** Begin Patch\n*** Remove File: x\n*** End Patch\n", 2, "no line of an envelope");
    check("*** Begin Patch\n*** Update File: x\n*** End Patch\n", 2, "nothing is said");
    check("*** Begin Patch\n*** Update File: x\n@@\n a\n*** End Patch\n", 3, "neither adds");
    check(
        "*** Begin Patch\n*** Update File: x\n@@\n-a\nb\n*** End Patch\n",
        5,
        "belongs to no hunk",
    );
    check("*** Begin Patch\n*** Add File: ../x\n*** End Patch\n", 2, "goes up");
    check("*** Begin Patch\n*** Add File: /x\n*** End Patch\n", 2, "is absolute");
    check("*** Begin Patch\n*** Delete File: .git/x\n*** End Patch\n", 2, "repository's own");
    check(
        "*** Begin Patch\n*** Update File: x\n*** Move to: .git/x\n@@\n-a\n+b\n*** End Patch\n",
        3,
        "own",
    );
    assert!(Patch::parse(b"*** Begin Patch\n*** End Patch\n").is_err());
}
