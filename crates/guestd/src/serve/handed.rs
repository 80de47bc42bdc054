//! What a command is handed beside its streams: descriptors, and files in memory.

use super::Serve;
use super::start::refused;
use crate::process::exhausted;
use cofferdam_wire::message::{HANDED_DIRECTORY, Handed, MAX_HANDED, NotStarted, Spawn};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The most bytes of a file.
const MAX_FILE_BYTES: usize = 64 * 1024;

/// Numbers that a descriptor may be handed under.
const NUMBERS: std::ops::RangeInclusive<u32> = 3..=99;

/// The files, and the channels of the commands that have them.
#[derive(Debug, Default)]
pub(super) struct HandedFiles {
    files: BTreeMap<String, BTreeSet<u32>>,
}

impl Serve {
    /// The descriptors that came behind those of the streams.
    pub(super) fn take_handed(&mut self, spawn: &Spawn) -> Vec<Option<OwnedFd>> {
        spawn.handed.iter().map(|_| self.line.take_descriptor()).collect()
    }

    /// Makes the files, and gives what is to be descriptors.
    pub(super) fn place_handed(
        &mut self,
        channel: u32,
        spawn: &Spawn,
        came: Vec<Option<OwnedFd>>,
    ) -> std::result::Result<Vec<(OwnedFd, u32)>, NotStarted> {
        if spawn.handed.len() > MAX_HANDED {
            return Err(refused("too much is handed to one command"));
        }
        let mut descriptors = Vec::new();
        for (handed, came) in spawn.handed.iter().zip(came) {
            let came = came.ok_or_else(|| refused("what it is handed did not arrive"))?;
            match handed {
                Handed::Descriptor(number) if NUMBERS.contains(number) => {
                    descriptors.push((came, *number));
                }
                Handed::Descriptor(_) => return Err(refused("no descriptor can have this number")),
                Handed::File(name) => {
                    self.handed_files.place(channel, name, &came).map_err(|e| {
                        let file = format!("{HANDED_DIRECTORY}/{name}");
                        match e {
                            Errno::BUSY => refused(&format!("another command has another {file}")),
                            errno => exhausted(&format!("{file} could not be made"), errno),
                        }
                    })?
                }
            }
        }
        Ok(descriptors)
    }
}

impl HandedFiles {
    /// Makes a file with what is in another one. Two commands may have the same.
    fn place(&mut self, channel: u32, name: &str, content: &OwnedFd) -> Result<()> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return Err(Errno::INVAL);
        }
        let directory = directory()?;
        let mut bytes = read(content)?;
        let placed = match self.files.get(name) {
            Some(_) => same(&directory, name, &bytes),
            None => write(&directory, name, &bytes),
        };
        wipe(&mut bytes);
        placed?;
        self.files.entry(name.to_owned()).or_default().insert(channel);
        Ok(())
    }

    /// Nothing is left of a command: what it alone had goes.
    pub(super) fn let_go(&mut self, channel: u32) {
        self.files.retain(|name, channels| {
            channels.remove(&channel);
            if channels.is_empty()
                && let Ok(directory) = directory()
            {
                let _ = rustix::fs::unlinkat(&directory, name.as_str(), AtFlags::empty());
            }
            !channels.is_empty()
        });
    }
}

/// A mount of its own: nobody inside can put another one in its place.
fn directory() -> Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open(HANDED_DIRECTORY, flags, Mode::empty())
}

fn write(directory: &OwnedFd, name: &str, bytes: &[u8]) -> Result<()> {
    // HOSTILE: a command may have put something there.
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::RUSR)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(&file, rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => {
                let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
                return Err(errno);
            }
        }
    }
    Ok(())
}

/// Fails where the file has other bytes. One that a command removed or changed is another one, too.
fn same(directory: &OwnedFd, name: &str, bytes: &[u8]) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut there = rustix::fs::openat(directory, name, flags, Mode::empty())
        .and_then(|file| read(&file))
        .map_err(|_| Errno::BUSY)?;
    let is_same = there == bytes;
    wipe(&mut there);
    if is_same { Ok(()) } else { Err(Errno::BUSY) }
}

fn read(file: &OwnedFd) -> Result<Vec<u8>> {
    let mut bytes = vec![0; MAX_FILE_BYTES + 1];
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        let at = u64::try_from(length).map_err(|_| Errno::FBIG)?;
        match rustix::io::pread(file, rest, at) {
            Ok(0) => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            Ok(count) => length += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    wipe(&mut bytes);
    Err(Errno::FBIG)
}

/// Overwrites what nobody needs any more.
fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}
