//! Reading several files for one request.

use super::failure::{Trouble, refused};
use super::read::{has_read, open_file, send};
use super::talk::Talk;
use super::walk::Root;
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{Answer, HasRead, MAX_READ_FILES, OneRead, ReadMany, Why};

/// Sends all files that fit. One that cannot be read stops no other.
pub(super) fn read(root: &Root, order: &ReadMany, talk: &mut Talk) -> Result<Answer, Trouble> {
    if order.paths.len() > MAX_READ_FILES {
        let what = format!("more than {MAX_READ_FILES} files are asked for at once");
        return Err(refused(Why::BadRequest, what).into());
    }
    let mut left = order.total_bytes;
    let mut all = Vec::with_capacity(order.paths.len());
    for path in &order.paths {
        let mut bytes = 0;
        all.push(match one(root, path, (order.max_bytes, left), &mut bytes, talk) {
            Ok(read) => OneRead::Read(read),
            Err(Trouble::Failed(failure)) => OneRead::Failed { failure, bytes },
            Err(Trouble::Gone) => return Err(Trouble::Gone),
        });
        left = left.saturating_sub(bytes);
    }
    Ok(Answer::ReadMany(all))
}

/// Sends one file, unless it is larger than one may be or than what is left for all.
fn one(
    root: &Root,
    path: &ByteString,
    (most, left): (u64, u64),
    bytes: &mut u64,
    talk: &mut Talk,
) -> Result<HasRead, Trouble> {
    let (file, stat) = open_file(root, path)?;
    let size = has_read(&stat, 0).size;
    if size > most {
        let what = format!("it holds {size} bytes, over the limit of {most}");
        return Err(refused(Why::TooLarge, what).into());
    }
    if size > left {
        let what = format!("it holds {size} bytes, and {left} are left for all files together");
        return Err(refused(Why::TooLarge, what).into());
    }
    send(&file, 0, size, bytes, talk)?;
    Ok(has_read(&stat, *bytes))
}
