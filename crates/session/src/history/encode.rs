//! Trees as bytes.

use super::tree::{
    ATTRIBUTE_BYTES, Content, Entry, LEAD, LINK_BYTES, MAX_TREE_DEPTH, MAX_TREE_ENTRIES, Moment,
    NAME_BYTES, Node,
};
use sha2::{Digest, Sha256};

const DIRECTORY: u8 = 1;
const FILE: u8 = 2;
const LINK: u8 = 3;
const REMOVED: u8 = 4;
const FIFO: u8 = 5;
const SOCKET: u8 = 6;
const AGAIN: u8 = 7;

/// Writes an entry.
pub(super) fn write_entry(out: &mut Vec<u8>, entry: &Entry) {
    write_bytes(out, &entry.path);
    match &entry.node {
        Node::Directory => out.push(DIRECTORY),
        Node::File(Content { blob, size }) => {
            out.push(FILE);
            out.extend(blob.to_le_bytes());
            out.extend(size.to_le_bytes());
        }
        Node::Link(target) => {
            out.push(LINK);
            write_bytes(out, target);
        }
        Node::Removed => out.push(REMOVED),
        Node::Fifo => out.push(FIFO),
        Node::Socket => out.push(SOCKET),
        Node::Again(of) => {
            out.push(AGAIN);
            out.extend(of.to_le_bytes());
        }
    }
    for number in [entry.mode, entry.user, entry.group] {
        out.extend(number.to_le_bytes());
    }
    for (seconds, rest) in [entry.modified, entry.accessed] {
        out.extend(seconds.to_le_bytes());
        out.extend(rest.to_le_bytes());
    }
    out.extend(u32::try_from(entry.attributes.len()).unwrap_or(u32::MAX).to_le_bytes());
    for (name, value) in &entry.attributes {
        write_bytes(out, name);
        write_bytes(out, value);
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(bytes);
}

/// Reads the entries, if the bytes are a whole file.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Entry>> {
    let (said, sum) = bytes.split_last_chunk::<32>()?;
    if Sha256::digest(said).as_slice() != sum {
        return None;
    }
    let mut rest = said.strip_prefix(LEAD)?;
    let count = number(&mut rest)? as usize;
    if count > MAX_TREE_ENTRIES {
        return None;
    }
    // LIMIT: no room is made for what only a number says.
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(read_entry(&mut rest)?);
    }
    rest.is_empty().then_some(entries)
}

fn read_entry(rest: &mut &[u8]) -> Option<Entry> {
    let path = some_bytes(rest, MAX_TREE_DEPTH * (NAME_BYTES + 2))?;
    let node = match chunk::<1>(rest)? {
        [DIRECTORY] => Node::Directory,
        [FILE] => {
            let (blob, size) = (chunk(rest)?, chunk(rest)?);
            Node::File(Content { blob: u64::from_le_bytes(blob), size: u64::from_le_bytes(size) })
        }
        [LINK] => Node::Link(some_bytes(rest, LINK_BYTES)?),
        [REMOVED] => Node::Removed,
        [FIFO] => Node::Fifo,
        [SOCKET] => Node::Socket,
        [AGAIN] => Node::Again(number(rest)?),
        [_] => return None,
    };
    let (mode, user, group) = (number(rest)?, number(rest)?, number(rest)?);
    let (modified, accessed) = (moment(rest)?, moment(rest)?);
    let mut attributes = Vec::new();
    for _ in 0..number(rest)? {
        attributes.push((some_bytes(rest, NAME_BYTES)?, some_bytes(rest, ATTRIBUTE_BYTES)?));
    }
    Some(Entry { path, node, mode, user, group, modified, accessed, attributes })
}

fn chunk<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk::<N>()?;
    *rest = others;
    Some(*first)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    chunk(rest).map(u32::from_le_bytes)
}

fn moment(rest: &mut &[u8]) -> Option<Moment> {
    Some((i64::from_le_bytes(chunk(rest)?), number(rest)?))
}

fn some_bytes(rest: &mut &[u8], most: usize) -> Option<Vec<u8>> {
    let count = number(rest)? as usize;
    let (first, others) = rest.split_at_checked(count).filter(|_| count <= most)?;
    *rest = others;
    Some(first.to_vec())
}
