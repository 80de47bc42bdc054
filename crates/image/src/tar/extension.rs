//! What stands before an entry and says more about it than a header has room for.

use super::number::{decimal, time};
use super::{MAX_PATH_BYTES, malformed};
use std::io;

/// What was said.
#[derive(Debug, Default)]
pub(super) struct Extension {
    pub(super) path: Option<Vec<u8>>,
    pub(super) target: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
    pub(super) mtime: Option<(i64, u32)>,
    pub(super) attributes: u64,
}

impl Extension {
    /// Takes over what a header of this kind holds.
    pub(super) fn take(&mut self, kind: u8, content: &[u8]) -> io::Result<()> {
        match kind {
            b'L' => self.path = Some(name(content)?),
            b'K' => self.target = Some(name(content)?),
            _ => self.records(content)?,
        }
        Ok(())
    }

    /// Records of pax: a length, a space, a key, an equals sign, a value, a new line.
    fn records(&mut self, mut content: &[u8]) -> io::Result<()> {
        let bad = || malformed("an extended header is malformed");
        while !content.is_empty() && content.first() != Some(&0) {
            let space = content.iter().position(|byte| *byte == b' ').ok_or_else(bad)?;
            let length = decimal(content.get(..space).unwrap_or_default())?;
            let length = usize::try_from(length).map_err(|_| bad())?;
            let record = content.get(space + 1..length).ok_or_else(bad)?;
            let record = record.strip_suffix(b"\n").ok_or_else(bad)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(bad)?;
            let (key, value) = record.split_at(equals);
            self.record(key, value.get(1..).unwrap_or_default())?;
            content = content.get(length..).unwrap_or_default();
        }
        Ok(())
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        match key {
            b"path" => self.path = Some(name_alone(value)?),
            b"linkpath" => self.target = Some(name_alone(value)?),
            b"size" => self.size = Some(decimal(value)?),
            b"uid" => self.uid = Some(decimal(value)?),
            b"gid" => self.gid = Some(decimal(value)?),
            b"mtime" => self.mtime = Some(time(value)?),
            key if key.starts_with(b"SCHILY.xattr.") || key.starts_with(b"LIBARCHIVE.xattr.") => {
                self.attributes += 1;
            }
            // What is read as it is written would have holes in the wrong places.
            key if key.starts_with(b"GNU.sparse.") => {
                return Err(malformed("a file with holes (GNU.sparse) is not understood"));
            }
            _ => {}
        }
        Ok(())
    }
}

/// A name that a zero byte ends.
fn name(content: &[u8]) -> io::Result<Vec<u8>> {
    name_alone(content.split(|byte| *byte == 0).next().unwrap_or_default())
}

fn name_alone(name: &[u8]) -> io::Result<Vec<u8>> {
    if name.contains(&0) {
        return Err(malformed("a path has a zero byte"));
    }
    if name.len() > MAX_PATH_BYTES {
        return Err(malformed(format!("a path has {} bytes", name.len())));
    }
    Ok(name.to_vec())
}
