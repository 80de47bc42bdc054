//! Archives into and out of files in memory, from anybody, and over a worker that lies.

use crate::header::{BLOCK_BYTES, END_BYTES, Member, padding};
use crate::{
    Checked, Export, Exported, Import, Imported, MAX_ARCHIVE_ENTRIES, MAX_EXTENSION_BYTES, Over,
    Remark, export, import,
};
use cofferdam_core::fake::FakeBackend;
use cofferdam_core::files::{
    Answer, Body, Entry, EntryKind, FileService, HasRead, MAX_CARRIED_BYTES, MAX_CARRY_DEPTH,
    Reply, Request,
};
use cofferdam_core::{
    Backend, Caller, Command, Error, ErrorKind, Files, NoGate, ProcessId, Result, SandboxId, Spec,
    Workspace, collect,
};
use std::fs::{File, OpenOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tar::{EntryType, Header};
use tokio::io::AsyncWriteExt;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Files in memory with these links.
async fn files(links: &[&str]) -> Files {
    let backend = FakeBackend::new();
    let spec = Spec::new(Workspace::Private, Caller::default());
    let sandbox = backend.create(&SandboxId::new("s1").unwrap(), &spec).await.unwrap();
    let guest = backend.open(&sandbox, Arc::new(NoGate)).await.unwrap();
    for (number, link) in links.iter().enumerate() {
        let id = ProcessId::new(format!("p{number}")).unwrap();
        let link = Command::new(id, [format!("link={link}")]);
        collect(guest.spawn(&link).await.unwrap(), 100).await.unwrap();
    }
    guest.files().await.unwrap()
}

fn spool() -> File {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("cofferdam-spool-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

fn read(archive: &[u8]) -> Result<Checked> {
    Checked::read(&mut &*archive, spool())
}

async fn imported(files: &Files, path: &str, over: Over, archive: &[u8]) -> Result<Imported> {
    import(files, &Import { path: path.into(), over }, read(archive)?).await
}

async fn exported(files: &Files, path: &str) -> Result<(Vec<u8>, Exported)> {
    let mut bytes = Vec::new();
    let order = Export { path: path.into(), max_bytes: 1 << 30 };
    let exported = export(files, &order, &mut bytes).await?;
    Ok((bytes, exported))
}

fn with(kind: EntryType, path: &str, target: &str, mode: u32, data: &[u8]) -> Vec<u8> {
    let (path, target) = (path.as_bytes(), target.as_bytes());
    let bytes = data.len() as u64;
    let mut blocks = Member { path, kind, target, mode, modified_ms: 0, bytes }.blocks();
    blocks.extend_from_slice(data);
    blocks.resize(blocks.len() + padding(bytes), 0);
    blocks
}

fn file(path: &str, data: &[u8]) -> Vec<u8> {
    with(EntryType::Regular, path, "", 0o644, data)
}

fn directory(path: &str) -> Vec<u8> {
    with(EntryType::Directory, path, "", 0o755, b"")
}

fn link(path: &str, target: &str) -> Vec<u8> {
    with(EntryType::Symlink, path, target, 0o777, b"")
}

fn further(path: &str, target: &str) -> Vec<u8> {
    with(EntryType::Link, path, target, 0o644, b"")
}

fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let length = (rest.len()..).find(|length| length.to_string().len() + rest.len() == *length);
    format!("{}{rest}", length.unwrap()).into_bytes()
}

fn records(records: &[Vec<u8>]) -> Vec<u8> {
    with(EntryType::XHeader, "x", "", 0o644, &records.concat())
}

fn whole(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), vec![0; END_BYTES]].concat()
}

/// An archive of these parts is refused for this reason, with these words.
fn refused(parts: &[Vec<u8>], kind: ErrorKind, words: &str) {
    let error = read(&whole(parts)).unwrap_err();
    assert_eq!(error.kind, kind, "{error:?}");
    assert!(error.message.contains(words), "{error:?} says nothing of {words:?}");
}

#[tokio::test]
async fn a_tree_is_the_same_in_another_place() {
    let long = "n".repeat(150);
    let from = files(&["t/d/out:/etc/passwd", "t/short:d/../f"]).await;
    from.write("t/d/f", b"bytes").await.unwrap();
    from.write(format!("t/{long}/{long}"), &[7; 513]).await.unwrap();
    from.write("t/empty", b"").await.unwrap();
    from.set_mode("t/d/f", 0o751).await.unwrap();
    from.set_mode("t/d", 0o710).await.unwrap();
    let (archive, out) = exported(&from, "t").await.unwrap();
    assert_eq!((out.files, out.directories, out.links, out.bytes), (3, 2, 2, 518));
    assert_eq!(archive.len() as u64 % BLOCK_BYTES, 0);
    let to = files(&[]).await;
    let got = imported(&to, "deep/er", Over::Refuse, &archive).await.unwrap();
    assert_eq!((got.files, got.directories, got.links, got.bytes), (3, 2, 2, 518));
    let (again, _) = exported(&to, "deep/er").await.unwrap();
    assert!(again == archive);
    assert_eq!(to.stat("deep/er/d").await.unwrap().mode, 0o710);
    assert_eq!(to.stat("deep/er/d/out").await.unwrap().target, Some("/etc/passwd".into()));
    // A single file has its own name, and a link is one.
    let (one, _) = exported(&from, "t/d/f").await.unwrap();
    imported(&to, "/workspace", Over::Refuse, &one).await.unwrap();
    assert_eq!(to.stat("f").await.unwrap().mode, 0o751);
}

#[test]
fn a_path_that_is_not_inside_refuses_the_archive() {
    for (path, kind) in [
        ("/etc/x", ErrorKind::PathEscape),
        ("../x", ErrorKind::PathEscape),
        ("a/../../x", ErrorKind::PathEscape),
        ("", ErrorKind::Usage),
        (".", ErrorKind::Usage),
    ] {
        refused(&[file("ok", b"1"), file(path, b"2")], kind, &format!("{path:?}"));
        // The same by names that override the one in the header.
        let renamed = [records(&[record("path", path)]), file("ok", b"1")];
        assert_eq!(read(&whole(&renamed)).unwrap_err().kind, kind, "{path:?}");
    }
    assert_eq!(read(&whole(&[file("./a//b/./c", b"1"), directory("./")])).unwrap().len(), 1);
    let renamed = [records(&[record("path", "a\nb")]), file("ok", b"1")];
    assert_eq!(read(&whole(&renamed)).unwrap().len(), 1);
}

#[test]
fn what_is_there_twice_or_below_a_link_or_a_file_refuses_the_archive() {
    refused(&[file("a", b"1"), file("./a", b"2")], ErrorKind::Usage, "\"a\"");
    refused(&[directory("d"), directory("d/")], ErrorKind::Usage, "twice");
    refused(&[link("d", "/tmp"), file("d/x", b"")], ErrorKind::PathEscape, "\"d/x\"");
    refused(&[file("d/x", b""), link("d", "/tmp")], ErrorKind::PathEscape, "\"d/x\"");
    refused(&[file("f", b""), file("f/a/b", b"")], ErrorKind::PathEscape, "\"f/a/b\"");
    let good = [file("d/x", b""), directory("d"), link("l", "/tmp")];
    assert_eq!(read(&whole(&good)).unwrap().len(), 3);
}

#[tokio::test]
async fn a_further_name_is_a_copy_of_a_file_before_it_and_of_nothing_else() {
    for bad in ["/etc/passwd", "../x", "none", "d", "l", "later"] {
        let parts = [directory("d"), link("l", "x"), further("h", bad), file("later", b"")];
        refused(&parts, ErrorKind::PathEscape, "\"h\"");
    }
    let to = files(&[]).await;
    let good = whole(&[file("a/f", b"one"), further("h", "a/f"), further("i", "h")]);
    assert_eq!(imported(&to, "", Over::Refuse, &good).await.unwrap().bytes, 9);
    assert_eq!(to.read("i", 10).await.unwrap(), b"one");
}

#[test]
fn what_is_no_file_directory_or_link_refuses_the_archive() {
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo, EntryType::new(b'V')] {
        refused(&[with(kind, "dev", "", 0o644, b"")], ErrorKind::Unsupported, "\"dev\"");
    }
    refused(&[with(EntryType::GNUSparse, "s", "", 0o644, b"")], ErrorKind::Unsupported, "sparse");
    for key in ["GNU.sparse.major", "GNU.sparse.realsize", "GNU.sparse.map"] {
        let parts = [records(&[record(key, "1")]), file("s", b"1")];
        refused(&parts, ErrorKind::Unsupported, "sparse");
    }
    refused(&[with(EntryType::Directory, "d", "", 0o755, b"x")], ErrorKind::Usage, "\"d\"");
    refused(&[with(EntryType::Symlink, "l", "t", 0o755, b"x")], ErrorKind::Usage, "\"l\"");
    refused(&[link("l", "")], ErrorKind::Usage, "\"l\"");
    assert!(read(&whole(&[with(EntryType::Continuous, "c", "", 0o644, b"x")])).is_ok());
}

#[test]
fn two_readings_of_one_archive_are_refused() {
    let sized = |size: &str| [records(&[record("size", size)]), file("f", b"12345")];
    refused(&sized("4"), ErrorKind::Usage, "two different sizes");
    assert_eq!(read(&whole(&sized("5"))).unwrap().len(), 1);
    let twice = [record("path", "a"), record("path", "b")];
    refused(&[records(&twice), file("f", b"")], ErrorKind::Usage, "twice");
    let stacked = [records(&[record("path", "a")]), records(&[]), file("f", b"")];
    refused(&stacked, ErrorKind::Usage, "twice");
    let long = || with(EntryType::GNULongName, "L", "", 0o644, b"long\0");
    refused(&[long(), long(), file("f", b"")], ErrorKind::Usage, "twice");
    let hidden = with(EntryType::GNULongName, "L", "", 0o644, b"a\0b");
    refused(&[hidden, file("f", b"")], ErrorKind::Usage, "no sense");
    let global = |key| with(EntryType::XGlobalHeader, "g", "", 0o644, &record(key, "v"));
    refused(&[global("path"), file("f", b"")], ErrorKind::Usage, "path");
    assert!(read(&whole(&[global("comment"), file("f", b"")])).is_ok());
    refused(&[file("f", b""), long()], ErrorKind::Usage, "no end");
    for bad in ["5 a=b\n", "x", " a=b\n", "99 a=b\n", "+6 a=b\n", "6 a=bc", "5 ab\n"] {
        let parts = [with(EntryType::XHeader, "x", "", 0o644, bad.as_bytes()), file("f", b"")];
        refused(&parts, ErrorKind::Usage, "no sense");
    }
}

#[test]
fn what_is_no_whole_archive_is_refused() {
    let good = whole(&[file("a", b"12345"), file("b", b"1")]);
    assert_eq!(read(&good).unwrap().len(), 2);
    assert!(read(&whole(&[])).unwrap().is_empty());
    for cut in [0, 1, 511, 512, 600, 1024, 1100, 2048, 2100] {
        assert_eq!(read(&good[..cut]).unwrap_err().kind, ErrorKind::Usage, "{cut}");
    }
    let behind = [good.clone(), file("c", b"")].concat();
    assert!(read(&behind).unwrap_err().message.contains("behind the end"));
    let mut wrong = good;
    wrong[0] ^= 1;
    assert_eq!(read(&wrong).unwrap_err().kind, ErrorKind::Usage);
}

#[test]
fn an_archive_has_limits_and_a_size_is_not_believed() {
    let claims = |bytes: u64| {
        let mut blocks = file("f", b"");
        let mut header = Header::from_byte_slice(&blocks[..512]).clone();
        header.set_size(bytes);
        header.set_cksum();
        blocks[..512].copy_from_slice(header.as_bytes());
        read(&whole(&[blocks]))
    };
    for bytes in [1 << 20, 1 << 40, u64::MAX - 600, u64::MAX] {
        assert_eq!(claims(bytes).unwrap_err().kind, ErrorKind::Usage, "{bytes}");
    }
    assert!(claims(0).is_ok());
    let name = |bytes: u64| {
        let record = record("comment", &"n".repeat(usize::try_from(bytes).unwrap()));
        whole(&[records(&[record]), file("f", b"")])
    };
    assert_eq!(read(&name(MAX_EXTENSION_BYTES)).unwrap_err().kind, ErrorKind::TooLarge);
    assert!(read(&name(MAX_EXTENSION_BYTES - 100)).is_ok());
    let deep = |names: usize| read(&whole(&[file(&vec!["d"; names].join("/"), b"")]));
    assert!(deep(MAX_CARRY_DEPTH).is_ok());
    assert_eq!(deep(MAX_CARRY_DEPTH + 1).unwrap_err().kind, ErrorKind::TooLarge);
    let many = |count: usize| {
        let parts: Vec<Vec<u8>> = (0..count).map(|at| file(&at.to_string(), b"")).collect();
        read(&whole(&parts))
    };
    assert_eq!(many(MAX_ARCHIVE_ENTRIES).unwrap().len(), MAX_ARCHIVE_ENTRIES);
    assert_eq!(many(MAX_ARCHIVE_ENTRIES + 1).unwrap_err().kind, ErrorKind::TooLarge);
}

#[test]
fn copies_count_as_often_as_they_are_made() {
    // One file of a mebibyte, and as many names for it as fit, and one more.
    let data = vec![1; 1 << 20];
    let fit = usize::try_from(MAX_CARRIED_BYTES >> 20).unwrap();
    let names = |count: usize| {
        let copies = (1..count).map(|at| further(&format!("h{at}"), "f"));
        read(&whole(&[vec![file("f", &data)], copies.collect()].concat()))
    };
    assert_eq!(names(fit).unwrap().len(), fit);
    assert_eq!(names(fit + 1).unwrap_err().kind, ErrorKind::TooLarge);
}

#[tokio::test]
async fn other_identities_are_left_out_and_told() {
    let set = with(EntryType::Regular, "f", "", 0o6755, b"x");
    let closed = with(EntryType::Directory, "d", "", 0o1555, b"");
    let to = files(&[]).await;
    let got = imported(&to, "", Over::Refuse, &whole(&[set, closed])).await.unwrap();
    assert_eq!(to.stat("f").await.unwrap().mode, 0o755);
    assert_eq!(to.stat("d").await.unwrap().mode, 0o755);
    let told: Vec<Remark> = got.notes.first.iter().map(|note| note.remark).collect();
    assert_eq!(told, [Remark::IdentityLeftOut, Remark::IdentityLeftOut, Remark::OwnerAdded]);
}

#[tokio::test]
async fn what_is_there_is_replaced_only_if_that_is_said_and_a_directory_never() {
    let to = files(&["way:/etc", "l:x"]).await;
    to.write("d/f", b"old").await.unwrap();
    let archive = whole(&[file("new", b"n"), file("d/f", b"new"), file("l", b"now a file")]);
    let error = imported(&to, "", Over::Refuse, &archive).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert_eq!(to.read("d/f", 10).await.unwrap(), b"old");
    assert_eq!(to.stat("new").await.unwrap_err().kind, ErrorKind::NotFound);
    imported(&to, "", Over::Replace, &archive).await.unwrap();
    assert_eq!(to.read("d/f", 10).await.unwrap(), b"new");
    assert_eq!(to.stat("l").await.unwrap().kind, EntryKind::File);
    for bad in [vec![file("d", b"")], vec![link("d", "x")], vec![file("way/x", b"")]] {
        let parts = [vec![file("other", b"")], bad].concat();
        let error = imported(&to, "", Over::Replace, &whole(&parts)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict, "{error:?}");
        assert_eq!(to.stat("other").await.unwrap_err().kind, ErrorKind::NotFound);
    }
    for bad in ["../x", "/etc", "way"] {
        assert!(imported(&to, bad, Over::Replace, &archive).await.is_err(), "{bad}");
    }
}

/// A directory with one entry, and a file that is not as it was listed.
struct Liar {
    entry: Entry,
    sent: usize,
    fails: bool,
    has_more: bool,
    /// How many times it lists its entry at once.
    count: usize,
}

impl Liar {
    fn new(name: &[u8], kind: EntryKind, size: u64) -> Self {
        let path = name.to_vec().into();
        let target = (kind == EntryKind::Link).then(|| b"a\0b".to_vec().into());
        let entry = Entry { path, kind, size, mode: 0o4755, modified_ms: -1, links: 1, target };
        Self { entry, sent: 0, fails: false, has_more: false, count: 1 }
    }
}

#[async_trait::async_trait]
impl FileService for Liar {
    async fn call(&self, request: &Request, body: Body<'_>) -> Result<Reply> {
        let answer = match (request, body) {
            (Request::Stat { .. }, _) => {
                let kind = EntryKind::Directory;
                Answer::Entry(Entry { kind, path: "".into(), ..self.entry.clone() })
            }
            (Request::Read(_), Body::Sink(sink)) => {
                let broken = |e| Error::new(ErrorKind::Io, "pass on").source(e);
                sink.write_all(&vec![b'x'; self.sent]).await.map_err(broken)?;
                if self.fails {
                    return Err(Error::new(ErrorKind::Io, "read it"));
                }
                let (size, bytes) = (self.sent as u64, self.sent as u64);
                Answer::Read(HasRead { size, bytes, ..HasRead::default() })
            }
            _ => {
                let entries = vec![self.entry.clone(); self.count];
                let next = self.has_more.then(|| "x".into());
                return Ok(Reply { answer: Answer::Listed { next }, entries });
            }
        };
        Ok(Reply { answer, entries: Vec::new() })
    }

    async fn open(&self) -> Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_file_that_changes_meanwhile_is_told_and_the_archive_is_whole() {
    let check = async |sent: usize, fails: bool, size: u64, remark: Option<Remark>| {
        let liar = Liar { sent, fails, ..Liar::new(b"f", EntryKind::File, size) };
        let (archive, out) = exported(&Files::new(Arc::new(liar)), ".").await.unwrap();
        let told: Vec<Remark> = out.notes.first.iter().map(|note| note.remark).collect();
        let mut expected = vec![Remark::IdentityLeftOut];
        expected.extend(remark);
        assert_eq!(told, expected, "{sent} {size}");
        assert_eq!(out.notes.losses, u64::from(remark.is_some()));
        let is_there = u64::from(remark != Some(Remark::Unreadable));
        assert_eq!(read(&archive).unwrap().len() as u64, is_there);
        assert_eq!(out.files, is_there);
    };
    check(700, false, 700, None).await;
    check(0, false, 0, None).await;
    check(700, false, 600, Some(Remark::Cut)).await;
    check(1, false, 0, Some(Remark::Cut)).await;
    check(700, false, 20_000, Some(Remark::Padded)).await;
    check(0, false, 513, Some(Remark::Padded)).await;
    check(700, true, 20_000, Some(Remark::Padded)).await;
    check(0, true, 600, Some(Remark::Unreadable)).await;
}

#[tokio::test]
async fn a_worker_that_lies_about_names_gets_nothing_into_an_archive() {
    let bad = [&b""[..], b".", b"..", b"a/b", b"../x", b"/etc", b"a\0b"];
    for name in bad {
        let liar = Liar::new(name, EntryKind::File, 0);
        let error = exported(&Files::new(Arc::new(liar)), ".").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol, "{name:?}");
    }
    let liar = Liar::new(b"l", EntryKind::Link, 0);
    let error = exported(&Files::new(Arc::new(liar)), ".").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Protocol);
    let liar = Liar { has_more: true, count: 0, ..Liar::new(b"f", EntryKind::File, 0) };
    let error = exported(&Files::new(Arc::new(liar)), ".").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Protocol);
    // Names without an end.
    let liar = Liar { has_more: true, count: 1000, ..Liar::new(b"p", EntryKind::Fifo, 0) };
    let error = exported(&Files::new(Arc::new(liar)), ".").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    // A directory in itself, for ever.
    let liar = Liar::new(b"d", EntryKind::Directory, 0);
    let (archive, out) = exported(&Files::new(Arc::new(liar)), ".").await.unwrap();
    assert_eq!(out.notes.losses, 1);
    assert!(archive.len() < 1 << 20);
}

#[tokio::test]
async fn a_size_that_is_only_said_fills_no_disk() {
    let liar = Liar::new(b"f", EntryKind::File, u64::MAX);
    let error = exported(&Files::new(Arc::new(liar)), ".").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    let from = files(&[]).await;
    from.write("d/f", b"12345").await.unwrap();
    let order = |max_bytes| Export { path: "d".into(), max_bytes };
    assert!(export(&from, &order(5), &mut tokio::io::sink()).await.is_ok());
    let error = export(&from, &order(4), &mut tokio::io::sink()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
}
