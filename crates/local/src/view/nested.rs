//! What is mounted below a directory.

use super::lookup::is_within;
use crate::kernel_text::kernel_text;
use cofferdam_core::{Error, ErrorKind, Result};

/// Fails where something is mounted below this directory. A layer over it would show what lies under
/// the mount.
pub(super) fn refuse(path: &str) -> Result<()> {
    let table = kernel_text("/proc/self/mountinfo").map_err(|error| {
        Error::new(ErrorKind::Io, "read which file systems are mounted").source(error)
    })?;
    match first_below(&table, path) {
        None => Ok(()),
        Some(place) => Err(Error::new(
            ErrorKind::Unsupported,
            format!("workspace {path} cannot be copy-on-write: {place} is mounted in it"),
        )
        .hint("Unmount it, name a directory without mounts, or leave --cow out.")),
    }
}

/// The first place below `path` on which something is mounted.
fn first_below(table: &str, path: &str) -> Option<String> {
    let places = table.lines().filter_map(|line| line.split(' ').nth(4)).map(plain);
    places.into_iter().find(|place| place != path && is_within(place, path))
}

/// The kernel writes some characters of a path as three octal digits.
fn plain(written: &str) -> String {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, octal) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
        30 22 0:5 / /srv/w rw - tmpfs none rw\n\
        31 22 0:6 / /srv/work rw - tmpfs none rw\n\
        32 22 0:7 / /srv/a\\040b/deep rw - tmpfs none rw\n";

    #[test]
    fn a_mount_below_is_found_and_one_at_or_beside_it_is_not() {
        assert_eq!(first_below(TABLE, "/srv/w"), None);
        assert_eq!(first_below(TABLE, "/srv/a b").as_deref(), Some("/srv/a b/deep"));
        assert_eq!(first_below(TABLE, "/srv").as_deref(), Some("/srv/w"));
        assert_eq!(first_below(TABLE, "/srv/a b/deep"), None);
    }
}
