use super::super::encode::write_entry;
use super::super::store::History;
use super::super::tests::{Place, fill, large, mode, seen};
use super::super::tree::{Content, Entry, LEAD as TREE_LEAD, Node};
use super::*;
use cofferdam_core::{Error, ErrorKind, hexadecimal};
use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

fn lies_on(path: &str) -> ExportedWorkspace {
    ExportedWorkspace { path: path.to_owned(), identity: None }
}

fn export(place: &Place, point: u32) -> Vec<u8> {
    let mut file = Vec::new();
    place.history.outgoing(point, lies_on("/somewhere")).unwrap().write(&mut file).unwrap();
    file
}

fn import(history: &History, file: &[u8]) -> Result<Imported, Error> {
    history.import(file, |label| Ok(label.map(str::to_owned)), None)
}

/// Everything that a layer holds, over another workspace of somebody else.
#[test]
fn what_goes_out_comes_in_as_it_was_and_belongs_to_who_is_there() {
    let (from, to) = (Place::new("export-from"), Place::new("export-to"));
    let upper = from.upper();
    fill(&upper);
    fs::create_dir(upper.join("empty")).unwrap();
    fs::write(upper.join(raw(b"\xff\xfe \n")), "raw").unwrap();
    let sparse = fs::File::create(upper.join("sparse")).unwrap();
    sparse.set_len(8 << 20).unwrap();
    sparse.write_all_at(b"middle", 4 << 20).unwrap();
    let hidden = fs::File::open(upper.join("a/b")).unwrap();
    fsetxattr(&hidden, "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
    fsetxattr(&hidden, "user.overlay.origin", b"\0\xfb\x15of this disk", XattrFlags::empty())
        .unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(to.upper(), Some(4_711), Some(4_712)).unwrap();
    }
    let before = from.point();
    let file = export(&from, before.point);
    assert!(file.len() < 5 << 20, "holes are not written: {}", file.len());
    assert!(!file.windows(12).any(|part| part == b"of this disk"));
    let stands = to.history.state().unwrap();
    let imported = import(&to.history, &file).unwrap();
    assert_eq!((imported.point.files, imported.point.bytes), (before.files, before.bytes));
    assert_eq!(imported.point.parent, None);
    assert_eq!(imported.point.imported.as_ref().unwrap().workspace, "/somewhere");
    let at = |state: Option<_>| state.map(|state: crate::history::state::State| state.at);
    assert_eq!(
        at(to.history.state().unwrap()).flatten(),
        at(stands).flatten(),
        "it stands where it stood"
    );
    let own = fs::metadata(to.upper()).unwrap();
    to.go(imported.point.point);
    let (mut went, mut came) = (seen(&upper), seen(&to.upper()));
    for one in came.values_mut() {
        assert_eq!((one.1, one.2), (own.uid(), own.gid()), "it is the workspace's owner's");
        (one.1, one.2) = (0, 0);
    }
    went.values_mut().for_each(|one| (one.1, one.2) = (0, 0));
    assert_eq!(came, went);
    let copy = fs::metadata(to.upper().join("sparse")).unwrap();
    assert!(copy.blocks() < 1024, "holes stay holes: {}", copy.blocks());
    let hidden = fs::File::open(to.upper().join("a/b")).unwrap();
    let mut value = [0; 64];
    assert_eq!(fgetxattr(&hidden, "user.overlay.opaque", &mut value[..]).unwrap(), 1);
    assert_eq!(fgetxattr(&hidden, "user.overlay.origin", &mut value[..]).unwrap(), 0);
    assert_eq!(to.history.tree(imported.point.point).unwrap().size(), (before.files, before.bytes));
}

fn raw(bytes: &[u8]) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes.to_vec())
}

#[test]
fn set_id_bits_and_lists_of_rights_stay_behind_and_are_counted() {
    let (from, to) = (Place::new("export-bits"), Place::new("export-bits-to"));
    fs::write(from.upper().join("f"), "f").unwrap();
    mode(&from.upper().join("f"), 0o6755);
    fs::create_dir(from.upper().join("d")).unwrap();
    mode(&from.upper().join("d"), 0o3777);
    let file = fs::File::open(from.upper().join("f")).unwrap();
    fsetxattr(&file, "user.overlay.uuid", b"this disk", XattrFlags::empty()).unwrap();
    from.point();
    let outgoing = from.history.outgoing(0, lies_on("/w")).unwrap();
    assert_eq!((outgoing.set_id, outgoing.attributes), (2, 1));
    let point = import(&to.history, &export(&from, 0)).unwrap().point.point;
    to.go(point);
    let mode = |name: &str| fs::metadata(to.upper().join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("f"), mode("d")), (0o755, 0o1777));
}

#[test]
fn what_is_removed_while_it_goes_out_is_told() {
    let from = Place::new("export-gone");
    fs::write(from.upper().join("f"), large("f")).unwrap();
    from.point();
    let outgoing = from.history.outgoing(0, lies_on("/w")).unwrap();
    from.history.remove_blob(from.blobs()[0]).unwrap();
    let mut file = Vec::new();
    assert!(outgoing.write(&mut file).is_err());
    assert!(check_export(&file[..]).unwrap_err().message.contains("its end is missing"));
}

/// A file of any list and any contents, with sums that are right.
#[derive(Clone)]
struct Forged {
    entries: Vec<Entry>,
    contents: Vec<Vec<u8>>,
    manifest: serde_json::Value,
    list: Option<Vec<u8>>,
    after: Vec<u8>,
}

fn entry(path: &str, node: Node) -> Entry {
    Entry {
        path: path.as_bytes().to_vec(),
        node,
        mode: 0o755,
        user: 0,
        group: 0,
        modified: (7, 8),
        accessed: (7, 8),
        attributes: Vec::new(),
    }
}

fn file(path: &str, blob: u64, size: u64) -> Entry {
    entry(path, Node::File(Content { blob, size }))
}

/// One content in pieces.
fn pieces(size: u64, parts: &[(u64, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (offset, bytes) in parts {
        out.extend(offset.to_le_bytes());
        out.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
        out.extend(*bytes);
    }
    out.extend(size.to_le_bytes());
    out.extend(0_u32.to_le_bytes());
    let sum = Sha256::digest(&out);
    out.extend(sum);
    out
}

impl Forged {
    fn good() -> Self {
        let entries = vec![
            entry("", Node::Directory),
            entry("aa", Node::Directory),
            file("aa/f", 1, 5),
            file("bb", 2, 3 << 20),
            entry("cc", Node::Link(b"/etc/passwd".to_vec())),
            entry("dd", Node::Removed),
        ];
        let contents = vec![pieces(5, &[(0, b"hello")]), pieces(3 << 20, &[(2 << 20, b"end")])];
        let manifest = serde_json::json!({
            "format": 1, "cofferdam": "0.1.0", "made_ms": 5, "label": "good",
            "workspace": { "path": "/w", "identity": null },
            "files": 6, "bytes": (3 << 20) + 5, "contents": 2, "content_bytes": 8,
        });
        Self { entries, contents, manifest, list: None, after: Vec::new() }
    }

    fn bytes(&self) -> Vec<u8> {
        let list = self.list.clone().unwrap_or_else(|| {
            let mut list = TREE_LEAD.to_vec();
            list.extend(u32::try_from(self.entries.len()).unwrap().to_le_bytes());
            self.entries.iter().for_each(|entry| write_entry(&mut list, entry));
            let sum = Sha256::digest(&list);
            list.extend(sum);
            list
        });
        let mut manifest = self.manifest.clone();
        let said = manifest.as_object_mut().unwrap();
        said.entry("list_bytes").or_insert(list.len().into());
        said.entry("list_sha256").or_insert(hexadecimal(Sha256::digest(&list)).into());
        let manifest = serde_json::to_vec(&manifest).unwrap();
        let mut out = LEAD.to_vec();
        out.extend(u32::try_from(manifest.len()).unwrap().to_le_bytes());
        out.extend(manifest);
        out.extend(list);
        self.contents.iter().for_each(|content| out.extend(content));
        let sum = Sha256::digest(&out);
        out.extend(sum);
        out.extend(&self.after);
        out
    }

    fn says(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.manifest[key] = value.into();
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// All that is on disk of a history, and when it was written.
fn all_files(top: &Path) -> Vec<(std::path::PathBuf, u64, i64)> {
    let mut found = Vec::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        for one in fs::read_dir(&path).unwrap() {
            let path = one.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            match about.is_dir() {
                true => waiting.push(path),
                false => found.push((path, about.ino(), about.mtime_nsec())),
            }
        }
    }
    found.sort();
    found
}

fn attribute(name: &[u8], value: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    vec![(name.to_vec(), value.to_vec())]
}

/// Lists that are wrong in one thing, and have sums that are right.
fn lists() -> Vec<(&'static str, &'static str, Forged)> {
    let good = Forged::good;
    let named = |at: usize, name: &'static str| {
        good().with(|one| one.entries[at].path = name.as_bytes().to_vec())
    };
    let noted = |at: usize, name: &'static [u8], value: &'static [u8]| {
        good().with(|one| one.entries[at].attributes = attribute(name, value))
    };
    vec![
        ("above", "its list is none", named(3, "..")),
        ("above from within", "its list is none", named(2, "aa/..")),
        ("absolute", "its list is none", named(3, "/bb")),
        ("twice", "its list is none", named(3, "aa")),
        ("out of order", "its list is none", named(3, "ab/")),
        ("below a link", "its list is none", named(5, "cc/dd")),
        ("a NUL", "its list is none", named(3, "b\0")),
        ("no top", "its list is none", good().with(|one| drop(one.entries.remove(0)))),
        ("a device", "its list is none", good().with(device)),
        ("set-id", "\"bb\" has set-id bits", good().with(|one| one.entries[3].mode = 0o4755)),
        ("set-gid", "\"aa\" has set-id bits", good().with(|one| one.entries[1].mode = 0o2755)),
        (
            "a type in the mode",
            "its list is none",
            good().with(|one| one.entries[3].mode = 0o60644),
        ),
        ("an owner", "\"bb\" names an owner", good().with(|one| one.entries[3].user = 1000)),
        ("a group", "\"\" names an owner", good().with(|one| one.entries[0].group = 1)),
        ("a redirect", "user.overlay.redirect", noted(1, b"user.overlay.redirect", b"/etc")),
        ("a reference", "user.overlay.metacopy", noted(3, b"user.overlay.metacopy", b"")),
        ("an origin", "user.overlay.origin", noted(3, b"user.overlay.origin", b"\0\xfbx")),
        ("all hidden", "user.overlay.opaque", noted(0, b"user.overlay.opaque", b"y")),
        ("a file that hides", "user.overlay.opaque", noted(3, b"user.overlay.opaque", b"y")),
        ("rights of others", "system.posix_acl", noted(3, b"system.posix_acl_access", b"x")),
        ("a capability", "its list is none", noted(3, b"security.capability", b"x")),
        ("a trusted mark", "its list is none", noted(1, b"trusted.overlay.opaque", b"y")),
        ("a note on a link", "user.note", noted(4, b"user.note", b"x")),
    ]
}

/// Contents and manifests that are wrong in one thing, and have sums that are right.
fn contents() -> Vec<(&'static str, &'static str, Forged)> {
    let good = Forged::good;
    let first = |content: Vec<u8>| good().with(|one| one.contents[0] = content);
    vec![
        (
            "another content",
            "has a content that is none",
            good().with(|one| one.entries[3] = file("bb", 3, 3 << 20)),
        ),
        (
            "one content, two sizes",
            "has a content that is none",
            good().with(|one| one.entries[3] = file("bb", 1, 6)),
        ),
        (
            "a huge file",
            "has more than",
            good().with(|one| one.entries[3] = file("bb", 2, u64::MAX)),
        ),
        ("a larger file", "is not as large as", first(pieces(6, &[(0, b"hello")]))),
        ("behind its end", "a piece of a content", first(pieces(5, &[(1, b"hello")]))),
        ("over itself", "a piece of a content", first(pieces(5, &[(0, b"hel"), (2, b"lo")]))),
        (
            "at the end of numbers",
            "a piece of a content",
            first(pieces(5, &[(u64::MAX - 2, b"hello")])),
        ),
        ("more contents", "more bytes of contents than", good().says("content_bytes", 7)),
        ("fewer contents", "fewer bytes of contents than", good().says("content_bytes", 9)),
        ("other files", "tells of other files", good().says("files", 5)),
        ("other bytes", "tells of other files", good().says("bytes", 4 << 20)),
        ("other contents", "tells of other files", good().says("contents", 1)),
        ("a huge list", "its list has more than", good().says("list_bytes", u64::MAX)),
        ("many files", "it has more than", good().says("files", u64::MAX)),
        ("many contents", "it has more than", good().says("contents", 7)),
        ("huge contents", "its contents have more than", good().says("content_bytes", u64::MAX)),
        ("another list", "its list is not whole", good().says("list_sha256", "0")),
        ("another format", "another format", good().says("format", 2)),
        ("an unknown word", "its manifest", good().says("environment", "x")),
        ("a number for a word", "its manifest", good().says("label", 7)),
        ("something behind it", "something follows", good().with(|one| one.after = vec![0])),
    ]
}

/// A type of entry that lists do not have.
fn device(forged: &mut Forged) {
    let mut list = TREE_LEAD.to_vec();
    list.extend(u32::try_from(forged.entries.len()).unwrap().to_le_bytes());
    for entry in &forged.entries {
        let from = list.len();
        write_entry(&mut list, entry);
        if entry.node == Node::Removed {
            list[from + 4 + entry.path.len()] = 8;
        }
    }
    let sum = Sha256::digest(&list);
    list.extend(sum);
    forged.list = Some(list);
}

fn told(error: &Error) -> String {
    error.chain()
}

#[test]
fn a_hostile_file_is_refused_by_name_and_leaves_nothing() {
    let place = Place::new("import-hostile");
    fs::write(place.upper().join("own"), "own").unwrap();
    place.point();
    let before = all_files(&place.base);
    for (name, why, forged) in lists().into_iter().chain(contents()) {
        let bytes = forged.bytes();
        let refused = import(&place.history, &bytes).unwrap_err();
        assert!(told(&refused).contains(why), "{name}: {}", told(&refused));
        assert_eq!(told(&check_export(&bytes[..]).unwrap_err()), told(&refused), "{name}");
        assert_eq!(all_files(&place.base), before, "{name}");
    }
    // The control: the same file with nothing wrong in it.
    let good = import(&place.history, &Forged::good().bytes()).unwrap();
    assert_eq!((good.point.point, good.point.label.as_deref()), (1, Some("good")));
    place.go(1);
    assert_eq!(fs::read(place.upper().join("aa/f")).unwrap(), b"hello");
    let link = fs::read_link(place.upper().join("cc")).unwrap();
    assert_eq!(link, Path::new("/etc/passwd"), "it is data");
    place.go(0);
    assert_eq!(fs::read(place.upper().join("own")).unwrap(), b"own");
}

#[test]
fn a_file_that_was_cut_or_changed_anywhere_is_refused() {
    let place = Place::new("import-cut");
    place.point();
    let before = all_files(&place.base);
    let good = Forged::good().bytes();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(check_export(&bad[..]).is_err(), "{at}");
        assert!(check_export(&good[..at]).is_err(), "{at}");
        if at % 37 == 0 {
            assert!(import(&place.history, &bad).is_err(), "{at}");
            assert!(import(&place.history, &good[..at]).is_err(), "{at}");
        }
    }
    assert_eq!(all_files(&place.base), before);
    check_export(&good[..]).unwrap();
    assert_eq!(
        check_export(&b"PK\x03\x04 something else"[..]).unwrap_err().kind,
        ErrorKind::NotAFile
    );
}

/// A small file in which one content is that of a great many names.
#[test]
fn what_would_be_more_than_may_be_once_it_is_unpacked_is_refused() {
    let names = MAX_EXPORTED_BYTES / u64::from(PIECE_BYTES);
    let size = u64::from(PIECE_BYTES);
    let bomb = |names: u64| {
        let mut entries = vec![entry("", Node::Directory)];
        entries.extend((0..names).map(|name| file(&format!("{name:08}"), 1, size)));
        let whole = vec![1; PIECE_BYTES as usize];
        Forged { entries, contents: vec![pieces(size, &[(0, &whole)])], ..Forged::good() }
            .says("files", names + 1)
            .says("bytes", names * size)
            .says("contents", 1)
            .says("content_bytes", size)
    };
    let refused = check_export(&bomb(names + 1).bytes()[..]).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::TooLarge);
    check_export(&bomb(names).bytes()[..]).unwrap();
}

#[test]
fn what_would_drive_out_the_points_of_a_session_is_refused() {
    let place = Place::new("import-room");
    place.point();
    let huge =
        Forged::good().says("content_bytes", crate::MAX_HISTORY_BYTES).says("bytes", u64::MAX);
    let refused = import(&place.history, &huge.bytes()).unwrap_err();
    assert!(refused.message.contains("the history would have more than"), "{refused:?}");
    let without_layer = History::new(place.base.join("elsewhere"));
    assert_eq!(
        import(&without_layer, &Forged::good().bytes()).unwrap_err().kind,
        ErrorKind::NotFound
    );
}
