//! What stands before a header and overrides it: long names, and records of the pax format.

use cofferdam_core::{Error, ErrorKind, Result};

/// What is to be done about an archive whose extensions are wrong.
const PACK_AGAIN: &str = "Pack the files again with an ordinary tar.";

/// The most bytes of one extension.
pub const MAX_EXTENSION_BYTES: u64 = 1 << 20;

/// What the extensions before a header say of it.
#[derive(Debug, Default)]
pub(crate) struct Extensions {
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) target: Option<Vec<u8>>,
    pub(crate) size: Option<u64>,
    /// Whether there was one.
    pub(crate) is_any: bool,
    has_records: bool,
}

impl Extensions {
    /// A long name, as GNU tar writes it, up to its zero byte.
    pub(crate) fn long_path(&mut self, data: &[u8]) -> Result<()> {
        self.is_any = true;
        once(&mut self.path, until_zero(data)?)
    }

    /// A long target of a link.
    pub(crate) fn long_target(&mut self, data: &[u8]) -> Result<()> {
        self.is_any = true;
        once(&mut self.target, until_zero(data)?)
    }

    /// Records of the pax format for the next header.
    pub(crate) fn records(&mut self, data: &[u8]) -> Result<()> {
        if std::mem::replace(&mut self.has_records, true) {
            return Err(twice());
        }
        self.is_any = true;
        each_record(data, |key, value| match key {
            b"path" => once(&mut self.path, value.to_vec()),
            b"linkpath" => once(&mut self.target, value.to_vec()),
            b"size" => {
                let size = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                once(&mut self.size, size.ok_or_else(malformed)?)
            }
            key => no_sparse(key),
        })
    }
}

/// Records for all headers that follow. What would rename them is refused: nobody writes that.
pub(crate) fn global(data: &[u8]) -> Result<()> {
    each_record(data, |key, _| match key {
        b"path" | b"linkpath" | b"size" => {
            let key = String::from_utf8_lossy(key);
            let what = format!("the archive sets the {key} of all its entries at once");
            Err(Error::new(ErrorKind::Usage, what).hint(PACK_AGAIN))
        }
        key => no_sparse(key),
    })
}

/// Each record: its length in digits, a space, the key, `=`, the value and a line feed.
fn each_record(data: &[u8], mut each: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
    let mut rest = data;
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ').ok_or_else(malformed)?;
        let (digits, _) = rest.split_at_checked(space).ok_or_else(malformed)?;
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(digits).ok().filter(|_| is_number);
        let length: usize = length.and_then(|text| text.parse().ok()).ok_or_else(malformed)?;
        let (record, behind) = rest.split_at_checked(length).ok_or_else(malformed)?;
        let record = record.get(space + 1..).and_then(|record| record.strip_suffix(b"\n"));
        let record = record.ok_or_else(malformed)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(malformed)?;
        let (key, value) = record.split_at_checked(equals).ok_or_else(malformed)?;
        each(key, value.get(1..).unwrap_or_default())?;
        rest = behind;
    }
    Ok(())
}

fn no_sparse(key: &[u8]) -> Result<()> {
    if key.starts_with(b"GNU.sparse.") { Err(sparse()) } else { Ok(()) }
}

/// The refusal of a file with holes.
pub(crate) fn sparse() -> Error {
    Error::new(ErrorKind::Unsupported, "the archive holds a sparse file")
        .hint("Make the archive without --sparse.")
}

fn until_zero(data: &[u8]) -> Result<Vec<u8>> {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    match data.get(end..).is_some_and(|rest| rest.iter().all(|byte| *byte == 0)) {
        true => Ok(data.get(..end).unwrap_or_default().to_vec()),
        false => Err(malformed()),
    }
}

/// HOSTILE: of two, other programs take the other.
fn once<T>(place: &mut Option<T>, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(twice()),
    }
}

fn twice() -> Error {
    Error::new(ErrorKind::Usage, "the archive names one of its entries twice before its header")
        .hint(PACK_AGAIN)
}

fn malformed() -> Error {
    Error::new(ErrorKind::Usage, "the archive holds an extension that makes no sense")
        .hint(PACK_AGAIN)
}
