//! A patch is hostile: whatever it is, it is understood as it stands or refused.

#[path = "hostile/patch.rs"]
mod patch;

use proptest::prelude::*;
use proptest::sample::select;

/// Pieces of patches, put together in any order.
const PIECES: [&[u8]; 44] = [
    b"diff --git a/x b/x\n",
    b"diff --git a/x b/y\n",
    b"diff --git \"a/\\303\\251\" b/x\n",
    b"index 1..2 100644\n",
    b"index 1..2 120000\n",
    b"old mode 100644\n",
    b"new mode 100755\n",
    b"new file mode 100644\n",
    b"deleted file mode 100644\n",
    b"new file mode 120000\n",
    b"rename from x\n",
    b"rename to y\n",
    b"copy from x\n",
    b"copy to y\n",
    b"copy to x/z\n",
    b"--- a/x\n+++ b/x\n",
    b"--- /dev/null\n+++ b/y\n",
    b"--- x\t1970-01-01\n+++ x\n",
    b"--- a/x\n+++ /dev/null\n",
    b"--- \"a/x\n",
    b"+++ b/x\n",
    b"@@ -1 +1 @@\n",
    b"@@ -1,3 +1,2 @@ fn a()\n",
    b"@@ -0,0 +1,2 @@\n",
    b"@@\n",
    b"@@ a\n",
    b"@@ -4294967295,4294967295 +4294967295,4294967295 @@\n",
    b"@@@ -1 -1 +1 @@@\n",
    b" a\n",
    b"-a\n",
    b"+b\n",
    b"\n",
    b" \n",
    b"-a\r\n",
    b"+b\r\n",
    b"\\ No newline at end of file\n",
    b"-- \n",
    b"2.47.3\n",
    b"*** Begin Patch\n",
    b"*** Update File: x\n",
    b"*** Move to: y\n",
    b"*** Add File: y\n",
    b"*** Delete File: x\n",
    b"*** End Patch\n",
];

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(select(&PIECES[..]), 0..24).prop_map(|pieces| pieces.concat())
}

/// Heads of sections that are understood.
const HEADS: [&[u8]; 10] = [
    b"--- a/x\n+++ b/x\n",
    b"--- x\n+++ x\n",
    b"--- /dev/null\n+++ b/y\n",
    b"--- a/x\n+++ /dev/null\n",
    b"diff --git a/x b/y\nrename from x\nrename to y\n",
    b"diff --git a/y b/x\nrename from y\nrename to x\nindex 1..2 100644\n--- a/y\n+++ b/x\n",
    b"diff --git a/x b/x\nold mode 100644\nnew mode 100755\n--- a/x\n+++ b/x\n",
    b"diff --git a/x b/x/z\ncopy from x\ncopy to x/z\n--- a/x\n+++ b/x/z\n",
    b"diff --git a/y b/y\nnew file mode 120000\n--- /dev/null\n+++ b/y\n",
    b"diff --git a/x b/x\ndeleted file mode 100644\n",
];

fn hunk() -> impl Strategy<Value = Vec<u8>> {
    let heads: [&[u8]; 6] = [
        b"@@ -1 +1 @@\n",
        b"@@ -1,2 +1,2 @@\n",
        b"@@ -3,3 +2,4 @@\n",
        b"@@ -0,0 +1 @@\n",
        b"@@\n",
        b"@@ a\n",
    ];
    let lines: [&[u8]; 10] = [
        b" a\n",
        b" b\n",
        b"\n",
        b"-a\n",
        b"-b\n",
        b"+a\n",
        b"+b\n",
        b"-a\r\n",
        b"+b\r\n",
        b"\\ No newline at end of file\n",
    ];
    let lines = proptest::collection::vec(select(lines.to_vec()), 0..5);
    (select(heads.to_vec()), lines, select(vec![&b"-a\n"[..], b"+b\n", b"-b\n"]))
        .prop_map(|(head, lines, last)| [head, &lines.concat(), last].concat())
}

fn sections() -> impl Strategy<Value = Vec<u8>> {
    let hunks = proptest::collection::vec(hunk(), 0..3);
    let section = (select(&HEADS[..]), hunks).prop_map(|(head, hunks)| {
        let hunks =
            if head.windows(4).any(|four| four == b"+++ ") { hunks.concat() } else { Vec::new() };
        [head, &hunks].concat()
    });
    proptest::collection::vec(section, 1..4).prop_map(|sections| sections.concat())
}

/// An envelope around the same hunks.
fn envelope() -> impl Strategy<Value = Vec<u8>> {
    let heads: [&[u8]; 4] = [
        b"*** Update File: x\n",
        b"*** Update File: x\n*** Move to: y\n",
        b"*** Delete File: x\n",
        b"*** Add File: y\n+a\n",
    ];
    let section = (select(heads.to_vec()), hunk(), any::<bool>()).prop_map(|(head, hunk, ends)| {
        let hunk = if head.starts_with(b"*** Update") { hunk } else { Vec::new() };
        [head, &hunk, if ends && !hunk.is_empty() { b"*** End of File\n" } else { b"" }].concat()
    });
    proptest::collection::vec(section, 1..4).prop_map(|sections| {
        [&b"*** Begin Patch\n"[..], &sections.concat(), b"*** End Patch\n"].concat()
    })
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let lines = select(vec![&b"a\n"[..], b"b\n", b"a\r\n", b"\n", b"a", b"\x00\xff\n"]);
    proptest::collection::vec(lines, 0..8).prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_a_patch_or_refused(
        text in any::<Vec<u8>>(), content in any::<Vec<u8>>(),
    ) {
        patch::patch(&text, &content);
    }

    #[test]
    fn pieces_of_patches_are_a_patch_or_refused(text in pieces(), content in content()) {
        patch::patch(&text, &content);
    }

    #[test]
    fn what_is_like_a_patch_is_a_patch_or_refused(
        text in prop_oneof![sections(), envelope()], content in content(),
    ) {
        patch::patch(&text, &content);
    }

    #[test]
    fn a_patch_that_was_cut_or_changed_is_a_patch_or_refused(
        text in prop_oneof![sections(), envelope()], content in content(), at in any::<proptest::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut text = text;
        let at = at.index(text.len());
        patch::patch(&text[..at], &content);
        text[at] = byte;
        patch::patch(&text, &content);
    }
}
