use super::*;
use std::collections::BTreeMap;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

/// Who else may do what with a file.
const ACL: &str = "system.posix_acl_access";

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cofferdam-{name}-{}", std::process::id()));
        for inner in ["from/upper", "to"] {
            std::fs::create_dir_all(path.join(inner)).unwrap();
        }
        Self(path)
    }

    fn upper(&self) -> PathBuf {
        self.0.join("from/upper")
    }

    fn copy(&self, bounds: Bounds) -> Result<Copied> {
        copy(&self.0.join("from"), &self.0.join("to"), "upper", bounds)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (parent, name) = (self.0.parent().unwrap(), self.0.file_name().unwrap());
        home::remove(parent, name.to_str().unwrap()).unwrap();
    }
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// What a file is, but for its number.
type Seen = (u32, u32, u32, u64, u64, i64, i64, Vec<u8>, Option<Vec<u8>>);

/// All that is there. What is closed is opened up for the look.
fn seen(top: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let m = std::fs::symlink_metadata(&path).unwrap();
        let mut content = Vec::new();
        let mut attribute = None;
        if m.is_dir() || m.is_file() {
            mode(&path, 0o700);
            let mut value = [0; 64];
            let file = std::fs::File::open(&path).unwrap();
            let count = fgetxattr(&file, "user.note", &mut value[..]);
            attribute = count.ok().map(|count| value[..count].to_vec());
        }
        if m.is_file() {
            content = std::fs::read(&path).unwrap();
        } else if m.is_symlink() {
            content = std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes();
        } else if m.is_dir() {
            let inner = std::fs::read_dir(&path).unwrap();
            waiting.extend(inner.map(|entry| entry.unwrap().path()));
        }
        let name = path.strip_prefix(top).unwrap().to_owned();
        let links = if m.is_dir() { 0 } else { m.nlink() };
        let times = (m.mtime(), m.mtime_nsec());
        let one =
            (m.mode(), m.uid(), m.gid(), links, m.rdev(), times.0, times.1, content, attribute);
        found.insert(name, one);
    }
    found
}

#[test]
fn a_copy_is_exact() {
    let place = Place::new("copy-exact");
    let upper = place.upper();
    std::fs::create_dir_all(upper.join("a/b/closed")).unwrap();
    std::fs::write(upper.join("a/f"), vec![7; 3 << 20]).unwrap();
    std::fs::hard_link(upper.join("a/f"), upper.join("g")).unwrap();
    std::fs::hard_link(upper.join("a/f"), upper.join("a/b/h")).unwrap();
    std::fs::write(upper.join("a/b/closed/secret"), "s").unwrap();
    std::fs::write(upper.join("noted \n\u{e4}"), "n").unwrap();
    symlink("/etc/passwd", upper.join("link")).unwrap();
    symlink("/nothing", upper.join("a/dangling")).unwrap();
    let here = directory(&upper).unwrap();
    let all = Mode::from_raw_mode(0o640);
    for (name, kind) in [
        ("removed", FileType::CharacterDevice),
        ("pipe", FileType::Fifo),
        ("socket", FileType::Socket),
    ] {
        mknodat(&here, name, kind, all, 0).unwrap();
    }
    let noted = std::fs::File::open(upper.join("noted \n\u{e4}")).unwrap();
    fsetxattr(&noted, "user.note", b"1", XattrFlags::empty()).unwrap();
    fsetxattr(&here, "user.note", b"top", XattrFlags::empty()).unwrap();
    // One more user may read and execute it.
    let list =
        [2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 5, 0, 57, 48, 0, 0, 4, 0, 4, 0, 255];
    let more = [255, 255, 255, 16, 0, 5, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255];
    let list = [&list[..], &more].concat();
    std::fs::write(upper.join("listed"), "l").unwrap();
    let listed = std::fs::File::open(upper.join("listed")).unwrap();
    let lists = fsetxattr(&listed, ACL, &list, XattrFlags::empty()).is_ok();
    mode(&upper.join("a/b/closed/secret"), 0);
    mode(&upper.join("a/b/closed"), 0);
    mode(&upper.join("g"), 0o444);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(upper.join("link"), Some(54_321), Some(54_322)).unwrap();
        std::os::unix::fs::chown(upper.join("a/f"), Some(54_321), Some(54_322)).unwrap();
    }
    let copied = place.copy(BOUNDS).unwrap();
    assert_eq!(copied.files, 15);
    if lists {
        let mut value = [0; 64];
        let copy = std::fs::File::open(place.0.join("to/upper/listed")).unwrap();
        let count = fgetxattr(&copy, ACL, &mut value[..]).unwrap();
        assert_eq!(value[..count], list);
    }
    assert!(!place.0.join("to").join(LINKS).exists());
    for name in ["a/b/closed", "a/b"] {
        let m = std::fs::symlink_metadata(upper.join(name)).unwrap();
        assert_eq!(m.mode() & 0o777 == 0, name == "a/b/closed", "the layer is as it was");
    }
    assert_eq!(seen(&place.0.join("to/upper")), seen(&upper));
}

#[test]
fn holes_are_not_filled() {
    let place = Place::new("copy-holes");
    let sparse = std::fs::File::create(place.upper().join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    sparse.write_all_at(b"end", (1 << 40) - 3).unwrap();
    let copied = place.copy(BOUNDS).unwrap();
    assert!(copied.bytes < 1 << 20, "{copied:?}");
    let m = std::fs::metadata(place.0.join("to/upper/sparse")).unwrap();
    assert_eq!(m.len(), 1 << 40);
    assert!(m.blocks() < 1 << 10);
    let mut end = [0; 3];
    let copy = std::fs::File::open(place.0.join("to/upper/sparse")).unwrap();
    copy.read_exact_at(&mut end, (1 << 40) - 3).unwrap();
    assert_eq!(&end, b"end");
}

#[test]
fn a_copy_has_bounds_and_one_at_them_is_made() {
    let bounds = Bounds { files: 4, bytes: 10, depth: 1 };
    for (name, make, fits) in [
        ("files", &["a", "b", "c"][..], true),
        ("more-files", &["a", "b", "c", "d"], false),
        ("deep", &["x/a"], true),
        ("deeper", &["x/y/a"], false),
        ("bytes", &["0123456789"], true),
        ("more-bytes", &["0123456789", "0"], false),
    ] {
        let place = Place::new(&format!("copy-bounds-{name}"));
        for file in make {
            let path = place.upper().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let is_long = name.ends_with("bytes");
            std::fs::write(&path, if is_long { file } else { "" }).unwrap();
        }
        let made = place.copy(bounds).map_err(|error| error.kind);
        assert_eq!(made.is_ok(), fits, "{name}: {made:?}");
        if !fits {
            assert_eq!(made, Err(ErrorKind::TooLarge), "{name}");
        }
    }
}

#[test]
fn what_was_opened_up_is_closed_again_though_the_copy_fails_or_is_killed() {
    let place = Place::new("copy-closed");
    let (deep, file) = (place.upper().join("d/e"), place.upper().join("d/e/f"));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(&file, "content").unwrap();
    for path in [&file, &deep] {
        mode(path, 0);
    }
    let bounds = Bounds { bytes: 3, ..BOUNDS };
    assert_eq!(place.copy(bounds).unwrap_err().kind, ErrorKind::TooLarge);
    let permissions = |path: &Path| std::fs::symlink_metadata(path).unwrap().mode() & 0o777;
    assert_eq!(permissions(&deep), 0);
    mode(&deep, 0o700);
    assert_eq!(permissions(&file), 0);
    // As somebody left it who was killed: opened up, and written down.
    mode(&file, 0o400);
    mode(&deep, 0o500);
    let list = place.0.join("from/.widened");
    std::fs::write(&list, "0 upper/d/e\u{0}0 upper/d/e/f\u{0}0 upper/gone/x\u{0}777 uppe").unwrap();
    assert!(put_back(&place.0.join("from")).unwrap());
    assert_eq!(permissions(&deep), 0);
    mode(&deep, 0o700);
    assert_eq!((permissions(&file), list.exists()), (0, false));
    assert!(!put_back(&place.0.join("from")).unwrap());
}

#[test]
fn permissions_are_put_back_over_no_link() {
    let place = Place::new("copy-over-link");
    let outside = place.0.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("f"), "").unwrap();
    mode(&outside.join("f"), 0o600);
    symlink(outside.join("f"), place.upper().join("f")).unwrap();
    symlink(&outside, place.upper().join("d")).unwrap();
    let list = "777 upper/f\u{0}777 upper/d/f\u{0}";
    std::fs::write(place.0.join("from/.widened"), list).unwrap();
    put_back(&place.0.join("from")).unwrap();
    assert_eq!(std::fs::symlink_metadata(outside.join("f")).unwrap().mode() & 0o777, 0o600);
}
