//! What changes names and permissions, and no bytes.

use super::failure::{failed, in_words, refused, regular};
use super::read::{described, look_at};
use super::walk::{Missing, NEW_DIRECTORY, Root};
use super::write::{one_name_only, permissions, there_already};
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{Answer, Failure, Move, Why};
use rustix::fd::AsRawFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// Makes a directory and those above it. One that is there is what was asked for.
pub(super) fn make_directory(root: &Root, path: &ByteString) -> Result<Answer, Failure> {
    let place = root.place(path, Missing::Make)?;
    let Some(name) = place.name.clone() else {
        place.keep();
        return Ok(Answer::Made { created: false });
    };
    match rustix::fs::mkdirat(place.directory(), name.as_slice(), NEW_DIRECTORY) {
        Ok(()) => {
            place.keep();
            Ok(Answer::Made { created: true })
        }
        Err(Errno::EXIST) => {
            let stat = look_at(place.directory(), &name)
                .map_err(|e| failed(e, "it cannot be looked at"))?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            if kind == FileType::Directory {
                return Ok(Answer::Made { created: false });
            }
            Err(refused(Why::Exists, format!("{} is there already", in_words(kind))))
        }
        Err(errno) => Err(failed(errno, "it cannot be made")),
    }
}

/// Gives something another name.
pub(super) fn rename(root: &Root, order: &Move) -> Result<Answer, Failure> {
    let from = root.itself(&order.from)?;
    // ORDER: before directories are made for it.
    let stat =
        look_at(from.directory(), &from.name).map_err(|e| failed(e, "there is no such thing"))?;
    let to = root.for_kind(FileType::from_raw_mode(stat.st_mode), &order.to)?;
    let flags = if order.replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    let (old, new) = (from.name.as_slice(), to.name.as_slice());
    rustix::fs::renameat_with(from.directory(), old, to.directory(), new, flags).map_err(
        |errno| match errno {
            Errno::EXIST => there_already(),
            Errno::NOTEMPTY => failed(errno, "a directory is there that is not empty"),
            Errno::BUSY => failed(errno, "one of the names is protected"),
            Errno::XDEV => failed(errno, "the places lie on different mounts"),
            Errno::INVAL => failed(errno, "a directory cannot be moved into itself"),
            _ => failed(errno, "it cannot be moved"),
        },
    )?;
    to.keep();
    Ok(Answer::Done)
}

/// Sets the permissions of a regular file or a directory.
pub(super) fn set_mode(root: &Root, path: &ByteString, mode: u32) -> Result<Answer, Failure> {
    let mode = permissions(mode)?;
    let place = root.named(path, Missing::Refuse)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(place.directory(), place.name.as_slice(), flags, Mode::empty())
        .map_err(|e| failed(e, "it cannot be opened"))?;
    let look = || rustix::fs::fstat(&opened).map_err(|e| failed(e, "it cannot be looked at"));
    let stat = look()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        regular(&stat)?;
        one_name_only(&stat)?;
    }
    root.admit(&opened, &stat)?;
    // The descriptor itself takes no permissions; its name in our own process file system does, and
    // leads to what was opened, whatever has its name now.
    let itself = format!("/proc/self/fd/{}", opened.as_raw_fd());
    rustix::fs::chmodat(CWD, itself, mode, rustix::fs::AtFlags::empty())
        .map_err(|e| failed(e, "its permissions cannot be set"))?;
    Ok(Answer::Entry(described(&look()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_wire::message::Files;

    #[test]
    fn what_is_refused_leaves_no_directories_on_the_way() {
        let place = std::env::temp_dir().join(format!("cofferdam-made-{}", std::process::id()));
        std::fs::create_dir_all(place.join("d/old")).unwrap();
        let root = Root::open(&Files { root: place.as_os_str().into(), names: Vec::new() });
        let root = root.unwrap();
        let order =
            |from: &str, to: &str| Move { from: from.into(), to: to.into(), ..Move::default() };
        let refused = rename(&root, &order("d", "d/new/deep/d")).unwrap_err();
        assert_eq!(refused.errno, Errno::INVAL.raw_os_error());
        assert!(!place.join("d/new").exists());
        // What was there stays, and so does what is made for what is done.
        assert!(place.join("d/old").exists());
        rename(&root, &order("d/old", "d/new/deep/d")).unwrap();
        assert!(place.join("d/new/deep/d").exists());
        make_directory(&root, &"a/b/c".into()).unwrap();
        make_directory(&root, &"e/f/..".into()).unwrap();
        assert!(place.join("a/b/c").exists() && place.join("e/f").exists());
        std::fs::remove_dir_all(place).unwrap();
    }
}
