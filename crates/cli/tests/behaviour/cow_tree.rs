//! Everything that can be seen of a tree of files without changing it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What each path is. Times of access are left out, for looking changes them.
pub(crate) type Tree = BTreeMap<PathBuf, Entry>;

/// What one path is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    mode: u32,
    owner: (u32, u32),
    inode: u64,
    links: u64,
    size: u64,
    blocks: u64,
    modified_ns: i128,
    /// Also changes with attributes, permissions and names.
    changed_ns: i128,
    content: Vec<u8>,
}

/// Looks at a directory and all below it, links not followed.
pub(crate) fn tree(top: &Path) -> Tree {
    let mut tree = Tree::new();
    take(top, &mut tree);
    tree
}

fn take(path: &Path, tree: &mut Tree) {
    let found = fs::symlink_metadata(path).unwrap();
    let ns = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let content = if found.is_file() {
        fs::read(path).unwrap()
    } else if found.is_symlink() {
        fs::read_link(path).unwrap().into_os_string().into_encoded_bytes()
    } else {
        Vec::new()
    };
    let entry = Entry {
        mode: found.mode(),
        owner: (found.uid(), found.gid()),
        inode: found.ino(),
        links: found.nlink(),
        size: found.size(),
        blocks: found.blocks(),
        modified_ns: ns(found.mtime(), found.mtime_nsec()),
        changed_ns: ns(found.ctime(), found.ctime_nsec()),
        content,
    };
    tree.insert(path.to_owned(), entry);
    if found.is_dir() {
        for inner in fs::read_dir(path).unwrap() {
            take(&inner.unwrap().path(), tree);
        }
    }
}
