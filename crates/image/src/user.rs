//! Who an image's commands are, by number.
//!
//! HOSTILE: the lists come from the image. They are read beneath its layers, over no link, and nothing but
//! numbers is taken from them.

use cofferdam_core::{ImageIds, ImageLayer, ImageRun};
use rustix::buffer::spare_capacity;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::io::Read;

/// The most bytes of a list: ten thousand users.
const MAX_LIST_BYTES: u64 = 1 << 20;
/// The largest number that can be somebody's; the next one means nobody.
const MAX_ID: u32 = u32::MAX - 1;

/// Notes who the user is that the image wants, if that is told and is not its root.
pub(crate) fn note(run: &mut ImageRun, layers: &[ImageLayer]) {
    run.ids = match run.user.as_deref() {
        Some(wished) if !run.is_root() => ids(wished, layers),
        Some(_) | None => None,
    };
}

fn ids(wished: &str, layers: &[ImageLayer]) -> Option<ImageIds> {
    let (user, group) = match wished.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (wished, None),
    };
    let users = list(layers, "passwd").unwrap_or_default();
    let listed = entry(&users, user, 2);
    let uid = number(user).or_else(|| number(listed.as_ref()?.get(2)?))?;
    let gid = match group.filter(|group| !group.is_empty()) {
        Some(group) => number(group).or_else(|| {
            let groups = list(layers, "group").unwrap_or_default();
            number(entry(&groups, group, 2)?.get(2)?)
        })?,
        // Where no list has the user, a group of its own.
        None => listed.and_then(|listed| number(listed.get(3)?)).unwrap_or(uid),
    };
    // The root by another name gets no more than anybody.
    (uid != 0).then_some(ImageIds { uid, gid })
}

/// The fields of the first line of this name, or of this number in that field.
fn entry(list: &str, wanted: &str, number_at: usize) -> Option<Vec<String>> {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let is_it = |fields: &Vec<String>| {
        let name = fields.first().filter(|name| !name.is_empty());
        name.is_some_and(|name| name == wanted)
            || number(wanted).is_some() && fields.get(number_at).is_some_and(|id| id == wanted)
    };
    list.lines().map(fields).find(is_it)
}

fn number(text: &str) -> Option<u32> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|id| is_plain && *id < MAX_ID)
}

/// A list below `/etc`, of the uppermost layer that has one or hides those below it.
fn list(layers: &[ImageLayer], name: &str) -> Option<String> {
    for layer in layers {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tree = rustix::fs::openat(CWD, &layer.tree, flags, Mode::empty()).ok()?;
        let etc = match beneath(&tree, "etc", flags) {
            Ok(etc) => etc,
            Err(Errno::NOENT) => continue,
            // A link, or the mark of what an upper layer removes.
            Err(_) => return None,
        };
        match beneath(&etc, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC) {
            Ok(file) => return read(&file),
            Err(Errno::NOENT) if is_opaque(&etc) => return None,
            Err(Errno::NOENT) => {}
            Err(_) => return None,
        }
    }
    None
}

fn beneath(at: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(at, name, flags, Mode::empty(), rules)
}

/// Reads a regular file that is open without the right to read it.
fn read(file: &OwnedFd) -> Option<String> {
    let stat = rustix::fs::fstat(file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let opened = std::fs::File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let mut bytes = Vec::new();
    opened.take(MAX_LIST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a directory of a layer hides what the layers below have in it.
fn is_opaque(directory: &OwnedFd) -> bool {
    let mut value = Vec::with_capacity(16);
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    rustix::fs::getxattr(path, "user.overlay.opaque", spare_capacity(&mut value)).is_ok()
        && value == b"y"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const USERS: &str = "root:x:0:0::/root:/bin/sh\nnode:x:1007:1008::/home/node:/bin/sh\ntoor:x:0:0\n\
                         bad:x:many:1\n:x:5:5\n7:x:44:45::/:/bin/sh\n";

    /// Layers with these files, the uppermost first.
    fn layers(name: &str, all: &[&[(&str, &str)]]) -> (PathBuf, Vec<ImageLayer>) {
        let base = std::env::temp_dir().join(format!("image-user-{name}-{}", std::process::id()));
        let made = all.iter().enumerate().map(|(number, files)| {
            let tree = base.join(number.to_string());
            std::fs::create_dir_all(tree.join("etc")).unwrap();
            for (path, content) in *files {
                std::fs::write(tree.join(path), content).unwrap();
            }
            ImageLayer { tree, hold: None }
        });
        let made = made.collect();
        (base, made)
    }

    #[test]
    fn a_user_is_known_by_number_or_by_the_lists_of_the_image() {
        let files = [("etc/passwd", USERS), ("etc/group", "root:x:0:\nstaff:x:50:node\n")];
        let (base, layers) = layers("known", &[&[], &files]);
        for (wished, expected) in [
            ("node", Some((1007, 1008))),
            ("node:staff", Some((1007, 50))),
            ("node:9", Some((1007, 9))),
            ("node:", Some((1007, 1008))),
            ("1007", Some((1007, 1008))),
            ("1234", Some((1234, 1234))),
            ("1234:0", Some((1234, 0))),
            ("65534", Some((65534, 65534))),
            ("nobody", None),
            ("node:nobody", None),
            ("toor", None),
            ("bad", None),
            ("", None),
            ("-1", None),
            ("+5", None),
            ("4294967295", None),
            ("4294967294", None),
            ("99999999999", None),
            ("root", None),
            ("0:5", None),
        ] {
            let mut run = ImageRun { user: Some(wished.to_owned()), ..ImageRun::default() };
            note(&mut run, &layers);
            let found = run.ids.map(|ids| (ids.uid, ids.gid));
            assert_eq!(found, expected, "{wished:?}");
        }
        std::fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn the_uppermost_list_counts_and_no_link_is_followed() {
        let lower = [("etc/passwd", USERS)];
        let upper = [("etc/passwd", "node:x:12:13\n")];
        let (base, mut layers) = layers("upper", &[&upper, &lower]);
        let found = |layers: &[ImageLayer]| {
            let mut run = ImageRun { user: Some("node".to_owned()), ..ImageRun::default() };
            note(&mut run, layers);
            run.ids.map(|ids| (ids.uid, ids.gid))
        };
        assert_eq!(found(&layers), Some((12, 13)));
        let passwd = layers[0].tree.join("etc/passwd");
        std::fs::remove_file(&passwd).unwrap();
        assert_eq!(found(&layers), Some((1007, 1008)), "the control: then the next one");
        // A link out, a pipe, and the mark of what was removed are no list.
        let outside = base.join("outside");
        std::fs::write(&outside, "node:x:66:66\n").unwrap();
        std::os::unix::fs::symlink(&outside, &passwd).unwrap();
        assert_eq!(found(&layers), None);
        std::fs::remove_file(&passwd).unwrap();
        let kinds = [FileType::Fifo, FileType::CharacterDevice];
        for kind in kinds {
            rustix::fs::mknodat(CWD, &passwd, kind, Mode::RUSR, 0).unwrap();
            assert_eq!(found(&layers), None);
            std::fs::remove_file(&passwd).unwrap();
        }
        let etc = layers[0].tree.join("etc");
        std::fs::remove_dir(&etc).unwrap();
        std::os::unix::fs::symlink(&base, &etc).unwrap();
        assert_eq!(found(&layers), None);
        layers.remove(0);
        assert_eq!(found(&layers), Some((1007, 1008)));
        std::fs::remove_dir_all(base).unwrap();
    }
}
