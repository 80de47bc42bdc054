//! What the kernel said of each entry of the present layer when it was looked at last, so that the next
//! look reads only what was changed since.
//!
//! It is of use beside the tree of the same look alone, entry by entry. One that is damaged, or of
//! another tree, is as good as none: everything is compared then.

use super::grain::Grain;
use super::mapped::Mapped;
use super::walk::{Found, Mark};
use sha2::{Digest, Sha256};

/// What a file of this format begins with.
const LEAD: &[u8; 16] = b"cofferdam-live\x01\n";
/// The bytes of one entry.
const ENTRY_BYTES: usize = 29;

/// What was seen of each entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Live {
    /// The number of the tree.
    pub(super) tree: u32,
    pub(super) entries: Vec<LiveEntry>,
}

/// What was seen of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LiveEntry {
    pub(super) mark: Mark,
    /// Whether a later change would have another mark for certain.
    pub(super) is_certain: bool,
}

impl Live {
    /// What was seen by a look, while this was mapped.
    pub(super) fn new(tree: u32, found: &[Found], grain: Grain, mapped: &Mapped) -> Self {
        let mapped = mapped.among(found);
        let entry = |found: &Found| {
            let mark = found.mark();
            let is_mapped =
                mapped.as_ref().is_none_or(|all| all.contains(&(mark.device, mark.inode)));
            LiveEntry { mark, is_certain: grain.tells(mark) && !is_mapped }
        };
        Self { tree, entries: found.iter().map(entry).collect() }
    }

    /// As if all of it were certain.
    #[cfg(test)]
    pub(super) fn made(tree: u32, found: &[Found]) -> Self {
        let entry = |found: &Found| LiveEntry { mark: found.mark(), is_certain: true };
        Self { tree, entries: found.iter().map(entry).collect() }
    }

    /// Whether all that was found is for certain what was seen.
    pub(super) fn is(&self, found: &[Found]) -> bool {
        let same =
            |(seen, found): (&LiveEntry, &Found)| seen.is_certain && seen.mark == found.mark();
        self.entries.len() == found.len() && self.entries.iter().zip(found).all(same)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.entries.len() * ENTRY_BYTES);
        out.extend(LEAD);
        out.extend(self.tree.to_le_bytes());
        for LiveEntry { mark, is_certain } in &self.entries {
            out.extend(mark.device.to_le_bytes());
            out.extend(mark.inode.to_le_bytes());
            out.extend(mark.changed.0.to_le_bytes());
            out.extend(mark.changed.1.to_le_bytes());
            out.push(u8::from(*is_certain));
        }
        let sum = Sha256::digest(&out);
        out.extend(sum);
        out
    }

    /// Reads it; `None` where it is not whole.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (said, sum) = bytes.split_last_chunk::<32>()?;
        if Sha256::digest(said).as_slice() != sum {
            return None;
        }
        let (tree, rest) = said.strip_prefix(LEAD)?.split_first_chunk::<4>()?;
        let (entries, left) = rest.as_chunks::<ENTRY_BYTES>();
        if !left.is_empty() {
            return None;
        }
        let entries = entries.iter().map(entry).collect::<Option<_>>()?;
        Some(Self { tree: u32::from_le_bytes(*tree), entries })
    }
}

fn entry(bytes: &[u8; ENTRY_BYTES]) -> Option<LiveEntry> {
    let (device, rest) = bytes.split_first_chunk::<8>()?;
    let (inode, rest) = rest.split_first_chunk::<8>()?;
    let (seconds, rest) = rest.split_first_chunk::<8>()?;
    let (nanoseconds, rest) = rest.split_first_chunk::<4>()?;
    let mark = Mark {
        device: u64::from_le_bytes(*device),
        inode: u64::from_le_bytes(*inode),
        changed: (i64::from_le_bytes(*seconds), u32::from_le_bytes(*nanoseconds)),
    };
    Some(LiveEntry { mark, is_certain: rest == [1] })
}

#[cfg(test)]
mod tests {
    use super::super::tests::Place;
    use super::*;
    use cofferdam_core::MappedFiles;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn what_is_not_whole_is_none() {
        let mark = Mark { device: 1, inode: u64::MAX, changed: (-5, 999_999_999) };
        let entries =
            vec![LiveEntry { mark, is_certain: true }, LiveEntry { mark, is_certain: false }];
        let live = Live { tree: 7, entries };
        let bytes = live.encode();
        assert_eq!(Live::decode(&bytes), Some(live));
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert_eq!(Live::decode(&bad), None, "{at}");
            assert_eq!(Live::decode(&bytes[..at]), None, "{at}");
        }
    }

    #[test]
    fn a_time_of_change_is_certain_when_the_clock_has_gone_on() {
        let place = Place::new("history-grain");
        let mut found = super::super::take::all(&place.base.join("kept/cow")).unwrap();
        // Where this runs files may have no time below a second.
        found[0].stat.st_ctime_nsec = 5;
        let (seconds, rest) = found[0].mark().changed;
        let changed = UNIX_EPOCH + Duration::new(seconds.try_into().unwrap(), rest);
        let device = found[0].mark().device;
        let any = Mapped::of(MappedFiles::Any, None);
        for (after_ms, is_certain) in
            [(0, false), (10, false), (20, false), (21, true), (5000, true)]
        {
            let began = changed + Duration::from_millis(after_ms);
            for (fine, is_certain) in
                [(None, is_certain), (Some(device + 1), is_certain), (Some(device), true)]
            {
                let live = Live::new(0, &found, Grain { began, fine }, &Mapped::none());
                assert_eq!(live.entries[0].is_certain, is_certain, "{after_ms} {fine:?}");
                assert_eq!(live.is(&found), is_certain, "{after_ms} {fine:?}");
                let live = Live::new(0, &found, Grain { began, fine }, &any);
                assert!(!live.entries[0].is_certain, "{after_ms} {fine:?}");
            }
        }
    }
}
