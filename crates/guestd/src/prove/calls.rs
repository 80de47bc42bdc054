//! What several groups of attacks do alike: open, write, look, call.

use super::attack::Scene;
use super::outcome::{Layer, Outcome};
use super::sys;
use rustix::fs::Access;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

/// The most that is read of any file: enough for a canary, and bounded.
const READ_AT_MOST: u64 = 1 << 20;

/// Reads a file as text, as far as it is text.
pub(super) fn read(path: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    // HOSTILE: a FIFO in the way must not hold the battery up.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    file.take(READ_AT_MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Looks for a text in a file.
pub(super) fn find(path: &str, needle: &str) -> Outcome {
    match read(path) {
        Ok(text) if !needle.is_empty() && text.contains(needle) => {
            Outcome::did(format!("read {path}"))
        }
        Ok(_) => Outcome::met_at(Layer::View, libc::ENODATA, format!("find the text in {path}")),
        Err(error) => refused(&format!("open {path}"), path, Access::READ_OK, &error),
    }
}

/// Succeeds where a file can be read and is not empty.
pub(super) fn read_something(path: &str) -> Outcome {
    match read(path) {
        Ok(text) if text.is_empty() => {
            Outcome::met_at(Layer::View, libc::ENODATA, format!("read {path}: it is empty"))
        }
        Ok(_) => Outcome::did(format!("read {path}")),
        Err(error) => refused(&format!("open {path}"), path, Access::READ_OK, &error),
    }
}

/// Makes a file, and removes it again.
pub(super) fn create(path: &str) -> Outcome {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            let written = file.write_all(b"cofferdam");
            let _ = std::fs::remove_file(path);
            Outcome::of(&format!("create {path}"), &written)
        }
        Err(error) => {
            let parent = path.rsplit_once('/').map_or("/", |(parent, _)| parent);
            refused(&format!("create {path}"), parent, Access::WRITE_OK, &error)
        }
    }
}

/// Opens an existing file for writing, and writes nothing.
pub(super) fn open_to_write(path: &str) -> Outcome {
    match OpenOptions::new().append(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(_) => Outcome::did(format!("open {path} for writing")),
        Err(error) => refused(&format!("open {path} for writing"), path, Access::WRITE_OK, &error),
    }
}

/// Lists a directory; succeeds where it has an entry.
pub(super) fn list(path: &str) -> Outcome {
    let call = format!("list {path}");
    match std::fs::read_dir(path) {
        Ok(mut entries) => match entries.next() {
            Some(Ok(entry)) => Outcome::did(format!("{call}: {}", entry.path().display())),
            Some(Err(_)) | None => Outcome::met_at(Layer::View, libc::ENODATA, call),
        },
        Err(error) => refused(&call, path, Access::READ_OK, &error),
    }
}

/// Opens a path of whatever kind.
pub(super) fn open(path: &str) -> Outcome {
    match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(_) => Outcome::did(format!("open {path}")),
        Err(error) => refused(&format!("open {path}"), path, Access::READ_OK, &error),
    }
}

/// An error on a path. `access` asks owner and mode bits alone: where they allow what an open
/// refused with EACCES, it was Landlock that did.
fn refused(call: &str, path: &str, wanted: Access, error: &io::Error) -> Outcome {
    let errno = error.raw_os_error().unwrap_or(0);
    let allowed = || rustix::fs::access(path, wanted).is_ok();
    if errno == libc::EACCES && allowed() {
        return Outcome::met_at(Layer::Landlock, errno, call);
    }
    Outcome::met(errno, call)
}

/// Makes and removes a file in the private writable space.
pub(super) fn create_private(scene: &Scene<'_>) -> Outcome {
    create(&scene.private("file"))
}

/// Writes a text to a private file and finds it there.
pub(super) fn find_own(scene: &Scene<'_>) -> Outcome {
    let path = scene.private("text");
    let written = File::create(&path).and_then(|mut file| file.write_all(b"a text of its own"));
    if let Err(error) = written {
        return Outcome::met(error.raw_os_error().unwrap_or(0), format!("write {path}"));
    }
    let found = find(&path, "a text of its own");
    let _ = std::fs::remove_file(&path);
    found
}

/// The battery's own way to make system calls works.
pub(super) fn plain_call(_: &Scene<'_>) -> Outcome {
    Outcome::of_call("getpid", sys::raw(libc::SYS_getpid, [0; 6]))
}

/// A system call is reached when the kernel itself answers: with success, or with an error other
/// than the two by which a filter refuses.
pub(super) fn reach(call: &str, number: i64, args: [usize; 6]) -> Outcome {
    reached(call, sys::raw(number, args))
}

/// Reads the answer of a call for whether the kernel itself gave it.
pub(super) fn reached(call: &str, answer: Result<usize, i32>) -> Outcome {
    match answer {
        Ok(value) => Outcome::did(format!("{call} = {value}")),
        Err(errno @ (libc::EPERM | libc::ENOSYS)) => Outcome::met(errno, call),
        Err(errno) => Outcome::did(format!("{call} reached the kernel: error {errno}")),
    }
}
