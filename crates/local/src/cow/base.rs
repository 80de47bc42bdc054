//! What a copy-on-write layer is the layer of: `base.json` beside `upper` and `work`. Format 1 is of an
//! overlay, format 2 of a copy and says how it was made.
//!
//! It is written before the layer's directories are made, so a layer without it was never in use.

use crate::layers;
use cofferdam_core::{Error, ErrorKind, LayerNote, LayerTier, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::time::ClockId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The folder of a kept sandbox's own directory that holds its layer.
pub const FOLDER: &str = "cow";
/// What was changed, in that folder.
pub const UPPER: &str = "upper";
/// What the kernel needs beside it. Holds nothing of worth when nobody has it mounted.
pub const WORK: &str = "work";
/// What the layer lies on.
const BASE: &str = "base.json";
/// Where it is written until it is whole.
const FRESH: &str = ".base.json";
/// The format of an overlay, and that of a copy.
const FORMAT: u32 = 1;
const FORMAT_COPY: u32 = 2;
/// The most bytes of the file: a path of the greatest length, escaped, the numbers, and the names of
/// some files that are not in a copy.
const MOST_BYTES: usize = 64 * 1024;
const SECOND_NS: u64 = 1_000_000_000;
/// How a moment is waited for: what comes within a second is seen as soon as a tick tells it, and a clock that is set
/// back meanwhile keeps nobody for long.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_WAIT: Duration = Duration::from_millis(100);
const MOST_WAITS: u32 = 100;

/// What a layer lies on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The real tree's canonical path.
    pub workspace: String,
    /// The device of that directory.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// When the sandbox could not yet see the tree, in nanoseconds since 1970 by the clock of times of
    /// change. What changed below it later may be news to the layer.
    pub made_ns: u64,
    /// Under which names the layer keeps what it knows of its files.
    pub xattrs: Xattrs,
    /// Who owns the real tree, and so every file of the layer.
    pub owner: LayerOwner,
    /// How the upper directory was copied, where it is a copy of the real tree and no layer over it.
    pub copied: Option<LayerNote>,
}

/// Under which names a layer keeps what it knows of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Xattrs {
    /// `user.overlay.`
    User,
    /// `trusted.overlay.`, which only the host's root can read.
    Trusted,
}

/// User and group of files on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerOwner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    workspace: String,
    device: u64,
    inode: u64,
    made_ns: u64,
    xattrs: Xattrs,
    owner: LayerOwner,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    copied: Option<LayerNote>,
}

/// A time of which whatever was changed before this call has no later one, and what is changed from now on has.
///
/// Since Linux 6.13 times of change are finer than any clock that can be asked, where somebody looks at them, and
/// none is earlier than one that was given before: so this changes something of its own, and looks. Before that they
/// are those of [`now_ns`], which moves in ticks: what is changed in the same tick afterwards has no later one.
pub fn changes_until_ns() -> u64 {
    // Where a tick comes in between it is the clock's time once.
    for _ in 0..3 {
        let before = now_ns();
        match own_change_ns() {
            Ok(own) if own == before || own == now_ns() => {}
            Ok(own) => return own.saturating_sub(1),
            Err(_) => break,
        }
    }
    now_ns()
}

/// The same for a tree of which something has this time of change.
///
/// Where that is a whole second, so are all times there, and what is changed later in one second could not be told from
/// what was changed before. So this waits for the next one.
pub fn changes_of_tree_until_ns(changed_ns: u64) -> u64 {
    if !is_whole_second(changed_ns) {
        return changes_until_ns();
    }
    let second = |time_ns: u64| time_ns - time_ns % SECOND_NS;
    let next_ns = second(now_ns()).saturating_add(SECOND_NS);
    wait_until(next_ns);
    // Where the clock was set back meanwhile it is earlier, and more is taken for news.
    second(now_ns()).saturating_sub(1)
}

/// Whether a time of change is of a file system that tells no two within one second apart. No other clock stands at a
/// whole second but once in a long time.
pub fn is_whole_second(changed_ns: u64) -> bool {
    changed_ns.is_multiple_of(SECOND_NS)
}

/// Waits until what is changed has another time than this one, on the file system that gave it. A tick of the
/// kernel's clock, or what is left of a second.
pub fn wait_beyond(changed_ns: u64) {
    let step_ns = if is_whole_second(changed_ns) { SECOND_NS } else { 1 };
    wait_until(changed_ns.saturating_add(step_ns));
}

/// Waits for a moment of the clock of times of change, which is near.
fn wait_until(at_ns: u64) {
    for _ in 0..MOST_WAITS {
        let left_ns = at_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            return;
        }
        std::thread::sleep(Duration::from_nanos(left_ns).clamp(SHORTEST_WAIT, LONGEST_WAIT));
    }
}

/// The time of a change that is made now.
fn own_change_ns() -> std::result::Result<u64, Errno> {
    let file = rustix::fs::memfd_create("cofferdam-clock", MemfdFlags::CLOEXEC)?;
    // One that was looked at gets a fine time at its next change.
    rustix::fs::fstat(&file)?;
    rustix::io::write(&file, b"0")?;
    let stat = rustix::fs::fstat(&file)?;
    Ok(layers::changed_ns(&stat))
}

/// Now, by the clock that the kernel takes times of change from.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::RealtimeCoarse);
    let (seconds, rest) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(rest.unwrap_or(0))
}

impl Base {
    /// Reads it from the folder of a layer; `None` where there is none.
    ///
    /// Another format is an error of the kind unsupported; anything else that is not as it was written
    /// is one of the kind io.
    pub fn read(folder: impl AsFd) -> Result<Option<Self>> {
        let Some(text) = read_text(folder.as_fd())? else { return Ok(None) };
        Self::from_json(&text).map(Some)
    }

    /// Writes it into the folder of a layer, whole and on disk when this returns.
    pub fn write(&self, folder: impl AsFd) -> Result<()> {
        let folder = folder.as_fd();
        let failed = |errno| io("write", errno);
        let text = self.to_json()?;
        remove(folder, FRESH).map_err(failed)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(folder, FRESH, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        let mut file = std::fs::File::from(file);
        std::io::Write::write_all(&mut file, &text)
            .and_then(|()| file.sync_all())
            .map_err(|error| Error::new(ErrorKind::Io, format!("write {BASE}")).source(error))?;
        rustix::fs::renameat(folder, FRESH, folder, BASE).map_err(failed)?;
        rustix::fs::fsync(folder).map_err(failed)
    }

    fn to_json(&self) -> Result<Vec<u8>> {
        let Self { workspace, device, inode, made_ns, xattrs, owner, copied } = self.clone();
        let format = if copied.is_some() { FORMAT_COPY } else { FORMAT };
        let stored = Stored { format, workspace, device, inode, made_ns, xattrs, owner, copied };
        serde_json::to_vec(&stored)
            .map_err(|error| Error::new(ErrorKind::Io, format!("write {BASE}")).source(error))
    }

    fn from_json(text: &[u8]) -> Result<Self> {
        let format = serde_json::from_slice::<serde_json::Value>(text)
            .ok()
            .and_then(|value| value.get("format").and_then(serde_json::Value::as_u64));
        let known = [FORMAT, FORMAT_COPY].map(u64::from);
        if format.is_some_and(|format| !known.contains(&format)) {
            let format = format.unwrap_or(0);
            let what = format!("{BASE} is of format {format}, not {FORMAT} or {FORMAT_COPY}");
            return Err(Error::new(ErrorKind::Unsupported, what)
                .hint("Use the version of Cofferdam that made the session."));
        }
        let stored: Stored = serde_json::from_slice(text).map_err(|error| {
            Error::new(ErrorKind::Io, format!("{BASE} is damaged")).source(error)
        })?;
        if (stored.format == FORMAT_COPY) != stored.copied.is_some() {
            return Err(Error::new(ErrorKind::Io, format!("{BASE} is damaged")));
        }
        let Stored { format: _, workspace, device, inode, made_ns, xattrs, owner, copied } = stored;
        Ok(Self { workspace, device, inode, made_ns, xattrs, owner, copied })
    }
}

/// What is to be said of an overlay.
pub(crate) fn overlay_note() -> LayerNote {
    LayerNote { tier: LayerTier::Overlay, why: None, left_out: Vec::new(), left_out_more: 0 }
}

fn read_text(folder: BorrowedFd<'_>) -> Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file: OwnedFd = match rustix::fs::openat(folder, BASE, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(io("open", errno)),
    };
    let mut text = Vec::new();
    let mut file = std::io::Read::take(std::fs::File::from(file), MOST_BYTES as u64 + 1);
    std::io::Read::read_to_end(&mut file, &mut text)
        .map_err(|error| Error::new(ErrorKind::Io, format!("read {BASE}")).source(error))?;
    if text.len() > MOST_BYTES {
        return Err(Error::new(ErrorKind::Io, format!("{BASE} is damaged: it is too long")));
    }
    Ok(Some(text))
}

fn remove(folder: BorrowedFd<'_>, name: &str) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

fn io(what: &str, errno: Errno) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {BASE}")).source(std::io::Error::from(errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;

    fn base() -> Base {
        Base {
            workspace: "/home/u/\u{e4} \"b\"\n".to_owned(),
            device: 66_048,
            inode: u64::MAX,
            made_ns: now_ns(),
            xattrs: Xattrs::User,
            owner: LayerOwner { uid: 1000, gid: 100 },
            copied: None,
        }
    }

    fn copied() -> Base {
        let copied = LayerNote {
            tier: LayerTier::Reflink,
            why: Some("somebody asked for it".to_owned()),
            left_out: vec!["dev/null: it is a device".to_owned()],
            left_out_more: 3,
        };
        Base { copied: Some(copied), ..base() }
    }

    fn open(directory: &TestDirectory) -> OwnedFd {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        rustix::fs::open(directory.path(), flags, Mode::empty()).unwrap()
    }

    #[test]
    fn a_base_is_read_as_it_was_written() {
        let directory = TestDirectory::new("base");
        let folder = open(&directory);
        assert_eq!(Base::read(&folder).unwrap(), None);
        std::fs::write(directory.path().join(FRESH), "half").unwrap();
        for xattrs in [Xattrs::User, Xattrs::Trusted] {
            for base in [Base { xattrs, ..base() }, Base { xattrs, ..copied() }] {
                base.write(&folder).unwrap();
                assert_eq!(Base::read(&folder).unwrap(), Some(base));
            }
        }
        assert!(!directory.path().join(FRESH).exists());
    }

    #[test]
    fn a_base_is_written_under_the_agreed_names() {
        let base = Base { workspace: "/w".to_owned(), made_ns: 3, inode: 2, device: 1, ..base() };
        let text = String::from_utf8(base.to_json().unwrap()).unwrap();
        let agreed = "{\"format\":1,\"workspace\":\"/w\",\"device\":1,\"inode\":2,\"made_ns\":3,\
                      \"xattrs\":\"user\",\"owner\":{\"uid\":1000,\"gid\":100}}";
        assert_eq!(text, agreed);
    }

    #[test]
    fn another_format_is_unsupported_and_anything_else_is_damage() {
        let directory = TestDirectory::new("base-bad");
        let folder = open(&directory);
        let good = String::from_utf8(base().to_json().unwrap()).unwrap();
        let newer = good.replace("\"format\":1", "\"format\":3");
        // A copy that is taken for a layer would be one in which everything was made.
        let unsaid = good.replace("\"format\":1", "\"format\":2");
        let copied = String::from_utf8(copied().to_json().unwrap()).unwrap();
        let overlay = copied.replace("\"format\":2", "\"format\":1");
        let more = good.replace("\"format\":1", "\"format\":1,\"more\":0");
        let long = format!("{good}{}", " ".repeat(MOST_BYTES));
        for (text, kind) in [
            (newer.as_str(), ErrorKind::Unsupported),
            (more.as_str(), ErrorKind::Io),
            (unsaid.as_str(), ErrorKind::Io),
            (overlay.as_str(), ErrorKind::Io),
            (long.as_str(), ErrorKind::Io),
            ("", ErrorKind::Io),
            ("{}", ErrorKind::Io),
        ] {
            std::fs::write(directory.path().join(BASE), text).unwrap();
            assert_eq!(Base::read(&folder).unwrap_err().kind, kind, "{text}");
        }
    }

    #[test]
    fn the_clock_is_that_of_times_of_change() {
        use std::os::unix::fs::MetadataExt;
        let directory = TestDirectory::new("base-clock");
        let before = now_ns();
        std::fs::write(directory.path().join("later"), "").unwrap();
        let found = std::fs::metadata(directory.path().join("later")).unwrap();
        let changed = found.ctime() as u64 * 1_000_000_000 + found.ctime_nsec() as u64;
        assert!(changed >= before, "{changed} is before {before}");
    }

    #[test]
    fn where_times_are_whole_seconds_no_second_is_both_before_and_after() {
        let begun_ns = now_ns();
        let until_ns = changes_of_tree_until_ns(7 * SECOND_NS);
        // As such a file system tells now.
        let told_ns = |time_ns: u64| time_ns / SECOND_NS * SECOND_NS;
        assert!(told_ns(begun_ns) <= until_ns, "{begun_ns} would be news after {until_ns}");
        assert!(told_ns(now_ns()) > until_ns, "nothing would be news after {until_ns}");
        wait_beyond(told_ns(now_ns()));
        assert!(told_ns(now_ns()) > until_ns + 1, "what is waited for is another time");
        // The control: others wait for nothing.
        let begun_ns = now_ns();
        changes_of_tree_until_ns(7 * SECOND_NS + 1);
        assert!(now_ns() < begun_ns + SECOND_NS / 2);
    }

    #[test]
    fn what_was_changed_before_is_told_from_what_is_changed_afterwards() {
        use std::collections::BTreeSet;
        use std::os::unix::fs::MetadataExt;
        let directory = TestDirectory::new("base-marks");
        let name = directory.path().join("file");
        let change = || {
            std::fs::write(&name, "").unwrap();
            let found = std::fs::metadata(&name).unwrap();
            found.ctime() as u64 * 1_000_000_000 + found.ctime_nsec() as u64
        };
        // Older kernels give all of a tick the same time.
        let is_fine = (0..10).map(|_| change()).collect::<BTreeSet<u64>>().len() == 10;
        for _ in 0..2000 {
            let (before, until, after) = (change(), changes_until_ns(), change());
            assert!(before <= until, "{before} would be news after {until}");
            assert!(after > until || !is_fine, "{after} would be none after {until}");
        }
    }
}
