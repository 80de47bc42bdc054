//! The index of a git repository: whether a name in it leads out of the work tree. Pure.
//!
//! HOSTILE: git writes to where an entry is, reads from there, and goes into the repository that an entry
//! stands for. It refuses names such as `.git/hooks/pre-commit` and `../x` when they are added, and
//! believes them when they are read. So what is not understood here to its end counts as unknown, and
//! where git may read in two ways, both have to be harmless.
//!
//! The format: <https://git-scm.com/docs/index-format>.

use super::names::is_git;

/// What the names of an index say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Inside,
    Outside,
    /// It is not understood, or empty of any sense.
    Unknown,
}

/// The bytes of a sum, of which an index does not say which it has.
const SUM_BYTES: [usize; 2] = [20, 32];
/// What is known of a file before its sum: times, device, inode, mode, user, group, size.
const STAT_BYTES: usize = 40;
/// The bits of a length, all of which are set where it is longer.
const LENGTH: usize = 0xfff;
const HAS_MORE_FLAGS: u16 = 0x4000;

/// Judges an index.
pub(crate) fn judge(bytes: &[u8]) -> Names {
    let read = SUM_BYTES.map(|sum| Reader { bytes, at: 0, sum }.all());
    let understood: Vec<bool> = read.into_iter().flatten().collect();
    match understood.as_slice() {
        [] => Names::Unknown,
        all if all.iter().all(|is_inside| *is_inside) => Names::Inside,
        _ => Names::Outside,
    }
}

/// Whether a path that git follows from a work tree stays in it, and out of git directories.
pub(super) fn is_inside(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .all(|name| !matches!(name, b"" | b"." | b"..") && !name.contains(&0) && !is_git(name))
}

/// Whether the paths of `MERGE_RR`, from which git remembers how conflicts were resolved, stay inside.
pub(super) fn remembers_inside(bytes: &[u8]) -> bool {
    let mut entries = bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    entries.all(|entry| {
        let path = entry.iter().position(|byte| *byte == b'\t').and_then(|at| entry.get(at + 1..));
        path.is_some_and(is_inside)
    })
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    sum: usize,
}

/// An entry as it was read.
struct Entry<'b> {
    /// Where it begins.
    at: usize,
    /// What is written of its name: the end of it, where it begins as the one before.
    written: &'b [u8],
}

impl<'b> Reader<'b> {
    /// Whether all names lead inside; `None` where it is not understood.
    fn all(mut self) -> Option<bool> {
        let head = self.take(4)?;
        let (version, count) = (self.number()?, self.number()?);
        if head != b"DIRC" || !(2..=4).contains(&version) {
            return None;
        }
        let mut entries = Vec::new();
        let (mut name, mut all_inside) = (Vec::new(), true);
        for _ in 0..count {
            let (entry, is_directory) = self.entry(version, &mut name)?;
            let path = name.strip_suffix(b"/").filter(|_| is_directory).unwrap_or(&name);
            // One without a name stands for one of another file, which is judged by itself.
            all_inside &= path.is_empty() || is_inside(path);
            entries.push(entry);
        }
        let parts = self.extensions(self.at)?;
        // Whoever reads in parts takes the first name of each as it is written.
        Some(all_inside && Self::parts_are_inside(&parts, &entries, version == 4)?)
    }

    /// An entry, whose name follows the one before. Says whether it is a directory that is not shown.
    fn entry(&mut self, version: u32, name: &mut Vec<u8>) -> Option<(Entry<'b>, bool)> {
        let at = self.at;
        let stat = self.take(STAT_BYTES)?;
        let mode = u32::from_be_bytes(stat.get(24..28)?.try_into().ok()?);
        self.take(self.sum)?;
        let flags = self.short()?;
        if flags & HAS_MORE_FLAGS != 0 {
            self.short().filter(|_| version > 2)?;
        }
        let said = usize::from(flags) & LENGTH;
        let kept = if version == 4 { name.len().checked_sub(self.varint()?)? } else { 0 };
        let rest = self.bytes.get(self.at..)?;
        let len = rest.iter().position(|byte| *byte == 0)?;
        let written = rest.get(..len)?;
        name.truncate(kept);
        name.extend_from_slice(written);
        // HOSTILE: git goes by the length that is said, and otherwise by the end of the name.
        if name.len().min(LENGTH) != said {
            return None;
        }
        self.at += len + 1;
        if version < 4 {
            // Up to eight bytes of nothing fill each entry to a multiple of eight.
            let fill = (8 - (self.at - at) % 8) % 8;
            self.take(fill)?;
        }
        Some((Entry { at, written }, mode & 0o170_000 == 0o040_000))
    }

    /// Looks through what follows the entries, and answers where parts of them begin that can be read apart, and
    /// how many are in each.
    fn extensions(&mut self, end_of_entries: usize) -> Option<Vec<(u32, u32)>> {
        let end = self.bytes.len().checked_sub(self.sum)?;
        let mut parts = Vec::new();
        while self.at < end {
            let (name, len) = (self.take(4)?, usize::try_from(self.number()?).ok()?);
            let content = self.take(len)?;
            match name {
                b"EOIE" => {
                    let said = Self { bytes: content, at: 0, sum: 0 }.number()?;
                    if usize::try_from(said).ok()? != end_of_entries {
                        return None;
                    }
                }
                b"IEOT" => {
                    let mut pairs = Self { bytes: content, at: 0, sum: 0 };
                    pairs.number()?;
                    while pairs.at < content.len() {
                        parts.push((pairs.number()?, pairs.number()?));
                    }
                }
                _ => {}
            }
        }
        (self.at == end).then_some(parts)
    }

    /// Whether the first names of all parts lead inside as they are written. `None` where the parts are not
    /// those of the entries.
    fn parts_are_inside(parts: &[(u32, u32)], all: &[Entry<'_>], is_cut: bool) -> Option<bool> {
        let (mut next, mut are_inside) = (0_usize, true);
        for (at, count) in parts {
            let first = all.get(next)?;
            if first.at != usize::try_from(*at).ok()? {
                return None;
            }
            are_inside &= !is_cut || first.written.is_empty() || is_inside(first.written);
            next = next.checked_add(usize::try_from(*count).ok()?)?;
        }
        (parts.is_empty() || next == all.len()).then_some(are_inside)
    }

    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let end = self.at.checked_add(len)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    fn short(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// A number as the offsets of packs have them.
    fn varint(&mut self) -> Option<usize> {
        let mut byte = *self.take(1)?.first()?;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = *self.take(1)?.first()?;
            value =
                value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        }
        Some(value)
    }
}

/// An index of one entry.
#[cfg(test)]
pub(crate) fn of_one(mode: u32, name: &str) -> Vec<u8> {
    tests::index(2, 20, &[(mode, name.as_bytes())])
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
