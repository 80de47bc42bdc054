//! Files of a workspace.

use crate::check::{Stop, Verdict, same};
use crate::fixture::Action;
use crate::stage::{Stage, refused};
use cofferdam_archive::{Checked, Export, Exported, Import, Over, export, import};
use cofferdam_core::files::{
    Before, ByteString, Content, CopyTree, EntryKind, FileEvent, FileWatch, Load, MAX_COPY_ENTRIES,
    Move, Only, Read, ReadMany, Remove, Step, Watch, Write,
};
use cofferdam_core::{Ending, ErrorKind, Files, Guest};
use cofferdam_search::{FileHits, Found, Glob, Grep, Search};
use std::fs::File;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

async fn files(stage: &mut Stage) -> Result<(Arc<dyn Guest>, Files), Stop> {
    let guest = stage.guest().await?;
    let files = guest.files().await?;
    Ok((guest, files))
}

pub(crate) async fn bytes_survive(stage: &mut Stage) -> Verdict {
    let (_guest, files) = files(stage).await?;
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(600_001).collect();
    let written = files.write("a/b/bytes", &bytes).await?;
    same("bytes written", &written.bytes, &600_001)?;
    let read = files.read("a/b/bytes", 1 << 20).await?;
    same("the same bytes", &(read == bytes), &true)?;
    let (mut part, order) = (
        Vec::new(),
        Read {
            path: "/workspace/a/b/bytes".into(),
            offset: 255,
            length: Some(3),
            hash: true,
            max_bytes: None,
        },
    );
    let read = files.read_to(&order, &mut part).await?;
    same("a part", &part, &vec![255, 0, 1])?;
    same("the hash of the whole", &read.sha256, &Some(written.sha256))
}

pub(crate) async fn commands_see_them(stage: &mut Stage) -> Verdict {
    let (guest, files) = files(stage).await?;
    files.write("new/ours", b"from outside").await?;
    let output = stage.run(&guest, &Action::ReadFile("new/ours".to_owned())).await?;
    let seen = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    same("what a command reads", &seen.as_str(), &"from outside")?;
    let output = stage.run(&guest, &Action::WriteFile("new/theirs".to_owned())).await?;
    same("a command writes", &output.ending, &Ending::Exited(0))?;
    same("what it wrote", &files.read("new/theirs", 100).await?, &b"written".to_vec())
}

pub(crate) async fn conditions_hold(stage: &mut Stage) -> Verdict {
    let (_guest, files) = files(stage).await?;
    let order = |only| Write { path: "file".into(), only, mode: None };
    let early = files.write_from(&order(Only::IfExists), &mut &b"none"[..]).await;
    refused("a file that is missing", early, &[ErrorKind::NotFound])?;
    let first = files.write_from(&order(Only::IfMissing), &mut &b"one"[..]).await?;
    let again = files.write_from(&order(Only::IfMissing), &mut &b"two"[..]).await;
    refused("a file that is there", again, &[ErrorKind::Conflict])?;
    let matching = order(Only::IfMatch(first.sha256));
    files.write_from(&matching, &mut &b"three"[..]).await?;
    let other = files.write_from(&matching, &mut &b"four"[..]).await;
    refused("a file that has changed", other, &[ErrorKind::Conflict])?;
    same("the file", &files.read("file", 100).await?, &b"three".to_vec())?;
    let large = files.read("file", 4).await;
    refused("a file that is too large", large, &[ErrorKind::TooLarge])
}

fn nothing(path: &str) -> Load {
    Step::Expect { path: path.into(), is: Before::Nothing }.into()
}

fn put(path: &str, text: &str) -> Load {
    let step = Step::File { path: path.into(), mode: 0o644, bytes: 0 };
    Load { step, content: Content::Bytes(text.as_bytes().into()) }
}

pub(crate) async fn carry_is_whole(stage: &mut Stage) -> Verdict {
    let (_guest, files) = files(stage).await?;
    let hash = files.write("old", b"one").await?.sha256;
    let replaced = || {
        let is = Before::File { sha256: hash.clone(), mode: 0o644 };
        [Step::Expect { path: "old".into(), is }.into(), put("old", "two")]
    };
    files.write("full/file", b"x").await?;
    let mut load: Vec<Load> = replaced().into();
    load.push(Step::RemoveDirectory { path: "full".into() }.into());
    let half = files.carry(load).await;
    refused("a directory that is not empty", half, &[ErrorKind::Conflict, ErrorKind::NotAFile])?;
    same("after a failure", &files.read("old", 100).await?, &b"one".to_vec())?;
    let mut load = vec![nothing("new"), nothing("moved")];
    load.extend(replaced());
    load.push(Step::Directory { path: "new".into(), mode: None }.into());
    load.push(put("new/file", "three"));
    load.push(Step::Link { path: "moved".into(), target: "new/file".into() }.into());
    files.carry(load).await?;
    same("a file", &files.read("old", 100).await?, &b"two".to_vec())?;
    same("a file through a link", &files.read("moved", 100).await?, &b"three".to_vec())
}

pub(crate) async fn carry_looks_first(stage: &mut Stage) -> Verdict {
    let (_guest, files) = files(stage).await?;
    let hash = files.write("file", b"one").await?.sha256;
    let order = Move { from: "file".into(), to: "copy".into(), replace: false };
    files.copy(&order).await?;
    let load = || {
        let is = Before::File { sha256: hash.clone(), mode: 0o644 };
        let copy = Step::Expect { path: "copy".into(), is: is.clone() };
        let file = Step::Expect { path: "file".into(), is };
        vec![copy.into(), file.into(), put("file", "two")]
    };
    files.write("copy", b"other").await?;
    let stale = files.carry(load()).await;
    refused("a copy that has changed", stale, &[ErrorKind::Conflict])?;
    same("after a failure", &files.read("file", 100).await?, &b"one".to_vec())?;
    files.write("copy", b"one").await?;
    files.carry(load()).await?;
    same("control", &files.read("file", 100).await?, &b"two".to_vec())
}

pub(crate) async fn remove_twice(stage: &mut Stage) -> Verdict {
    let (_guest, files) = files(stage).await?;
    files.write("tree/file", b"x").await?;
    let mut order = Remove { path: "tree".into(), recursive: false };
    refused("a directory with a file", files.remove(&order).await, &[ErrorKind::Conflict])?;
    order.recursive = true;
    files.remove(&order).await?;
    refused("what is gone", files.remove(&order).await, &[ErrorKind::NotFound])?;
    refused("a file that is gone", files.stat("tree/file").await, &[ErrorKind::NotFound])
}

pub(crate) async fn many_at_once(stage: &mut Stage) -> Verdict {
    let (_guest, files) = files(stage).await?;
    files.write("a", b"one").await?;
    files.write("d/b", &[0xff; 300]).await?;
    let paths = ["a", "none", "d", "../a", "d/b"].map(Into::into).to_vec();
    let order = ReadMany { paths, max_bytes: 300, total_bytes: 303 };
    let mut all = files.read_many(&order).await?.into_iter();
    let mut next = || all.next().ok_or(Stop::Failed("a file has no answer".to_owned()));
    same("the first file", &next()??.bytes, &b"one".to_vec())?;
    for (what, kind) in [
        ("a file that is missing", ErrorKind::NotFound),
        ("a directory", ErrorKind::NotAFile),
        ("a way out", ErrorKind::PathEscape),
    ] {
        refused(what, next()?, &[kind])?;
    }
    same("the last file", &next()??.bytes, &vec![0xff; 300])?;
    let small = ReadMany { max_bytes: 299, ..order.clone() };
    let mut all = files.read_many(&small).await?;
    refused("a file that is too large", all.remove(4), &[ErrorKind::TooLarge])?;
    let less = ReadMany { total_bytes: 302, ..order };
    let mut all = files.read_many(&less).await?;
    refused("a file for which there is no room", all.remove(4), &[ErrorKind::TooLarge])
}

pub(crate) async fn trees_are_copied(stage: &mut Stage) -> Verdict {
    let (guest, files) = files(stage).await?;
    files.write("t/d/file", b"bytes").await?;
    let link = Action::MakeLink { name: "t/out".to_owned(), target: "/etc".to_owned() };
    same("a link is made", &stage.run(&guest, &link).await?.ending, &Ending::Exited(0))?;
    let max_entries = MAX_COPY_ENTRIES;
    let order = CopyTree { from: "t".into(), to: "new/copy".into(), max_entries };
    let copied = files.copy_tree(&order).await?;
    same("what was copied", &(copied.files, copied.directories, copied.links), &(1, 2, 1))?;
    same("the file", &files.read("new/copy/d/file", 100).await?, &b"bytes".to_vec())?;
    same("the link", &files.stat("new/copy/out").await?.kind, &EntryKind::Link)?;
    refused("a name that is taken", files.copy_tree(&order).await, &[ErrorKind::Conflict])?;
    let inside = CopyTree { to: "t/d/t".into(), ..order.clone() };
    refused("a copy in itself", files.copy_tree(&inside).await, &[ErrorKind::Usage])?;
    let outside = CopyTree { to: "t/out/t".into(), ..order.clone() };
    refused("a copy outside", files.copy_tree(&outside).await, &[ErrorKind::PathEscape])?;
    let small = CopyTree { to: "small".into(), max_entries: 3, ..order };
    refused("more than may be", files.copy_tree(&small).await, &[ErrorKind::TooLarge])?;
    refused("what would be left", files.stat("small").await, &[ErrorKind::NotFound])
}

pub(crate) async fn names_are_found(stage: &mut Stage) -> Verdict {
    let (guest, files) = files(stage).await?;
    files.make_directory("a/b").await?;
    let output = stage.run(&guest, &Action::WriteFile("a/b/theirs.rs".to_owned())).await?;
    same("a command writes", &output.ending, &Ending::Exited(0))?;
    files.write("a/ours.rs", b"").await?;
    files.write("a/.gitignore", b"no.rs\n").await?;
    files.write("a/no.rs", b"").await?;
    let order = Glob { patterns: vec!["a/**/*.rs".to_owned()], ..Glob::default() };
    let mut found = Vec::new();
    let mut each = |one: Found| {
        found.push(one.path.to_string());
        ControlFlow::Continue(())
    };
    Search::new(files).glob(&order, &mut each).await?;
    same("the names", &found.join(" ").as_str(), &"a/b/theirs.rs a/ours.rs")
}

pub(crate) async fn lines_are_found(stage: &mut Stage) -> Verdict {
    let (_guest, files) = files(stage).await?;
    files.write("a", "one\ncaf\u{e9} two\n".as_bytes()).await?;
    files.write("b", b"x\n").await?;
    let order = Grep { patterns: vec!["\u{e9} t".to_owned()], ..Grep::default() };
    let mut found = Vec::new();
    let mut each = |hits: FileHits| {
        found.push((hits.path.to_string(), hits.lines.iter().map(|line| line.number).collect()));
        ControlFlow::Continue(())
    };
    Search::new(files).grep(&order, &mut each).await?;
    same("the lines", &found, &vec![("a".to_owned(), vec![2])])
}

async fn archived(files: &Files, path: &str) -> Result<(Vec<u8>, Exported), Stop> {
    let (order, mut bytes) = (Export { path: path.into(), max_bytes: 1 << 20 }, Vec::new());
    let exported = export(files, &order, &mut bytes).await?;
    Ok((bytes, exported))
}

fn checked(mut archive: &[u8]) -> Result<Checked, Stop> {
    Ok(Checked::read(&mut archive, nameless()?)?)
}

/// A file of the host that is gone with its descriptor.
fn nameless() -> Result<File, Stop> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("cofferdam-spool-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let failed = |error: std::io::Error| Stop::Failed(format!("{}: {error}", path.display()));
    let made = File::options().read(true).write(true).create_new(true).open(&path);
    let file = made.map_err(failed)?;
    std::fs::remove_file(&path).map_err(failed)?;
    Ok(file)
}

pub(crate) async fn archives_are_made(stage: &mut Stage) -> Verdict {
    let (guest, files) = files(stage).await?;
    files.make_directory("t/d").await?;
    let output = stage.run(&guest, &Action::WriteFile("t/d/theirs".to_owned())).await?;
    same("a command writes", &output.ending, &Ending::Exited(0))?;
    files.write("t/ours", &[0, 0xff]).await?;
    files.set_mode("t/ours", 0o751).await?;
    let link = Action::MakeLink { name: "t/out".to_owned(), target: "/etc".to_owned() };
    same("a link is made", &stage.run(&guest, &link).await?.ending, &Ending::Exited(0))?;
    let (archive, exported) = archived(&files, "t").await?;
    let counts = (exported.files, exported.directories, exported.links);
    same("what was exported", &counts, &(2, 1, 1))?;
    let order = Import { path: "new/place".into(), over: Over::Refuse };
    let imported = import(&files, &order, checked(&archive)?).await?;
    same("what was imported", &(imported.files, imported.links), &(2, 1))?;
    let read = files.read("new/place/d/theirs", 100).await?;
    same("what a command wrote", &read, &b"written".to_vec())?;
    same("the permissions", &files.stat("new/place/ours").await?.mode, &0o751)?;
    let target = files.stat("new/place/out").await?.target;
    same("the link", &target, &Some("/etc".into()))
}

pub(crate) async fn archives_are_whole(stage: &mut Stage) -> Verdict {
    let (_guest, files) = files(stage).await?;
    files.write("t/a", &[0, 0xff]).await?;
    files.write("t/d/x", b"new").await?;
    let (archive, _) = archived(&files, "t").await?;
    files.write("to/a", b"old").await?;
    let import_to = async |path: &str, over| {
        let order = Import { path: path.into(), over };
        Ok::<_, Stop>(import(&files, &order, checked(&archive)?).await)
    };
    let taken = import_to("to", Over::Refuse).await?;
    refused("a file that is there", taken, &[ErrorKind::Conflict])?;
    files.write("to/d", b"no directory").await?;
    let half = import_to("to", Over::Replace).await?;
    refused("a directory over a file", half, &[ErrorKind::Conflict])?;
    same("after a failure", &files.read("to/a", 100).await?, &b"old".to_vec())?;
    let outside = import_to("../to", Over::Replace).await?;
    refused("a way out", outside, &[ErrorKind::PathEscape])?;
    files.remove(&Remove { path: "to/d".into(), recursive: false }).await?;
    import_to("to", Over::Replace).await??;
    same("control", &files.read("to/a", 100).await?, &vec![0, 0xff])
}

pub(crate) async fn dotdot_refused(stage: &mut Stage) -> Verdict {
    let (_guest, files) = files(stage).await?;
    files.write("a/file", b"inside").await?;
    for path in ["../a/file", "a/../../a/file", "/workspace/../workspace/a/file", "/a/file"] {
        refused(path, files.read(path, 100).await, &[ErrorKind::PathEscape])?;
        refused(path, files.write(path, b"x").await, &[ErrorKind::PathEscape])?;
    }
    same("control", &files.read("a/../a/file", 100).await?, &b"inside".to_vec())
}

pub(crate) async fn symlink_out_refused(stage: &mut Stage) -> Verdict {
    let (guest, files) = files(stage).await?;
    files.write("real/file", b"inside").await?;
    let links = [("out", "/etc"), ("up", "../real"), ("in", "real"), ("own", "/workspace/real")];
    for (name, target) in links {
        let link = Action::MakeLink { name: name.to_owned(), target: target.to_owned() };
        let made = stage.run(&guest, &link).await?;
        same("a link is made", &made.ending, &Ending::Exited(0))?;
    }
    for path in ["out/passwd", "out/file", "up/file"] {
        refused(path, files.read(path, 100).await, &[ErrorKind::PathEscape])?;
        refused(path, files.write(path, b"x").await, &[ErrorKind::PathEscape])?;
    }
    for path in ["in/file", "own/file"] {
        same(path, &files.read(path, 100).await?, &b"inside".to_vec())?;
    }
    Ok(())
}

/// Waits until a watch tells something of this sort.
async fn told(watch: &mut FileWatch, is_it: impl Fn(&FileEvent) -> bool) -> Verdict {
    while !is_it(&watch.next().await?) {}
    Ok(())
}

/// Whether a file stands at a path since this.
fn is_new(path: &str) -> impl Fn(&FileEvent) -> bool {
    let wanted: ByteString = path.into();
    move |event| {
        let is_there = matches!(event, FileEvent::Created { .. } | FileEvent::Renamed { .. });
        is_there && event.paths().last() == Some(&wanted)
    }
}

async fn watch(files: &Files) -> Result<FileWatch, Stop> {
    let mut watch = files.watch(&Watch::default()).await?;
    let first = watch.next().await?;
    let stands = matches!(first, FileEvent::Ready { directories: 1.. });
    same("a watch stands", &stands, &true)?;
    Ok(watch)
}

pub(crate) async fn watch_tells_changes(stage: &mut Stage) -> Verdict {
    let (guest, files) = files(stage).await?;
    files.make_directory("d").await?;
    let mut watch = watch(&files).await?;
    files.write("ours", b"from outside").await?;
    told(&mut watch, is_new("ours")).await?;
    let output = stage.run(&guest, &Action::WriteFile("d/theirs".to_owned())).await?;
    same("a command writes", &output.ending, &Ending::Exited(0))?;
    told(&mut watch, is_new("d/theirs")).await?;
    files.set_mode("ours", 0o600).await?;
    let path = ByteString::from("ours");
    told(&mut watch, |event| {
        matches!(event, FileEvent::Attributes { path: of, directory: false } if *of == path)
    })
    .await?;
    let order = Move { from: "ours".into(), to: "d/other".into(), replace: false };
    files.rename(&order).await?;
    let renamed = FileEvent::Renamed { from: path, to: "d/other".into(), directory: false };
    told(&mut watch, |event| *event == renamed).await?;
    files.append("d/other", b"more").await?;
    let modified = FileEvent::Modified { path: "d/other".into() };
    told(&mut watch, |event| *event == modified).await?;
    files.remove(&Remove { path: "d".into(), recursive: true }).await?;
    let removed = FileEvent::Removed { path: "d".into(), directory: true };
    told(&mut watch, |event| *event == removed).await?;
    let missing = files.watch(&Watch { paths: vec!["none".into()], ..Watch::default() }).await;
    refused("a place that is not there", missing, &[ErrorKind::NotFound])
}

pub(crate) async fn watch_enters_new_directories(stage: &mut Stage) -> Verdict {
    let (guest, files) = files(stage).await?;
    let mut watch = watch(&files).await?;
    for round in 0..20 {
        let deep = format!("new{round}/a/b");
        files.make_directory(&deep).await?;
        files.write(format!("{deep}/ours"), b"x").await?;
        let theirs = format!("{deep}/theirs");
        let output = stage.run(&guest, &Action::WriteFile(theirs.clone())).await?;
        same("a command writes", &output.ending, &Ending::Exited(0))?;
        // A directory that is entered late is told in the order of its names, which is no order.
        let ours = format!("{deep}/ours");
        let wanted = [is_new(&ours), is_new(&theirs)];
        let mut are_told = [false; 2];
        while are_told != [true; 2] {
            let event = watch.next().await?;
            for (is_it, is_told) in wanted.iter().zip(&mut are_told) {
                *is_told |= is_it(&event);
            }
        }
    }
    Ok(())
}

pub(crate) async fn watch_ends_with_its_sandbox(stage: &mut Stage) -> Verdict {
    let record = stage.create(&stage.spec()).await?;
    let guest = stage.open(&record).await?;
    let mut watch = watch(&guest.files().await?).await?;
    stage.subject().backend.destroy(&record).await?;
    let end: cofferdam_core::Result<()> = async {
        loop {
            watch.next().await?;
        }
    }
    .await;
    refused("a watch of what is gone", end, &[ErrorKind::Unavailable])
}
