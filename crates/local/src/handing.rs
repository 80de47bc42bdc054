//! What is on its way to a command: words, which fit into one frame, and secrets, which are files in memory and
//! never words.

use crate::launch::io_error;
use cofferdam_core::secret::{GivenSecret, MAX_SECRET_BYTES, SecretPlace, SecretValue};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_wire::frame::MAX_FRAME_BYTES;
use cofferdam_wire::message::{Handed, Spawn};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Gid, MemfdFlags, Mode, SealFlags, Uid};
use rustix::io::Errno;
use zeroize::Zeroizing;

/// What surely fits: a byte takes six at most on its way.
const SHORT_BYTES: usize = MAX_FRAME_BYTES / 8;

/// Refuses a command whose words, variables and directory do not fit into the frame that they are sent in.
pub(crate) fn refuse_long(spawn: &Spawn) -> Result<()> {
    let words = spawn.argv.iter().chain(spawn.env.iter().flat_map(|(name, value)| [name, value]));
    let words = words.chain([&spawn.cwd]);
    // With what stands around a word.
    let short: usize = words.map(|word| word.as_bytes().len() + 8).sum();
    if short < SHORT_BYTES {
        return Ok(());
    }
    // The kind of the message is told beside it.
    let bytes = serde_json::to_vec(spawn).map_or(usize::MAX, |message| message.len() + 64);
    if bytes <= MAX_FRAME_BYTES {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Usage,
        "the command's words, variables and directory are too long together: at most 1 MiB fits, and less where they \
         are no text",
    )
    .hint("Pass what is long by a file or by standard input."))
}

/// What the guest is told of each.
pub(crate) fn handed(secrets: &[GivenSecret]) -> Vec<Handed> {
    let of = |secret: &GivenSecret| match &secret.place {
        SecretPlace::File(name) => Handed::File(name.clone()),
        SecretPlace::Descriptor(number) => Handed::Descriptor(*number),
    };
    secrets.iter().map(of).collect()
}

/// The values as files in memory that this user alone may open, and nobody may change.
pub(crate) fn as_files<'s>(
    values: impl IntoIterator<Item = &'s SecretValue>,
    user: Option<(u32, u32)>,
) -> Result<Vec<OwnedFd>> {
    let made = values.into_iter().map(|value| as_file(value, user));
    made.collect::<rustix::io::Result<_>>()
        .map_err(|errno| io_error("make a file in memory for a secret", errno))
}

fn as_file(value: &SecretValue, user: Option<(u32, u32)>) -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("secret", flags)?;
    let mut rest = value.expose();
    while !rest.is_empty() {
        match rustix::io::pwrite(
            &file,
            rest,
            u64::try_from(value.expose().len() - rest.len()).map_err(|_| Errno::FBIG)?,
        ) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    rustix::fs::fchmod(&file, Mode::RUSR)?;
    if let Some((uid, gid)) = user.filter(|_| rustix::process::geteuid().is_root()) {
        // Or a command could not open its own /dev/fd/N.
        rustix::fs::fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

/// The value that came as such a file.
pub(crate) fn value_of(file: impl AsFd) -> Result<SecretValue> {
    let mut bytes = Zeroizing::new(vec![0; MAX_SECRET_BYTES + 1]);
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        let at = u64::try_from(length).unwrap_or(u64::MAX);
        match rustix::io::pread(&file, rest, at) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(io_error("read a secret that was handed over", errno)),
        }
    }
    bytes.truncate(length);
    SecretValue::new(bytes)
}

/// Where there is no tree of its own, there is no place in it either.
pub(crate) fn refuse_files(secrets: &[Handed]) -> Result<()> {
    if !secrets.iter().any(|handed| matches!(handed, Handed::File(_))) {
        return Ok(());
    }
    let what = "without namespaces a sandbox has no private place for a file with a secret";
    Err(Error::new(ErrorKind::Unenforceable, what).hint("Use --secret-fd."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_was_handed_over_is_the_same_and_cannot_be_changed() {
        let value = SecretValue::new(b"hunter22\n".to_vec()).unwrap();
        let file = as_files([&value], None).unwrap().remove(0);
        assert_eq!(value_of(&file).unwrap(), value);
        assert_eq!(rustix::io::write(&file, b"x").unwrap_err(), Errno::PERM);
        // Whoever has it reads from its beginning.
        let mut read = [0; 16];
        assert_eq!(rustix::io::read(&file, &mut read).unwrap(), 9);
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_mode & 0o777, 0o400);
    }

    #[test]
    fn no_file_is_promised_where_there_is_no_place_for_it() {
        assert!(refuse_files(&[Handed::Descriptor(3)]).is_ok());
        let refused = refuse_files(&[Handed::File("T".to_owned())]).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unenforceable);
    }
}
