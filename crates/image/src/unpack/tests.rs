use super::*;
use crate::tar::tests::Written;
use rustix::fs::CWD;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A directory to unpack to, beside something that must stay as it is.
struct Ground(PathBuf);

impl Ground {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("cofferdam-unpack-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("tree")).unwrap();
        std::fs::create_dir(path.join("outside")).unwrap();
        std::fs::write(path.join("outside/secret"), "secret").unwrap();
        Self(path)
    }

    fn tree(&self) -> PathBuf {
        self.0.join("tree")
    }

    fn unpack_within(&self, bytes: &[u8], bounds: &Bounds) -> Result<Tally> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tree = rustix::fs::openat(CWD, self.tree(), flags, Mode::empty()).unwrap();
        let packed = || bytes.len() as u64;
        let (mut tell, mut owners) = (|| (), Vec::new());
        let unpacking = Unpacking { bounds, packed: &packed, tell: &mut tell, owners: &mut owners };
        let tally = unpack(bytes, tree, unpacking)?;
        std::fs::write(self.0.join("owners"), owners).unwrap();
        Ok(tally)
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Tally> {
        self.unpack_within(bytes, &Bounds::default())
    }

    /// What lies outside is as it was.
    fn assert_untouched(&self) {
        let names = |path: &Path| {
            let entries = std::fs::read_dir(path).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&self.0.join("outside")), ["secret"]);
        assert_eq!(std::fs::read(self.0.join("outside/secret")).unwrap(), b"secret");
        assert!(
            names(&self.0)
                .iter()
                .all(|name| ["outside", "tree", "owners"].contains(&name.to_str().unwrap()))
        );
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn written() -> Written {
    Written::default()
}

#[test]
fn a_layer_is_unpacked_with_its_modes_times_and_links() {
    let ground = Ground::new("whole");
    let bytes = written()
        .directory("./", 0o755)
        .directory("etc/", 0o750)
        .file("etc/hosts", b"localhost")
        .program("bin/tool", b"#!", 0o755)
        .hard_link("bin/other", "./bin/tool")
        .symlink("bin/link", "/absolute/target")
        .directory("closed", 0)
        .file("closed/file", b"x")
        .directory("tmp", 0o1777)
        .done();
    let tally = ground.unpack(&bytes).unwrap();
    let tree = ground.tree();
    let mode = |name: &str| std::fs::symlink_metadata(tree.join(name)).unwrap().mode() & 0o7777;
    assert_eq!(
        (mode("etc"), mode("bin/tool"), mode("tmp"), mode("closed")),
        (0o750, 0o755, 0o1777, 0)
    );
    assert_eq!(std::fs::read(tree.join("etc/hosts")).unwrap(), b"localhost");
    assert_eq!(std::fs::metadata(tree.join("etc/hosts")).unwrap().mtime(), 1_700_000_000);
    let inode = |name: &str| std::fs::metadata(tree.join(name)).unwrap().ino();
    assert_eq!(inode("bin/tool"), inode("bin/other"));
    assert_eq!(std::fs::read_link(tree.join("bin/link")).unwrap(), Path::new("/absolute/target"));
    assert_eq!((tally.entries, tally.bytes), (9, 12));
    std::fs::set_permissions(tree.join("closed"), PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn names_that_lead_out_are_refused_and_reach_nothing() {
    let ground = Ground::new("names");
    let outside = format!("{}/outside/new", ground.0.display());
    for path in ["../outside/new", "a/../../outside/new", "..", "a/..", "./../outside/new"] {
        for kind in [b'0', b'5'] {
            let error = ground.unpack(&written().raw(kind, path, "", b"").done()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::PathEscape, "{path}");
        }
    }
    // Control: a name that begins at the root is one of the layer.
    ground.unpack(&written().file(&outside, b"").done()).unwrap();
    assert!(ground.tree().join(outside.trim_start_matches('/')).exists());
    ground.assert_untouched();
}

#[test]
fn an_entry_through_a_link_is_refused_and_writes_nothing() {
    let ground = Ground::new("links");
    let outside = ground.0.join("outside").display().to_string();
    let ways: [(&str, Vec<u8>); 6] = [
        ("an absolute link", written().symlink("l", &outside).file("l/new", b"").done()),
        ("a link with dots", written().symlink("l", "../outside").file("l/new", b"").done()),
        (
            "a directory below",
            written().symlink("l", "../outside").directory("l/new", 0o755).done(),
        ),
        (
            "a link within",
            written().directory("d", 0o755).symlink("l", "d").file("l/new", b"").done(),
        ),
        ("a whiteout below", written().symlink("l", "../outside").file("l/.wh.secret", b"").done()),
        ("an opaque mark", written().symlink("l", "../outside").file("l/.wh..wh..opq", b"").done()),
    ];
    for (what, bytes) in ways {
        let error = ground.unpack(&bytes).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PathEscape, "{what}: {error}");
        let _ = std::fs::remove_dir_all(ground.tree());
        std::fs::create_dir(ground.tree()).unwrap();
    }
    // Control: the same link does lead there.
    std::os::unix::fs::symlink(&outside, ground.tree().join("l")).unwrap();
    assert!(ground.tree().join("l/secret").exists());
    ground.assert_untouched();
}

#[test]
fn a_file_in_the_place_of_a_link_does_not_go_through_it() {
    let ground = Ground::new("through");
    let bytes = written().symlink("l", "../outside/secret").file("l", b"new").done();
    ground.unpack(&bytes).unwrap();
    assert_eq!(std::fs::read(ground.tree().join("l")).unwrap(), b"new");
    let bytes = written().symlink("m", "../outside").directory("m", 0o700).file("m/x", b"").done();
    ground.unpack(&bytes).unwrap();
    assert!(std::fs::symlink_metadata(ground.tree().join("m")).unwrap().is_dir());
    ground.assert_untouched();
}

#[test]
fn a_hard_link_stays_within_and_follows_nothing() {
    let ground = Ground::new("hard");
    let outside = ground.0.join("outside/secret").display().to_string();
    for (what, bytes) in [
        ("dots", written().hard_link("h", "../outside/secret").done()),
        ("an absolute path", written().hard_link("h", &outside).done()),
        ("through a link", written().symlink("l", "../outside").hard_link("h", "l/secret").done()),
        ("a directory", written().directory("d", 0o755).hard_link("h", "d").done()),
        ("the root", written().hard_link("h", "/").done()),
        ("itself", written().file("h", b"x").hard_link("h", "h").done()),
        ("what is not there", written().hard_link("h", "none").done()),
        ("a removed name", written().file(".wh.gone", b"").hard_link("h", "gone").done()),
    ] {
        let error = ground.unpack(&bytes).unwrap_err();
        assert!(error.hint.is_some(), "{what}: {error:?}");
        let _ = std::fs::remove_dir_all(ground.tree());
        std::fs::create_dir(ground.tree()).unwrap();
    }
    // A hard link to a symbolic link is one more such link, and its target is not touched.
    ground.unpack(&written().symlink("l", "../outside/secret").hard_link("h", "l").done()).unwrap();
    assert!(std::fs::symlink_metadata(ground.tree().join("h")).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(ground.0.join("outside/secret")).unwrap().nlink(), 1);
}

#[test]
fn removed_names_become_what_an_overlay_understands() {
    let ground = Ground::new("whiteouts");
    let bytes = written()
        .file("etc/.wh.gone", b"")
        .file("old/.wh..wh..opq", b"")
        .file("old/new", b"")
        .file(".wh.again", b"")
        .file("again/inside", b"")
        .file("kept", b"x")
        .file(".wh.kept", b"")
        .file(".wh..wh.plnk", b"")
        .done();
    ground.unpack(&bytes).unwrap();
    let tree = ground.tree();
    let gone = std::fs::symlink_metadata(tree.join("etc/gone")).unwrap();
    assert!(gone.file_type().is_char_device() && gone.rdev() == 0);
    let opaque = |name: &str| {
        let mut value = [0; 8];
        rustix::fs::lgetxattr(tree.join(name), "user.overlay.opaque", &mut value[..]).ok()
    };
    assert_eq!((opaque("old"), opaque("again"), opaque("etc")), (Some(1), Some(1), None));
    assert_eq!(std::fs::read(tree.join("kept")).unwrap(), b"x", "an entry outlives its removal");
    assert!(!tree.join(".wh..wh.plnk").exists() && !tree.join(".wh.kept").exists());
    for name in ["d/.wh..", "d/.wh...", ".wh."] {
        let error = ground.unpack(&written().file(name, b"").done()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PathEscape, "{name}");
    }
    ground.assert_untouched();
}

#[test]
fn the_later_of_two_entries_wins_but_no_directory_vanishes_with_what_is_in_it() {
    let ground = Ground::new("twice");
    let bytes = written()
        .file("a", b"old")
        .file("a", b"new")
        .directory("b", 0o755)
        .file("b", b"a file now")
        .file("c", b"a directory soon")
        .directory("c", 0o700)
        .file("c/in", b"")
        .done();
    ground.unpack(&bytes).unwrap();
    let tree = ground.tree();
    assert_eq!(std::fs::read(tree.join("a")).unwrap(), b"new");
    assert_eq!(std::fs::read(tree.join("b")).unwrap(), b"a file now");
    assert!(tree.join("c/in").exists());
    let error = ground.unpack(&written().file("d/in", b"").file("d", b"").done()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    // A file is no way to anywhere.
    let error = ground.unpack(&written().file("e", b"").file("e/in", b"").done()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::PathEscape);
}

#[test]
fn devices_pipes_set_id_bits_attributes_and_owners_are_told_and_not_made() {
    let ground = Ground::new("dropped");
    let bytes = written()
        .raw(b'3', "dev/null", "", b"")
        .raw(b'4', "dev/sda", "", b"")
        .raw(b'6', "pipe", "", b"")
        .program("bin/su", b"#!", 0o4755)
        .program("bin/wall", b"#!", 0o2755)
        .directory("mail", 0o2775)
        .pax(&[
            ("SCHILY.xattr.security.capability", "x"),
            ("SCHILY.xattr.user.overlay.opaque", "y"),
        ])
        .program("bin/ping", b"#!", 0o755)
        .owned("home", 1000)
        .done();
    let tally = ground.unpack(&bytes).unwrap();
    let tree = ground.tree();
    for name in ["dev/null", "dev/sda", "pipe"] {
        assert!(!tree.join(name).exists(), "{name}");
    }
    let mode = |name: &str| std::fs::metadata(tree.join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("bin/su"), mode("bin/wall"), mode("mail")), (0o755, 0o755, 0o775));
    assert_eq!((tally.left_out, tally.set_ids, tally.attributes, tally.other_owners), (3, 3, 2, 1));
    assert_eq!(tally.left_out_names, ["\"dev/null\"", "\"dev/sda\"", "\"pipe\""]);
    assert_eq!(std::fs::read_to_string(ground.0.join("owners")).unwrap(), "1000\t1000\t\"home\"\n");
    let me = rustix::process::geteuid().as_raw();
    assert_eq!(std::fs::metadata(tree.join("home")).unwrap().uid(), me);
    let mut list = [0; 256];
    let attributes = rustix::fs::llistxattr(tree.join("bin/ping"), &mut list[..]).unwrap();
    assert!(!String::from_utf8_lossy(&list[..attributes]).contains("overlay"));
}

#[test]
fn each_bound_holds() {
    let ground = Ground::new("bounds");
    let bounds = Bounds { bytes: 1000, entries: 4, name_bytes: 600, depth: 5, ratio: 200 };
    let check = |bytes: Vec<u8>, kind: Option<ErrorKind>| {
        let found = ground.unpack_within(&bytes, &bounds).map_err(|error| error.kind);
        assert_eq!(found.err(), kind);
        let _ = std::fs::remove_dir_all(ground.tree());
        std::fs::create_dir(ground.tree()).unwrap();
    };
    let files = |count: usize| (0..count).fold(written(), |w, n| w.file(&format!("f{n}"), b"x"));
    check(files(4).done(), None);
    check(files(5).done(), Some(ErrorKind::TooLarge));
    check(written().file("a", &[0; 1000]).done(), None);
    check(written().file("a", &[0; 500]).file("b", &[0; 501]).done(), Some(ErrorKind::TooLarge));
    // Not a byte of what is only claimed has to come.
    check(written().claim(b'0', "a", 1 << 50).done(), Some(ErrorKind::TooLarge));
    check(written().file("1/2/3/4/5", b"").done(), None);
    check(written().file("1/2/3/4/5/6", b"").done(), Some(ErrorKind::PathEscape));
    check(written().pax(&[("path", &"n".repeat(255))]).file("a", b"").done(), None);
    check(
        written().pax(&[("path", &"n".repeat(256))]).file("a", b"").done(),
        Some(ErrorKind::PathEscape),
    );
    let long = "n".repeat(250);
    let three = written().pax(&[("path", &long)]).file("a", b"").symlink("b", &long[..90]);
    check(
        three.pax(&[("path", &long), ("linkpath", &long)]).symlink("c", "").done(),
        Some(ErrorKind::TooLarge),
    );
}

#[test]
fn what_follows_the_last_entry_is_bounded() {
    let ground = Ground::new("behind");
    let mut bytes = written().file("a", b"").done();
    bytes.resize(1 << 20, 0);
    assert!(ground.unpack(&bytes).is_ok());
    bytes.resize(18 << 20, 0);
    assert_eq!(ground.unpack(&bytes).unwrap_err().kind, ErrorKind::TooLarge);
}

#[test]
fn a_layer_may_end_right_behind_its_last_byte_and_no_earlier() {
    let whole = written().directory("d", 0o755).file("d/f", &[b'x'; 700]).done();
    let (header, content) = (512, 2 * 512);
    let unpacked = |bytes: usize| {
        let ground = Ground::new("ends");
        let tally = ground.unpack(&whole[..bytes]).map_err(|error| error.kind)?;
        assert_eq!(std::fs::read(ground.tree().join("d/f")).ok(), Some(vec![b'x'; 700]), "{bytes}");
        Ok(tally.entries)
    };
    // Behind the content, in what fills its block, and with one of the two empty blocks.
    for bytes in [content + 700, content + 701, content + 1023, content + 1024, content + 1536] {
        assert_eq!(unpacked(bytes), Ok(2), "{bytes}");
    }
    // In the first header, in the second one, and in the content.
    for bytes in [header - 1, header + 1, content - 1, content, content + 1, content + 699] {
        assert_eq!(unpacked(bytes), Err(ErrorKind::NotAFile), "{bytes}");
    }
}

#[test]
fn what_expands_beyond_the_ratio_is_refused() {
    let ground = Ground::new("ratio");
    let bytes = written().file("zeros", &vec![0; 72 << 20]).done();
    let unpack_as = |packed: u64| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tree = rustix::fs::openat(CWD, ground.tree(), flags, Mode::empty()).unwrap();
        let bounds = Bounds::default();
        let (packed, mut tell, mut owners) = (|| packed, || (), Vec::new());
        let unpacking =
            Unpacking { bounds: &bounds, packed: &packed, tell: &mut tell, owners: &mut owners };
        unpack(&bytes[..], tree, unpacking).map_err(|error| error.kind)
    };
    assert!(unpack_as(1 << 20).is_ok());
    assert_eq!(unpack_as(100 << 10), Err(ErrorKind::TooLarge));
}
