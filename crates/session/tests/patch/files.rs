//! What happens to files: changed, made, removed, renamed, copied, several at once.

use crate::stage::{
    check, check_forward, check_refused, file, files, link, plan, program, refusals, tree,
};
use cofferdam_session::patch::{
    Change, PatchAction, PatchFormat, PatchNote, PatchOutcome, PatchRefusalKind,
};

#[test]
fn names_may_have_prefixes_or_none() {
    let before = files(&[("src/x", "a\nb\n")]);
    let after = files(&[("src/x", "a\nc\n")]);
    let hunk = "@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
    for (old, new) in [
        ("a/src/x", "b/src/x"),
        ("src/x", "src/x"),
        ("./src/x", "./src/x"),
        ("i/src/x", "w/src/x"),
        ("old/src/x", "new/src/x"),
        ("src/x.orig", "src/x"),
        ("a/src/x\t2024-01-02 03:04:05.6 +0100", "b/src/x\t2024-01-02 03:04:06.7 +0100"),
        (r#""a/src/x""#, r#""b/src/x""#),
    ] {
        check(format!("--- {old}\n+++ {new}\n{hunk}"), &before, &after);
        let prose = "Dear reader,\n---\n x | 2 +-\n\n";
        check(format!("{prose}--- {old}\n+++ {new}\n{hunk}-- \n2.47.3\n\n"), &before, &after);
    }
    let git = "diff --git src/x src/x\nindex 1234567..89abcde 100644\n";
    check(format!("{git}--- src/x\n+++ src/x\n{hunk}"), &before, &after);
}

#[test]
fn a_file_that_lies_in_a_directory_called_a_is_found_without_prefixes() {
    let before = files(&[("a/x", "1\n"), ("x", "1\n")]);
    let after = files(&[("a/x", "2\n"), ("x", "1\n"), ("b/y", "new\n")]);
    let patch =
        "--- a/x\n+++ a/x\n@@ -1 +1 @@\n-1\n+2\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+new\n";
    check(patch, &before, &after);
}

#[test]
fn names_with_spaces_quotes_and_other_bytes_are_read_as_git_writes_them() {
    let before = tree(&[("a b/c d", file("1\n"))]);
    let after = tree(&[("a b/c d", file("2\n"))]);
    let patch = "diff --git a/a b/c d b/a b/c d\nindex d00491f..0cfbf08 100644\n\
                 --- a/a b/c d\t\n+++ b/a b/c d\t\n@@ -1 +1 @@\n-1\n+2\n";
    check(patch, &before, &after);
    let name = "caf\u{e9} \"\\\t\n";
    let before = tree(&[(name, file("1\n"))]);
    let after = tree(&[(name, program("1\n"))]);
    let quoted = r#""a/caf\303\251 \"\\\t\n" "b/caf\303\251 \"\\\t\n""#;
    check(format!("diff --git {quoted}\nold mode 100644\nnew mode 100755\n"), &before, &after);
}

#[test]
fn files_are_made_and_removed_with_their_modes() {
    let before = tree(&[("gone", program("1\n2\n")), ("gone empty", file(""))]);
    let after = tree(&[("dir/new", program("1\n2")), ("dir/empty", file(""))]);
    let patch = "diff --git a/gone b/gone\ndeleted file mode 100755\nindex 1191247..0000000\n\
                 --- a/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n\
                 diff --git a/gone empty b/gone empty\ndeleted file mode 100644\nindex e69de29..0000000\n\
                 diff --git a/dir/empty b/dir/empty\nnew file mode 100644\nindex 0000000..e69de29\n\
                 diff --git a/dir/new b/dir/new\nnew file mode 100755\nindex 0000000..1191247\n\
                 --- /dev/null\n+++ b/dir/new\n@@ -0,0 +1,2 @@\n+1\n+2\n\\ No newline at end of file\n";
    let report = check(patch, &before, &after);
    let actions: Vec<PatchAction> = report.files.iter().map(|file| file.action).collect();
    assert_eq!(actions[..2], [PatchAction::Delete; 2]);
    assert_eq!(actions[2..], [PatchAction::Create; 2]);
    assert_eq!((report.files[3].added, report.files[0].removed), (2, 2));
    assert_eq!(report.format, PatchFormat::Unified);
}

#[test]
fn diff_writes_a_missing_file_with_the_beginning_of_time() {
    let zero = "1970-01-01 01:00:00.000000000 +0100";
    let some = "2024-01-02 03:04:05.000000000 +0100";
    let made = format!("--- old/x\t{zero}\n+++ new/x\t{some}\n@@ -0,0 +1 @@\n+1\n");
    check(&made, &files(&[]), &files(&[("x", "1\n")]));
    let gone = format!("--- old/x\t{some}\n+++ new/x\t{zero}\n@@ -1 +0,0 @@\n-1\n");
    check(&gone, &files(&[("x", "1\n")]), &files(&[]));
    let filled = format!("--- old/x\t{some}\n+++ new/x\t{some}\n@@ -0,0 +1 @@\n+1\n");
    check(&filled, &files(&[("x", "")]), &files(&[("x", "1\n")]));
}

#[test]
fn a_file_that_is_taken_for_empty_is_made_if_it_is_not_there() {
    let patch = "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+1\n";
    let report = check_forward(patch, &files(&[]), &files(&[("x", "1\n")]));
    assert_eq!(report.files[0].notes, [PatchNote::Made]);
    let report = check_forward(patch, &files(&[("x", "")]), &files(&[("x", "1\n")]));
    assert_eq!(report.files[0].notes, []);
    check_refused(patch, &files(&[("x", "2\n")]));
}

#[test]
fn modes_are_set() {
    let patch = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n";
    let both = "index 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n";
    let before = tree(&[("x", file("1\n"))]);
    check(patch, &before, &tree(&[("x", program("1\n"))]));
    check(format!("{patch}{both}"), &before, &tree(&[("x", program("2\n"))]));
    let done = plan(patch, &tree(&[("x", program("1\n"))]));
    assert_eq!(done.report.outcome, PatchOutcome::AlreadyApplied);
    assert_eq!(done.changes, []);
    let report = check_forward(
        format!("{patch}{both}"),
        &tree(&[("x", program("1\n"))]),
        &tree(&[("x", program("2\n"))]),
    );
    assert_eq!(report.files[0].notes, [PatchNote::HadMode]);
}

#[test]
fn a_content_without_its_mode_is_not_all_of_a_patch() {
    let patch = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n\
                 --- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n";
    check_refused(patch, &tree(&[("x", file("2\n"))]));
    let done = plan(patch, &tree(&[("x", program("2\n"))]));
    assert_eq!(done.report.outcome, PatchOutcome::AlreadyApplied);
    let moved =
        "diff --git a/x b/y\nold mode 100644\nnew mode 100755\nrename from x\nrename to y\n";
    check_refused(moved, &tree(&[("y", file("2\n"))]));
    let done = plan(moved, &tree(&[("y", program("2\n"))]));
    assert_eq!(done.report.outcome, PatchOutcome::AlreadyApplied);
}

#[test]
fn a_mark_of_the_byte_order_is_no_part_of_a_patch() {
    let patch = "\u{feff}--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n";
    check(patch, &files(&[("x", "1\n")]), &files(&[("x", "2\n")]));
}

#[test]
fn files_are_renamed_and_copied_also_with_changes() {
    let rename = |from: &str, to: &str| {
        format!(
            "diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n"
        )
    };
    let before = files(&[("x", "1\n2\n")]);
    check(rename("x", "d/y z"), &before, &files(&[("d/y z", "1\n2\n")]));
    let changed = "index 1..2 100644\n--- a/x\n+++ b/y\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n";
    check(format!("{}{changed}", rename("x", "y")), &before, &files(&[("y", "1\n3\n")]));
    let copy = rename("x", "y").replace("rename", "copy");
    check(&copy, &before, &files(&[("x", "1\n2\n"), ("y", "1\n2\n")]));
    let both = files(&[("x", "1\n2\n"), ("y", "1\n3\n")]);
    check(format!("{copy}{changed}"), &before, &both);
}

#[test]
fn a_file_that_only_moves_is_not_written_again() {
    let patch = "diff --git a/x b/y\nrename from x\nrename to y\n";
    let changes = plan(patch, &files(&[("x", "1\n")])).changes;
    assert!(matches!(changes.as_slice(), [Change::Rename { .. }]), "{changes:?}");
    let patch = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n";
    let changes = plan(patch, &files(&[("x", "1\n")])).changes;
    assert!(matches!(changes.as_slice(), [Change::SetExecutable { .. }]), "{changes:?}");
}

#[test]
fn names_are_swapped_and_shifted_in_a_chain() {
    let rename = |from: &str, to: &str| {
        format!("diff --git a/{from} b/{to}\nrename from {from}\nrename to {to}\n")
    };
    let before = files(&[("x", "1\n"), ("y", "2\n")]);
    let swapped = files(&[("x", "2\n"), ("y", "1\n")]);
    check(rename("x", "y") + &rename("y", "x"), &before, &swapped);
    let shifted = files(&[("y", "1\n"), ("z", "2\n")]);
    check(rename("x", "y") + &rename("y", "z"), &before, &shifted);
    check(rename("y", "z") + &rename("x", "y"), &before, &shifted);
    let (one, last) = (files(&[("x", "1\n")]), files(&[("z", "1\n")]));
    check(rename("x", "y") + &rename("y", "z"), &one, &last);
}

#[test]
fn a_copy_is_one_of_the_content_before() {
    let change = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n";
    let copy = "diff --git a/x b/y\ncopy from x\ncopy to y\n";
    let before = files(&[("x", "1\n")]);
    let after = files(&[("x", "2\n"), ("y", "1\n")]);
    check(format!("{change}{copy}"), &before, &after);
    check(format!("{copy}{change}"), &before, &after);
}

#[test]
fn sections_on_the_same_file_apply_in_order() {
    let change =
        |old: u8, new: u8| format!("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-{old}\n+{new}\n");
    let before = files(&[("x", "a\n1\n")]);
    check(change(1, 2) + &change(2, 3), &before, &files(&[("x", "a\n3\n")]));
    let wrong = check_refused(change(2, 3) + &change(1, 2), &before);
    assert_eq!(wrong.files[0].outcome, PatchOutcome::Refused);
    let rename = "diff --git a/x b/y\nrename from x\nrename to y\n";
    check(change(1, 2) + rename, &before, &files(&[("y", "a\n2\n")]));
    let made = "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+1\n";
    check(made.to_owned() + &change(1, 2), &files(&[]), &files(&[("x", "a\n2\n")]));
}

#[test]
fn a_series_of_mails_applies_mail_by_mail() {
    let mail = |number: u8, body: &str| {
        format!(
            "From {} Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\nSubject: [PATCH {number}/2] x\n\n\
             Text with a - at its\n- beginning.\n---\n x | 2 +-\n 1 file changed\n\n{body}-- \n2.47.3\n\n",
            "0123456789".repeat(4)
        )
    };
    let change = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n";
    let copy = "diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n";
    let series = mail(1, change) + &mail(2, copy);
    check(series, &files(&[("x", "1\n")]), &files(&[("x", "2\n"), ("y", "2\n")]));
}

#[test]
fn links_are_files_whose_content_is_where_they_lead() {
    let end = "\\ No newline at end of file\n";
    let made = format!(
        "diff --git a/l b/l\nnew file mode 120000\nindex 0000000..1\n--- /dev/null\n+++ b/l\n\
         @@ -0,0 +1 @@\n+d/x\n{end}"
    );
    check(&made, &tree(&[]), &tree(&[("l", link("d/x"))]));
    let led = format!(
        "diff --git a/l b/l\nindex 1..2 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-d/x\n{end}+d/y\n{end}"
    );
    check(led, &tree(&[("l", link("d/x"))]), &tree(&[("l", link("d/y"))]));
    let turned = "diff --git a/l b/l\ndeleted file mode 100644\nindex 1..0\n--- a/l\n+++ /dev/null\n\
                  @@ -1 +0,0 @@\n-1\n";
    let turned = format!("{turned}{made}");
    check(turned, &tree(&[("l", file("1\n"))]), &tree(&[("l", link("d/x"))]));
}

#[test]
fn a_directory_can_make_room_for_a_file_and_a_file_for_a_directory() {
    let gone = |name: &str| format!("--- a/{name}\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n");
    let made = |name: &str| format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+2\n");
    let inside = files(&[("d/e/x", "1\n"), ("d/y", "1\n")]);
    check(made("d") + &gone("d/e/x") + &gone("d/y"), &inside, &files(&[("d", "2\n")]));
    let report = check_refused(made("d") + &gone("d/y"), &inside);
    assert_eq!(refusals(&report), [Some(PatchRefusalKind::Exists), None]);
}

#[test]
fn what_changes_nothing_more_is_said_to_be_applied() {
    let patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-1\n+2\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+1\n\
                 diff --git a/o b/n\nrename from o\nrename to n\n\
                 diff --git a/d b/d\ndeleted file mode 100644\n";
    let before = files(&[("x", "a\n1\n"), ("o", "o\n"), ("d", "")]);
    let after = files(&[("x", "a\n2\n"), ("y", "1\n"), ("n", "o\n")]);
    check(patch, &before, &after);
    let again = plan(patch, &after);
    assert_eq!(again.report.outcome, PatchOutcome::AlreadyApplied, "{:#?}", again.report);
    assert_eq!(again.changes, []);
    let half = files(&[("x", "a\n1\n"), ("y", "1\n"), ("n", "o\n")]);
    check_refused(patch, &half);
}
