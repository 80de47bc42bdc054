//! Where hunks go: offsets, ambiguity, wrong numbers, order.

use crate::stage::{check, check_forward, check_refused, files, hunk_outcomes, numbered, plan};
use cofferdam_session::patch::{Difference, HunkOutcome, PatchOutcome, PatchReport};

const CHANGE: &str = "--- a/x\n+++ b/x\n@@ -4,3 +4,3 @@\n line 4\n-line 5\n+new 5\n line 6\n";

fn place(report: &PatchReport, hunk: usize) -> (Option<usize>, Option<i64>) {
    let hunk = &report.files[0].hunks[hunk];
    (hunk.line, hunk.offset)
}

#[test]
fn a_hunk_that_has_moved_is_found_and_its_offset_is_told() {
    let text = numbered(9);
    let changed = text.replace("line 5", "new 5");
    let report = check(CHANGE, &files(&[("x", &text)]), &files(&[("x", &changed)]));
    assert_eq!(place(&report, 0), (Some(4), Some(0)));
    for (head, offset) in [("more\nmore\n", 2), ("more\n".repeat(5000).as_str(), 5000)] {
        let (before, after) = (format!("{head}{text}"), format!("{head}{changed}"));
        let report = check(CHANGE, &files(&[("x", &before)]), &files(&[("x", &after)]));
        assert_eq!(place(&report, 0), (Some(4 + offset), Some(i64::try_from(offset).unwrap())));
    }
    let (before, after) =
        (text.replace("line 1\nline 2\n", ""), changed.replace("line 1\nline 2\n", ""));
    let report = check(CHANGE, &files(&[("x", &before)]), &files(&[("x", &after)]));
    assert_eq!(place(&report, 0), (Some(2), Some(-2)));
}

#[test]
fn the_offset_of_a_hunk_is_where_the_next_is_looked_for_first() {
    let patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-a\n+b\n@@ -5,2 +5,2 @@\n same\n-a\n+b\n";
    let before = "top\ntop\none\na\nsame\na\nsame\na\n";
    let after = "top\ntop\none\nb\nsame\na\nsame\nb\n";
    let report = check_forward(patch, &files(&[("x", before)]), &files(&[("x", after)]));
    assert_eq!(place(&report, 1), (Some(7), Some(2)));
}

#[test]
fn the_line_that_a_hunk_says_decides_and_several_others_are_ambiguous() {
    let patch =
        |line: usize| format!("--- a/x\n+++ b/x\n@@ -{line},3 +{line},3 @@\n same\n-a\n+b\n end\n");
    let before = "same\na\nend\n.\n.\nsame\na\nend\n";
    let after = "same\na\nend\n.\n.\nsame\nb\nend\n";
    let report = check_forward(patch(6), &files(&[("x", before)]), &files(&[("x", after)]));
    assert_eq!(place(&report, 0), (Some(6), Some(0)));
    assert!(report.files[0].hunks[0].candidates.is_empty());
    // However near one of them is: a number that is wrong says nothing of which is meant.
    for line in [2, 4, 5, 7, 99] {
        let report = check_refused(patch(line), &files(&[("x", before)]));
        assert_eq!(hunk_outcomes(&report), [HunkOutcome::Ambiguous], "{line}");
        assert_eq!(report.files[0].hunks[0].candidates, [1, 6]);
        assert_eq!(place(&report, 0), (None, None));
    }
}

#[test]
fn a_hunk_without_context_on_one_side_goes_to_its_only_place() {
    let block = "fn a() {\n    {\n    }\n}\n";
    let append = "--- a/x\n+++ b/x\n@@ -10,3 +10,4 @@\n     {\n     }\n }\n+// end\n";
    let three = block.repeat(3);
    let done = format!("{three}// end\n");
    check(append, &files(&[("x", &three)]), &files(&[("x", &done)]));
    // The end has changed: what is nearest to it is not the end.
    let report = check_refused(append, &files(&[("x", &format!("{block}{block}fn b() {{}}\n"))]));
    assert_eq!(hunk_outcomes(&report), [HunkOutcome::Ambiguous]);
    assert_eq!(report.files[0].hunks[0].candidates, [2, 6]);
    let (one, longer) = (format!("{block}fn b() {{}}\n"), format!("{block}// end\nfn b() {{}}\n"));
    let report = check(append, &files(&[("x", &one)]), &files(&[("x", &longer)]));
    assert_eq!(place(&report, 0), (Some(2), Some(-8)));
    let first = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n+// begin\n {\n     {\n";
    let text = "new\nfn a()\n{\n    {\n{\n    {\n";
    assert_eq!(
        hunk_outcomes(&check_refused(first, &files(&[("x", text)]))),
        [HunkOutcome::Ambiguous]
    );
}

#[test]
fn no_context_is_dropped_to_make_a_hunk_fit() {
    let before = numbered(9).replace("line 6", "other");
    let report = check_refused(CHANGE, &files(&[("x", &before)]));
    assert_eq!(hunk_outcomes(&report), [HunkOutcome::NotFound]);
    let nearest = report.files[0].hunks[0].nearest.clone().unwrap();
    assert_eq!((nearest.line, nearest.differs_at, nearest.differs_in), (4, 6, Difference::Text));
    assert_eq!(nearest.expected.as_deref(), Some("line 6"));
    assert_eq!(nearest.found.as_deref(), Some("other"));
}

#[test]
fn in_what_a_line_differs_is_told() {
    let check = |before: &str, differs_in: Difference| {
        let report = check_refused(CHANGE, &files(&[("x", before)]));
        let nearest = report.files[0].hunks[0].nearest.clone().unwrap();
        assert_eq!(nearest.differs_in, differs_in, "{before:?}");
    };
    check(&numbered(9).replace("line 6", "  line 6"), Difference::WhiteSpace);
    check(&numbered(9).replace("line 6\n", "line 6\r\n"), Difference::LineEnding);
    check(numbered(6).trim_end(), Difference::FinalNewline);
    check(&numbered(5), Difference::EndOfFile);
    let empty = check_refused(CHANGE, &files(&[("x", "")]));
    assert_eq!(hunk_outcomes(&empty), [HunkOutcome::NotFound]);
}

#[test]
fn wrong_numbers_of_lines_are_counted_again_and_told() {
    let before = files(&[("x", &numbered(9))]);
    let after = files(&[("x", &numbered(9).replace("line 5", "new 5"))]);
    for head in
        ["-4,3 +4,3", "-4,9 +4,9", "-4,1 +4,1", "-4 +4", "-4,2 +4,4", "-4,0 +4,0", "-99,3 +99,7"]
    {
        for end in ["", "\n", "\n\n```\nThat is all.\n", "-- \n2.47.3\n"] {
            let patch = CHANGE.replace("-4,3 +4,3", head) + end;
            let report = check_forward(patch, &before, &after);
            let wrong = !head.ends_with(",3");
            assert_eq!(report.files[0].hunks[0].recounted, wrong, "{head} {end:?}");
        }
    }
}

#[test]
fn wrong_numbers_before_another_hunk_and_another_file_are_counted_again() {
    let hunk = "@@ -1,7 +1,7 @@\n-a\n+b\n";
    let patch = format!("--- a/x\n+++ b/x\n{hunk}@@ -3,9 +3 @@\n-a\n+b\n--- a/y\n+++ b/y\n{hunk}");
    let before = files(&[("x", "a\n.\na\n"), ("y", "a\n")]);
    check(patch, &before, &files(&[("x", "b\n.\nb\n"), ("y", "b\n")]));
}

#[test]
fn lines_that_look_like_heads_are_lines_where_the_numbers_say_so() {
    let patch =
        "--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n a\n--- old/name\n-- \n+++ new/name\n+-- \n b\n";
    let before = files(&[("x", "a\n-- old/name\n- \nb\n")]);
    check(patch, &before, &files(&[("x", "a\n++ new/name\n-- \nb\n")]));
}

#[test]
fn a_hunk_without_numbers_goes_to_the_only_place_where_it_fits() {
    for head in ["@@", "@@ @@", "@@ ... @@"] {
        let patch = format!("--- a/x\n+++ b/x\n{head}\n a\n-b\n+c\n");
        check(&patch, &files(&[("x", "1\na\nb\n2\n")]), &files(&[("x", "1\na\nc\n2\n")]));
        let report = check_refused(&patch, &files(&[("x", "a\nb\na\nb\n")]));
        assert_eq!(report.files[0].hunks[0].candidates, [1, 3]);
    }
}

#[test]
fn hunks_may_share_their_context() {
    let patch =
        "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-1\n+one\n 2\n 3\n@@ -2,3 +2,3 @@\n 2\n 3\n-4\n+four\n";
    check(patch, &files(&[("x", "1\n2\n3\n4\n")]), &files(&[("x", "one\n2\n3\nfour\n")]));
}

#[test]
fn hunks_out_of_order_are_refused() {
    let patch = "--- a/x\n+++ b/x\n@@ -8,2 +8,2 @@\n line 8\n-line 9\n+new\n@@ -1,2 +1,2 @@\n line 1\n-line 2\n+new\n";
    let report = check_refused(patch, &files(&[("x", &numbered(9))]));
    assert_eq!(hunk_outcomes(&report), [HunkOutcome::Fits, HunkOutcome::OutOfOrder]);
    assert_eq!(report.files[0].hunks[1].candidates, [1]);
}

#[test]
fn a_hunk_with_nothing_to_go_by_is_refused_unless_the_file_is_empty() {
    let patch = "--- a/x\n+++ b/x\n@@ -2,0 +3 @@\n+new\n";
    let report = check_refused(patch, &files(&[("x", &numbered(9))]));
    assert_eq!(hunk_outcomes(&report), [HunkOutcome::NoContext]);
    check_forward(patch, &files(&[("x", "")]), &files(&[("x", "new\n")]));
    let removed = "--- a/x\n+++ b/x\n@@ -2 +1,0 @@\n-line 2\n";
    check_forward(removed, &files(&[("x", &numbered(2))]), &files(&[("x", &numbered(1))]));
}

#[test]
fn what_is_applied_is_recognised_and_not_applied_again() {
    for (patch, after) in [
        (CHANGE.to_owned(), numbered(9).replace("line 5", "new 5")),
        (
            "--- a/x\n+++ b/x\n@@ -7,3 +7,4 @@\n line 7\n line 8\n line 9\n+line 10\n".to_owned(),
            numbered(10),
        ),
        (
            "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n+line 0\n line 1\n line 2\n".to_owned(),
            format!("line 0\n{}", numbered(9)),
        ),
        (
            "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n line 1\n-line 2\n".to_owned(),
            numbered(9).replace("line 2\n", ""),
        ),
    ] {
        check(&patch, &files(&[("x", &numbered(9))]), &files(&[("x", &after)]));
        let again = plan(&patch, &files(&[("x", &after)]));
        assert_eq!(again.report.outcome, PatchOutcome::AlreadyApplied, "{patch}");
        assert_eq!(hunk_outcomes(&again.report), [HunkOutcome::AlreadyApplied]);
    }
}

#[test]
fn a_failing_hunk_stops_everything_and_every_hunk_is_told() {
    let wrong = CHANGE.replace("a/x", "a/y").replace("b/x", "b/y").replace("line 4", "line 44");
    let report = check_refused(
        format!("{CHANGE}{wrong}"),
        &files(&[("x", &numbered(9)), ("y", &numbered(9))]),
    );
    assert_eq!(hunk_outcomes(&report), [HunkOutcome::Fits, HunkOutcome::NotFound]);
    assert_eq!(report.files[0].outcome, PatchOutcome::Fits);
    assert_eq!(report.files[1].outcome, PatchOutcome::Refused);
}

/// One that compared each line with each would take minutes.
#[test]
fn a_search_among_lines_that_are_all_alike_ends_soon() {
    let before = "same\n".repeat(200_000);
    let hunk = format!("@@ -9,2001 +9,2001 @@\n{}-other\n+new\n", " same\n".repeat(2000));
    let patch = format!("--- a/x\n+++ b/x\n{}", hunk.repeat(40));
    let report = check_refused(patch, &files(&[("x", &before)]));
    assert_eq!(report.files[0].hunks[0].outcome, HunkOutcome::NotFound);
    assert_eq!(report.files[0].hunks[39].outcome, HunkOutcome::NotFound);
}
