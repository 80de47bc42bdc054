//! Diffs of layers: what real `git apply` and the project's own patches make of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use cofferdam_core::files::EntryKind;
use cofferdam_core::{Change, ChangeKind, FileState, GuestPath, Standing};
use cofferdam_session::diff::{Contents, DiffBody, FileDiff, MAX_DIFFED_FILE_BYTES};
use cofferdam_session::patch::{Executable, Node, Patch, PatchOutcome, Tree};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file or a link, with its content or where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Made {
    kind: EntryKind,
    mode: u32,
    content: Vec<u8>,
}

type Files = BTreeMap<String, Made>;

fn state(made: &Made) -> FileState {
    let is_link = made.kind == EntryKind::Link;
    FileState {
        kind: made.kind,
        mode: made.mode,
        size: made.content.len() as u64,
        target: is_link.then(|| made.content.clone().into()),
    }
}

fn diff(path: &str, before: Option<&Made>, after: Option<&Made>) -> FileDiff {
    let kind = match (before, after) {
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Removed,
        (Some(_), Some(_)) => ChangeKind::Modified,
    };
    let change = Change {
        path: GuestPath::new(path).unwrap(),
        kind,
        before: before.map(state),
        after: after.map(state),
        moved_from: None,
        linked_to: None,
        leads_out: false,
        set_id: false,
        version: 1,
        standing: Standing::Lands,
    };
    let content = |made: Option<&Made>| made.map(|made| made.content.clone());
    let (before, after) = (content(before), content(after));
    FileDiff::new(change, Contents { before: before.as_deref(), after: after.as_deref() })
}

/// The text of all changes from these files to those.
fn text(before: &Files, after: &Files) -> Vec<u8> {
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    let changed = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
    changed.flat_map(|path| diff(path, before.get(path), after.get(path)).text()).collect()
}

/// A directory that is gone with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, files: &Files) -> Self {
        let path =
            std::env::temp_dir().join(format!("cofferdam-diff-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir(&path).unwrap();
        for (name, made) in files {
            let at = path.join(name);
            if made.kind == EntryKind::Link {
                symlink(std::ffi::OsStr::from_bytes(&made.content), at).unwrap();
            } else {
                std::fs::write(&at, &made.content).unwrap();
                std::fs::set_permissions(at, std::fs::Permissions::from_mode(made.mode)).unwrap();
            }
        }
        Self(path)
    }

    fn files(&self) -> Files {
        let one = |path: &Path| {
            let found = std::fs::symlink_metadata(path).unwrap();
            let is_link = found.is_symlink();
            Made {
                kind: if is_link { EntryKind::Link } else { EntryKind::File },
                mode: if is_link { 0o777 } else { found.permissions().mode() & 0o777 },
                content: match is_link {
                    true => std::fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec(),
                    false => std::fs::read(path).unwrap(),
                },
            }
        };
        let entries = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap());
        entries
            .map(|entry| (entry.file_name().into_string().unwrap(), one(&entry.path())))
            .collect()
    }

    fn git_apply(&self, text: &[u8]) {
        let mut git = Command::new("git")
            .args(["apply", "--whitespace=nowarn", "-"])
            .current_dir(&self.0)
            .env("GIT_CEILING_DIRECTORIES", "/")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        git.stdin.take().unwrap().write_all(text).unwrap();
        let said = git.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{error}\n{}", String::from_utf8_lossy(text));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn any_made() -> impl Strategy<Value = Made> {
    let line = proptest::sample::select(
        &["a", "b", "", "+x", "-y", "--- z", "\\ No", "@@ -1 +1 @@", "\tt\r", "caf\u{e9}", "# x"][..],
    );
    let lines = (proptest::collection::vec(line, 0..24), any::<bool>());
    let content = lines.prop_map(|(lines, ends)| {
        let mut text = lines.join("\n");
        if ends && !lines.is_empty() {
            text.push('\n');
        }
        text.into_bytes()
    });
    let mode = proptest::sample::select(&[0o644, 0o755][..]);
    prop_oneof![
        5 => (content, mode).prop_map(|(content, mode)| Made { kind: EntryKind::File, mode, content }),
        1 => proptest::sample::select(&["x", "../y", "/z"][..]).prop_map(|target| Made {
            kind: EntryKind::Link,
            mode: 0o777,
            content: target.into(),
        }),
    ]
}

fn any_files() -> impl Strategy<Value = Files> {
    let name =
        proptest::sample::select(&["a", "b c", "\u{e4}", "q\"\\", "t\tn\n", " lead", "-rf"][..]);
    proptest::collection::btree_map(name.prop_map(str::to_owned), any_made(), 0..6)
}

proptest! {
    #![proptest_config(Config {
        cases: 96,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    })]

    #[test]
    fn git_makes_of_a_diff_what_the_layer_is(before in any_files(), after in any_files()) {
        let place = Place::new("git", &before);
        let text = text(&before, &after);
        if !text.is_empty() {
            place.git_apply(&text);
        }
        prop_assert_eq!(place.files(), after);
    }
}

fn file(content: &str) -> Made {
    Made { kind: EntryKind::File, mode: 0o644, content: content.into() }
}

#[test]
fn the_projects_own_patches_make_the_same_of_it() {
    let before: Files = [
        ("a".to_owned(), file("1\n2\n3\n4\n5\n6\n7\n8\n9\n")),
        ("gone \u{e4}".to_owned(), file("x")),
        ("run".to_owned(), file("#!/bin/sh\n")),
    ]
    .into();
    let mut after = before.clone();
    after.insert("a".to_owned(), file("1\n2\nthree\n4\n5\n6\n7\n8\n9"));
    after.insert("new\nname".to_owned(), file("n\n"));
    after.remove("gone \u{e4}");
    after.get_mut("run").unwrap().mode = 0o755;
    let patch = Patch::parse(&text(&before, &after)).unwrap();
    let mut tree = Tree::default();
    for path in patch.paths() {
        let name = String::from_utf8(path.as_bytes().to_vec()).unwrap();
        if let Some(made) = before.get(&name) {
            let content = made.content.clone().into();
            tree.insert(path, Node::File { content, executable: Executable::No });
        }
    }
    let plan = patch.plan(&tree);
    assert_eq!(plan.report.outcome, PatchOutcome::Fits, "{:?}", plan.report);
    assert_eq!(plan.report.files.len(), 4);
}

#[test]
fn what_git_cannot_say_stands_in_lines_that_it_passes_over() {
    let shown = |path: &str, before: Option<&Made>, after: Option<&Made>| {
        String::from_utf8(diff(path, before, after).text()).unwrap()
    };
    let binary = Made { content: b"a\0b".to_vec(), ..file("") };
    assert_eq!(shown("b", None, Some(&binary)), "# b: binary, nothing -> 3 bytes, not shown\n");
    let large = Made {
        content: vec![b'x'; usize::try_from(MAX_DIFFED_FILE_BYTES).unwrap() + 1],
        ..file("")
    };
    let text = shown("l", Some(&file("")), Some(&large));
    assert_eq!(text, "# l: too large, 0 bytes -> 8388609 bytes, not shown\n");
    let at_the_limit = Made {
        content: b"x\n".repeat(usize::try_from(MAX_DIFFED_FILE_BYTES).unwrap() / 2),
        ..file("")
    };
    assert!(matches!(diff("l", None, Some(&at_the_limit)).body, DiffBody::Text(_)));
    let closed = Made { mode: 0o600, ..file("x\n") };
    assert_eq!(shown("m", Some(&file("x\n")), Some(&closed)), "# m: permissions 644 -> 600\n");
    let directory = Made { kind: EntryKind::Directory, mode: 0o755, content: Vec::new() };
    assert_eq!(shown("d", None, Some(&directory)), "# d: nothing -> directory\n");
    let hook = shown(".git/hooks/x", None, Some(&file("evil\n")));
    assert!(hook.lines().all(|line| line.starts_with("# ")) && hook.contains("# +evil"), "{hook}");
    // The control: git takes the rest as if they were not there.
    let all = [hook, text, shown("t", None, Some(&file("t\n")))].concat();
    let place = Place::new("remarks", &Files::new());
    place.git_apply(all.as_bytes());
    assert_eq!(place.files(), [("t".to_owned(), file("t\n"))].into());
}
