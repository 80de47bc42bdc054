//! What a tree of files looks like, to see whether it changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Every file of a tree: its kind and mode, and what is in it.
pub(crate) type Snapshot = BTreeMap<PathBuf, String>;

/// Takes in a file, or a directory with all that is below.
pub(crate) fn take(snapshot: &mut Snapshot, path: &Path) {
    let Ok(facts) = fs::symlink_metadata(path) else {
        snapshot.insert(path.to_owned(), "absent".to_owned());
        return;
    };
    let mode = facts.mode() & 0o7777;
    let kind = facts.file_type();
    let text = if kind.is_symlink() {
        format!("link to {}", fs::read_link(path).unwrap_or_default().display())
    } else if kind.is_dir() {
        format!("directory {mode:o}")
    } else if kind.is_file() {
        // Read as far as it says who touched it: the time of change is left out, because a pin that
        // comes and goes changes it.
        let text = fs::read(path).unwrap_or_default();
        format!("file {mode:o} {}", String::from_utf8_lossy(&text))
    } else if kind.is_socket() {
        format!("socket {mode:o}")
    } else {
        format!("special file {:o} {:x}", facts.mode(), facts.rdev())
    };
    snapshot.insert(path.to_owned(), text);
    if kind.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            take(snapshot, &entry.path());
        }
    }
}

/// The first difference, for people.
pub(crate) fn difference(before: &Snapshot, after: &Snapshot) -> Option<String> {
    let gone = before.iter().find(|(path, text)| after.get(*path) != Some(text));
    if let Some((path, text)) = gone {
        let now = after.get(path).map_or("absent", String::as_str);
        return Some(format!("{}: was {text:?}, is {now:?}", path.display()));
    }
    let new = after.iter().find(|(path, _)| !before.contains_key(*path));
    new.map(|(path, text)| format!("{} is new: {text:?}", path.display()))
}

/// A file below with set-id bits, or a device.
pub(crate) fn planted(path: &Path) -> Option<String> {
    let facts = fs::symlink_metadata(path).ok()?;
    let kind = facts.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Some(format!("{} is a device", path.display()));
    }
    if !kind.is_symlink() && facts.mode() & 0o6000 != 0 {
        return Some(format!("{} has mode {:o}", path.display(), facts.mode()));
    }
    if !kind.is_dir() {
        return None;
    }
    fs::read_dir(path).ok()?.flatten().find_map(|entry| planted(&entry.path()))
}
