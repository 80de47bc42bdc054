//! Which entries of a layer may change without a new time of change.

use super::walk::Found;
use cofferdam_core::MappedFiles;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What the kernel adds to the name of a file that has lost it.
const NAMELESS: &[u8] = b" (deleted)";
/// What else is mapped so and has no name, by how the kernel begins to call it, or where a sandbox has a file
/// system of its own.
const NO_FILES: [&[u8]; 4] = [b"/memfd:", b"/SYSV", b"/dev/", b"/tmp/"];

/// What processes have mapped while a layer is looked at.
#[derive(Debug, Clone)]
pub(crate) struct Mapped {
    files: MappedFiles,
    /// Where the workspace is inside.
    workspace: Option<PathBuf>,
}

impl Mapped {
    /// Nothing, because nothing lives that could.
    pub(super) fn none() -> Self {
        Self { files: MappedFiles::none(), workspace: None }
    }

    pub(super) fn of(files: MappedFiles, workspace: Option<PathBuf>) -> Self {
        Self { files, workspace }
    }

    /// The files, by device and inode, that may change so; `None` where all may.
    ///
    /// A layer is shown at more places than one, so that what is mapped is known by the end of its path.
    pub(super) fn among(&self, found: &[Found]) -> Option<BTreeSet<(u64, u64)>> {
        let MappedFiles::Known(names) = &self.files else { return None };
        let mut ends = BTreeSet::new();
        for name in names {
            if name.ends_with(NAMELESS) && self.may_be_of_the_layer(name) {
                // Another name of it may be left.
                return None;
            }
            let slashes = name.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            ends.extend(slashes.filter_map(|(at, _)| name.get(at + 1..)));
        }
        if ends.is_empty() {
            return Some(BTreeSet::new());
        }
        let is_mapped = |found: &&Found| ends.contains(as_told(&found.path).as_slice());
        let mapped = found.iter().filter(is_mapped);
        Some(mapped.map(|found| (found.stat.st_dev, found.stat.st_ino)).collect())
    }

    fn may_be_of_the_layer(&self, name: &[u8]) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let workspace = self.workspace.as_deref().map(Path::as_os_str).map(OsStrExt::as_bytes);
        let is_in = |place: &[u8]| name.starts_with(place);
        workspace.is_none_or(is_in) || !NO_FILES.iter().any(|place| name.starts_with(place))
    }
}

/// A path as the kernel tells of it in a list of mappings.
fn as_told(path: &[u8]) -> Vec<u8> {
    let mut told = Vec::with_capacity(path.len());
    for byte in path {
        match byte {
            b'\n' => told.extend(b"\\012"),
            byte => told.push(*byte),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, inode: u64) -> Found {
        let file = std::fs::File::open("/").unwrap();
        let mut stat = rustix::fs::fstat(&file).unwrap();
        (stat.st_dev, stat.st_ino) = (1, inode);
        Found { path: path.into(), stat }
    }

    fn among(names: &[&str]) -> Option<Vec<u64>> {
        let names = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mapped = Mapped::of(MappedFiles::Known(names), Some("/tmp/w".into()));
        let all = [found("", 1), found("a", 2), found("d/a", 3), found("d/x\ny", 4), found("l", 3)];
        mapped.among(&all).map(|found| found.into_iter().map(|(_, inode)| inode).collect())
    }

    #[test]
    fn what_is_mapped_is_known_by_the_end_of_its_path_and_with_all_its_names() {
        assert_eq!(among(&[]), Some(vec![]));
        assert_eq!(among(&["/workspace/a"]), Some(vec![2]));
        assert_eq!(among(&["/tmp/w/d/a"]), Some(vec![2, 3]), "more than needed, and never less");
        assert_eq!(among(&["/w/d/x\\012y", "/usr/lib/b"]), Some(vec![4]));
    }

    #[test]
    fn what_lost_its_name_may_be_anything_of_the_layer() {
        for name in ["/tmp/w/gone (deleted)", "/workspace/gone (deleted)"] {
            assert_eq!(among(&[name]), None, "{name}");
        }
        for name in ["/memfd:x (deleted)", "/dev/zero (deleted)", "/tmp/x (deleted)"] {
            assert_eq!(among(&[name]), Some(vec![]), "{name}");
        }
        let any = Mapped::of(MappedFiles::Any, None);
        assert_eq!(any.among(&[]), None);
    }
}
