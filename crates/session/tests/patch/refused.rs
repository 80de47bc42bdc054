//! What is refused, each beside a control that is not.

use crate::stage::{
    check_forward, check_refused, file, files, link, plan, plan_reversed, refusals, tree,
};
use cofferdam_core::ErrorKind;
use cofferdam_session::patch::{
    MAX_PATCH_DEPTH, MAX_PATCH_FILES, MAX_PATCH_HUNKS, MAX_PATCHED_FILE_LINES, Node, Patch,
    PatchOutcome, PatchRefusalKind,
};

fn refused(text: &str, kind: ErrorKind, what: &str) {
    let error = Patch::parse(text.as_bytes()).expect_err(text);
    assert_eq!(error.kind, kind, "{text}: {}", error.message);
    assert!(error.message.contains(what), "{text}: {}", error.message);
}

const HUNK: &str = "@@ -1 +1 @@\n-1\n+2\n";

#[test]
fn what_cannot_be_applied_is_refused_by_name() {
    let git = "diff --git a/p.png b/p.png\nindex 1234567..89abcde 100644\n";
    let unsupported = ErrorKind::Unsupported;
    refused(&format!("{git}GIT binary patch\ndelta 5\nabcde\n\n"), unsupported, "p.png");
    refused(&format!("{git}Binary files a/p.png and b/p.png differ\n"), unsupported, "p.png");
    refused("Binary files old/p.png and new/p.png differ\n", unsupported, "old/p.png");
    let text = format!("--- a/x\n+++ b/x\n{HUNK}");
    refused(&format!("{text}Binary files a/p and b/p differ\n"), unsupported, "binary");
    refused(
        "diff --cc x\nindex 1,2..3\n--- a/x\n+++ b/x\n@@@ -1,1 -1,1 +1,1 @@@\n",
        unsupported,
        "combined",
    );
    refused("--- a/x\n+++ b/x\n@@@ -1,1 -1,1 +1,1 @@@\n", unsupported, "combined");
    refused("*** x.orig\n--- x\n***************\n*** 1 ****\n", unsupported, "context diffs");
    let module =
        "diff --git a/m b/m\nnew file mode 160000\nindex 0000000..1\n--- /dev/null\n+++ b/m\n";
    refused(&format!("{module}@@ -0,0 +1 @@\n+Subproject commit 1\n"), unsupported, "submodules");
    refused("diff --git a/m b/m\nindex 1234567..89abcde 160000\n", unsupported, "submodules");
    refused("Submodule m 1234567..89abcde:\n  > subject\n", unsupported, "submodules");
    assert!(Patch::parse(text.as_bytes()).is_ok());
}

#[test]
fn a_mode_that_git_does_not_write_is_refused_and_never_becomes_another_one() {
    let unsupported = ErrorKind::Unsupported;
    for mode in ["100600", "100664", "100444", "100777", "104755", "120777", "0100644"] {
        let what = format!("cannot set mode {mode}");
        let made = format!("diff --git a/x b/x\nnew file mode {mode}\n");
        refused(&made, unsupported, &what);
        refused(&format!("diff --git a/x b/x\ndeleted file mode {mode}\n"), unsupported, &what);
        let changed =
            |old: &str, new: &str| format!("diff --git a/x b/x\nold mode {old}\nnew mode {new}\n");
        refused(&changed("100644", mode), unsupported, &what);
        refused(&changed(mode, "100644"), unsupported, &what);
        let index = format!("diff --git a/x b/x\nindex 1..2 {mode}\n--- a/x\n+++ b/x\n{HUNK}");
        refused(&index, unsupported, &what);
        let hint = Patch::parse(made.as_bytes()).unwrap_err().hint.unwrap();
        assert!(hint.contains("100644, 100755"), "{hint}");
    }
    for mode in ["040000", "100888", "", "rwx", "10064400000"] {
        let made = format!("diff --git a/x b/x\nnew file mode {mode}\n");
        refused(&made, ErrorKind::Usage, "no mode of a file");
    }
    for mode in ["100644", "100755"] {
        let made = format!("diff --git a/x b/x\nnew file mode {mode}\n");
        assert!(Patch::parse(made.as_bytes()).is_ok());
    }
}

#[test]
fn paths_that_leave_the_workspace_or_enter_a_repository_are_refused() {
    let plain = |name: &str| format!("--- a/{name}\n+++ b/{name}\n{HUNK}");
    let rename =
        |from: &str, to: &str| format!("diff --git a/x b/x\nrename from {from}\nrename to {to}\n");
    for name in ["../x", "d/../../x", "/etc/passwd", "..", "d/.."] {
        refused(&plain(name), ErrorKind::PathEscape, "line 1 of the patch: the path");
        refused(&rename("x", name), ErrorKind::PathEscape, "the path");
        refused(&rename(name, "x"), ErrorKind::PathEscape, "the path");
    }
    refused(&format!("--- /etc/x\n+++ /etc/x\n{HUNK}"), ErrorKind::PathEscape, "is absolute");
    refused(&format!("--- /dev/null\n+++ /etc/x\n{HUNK}"), ErrorKind::PathEscape, "is absolute");
    for name in [".git/config", "sub/.git/hooks/pre-commit", ".GIT/config", ".git"] {
        refused(&plain(name), ErrorKind::Denied, "repository's own directory");
        refused(&rename("x", name), ErrorKind::Denied, "repository's own directory");
    }
    refused(
        &format!("--- \"a/x\\000y\"\n+++ \"b/x\\000y\"\n{HUNK}"),
        ErrorKind::Usage,
        "zero byte",
    );
    for name in [".gitignore", "..x", "d/x", ".github/x"] {
        assert!(Patch::parse(plain(name).as_bytes()).is_ok(), "{name}");
        assert!(Patch::parse(rename("x", name).as_bytes()).is_ok(), "{name}");
    }
}

#[test]
fn a_patch_that_is_not_understood_is_refused_with_its_line() {
    let usage = ErrorKind::Usage;
    refused("", usage, "changes no file");
    refused("no patch at all\n", usage, "changes no file");
    refused(HUNK, usage, "line 1 of the patch: a hunk without a file");
    refused("--- a/x\n+++ b/x\n", usage, "no hunk");
    refused("--- a/x\n+++ b/x\n@@ -1 +1 @@\n a\n", usage, "line 3 of the patch: the hunk neither");
    refused(
        "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-a\nlost\n+b\n",
        usage,
        "line 5 of the patch: this belongs",
    );
    refused(
        "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n+b\n\nlost\n+c\n",
        usage,
        "line 8 of the patch: this belongs",
    );
    refused(&format!("--- a/x\n+++ b/y\n{HUNK}"), usage, "different files");
    refused(&format!("--- \"a/x\n+++ b/x\n{HUNK}"), usage, "quoted name");
    refused("diff --git a/x b/x\nindex 1..2 100644\n", usage, "nothing is said");
    refused("diff --git a/x b/y\nnew file mode 100644\n", usage, "not clear which file");
    refused("diff --git a/x b/x\nold mode 100644\nnew mode 040000\n", usage, "no mode of a file");
    refused("diff --git a/x b/x\nold mode 100644\nnew mode 120000\n", usage, "into a link");
    refused("diff --git a/x b/y\nrename from x\n", usage, "missing");
    let heads = "diff --git a/x b/x\nindex 1..2 100644\n";
    refused(&format!("{heads}--- a/y\n+++ b/y\n{HUNK}"), usage, "line 1 of the patch: the names");
    refused(&format!("{heads}--- a/x\n+++ /dev/null/x\n{HUNK}"), usage, "the names");
    let renamed = "diff --git a/x b/y\nrename from x\nrename to y\n";
    refused(&format!("{renamed}--- a/x\n+++ b/z\n{HUNK}"), usage, "the names");
    refused(&format!("{renamed}new file mode 100644\n"), usage, "made, removed, renamed or copied");
    let both = "diff --git a/x b/x\nnew file mode 100644\ndeleted file mode 100644\n";
    refused(both, usage, "made, removed, renamed or copied");
    assert!(Patch::parse(format!("{heads}--- a/x\n+++ b/x\n{HUNK}").as_bytes()).is_ok());
    assert!(Patch::parse(format!("{renamed}--- p/q/x\n+++ p/q/y\n{HUNK}").as_bytes()).is_ok());
    let end = "\\ No newline at end of file\n";
    let more = format!("--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n b\n{end}+c\n");
    refused(&more, usage, "a line follows");
    let envelope = format!("--- a/x\n+++ b/x\n{HUNK}\n*** Begin Patch\n*** End Patch\n");
    refused(&envelope, usage, "an envelope begins");
}

#[test]
fn limits_have_names_and_hold() {
    let file = |at: usize| format!("diff --git a/{at} b/{at}\nold mode 100644\nnew mode 100755\n");
    let files_of = |count: usize| (0..count).map(file).collect::<String>();
    assert!(Patch::parse(files_of(MAX_PATCH_FILES).as_bytes()).is_ok());
    refused(&files_of(MAX_PATCH_FILES + 1), ErrorKind::Usage, "files or");
    let hunks = |count: usize| format!("--- a/x\n+++ b/x\n{}", HUNK.repeat(count));
    assert!(Patch::parse(hunks(MAX_PATCH_HUNKS).as_bytes()).is_ok());
    refused(&hunks(MAX_PATCH_HUNKS + 1), ErrorKind::Usage, "hunks");
    let patch = format!("--- a/x\n+++ b/x\n{HUNK}");
    let lines = |count: usize| files(&[("x", &format!("1\n{}", "\n".repeat(count - 1)))]);
    assert_eq!(plan(&patch, &lines(MAX_PATCHED_FILE_LINES)).report.outcome, PatchOutcome::Fits);
    let report = check_refused(&patch, &lines(MAX_PATCHED_FILE_LINES + 1));
    assert_eq!(refusals(&report), [Some(PatchRefusalKind::TooLarge)]);
}

#[test]
fn what_has_to_be_looked_up_has_a_limit() {
    let deep = |depth: usize| format!("--- a/{0}x\n+++ b/{0}x\n{HUNK}", "d/".repeat(depth - 1));
    assert!(Patch::parse(deep(MAX_PATCH_DEPTH).as_bytes()).is_ok());
    refused(&deep(MAX_PATCH_DEPTH + 1), ErrorKind::Usage, "directories");
    let long = |at: usize| {
        let path = format!("{at}/{}x", "directory/".repeat(MAX_PATCH_DEPTH - 2));
        format!("--- a/{path}\n+++ b/{path}\n{HUNK}")
    };
    let many = |count: usize| (0..count).map(long).collect::<String>();
    assert!(Patch::parse(many(50).as_bytes()).is_ok());
    refused(&many(200), ErrorKind::Usage, "looked up");
}

#[test]
fn a_file_is_made_only_where_nothing_is() {
    let made = "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+2\n";
    let moved = "diff --git a/y b/x\nrename from y\nrename to x\n";
    let copied = "diff --git a/y b/x\ncopy from y\ncopy to x\n";
    let in_the_way = [file("1\n"), link("z"), Node::Other, Node::Directory { below: None }];
    for node in in_the_way {
        for text in [made, moved, copied] {
            let patch = Patch::parse(text.as_bytes()).unwrap();
            let plan = patch.plan(&tree(&[("x", node.clone()), ("y", file("1\n1\n"))]));
            assert_eq!(plan.report.outcome, PatchOutcome::Refused, "{text} {node:?}");
            assert_eq!(refusals(&plan.report), [Some(PatchRefusalKind::Exists)], "{text} {node:?}");
            assert_eq!(plan.changes, []);
        }
    }
    for text in [made, moved, copied] {
        assert_eq!(plan(text, &files(&[("y", "1\n")])).report.outcome, PatchOutcome::Fits);
    }
}

#[test]
fn a_file_is_deleted_only_if_it_is_what_the_patch_deletes() {
    let patch = "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n";
    let empty = "diff --git a/x b/x\ndeleted file mode 100644\n";
    check_forward(patch, &files(&[("x", "1\n")]), &files(&[]));
    check_forward(empty, &files(&[("x", "")]), &files(&[]));
    let report = check_refused(patch, &files(&[("x", "1\n2\n")]));
    assert_eq!(refusals(&report), [Some(PatchRefusalKind::ContentDiffers)]);
    let report = check_refused(empty, &files(&[("x", "1\n")]));
    assert_eq!(refusals(&report), [Some(PatchRefusalKind::ContentDiffers)]);
    check_refused(patch, &files(&[("x", "2\n")]));
}

#[test]
fn a_copy_is_taken_back_only_if_it_still_is_one() {
    let patch = "diff --git a/x b/y\ncopy from x\ncopy to y\n";
    let back = plan_reversed(patch, &files(&[("x", "1\n"), ("y", "2\n")]));
    assert_eq!(refusals(&back.report), [Some(PatchRefusalKind::ContentDiffers)]);
    assert_eq!(back.changes, []);
}

#[test]
fn a_patch_does_not_go_through_links_nor_change_what_is_no_file() {
    let check = |name: &str, nodes: &[(&str, Node)], kind: PatchRefusalKind| {
        let text = format!("--- a/{name}\n+++ b/{name}\n{HUNK}");
        let patch = Patch::parse(text.as_bytes()).unwrap();
        let report = patch.plan(&tree(nodes)).report;
        assert_eq!(refusals(&report), [Some(kind)], "{nodes:?}");
    };
    check("l/x", &[("l", link("d")), ("l/x", file("1\n"))], PatchRefusalKind::NoDirectory);
    check("l/d/x", &[("l", link("d"))], PatchRefusalKind::NoDirectory);
    check("x", &[("x", link("1"))], PatchRefusalKind::WrongKind);
    check("x", &[("x", Node::Other)], PatchRefusalKind::WrongKind);
    check("x", &[("x", Node::Directory { below: None })], PatchRefusalKind::WrongKind);
    check("x", &[], PatchRefusalKind::NotFound);
    let made = "--- /dev/null\n+++ b/l/x\n@@ -0,0 +1 @@\n+1\n";
    let report = check_refused(made, &tree(&[("l", link("d"))]));
    assert_eq!(refusals(&report), [Some(PatchRefusalKind::NoDirectory)]);
    let file_for_link =
        "diff --git a/x b/x\nindex 1..2 120000\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n";
    let report = check_refused(file_for_link, &files(&[("x", "1\n")]));
    assert_eq!(refusals(&report), [Some(PatchRefusalKind::WrongKind)]);
}

#[test]
fn two_sections_cannot_make_a_file_and_one_below_it() {
    let made = |name: &str| format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+1\n");
    let report = check_refused(made("x") + &made("x/y"), &files(&[]));
    assert_eq!(refusals(&report), [None, Some(PatchRefusalKind::NoDirectory)]);
}

#[test]
fn a_link_that_leads_out_of_the_workspace_is_not_made() {
    let made = |name: &str, target: &str| {
        format!(
            "diff --git a/{name} b/{name}\nnew file mode 120000\n--- /dev/null\n+++ b/{name}\n\
             @@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
        )
    };
    for (name, target) in
        [("l", "/etc/passwd"), ("l", ".."), ("d/l", "../../x"), ("l", "x/../../y")]
    {
        let report = check_refused(made(name, target), &files(&[]));
        assert_eq!(refusals(&report), [Some(PatchRefusalKind::BadLink)], "{target}");
    }
    for (name, target) in [("l", "x"), ("d/l", "../x"), ("d/e/l", "../../x/./y/.."), ("l", "...")] {
        check_forward(made(name, target), &files(&[]), &tree(&[(name, link(target))]));
    }
    let moved = "diff --git a/d/l b/l\nrename from d/l\nrename to l\n";
    let report = check_refused(moved, &tree(&[("d/l", link("../x"))]));
    assert_eq!(refusals(&report), [Some(PatchRefusalKind::BadLink)]);
    check_forward(moved, &tree(&[("d/l", link("x"))]), &tree(&[("l", link("x"))]));
}
