//! The files that processes of a sandbox have mapped together with others.
//!
//! HOSTILE: names and numbers are chosen inside. What cannot be read, or is too much, may be anything.

use super::tree::descendants;
use cofferdam_core::MappedFiles;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};

/// How much is read of all lists of mappings together, in bytes.
const MAX_LIST_BYTES: u64 = 64 << 20;
/// How many bytes the names may have together: they are told in one answer.
const MAX_NAMED_BYTES: usize = 128 << 10;
/// Those that processes below `first` have mapped, which all stand still.
pub(super) fn mapped_below(first: i32) -> MappedFiles {
    let mut named = BTreeSet::new();
    let mut left = MAX_LIST_BYTES;
    for pid in descendants(first) {
        let Some(text) = list_of(pid, &mut left) else { return MappedFiles::Any };
        let all = text.split(|byte| *byte == b'\n').filter_map(shared);
        named.extend(all.map(<[u8]>::to_vec));
        if named.iter().map(Vec::len).sum::<usize>() > MAX_NAMED_BYTES {
            return MappedFiles::Any;
        }
    }
    MappedFiles::Known(named)
}

/// The mappings of a process; none where it has ended.
fn list_of(pid: i32, left: &mut u64) -> Option<Vec<u8>> {
    let text = read(&format!("/proc/{pid}/maps"), left)?;
    if !text.is_empty() {
        return Some(text);
    }
    // The first thread may have ended and left others, which have them still.
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Some(text) };
    for thread in threads.flatten() {
        let text = read(thread.path().join("maps").to_str()?, left)?;
        if !text.is_empty() {
            return Some(text);
        }
    }
    Some(text)
}

fn read(path: &str, left: &mut u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let is_over = |error: &std::io::Error| {
        // No such process.
        error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(3)
    };
    let file = match File::open(path) {
        Err(error) if is_over(&error) => return Some(text),
        file => file.ok()?,
    };
    match file.take(*left).read_to_end(&mut text) {
        Err(error) if is_over(&error) => {}
        read => {
            read.ok()?;
        }
    }
    *left = left.checked_sub(text.len() as u64).filter(|left| *left > 0)?;
    Some(text)
}

/// The name of a file that a line of such a list says is mapped together with others. It may be written to,
/// or become so. Source: proc_pid_maps(5).
fn shared(line: &[u8]) -> Option<&[u8]> {
    let mut rest = line;
    let mut field = || {
        let (field, after) = rest.split_at_checked(rest.iter().position(|byte| *byte == b' ')?)?;
        rest = after.get(1..)?;
        Some(field)
    };
    let [_, rights, _, _, inode] = [field()?, field()?, field()?, field()?, field()?];
    let path = rest.trim_ascii_start();
    (rights.ends_with(b"s") && inode != b"0" && path.starts_with(b"/")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_is_shared_by_its_name() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(shared(line.as_bytes()), expected.map(str::as_bytes), "{line}");
        };
        let line = |rights: &str, rest: &str| format!("7f21-7f22 {rights} 00000000 fe:00 {rest}");
        check(&line("rw-s", "845550                     /w/a b"), Some("/w/a b"));
        check(&line("r--s", "1 /w/x (deleted)"), Some("/w/x (deleted)"));
        check(&line("rw-p", "845550                     /w/a"), None);
        check(&line("rw-s", "0 "), None);
        check(&line("rw-s", "12 anon_inode:[x]"), None);
        check("", None);
        check("a b c", None);
    }
}
