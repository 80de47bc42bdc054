//! The text of a diff.

use super::names::{behind_dashes, quoted};
use super::{DiffBody, DiffHunk, FileDiff, LineSide};
use crate::patch::is_git_directory;
use cofferdam_core::FileState;
use cofferdam_core::files::EntryKind;

/// Permission of execution, as git keeps it.
const EXECUTABLE: u32 = 0o100;

/// One section of a diff.
struct Section<'d> {
    path: &'d [u8],
    before: Option<&'d FileState>,
    after: Option<&'d FileState>,
    hunks: &'d [DiffHunk],
}

impl FileDiff {
    /// Its text, as git writes it.
    pub fn text(&self) -> Vec<u8> {
        let change = &self.change;
        let path = change.path.as_bytes();
        let mut text = Vec::new();
        for remark in self.remarks() {
            text.extend(format!("# {}: {remark}\n", quoted(path)).into_bytes());
        }
        let sections = self.sections();
        if change.path.names().any(is_git_directory) {
            // No patch may touch it, so that one which did would be refused as a whole.
            for line in sections.split_inclusive(|byte| *byte == b'\n') {
                text.extend_from_slice(b"# ");
                text.extend_from_slice(line);
            }
        } else {
            text.extend(sections);
        }
        text
    }

    fn sections(&self) -> Vec<u8> {
        let change = &self.change;
        let path = change.path.as_bytes();
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        let mut text = Vec::new();
        match &self.body {
            DiffBody::Text(hunks) => {
                let (before, after) = (shown(before), shown(after));
                Section { path, before, after, hunks }.write(&mut text);
            }
            DiffBody::Replaced { before: old, after: new } => {
                Section { path, before, after: None, hunks: old }.write(&mut text);
                Section { path, before: None, after, hunks: new }.write(&mut text);
            }
            DiffBody::Binary | DiffBody::TooLarge | DiffBody::None => {}
        }
        text
    }

    /// What git cannot say of it, each as a fragment.
    pub fn remarks(&self) -> Vec<String> {
        let change = &self.change;
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        let mut remarks = Vec::new();
        let size = |state: Option<&FileState>| {
            state.map_or_else(|| "nothing".to_owned(), |state| format!("{} bytes", state.size))
        };
        let sizes = format!("{} -> {}, not shown", size(before), size(after));
        match &self.body {
            DiffBody::Binary => remarks.push(format!("binary, {sizes}")),
            DiffBody::TooLarge => remarks.push(format!("too large, {sizes}")),
            DiffBody::None | DiffBody::Text(_) | DiffBody::Replaced { .. } => {}
        }
        let special = |state: &FileState| shown(Some(state)).is_none();
        if before.is_some_and(special) || after.is_some_and(special) {
            let name =
                |state: Option<&FileState>| state.map_or("nothing", |state| kind(state.kind));
            remarks.push(format!("{} -> {}", name(before), name(after)));
        }
        if let (Some(before), Some(after)) = (before, after)
            && before.kind == after.kind
            && before.mode != after.mode
            && (git_mode(before) == git_mode(after) || before.kind == EntryKind::Directory)
        {
            remarks.push(format!("permissions {:03o} -> {:03o}", before.mode, after.mode));
        }
        // Git makes new files by the mask of whoever applies its patch; these land as they are.
        if let (None, Some(after)) = (before, after)
            && after.kind != EntryKind::Link
            && after.mode & 0o022 != 0
        {
            remarks.push(format!("permissions {:03o}", after.mode));
        }
        if let Some(other) = &change.linked_to {
            remarks.push(format!("another name of {}", quoted(other.as_bytes())));
        }
        remarks
    }
}

/// A file or a link, which git knows.
fn shown(state: Option<&FileState>) -> Option<&FileState> {
    state.filter(|state| match state.kind {
        EntryKind::File | EntryKind::Link => true,
        EntryKind::Directory | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => false,
    })
}

fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Link => "link",
        EntryKind::Fifo => "pipe",
        EntryKind::Socket => "socket",
        EntryKind::Device => "device",
    }
}

fn git_mode(state: &FileState) -> &'static str {
    match state.kind {
        EntryKind::Link => "120000",
        _ if state.mode & EXECUTABLE != 0 => "100755",
        EntryKind::File
        | EntryKind::Directory
        | EntryKind::Fifo
        | EntryKind::Socket
        | EntryKind::Device => "100644",
    }
}

impl Section<'_> {
    fn write(&self, text: &mut Vec<u8>) {
        let modes = match (self.before, self.after) {
            (None, None) => return,
            (None, Some(after)) => format!("new file mode {}\n", git_mode(after)),
            (Some(before), None) => format!("deleted file mode {}\n", git_mode(before)),
            (Some(before), Some(after)) if git_mode(before) != git_mode(after) => {
                format!("old mode {}\nnew mode {}\n", git_mode(before), git_mode(after))
            }
            // What git cannot say.
            (Some(_), Some(_)) if self.hunks.is_empty() => return,
            (Some(_), Some(_)) => String::new(),
        };
        let name = |prefix: &str| quoted(&[prefix.as_bytes(), self.path].concat());
        text.extend(format!("diff --git {} {}\n{modes}", name("a/"), name("b/")).into_bytes());
        if self.hunks.is_empty() {
            return;
        }
        let side = |state: Option<&FileState>, prefix| match state {
            Some(_) => behind_dashes(prefix, self.path),
            None => "/dev/null".to_owned(),
        };
        let (old, new) = (side(self.before, "a/"), side(self.after, "b/"));
        text.extend(format!("--- {old}\n+++ {new}\n").into_bytes());
        self.hunks.iter().for_each(|hunk| hunk.write(text));
    }
}

impl DiffHunk {
    /// Its text, with its head.
    pub fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        self.write(&mut text);
        text
    }

    fn write(&self, text: &mut Vec<u8>) {
        let (old, new) = self.lengths();
        let head = format!("@@ -{} +{} @@\n", span(self.before, old), span(self.after, new));
        text.extend(head.into_bytes());
        for line in &self.lines {
            text.push(match line.side {
                LineSide::Both => b' ',
                LineSide::Before => b'-',
                LineSide::After => b'+',
            });
            text.extend_from_slice(&line.bytes);
            if !line.bytes.ends_with(b"\n") {
                text.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    }
}

/// Where lines are: the first, and how many; before which none is, where there are none.
fn span(before: usize, len: usize) -> String {
    match len {
        0 => format!("{before},0"),
        1 => format!("{}", before + 1),
        len => format!("{},{len}", before + 1),
    }
}
