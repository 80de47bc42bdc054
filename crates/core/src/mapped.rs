//! Changes of files that leave no time of change: stores through a shared mapping.
//!
//! The kernel sets the time of change when a page is written to for the first time since the mapping was made
//! or the page was last written to disk. A store to a page that is written to already is told of nowhere. So
//! a time says that nothing changed only where no process has the file mapped that had it mapped before.

use std::collections::BTreeSet;

/// Which files of a sandbox may change without a new time of change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MappedFiles {
    /// At most these, as the kernel tells of them (proc_pid_maps(5)): by what they are called inside, with
    /// ` (deleted)` behind the name of one that has lost it, and `\012` for the end of a line.
    Known(BTreeSet<Vec<u8>>),
    /// It is not known which.
    Any,
}

/// File systems whose files get a new time of change from the first store through a mapping: ext4 (and its
/// forebears), XFS, Btrfs, F2FS and bcachefs. Source: `page_mkwrite` of each in Linux 6.12, and the numbers in
/// `linux/magic.h`, that of bcachefs in its own `bcachefs_format.h`.
const TELLING: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e];

impl MappedFiles {
    /// None.
    pub fn none() -> Self {
        Self::Known(BTreeSet::new())
    }
}

/// Whether a file system of this number, as `statfs` tells it, sets the time of change on the first store
/// through a mapping. One that lives in memory never does.
pub fn tells_of_stores(file_system: u64) -> bool {
    TELLING.contains(&file_system)
}
