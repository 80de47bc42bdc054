//! The blocks that stand before and behind the bytes of a file.

use tar::{EntryType, Header};

/// What an archive consists of.
pub(crate) const BLOCK_BYTES: u64 = 512;
/// The blocks of zeros at the end.
pub(crate) const END_BYTES: usize = 1024;
/// How long a name or a link's target may be that fits in a header.
const SHORT: usize = 100;
/// The name of a header whose data is a long name, as GNU tar writes it.
const LONG: &[u8] = b"././@LongLink";

/// One thing, for its header.
pub(crate) struct Member<'m> {
    pub(crate) path: &'m [u8],
    pub(crate) kind: EntryType,
    pub(crate) target: &'m [u8],
    pub(crate) mode: u32,
    pub(crate) modified_ms: i64,
    pub(crate) bytes: u64,
}

impl Member<'_> {
    /// Its header, and before it what does not fit in there.
    pub(crate) fn blocks(&self) -> Vec<u8> {
        let mut blocks = Vec::new();
        if self.target.len() > SHORT {
            long(&mut blocks, EntryType::GNULongLink, self.target);
        }
        if self.path.len() > SHORT {
            long(&mut blocks, EntryType::GNULongName, self.path);
        }
        let mut header = Header::new_gnu();
        header.set_entry_type(self.kind);
        header.set_mode(self.mode);
        header.set_mtime(u64::try_from(self.modified_ms.div_euclid(1000)).unwrap_or(0));
        put(&mut header.as_old_mut().name, self.path);
        put(&mut header.as_old_mut().linkname, self.target);
        finish(&mut blocks, header, self.bytes);
        blocks
    }
}

/// A header with a long name as its data.
fn long(blocks: &mut Vec<u8>, kind: EntryType, name: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    put(&mut header.as_old_mut().name, LONG);
    header.set_mode(0o644);
    header.set_mtime(0);
    finish(blocks, header, name.len() as u64 + 1);
    blocks.extend_from_slice(name);
    let zeros = 1 + padding(name.len() as u64 + 1);
    blocks.resize(blocks.len() + zeros, 0);
}

/// Whoever unpacks it is the owner: ids of a sandbox say nothing outside.
fn finish(blocks: &mut Vec<u8>, mut header: Header, bytes: u64) {
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(bytes);
    header.set_cksum();
    blocks.extend_from_slice(header.as_bytes());
}

/// As much of it as there is room for.
fn put(field: &mut [u8], bytes: &[u8]) {
    for (place, byte) in field.iter_mut().zip(bytes) {
        *place = *byte;
    }
}

/// How many bytes are missing to a whole block.
pub(crate) fn padding(bytes: u64) -> usize {
    let over = bytes % BLOCK_BYTES;
    usize::try_from((BLOCK_BYTES - over) % BLOCK_BYTES).unwrap_or(0)
}
