//! Which files the user approved, and as what.
//!
//! An approval is a file in the state directory that holds the path and the whole content of what was
//! approved. Both are compared byte for byte, so the name of the approval need not be unguessable.

use super::open::OpenedFile;
use cofferdam_core::{Error, ErrorKind, Result};
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Whether exactly this file, as it is now, was approved.
pub(crate) fn is_approved(state_directory: &Path, file: &OpenedFile) -> Result<bool> {
    let place = place(state_directory, &file.path);
    match fs::read(&place) {
        Ok(approval) => {
            check_private(state_directory)?;
            Ok(approval == content(file))
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(unusable(&place).source(cause)),
    }
}

/// Approves this file as it is now. Approving it again changes nothing.
pub(crate) fn approve(state_directory: &Path, file: &OpenedFile) -> Result<()> {
    let place = place(state_directory, &file.path);
    let failed = |cause: io::Error| unusable(&place).source(cause);
    create_private(state_directory).map_err(failed)?;
    check_private(state_directory)?;
    create_private(&state_directory.join(DIRECTORY)).map_err(failed)?;
    // ORDER: whole under another name, then renamed, so that no reader meets half an approval.
    let fresh = place.with_extension(format!("new-{}", std::process::id()));
    let mut written =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh);
    let outcome = match &mut written {
        Ok(out) => out.write_all(&content(file)).and_then(|()| fs::rename(&fresh, &place)),
        Err(_) => Ok(()),
    };
    if outcome.is_err() {
        // The error above is the one that matters.
        let _ = fs::remove_file(&fresh);
    }
    written.and(outcome).map_err(failed)
}

/// Withdraws the approval of what is at this path. Says whether there was one.
pub(crate) fn withdraw(state_directory: &Path, path: &Path) -> Result<bool> {
    let place = place(state_directory, path);
    match fs::remove_file(&place) {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(unusable(&place).source(cause)),
    }
}

const DIRECTORY: &str = "trust";

fn place(state_directory: &Path, path: &Path) -> PathBuf {
    state_directory.join(DIRECTORY).join(format!("{:016x}", mixed(path.as_os_str().as_bytes())))
}

/// FNV-1a, 64 bits: stable across versions, and only the name of an approval.
fn mixed(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn content(file: &OpenedFile) -> Vec<u8> {
    let mut content = Vec::from(file.path.as_os_str().as_bytes());
    content.push(0);
    content.extend_from_slice(file.text.as_bytes());
    content
}

fn create_private(directory: &Path) -> io::Result<()> {
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => Err(cause),
        Err(_) => Ok(()),
        // The caller's mask may have taken even the owner's rights.
        Ok(()) => fs::set_permissions(directory, Permissions::from_mode(0o700)),
    }
}

/// Refuses a state directory that somebody else can write, because approvals could be planted there.
fn check_private(directory: &Path) -> Result<()> {
    let found = fs::metadata(directory).map_err(|cause| unusable(directory).source(cause))?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if !is_own || found.mode() & 0o022 != 0 {
        let message = format!("others may write the state directory {}", directory.display());
        return Err(Error::new(ErrorKind::Config, message).hint(format!(
            "Run `chmod 700 {}` as its owner, or set COFFERDAM_HOME.",
            directory.display()
        )));
    }
    Ok(())
}

fn unusable(place: &Path) -> Error {
    Error::new(ErrorKind::Io, format!("the approval {} cannot be used", place.display()))
        .hint("Look at the rights of the state directory, or set COFFERDAM_HOME to another.")
}
