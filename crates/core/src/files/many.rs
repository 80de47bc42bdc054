//! Reading several files at once.

use super::failure::refusal;
use super::{Body, Files, HasRead, MAX_READ_FILES, Read, ReadMany, Request, unasked};
use crate::{Error, ErrorKind, Result};
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{Answer, MAX_READ_PATH_BYTES, OneRead};

/// What one file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeFile {
    /// What the sandbox says of it.
    pub read: HasRead,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Files {
    /// Reads several whole files, in as few requests as their paths fit in. Answers one result for
    /// each path, in their order: a file that is missing, too large or no file stops no other.
    pub async fn read_many(&self, order: &ReadMany) -> Result<Vec<Result<WholeFile>>> {
        let mut all = Vec::new();
        let mut total_bytes = order.total_bytes;
        for paths in batches(&order.paths) {
            let batch = ReadMany { paths: paths.to_vec(), total_bytes, ..order.clone() };
            for one in self.read_batch(batch).await? {
                let bytes = one.as_ref().map_or(0, |content| content.bytes.len() as u64);
                total_bytes = total_bytes.saturating_sub(bytes);
                all.push(one);
            }
        }
        Ok(all)
    }

    async fn read_batch(&self, order: ReadMany) -> Result<Vec<Result<WholeFile>>> {
        let mut bytes = Vec::new();
        let request = Request::ReadMany(order);
        let answer = self.call(request.clone(), Body::Sink(&mut bytes)).await?;
        let (Request::ReadMany(order), Answer::ReadMany(all)) = (request, &answer) else {
            return Err(unasked(&answer));
        };
        apart(&order, all, &bytes)
    }
}

/// The bytes of all files, each with its own.
fn apart(order: &ReadMany, all: &[OneRead], bytes: &[u8]) -> Result<Vec<Result<WholeFile>>> {
    // HOSTILE: how much belongs to whom is said inside.
    let wrong = || Error::new(ErrorKind::Protocol, "the file worker counted its bytes wrongly");
    if all.len() != order.paths.len() {
        return Err(wrong());
    }
    let mut rest = bytes;
    let mut apart = Vec::with_capacity(all.len());
    for (path, one) in order.paths.iter().zip(all) {
        let count = match one {
            OneRead::Read(read) => read.bytes,
            OneRead::Failed { bytes, .. } => *bytes,
        };
        let count = usize::try_from(count.min(order.max_bytes.saturating_add(1)));
        let (own, behind) = rest.split_at_checked(count.unwrap_or(usize::MAX)).ok_or_else(wrong)?;
        rest = behind;
        apart.push(match one {
            OneRead::Read(read) if read.bytes > order.max_bytes => return Err(wrong()),
            OneRead::Read(read) => Ok(WholeFile {
                read: HasRead { sha256: None, ..read.clone() },
                bytes: own.to_vec(),
            }),
            OneRead::Failed { failure, .. } => {
                let alone = Read { path: path.clone(), ..Read::default() };
                Err(refusal(&Request::Read(alone), failure))
            }
        });
    }
    if rest.is_empty() { Ok(apart) } else { Err(wrong()) }
}

/// Paths in parts that fit in one request each. One that is too long for any stands alone, and is
/// refused by whoever takes it.
fn batches(mut paths: &[ByteString]) -> Vec<&[ByteString]> {
    let mut all = Vec::new();
    while !paths.is_empty() {
        let mut bytes = 0;
        let fits = |path: &&ByteString| {
            bytes += path.as_bytes().len();
            bytes <= MAX_READ_PATH_BYTES
        };
        let count = paths.iter().take(MAX_READ_FILES).take_while(fits).count().max(1);
        let (batch, rest) = paths.split_at(count);
        all.push(batch);
        paths = rest;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_wire::files::{Failure, MAX_MESSAGE_BYTES, Why};

    fn read(bytes: u64) -> OneRead {
        OneRead::Read(HasRead { size: bytes, bytes, ..HasRead::default() })
    }

    fn failed(bytes: u64) -> OneRead {
        let failure = Failure { why: Why::Io, detail: String::new(), errno: 5 };
        OneRead::Failed { failure, bytes }
    }

    fn order(paths: &[&str]) -> ReadMany {
        let paths = paths.iter().map(|path| (*path).into()).collect();
        ReadMany { paths, max_bytes: 4, total_bytes: 100 }
    }

    #[test]
    fn each_file_gets_its_own_bytes_and_no_more() {
        let three = order(&["a", "b", "c"]);
        let all = apart(&three, &[read(2), failed(1), read(3)], b"aa-ccc").unwrap();
        let bytes: Vec<Option<&[u8]>> =
            all.iter().map(|one| one.as_ref().ok().map(|c| c.bytes.as_slice())).collect();
        assert_eq!(bytes, [Some(&b"aa"[..]), None, Some(b"ccc")]);
        let lies: [(&[OneRead], &[u8]); 5] = [
            (&[read(2), read(2)], b"aabb"),
            (&[read(2), read(2), read(2)], b"aabbc"),
            (&[read(2), read(2), read(2)], b"aabbccd"),
            (&[read(5), read(0), read(0)], b"aaaaa"),
            (&[read(0), read(0), failed(u64::MAX)], b""),
        ];
        for (all, bytes) in lies {
            let error = apart(&three, all, bytes).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Protocol, "{all:?}");
        }
    }

    #[test]
    fn what_is_asked_at_once_fits_in_one_message() {
        let worst = "\u{1}".repeat(500);
        let paths: Vec<ByteString> = (0..300)
            .map(|n| ByteString::from(if n % 3 == 0 { worst.clone() } else { n.to_string() }))
            .collect();
        let parts = batches(&paths);
        assert_eq!(parts.concat(), paths);
        for part in parts {
            let batch =
                ReadMany { paths: part.to_vec(), max_bytes: u64::MAX, total_bytes: u64::MAX };
            let text = serde_json::to_vec(&Request::ReadMany(batch)).unwrap();
            assert!(text.len() <= MAX_MESSAGE_BYTES && part.len() <= MAX_READ_FILES);
        }
        assert_eq!(batches(&["x".repeat(MAX_READ_PATH_BYTES + 1).into()]).len(), 1);
    }
}
