//! Attacks on the files of a sandbox, from the workspace and from commands inside.
//!
//! What must not be reached lies in the sandbox's own `/tmp`: a worker that left the workspace could
//! read and write it, for it has the rights of a command. So only the way to it is tested.
#![expect(clippy::unwrap_used, reason = "the functions beside the tests are of tests too")]

use cofferdam::files::{
    Append, CopyTree, EntryKind, List, MAX_COPY_ENTRIES, Move, Read, ReadMany, Remove, Write,
};
use cofferdam::search::{FileHits, Found, Glob, Grep, Reason, Scope, Search};
use cofferdam::{Ending, ErrorKind, Files, Result, Sandbox, own_backend};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long names are swapped under each sort of request.
const RACE: Duration = Duration::from_millis(400);

/// Every sort of request that names a path, as something done to `PATH/secret`.
const SORTS: [&str; 17] = [
    "read",
    "write",
    "append",
    "stat",
    "list",
    "mkdir",
    "move from",
    "move to",
    "copy from",
    "copy to",
    "remove",
    "chmod",
    "copy tree from",
    "copy tree to",
    "read many",
    "glob",
    "grep",
];

fn copy(from: &str, to: &str) -> CopyTree {
    CopyTree { from: from.into(), to: to.into(), max_entries: MAX_COPY_ENTRIES }
}

struct Place {
    path: PathBuf,
    /// Ended before its workspace is removed.
    sandbox: Option<Sandbox>,
    files: Files,
}

impl Place {
    async fn new(name: &str) -> Self {
        let mark = format!("cofferdam-attacked-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(mark);
        std::fs::create_dir_all(path.join("workspace")).unwrap();
        let backend = Arc::new(own_backend(path.join("state")));
        let builder = Sandbox::builder().workspace(path.join("workspace")).backend(backend);
        let sandbox = builder.create().await.unwrap();
        let files = sandbox.files().await.unwrap();
        let place = Self { path, sandbox: Some(sandbox), files };
        place
            .inside("mkdir /tmp/out; echo outside >/tmp/out/secret; chmod 640 /tmp/out/secret")
            .await;
        place
    }

    fn sandbox(&self) -> &Sandbox {
        self.sandbox.as_ref().unwrap()
    }

    /// Runs a line of shell in the workspace.
    async fn inside(&self, line: &str) -> String {
        let output = self.sandbox().exec(["sh", "-c", line]).await.unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.ending, Ending::Exited(0), "{line}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Fails if anything outside is not as it was made.
    async fn outside_is_unchanged(&self) {
        let seen =
            self.inside("cat /tmp/out/secret; stat -c %a /tmp/out/secret; ls /tmp/out").await;
        assert_eq!(seen, "outside\n640\nsecret\n");
    }

    /// Does one sort of request to what lies in a directory. Answers what it read, if it did.
    async fn try_one(&self, sort: &str, directory: &str) -> Result<Option<Vec<u8>>> {
        let path = format!("{directory}/secret");
        let files = &self.files;
        let order = |from: &str, to: &str| Move { from: from.into(), to: to.into(), replace: true };
        match sort {
            "read" => return files.read(&path, 100).await.map(Some),
            "write" => files.write(&path, b"written").await.map(drop)?,
            "append" => files.append(&path, b"added").await.map(drop)?,
            "stat" => {
                let mode = files.stat(&path).await?.mode;
                return Ok((mode == 0o640).then(|| b"outside\n".to_vec()));
            }
            "list" => {
                let path = directory.into();
                let page = files.list(&List { path, depth: 1, after: None, limit: 9 }).await?;
                let is_out = page.entries.iter().any(|entry| entry.mode == 0o640);
                return Ok(is_out.then(|| b"outside\n".to_vec()));
            }
            "mkdir" => files.make_directory(format!("{directory}/made")).await.map(drop)?,
            "move from" => files.rename(&order(&path, "moved")).await?,
            "move to" => {
                files.write("mine", b"mine").await?;
                files.rename(&order("mine", &path)).await?;
            }
            "copy from" => {
                files.copy(&order(&path, "copied")).await?;
                return files.read("copied", 100).await.map(Some);
            }
            "copy to" => {
                files.write("mine", b"mine").await?;
                files.copy(&order("mine", &path)).await.map(drop)?;
            }
            "remove" => {
                files.remove(&Remove { path: path.as_str().into(), recursive: true }).await?
            }
            "copy tree from" => {
                let to = "copied-tree";
                let _ = files.remove(&Remove { path: to.into(), recursive: true }).await;
                files.copy_tree(&copy(directory, to)).await?;
                return match files.read(format!("{to}/secret"), 100).await {
                    // The link itself was copied.
                    Err(error) if error.kind == ErrorKind::PathEscape => Err(error),
                    read => read.map(Some),
                };
            }
            "copy tree to" => {
                files.write("tree/mine", b"mine").await?;
                let to = format!("{directory}/made");
                files.copy_tree(&copy("tree", &to)).await.map(drop)?;
                files.remove(&Remove { path: to.as_str().into(), recursive: true }).await?;
            }
            "read many" | "glob" | "grep" => return self.search_one(sort, directory).await,
            _ => files.set_mode(&path, 0o777).await.map(drop)?,
        }
        Ok(None)
    }

    /// The same for what looks at many files.
    async fn search_one(&self, sort: &str, directory: &str) -> Result<Option<Vec<u8>>> {
        let scope = Scope { paths: vec![directory.into()], ..Scope::default() };
        let search = Search::new(self.files.clone());
        let mut seen = None;
        if sort == "read many" {
            let paths = vec![format!("{directory}/secret").into()];
            let order = ReadMany { paths, max_bytes: 100, total_bytes: 100 };
            let one = self.files.read_many(&order).await?.remove(0);
            return one.map(|content| Some(content.bytes));
        } else if sort == "glob" {
            let order = Glob { patterns: vec!["*".to_owned()], scope, ..Glob::default() };
            let mut each = |found: Found| {
                if found.entry.mode == 0o640 {
                    seen = Some(b"outside\n".to_vec());
                }
                ControlFlow::Continue(())
            };
            search.glob(&order, &mut each).await?;
        } else {
            let order = Grep { patterns: vec!["side".to_owned()], scope, ..Grep::default() };
            let mut each = |hits: FileHits| {
                let first = hits.lines.first().map(|line| [line.bytes.as_slice(), b"\n"].concat());
                seen = first.or(seen.take());
                ControlFlow::Continue(())
            };
            search.grep(&order, &mut each).await?;
        }
        Ok(seen)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // By a runtime of its own, and to the end: the test's may be about to end.
        if let Some(sandbox) = self.sandbox.take() {
            let end = std::thread::spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(sandbox.destroy()).map(drop)
            });
            let _ = end.join();
        }
        // Directories that checks closed keep an ordinary user out.
        let open =
            std::process::Command::new("chmod").args(["-R", "u+rwX"]).arg(&self.path).output();
        let _ = open.and_then(|_| std::fs::remove_dir_all(&self.path));
    }
}

#[tokio::test]
async fn no_path_and_no_link_leads_out() {
    let place = Place::new("static").await;
    place
        .inside(
            "ln -s /tmp/out abs; ln -s ../tmp/out up; ln -s ../../../../tmp/out far
            ln -s /proc/self/root/tmp/out magic; ln -s /proc/self/cwd/../tmp/out cwd
            mkdir sub; ln -s ../../tmp/out sub/up; ln -s up chain",
        )
        .await;
    let ways = [
        "abs",
        "up",
        "far",
        "magic",
        "cwd",
        "sub/up",
        "chain",
        "../tmp/out",
        "sub/../../tmp/out",
        "/tmp/out",
        "/workspace/../tmp/out",
        "/workspace/abs",
    ];
    for sort in SORTS {
        for way in ways {
            let error = place.try_one(sort, way).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::PathEscape, "{sort} {way}: {error:?}");
        }
    }
    place.outside_is_unchanged().await;
    // The control: links that stay inside are followed, whichever way they say it.
    place
        .inside("mkdir real; echo in >real/secret; ln -s real rel; ln -s /workspace/real own")
        .await;
    place.inside("ln -s \"$PWD/real\" named; ln -s ../real/secret sub/leaf").await;
    for way in ["real", "rel", "own", "named", "sub/../rel", "/workspace/own"] {
        let read = place.try_one("read", way).await.unwrap();
        assert_eq!(read.as_deref(), Some(&b"in\n"[..]), "{way}");
    }
    assert_eq!(place.files.read("sub/leaf", 9).await.unwrap(), b"in\n");
    place.files.write("rel/secret", b"new").await.unwrap();
    assert_eq!(place.inside("cat real/secret").await, "new");
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_by_its_name_and_at_once() {
    let place = Place::new("kinds").await;
    place
        .inside("mkfifo fifo; mkdir dir; ln -s nowhere dangling; ln -s loop loop; echo x >file")
        .await;
    let bind = "import socket; socket.socket(socket.AF_UNIX).bind('sock')";
    place.inside(&format!("python3 -c \"{bind}\"")).await;
    for (name, word) in [("fifo", "pipe"), ("dir", "directory"), ("sock", "socket")] {
        let (read, written) =
            tokio::join!(place.files.read(name, 9), place.files.write(name, b"x"));
        for error in [read.unwrap_err(), written.unwrap_err()] {
            assert_eq!(error.kind, ErrorKind::NotAFile, "{name}: {error:?}");
            assert!(error.message.contains(word), "{error:?}");
        }
        let error = place.files.append(name, b"x").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotAFile, "{error:?}");
        let copy = Move { from: name.into(), to: "copy".into(), replace: false };
        assert_eq!(place.files.copy(&copy).await.unwrap_err().kind, ErrorKind::NotAFile);
    }
    for name in ["dangling", "loop"] {
        let kinds = [ErrorKind::NotAFile, ErrorKind::NotFound];
        assert!(kinds.contains(&place.files.read(name, 9).await.unwrap_err().kind), "{name}");
        // A link itself is never written through.
        let error = place.files.write(name, b"x").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotAFile, "{name}: {error:?}");
    }
    assert_eq!(place.files.read("nowhere", 9).await.unwrap_err().kind, ErrorKind::NotFound);
    // The control.
    assert_eq!(place.files.read("file", 9).await.unwrap(), b"x\n");
}

#[tokio::test]
async fn a_hard_link_to_the_outside_is_never_written_through() {
    let place = Place::new("hard").await;
    let outside = place.path.join("shared");
    std::fs::write(&outside, "outside").unwrap();
    let own = std::fs::metadata(&outside).unwrap().permissions();
    std::fs::hard_link(&outside, place.path.join("workspace/linked")).unwrap();
    assert_eq!(place.files.stat("linked").await.unwrap().links, 2);
    let denied = |error: cofferdam::Error| assert_eq!(error.kind, ErrorKind::Denied, "{error:?}");
    denied(place.files.append("linked", b"x").await.unwrap_err());
    denied(place.files.set_mode("linked", 0o777).await.unwrap_err());
    place.files.write("linked", b"mine").await.unwrap();
    assert_eq!(std::fs::read(&outside).unwrap(), b"outside");
    assert_eq!(std::fs::metadata(&outside).unwrap().permissions(), own);
    assert_eq!(place.files.read("linked", 9).await.unwrap(), b"mine");
    // The control: with one name left, it is an ordinary file.
    place.files.append("linked", b"!").await.unwrap();
    assert_eq!(place.files.read("linked", 9).await.unwrap(), b"mine!");
}

#[tokio::test]
async fn names_are_bytes_and_sizes_are_bounded() {
    let place = Place::new("names").await;
    for name in [&b"a\nb"[..], b"\xff\xfe", b"-rf", b"  ", b"\x1b[2J", "\u{202e}x".as_bytes()] {
        let path = [b"names/", name].concat();
        place.files.write(OsStr::from_bytes(&path), name).await.unwrap();
        assert_eq!(place.files.read(OsStr::from_bytes(&path), 99).await.unwrap(), name);
    }
    let order = List { path: "names".into(), depth: 1, after: None, limit: 100 };
    let page = place.files.list(&order).await.unwrap();
    assert_eq!(page.entries.len(), 6);
    assert!(page.entries.iter().any(|entry| entry.path.as_bytes() == b"\xff\xfe"));
    place.inside("truncate -s 1T sparse").await;
    assert_eq!(place.files.read("sparse", 1 << 20).await.unwrap_err().kind, ErrorKind::TooLarge);
    let mut tail = Vec::new();
    let order = Read { path: "sparse".into(), offset: (1 << 40) - 3, ..Read::default() };
    assert_eq!(place.files.read_to(&order, &mut tail).await.unwrap().size, 1 << 40);
    assert_eq!(tail, [0; 3]);
    let long = "x".repeat(300);
    assert_eq!(place.files.write(&long, b"").await.unwrap_err().kind, ErrorKind::Usage);
    let deep = "d/".repeat(200);
    assert_eq!(place.files.make_directory(&deep).await.unwrap_err().kind, ErrorKind::Usage);
    let past = "x/".repeat(4000);
    assert_eq!(place.files.stat(&past).await.unwrap_err().kind, ErrorKind::Usage);
    let nul = place.files.stat(OsStr::from_bytes(b"a\0b")).await.unwrap_err();
    assert_eq!(nul.kind, ErrorKind::Usage);
}

/// Exchanges the directory `swap` and a link to the outside as fast as it can.
const SWAPPER: &str = "
import ctypes, os
libc, here, exchange = ctypes.CDLL(None), -100, 2
while not os.path.exists('stop'):
    for _ in range(100):
        libc.renameat2(here, b'swap', here, b'link', exchange)
";

/// What a careless program sees meanwhile.
const CARELESS: &str = "
import sys
for _ in range(200000):
    try:
        if open('swap/secret').read() == 'outside\\n': sys.exit(0)
    except OSError: pass
sys.exit(1)
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_names_under_a_request_leads_nowhere() {
    let place = Place::new("race").await;
    place.inside("mkdir swap; echo inside >swap/secret; ln -s /tmp/out link").await;
    let place = Arc::new(place);
    let (swaps, runs) = (Arc::clone(&place), Arc::clone(&place));
    let swapper =
        tokio::spawn(
            async move { swaps.sandbox().exec(["python3", "-c", SWAPPER]).await.unwrap() },
        );
    // The control: the same way by its name alone leads out.
    let careless = runs.sandbox().exec(["python3", "-c", CARELESS]).await.unwrap();
    assert_eq!(careless.ending, Ending::Exited(0), "the swapper swaps nothing");
    let (mut tries, mut done, mut escapes) = (0, 0, 0);
    for sort in SORTS {
        let end = Instant::now() + RACE;
        while Instant::now() < end {
            tries += 1;
            match place.try_one(sort, "swap").await {
                Ok(Some(read)) => {
                    assert_ne!(read, b"outside\n", "{sort} read the outside");
                    done += 1;
                }
                Ok(None) => done += 1,
                Err(error) if error.kind == ErrorKind::PathEscape => escapes += 1,
                Err(error) => {
                    let fair = [ErrorKind::NotFound, ErrorKind::NotAFile, ErrorKind::Conflict];
                    assert!(fair.contains(&error.kind), "{sort}: {error:?}");
                }
            }
        }
        place.outside_is_unchanged().await;
    }
    place.files.write("stop", b"").await.unwrap();
    swapper.await.unwrap();
    // Both sides of the race were met, so that the absence of an escape says something.
    assert!(done > 0 && escapes > 0, "{tries} tries: {done} done, {escapes} refused as escapes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_killed_leaves_the_old_file_and_is_replaced() {
    let place = Place::new("killed").await;
    place.files.write("file", b"old").await.unwrap();
    // So little of it waits here that the most of it is with the worker once it was taken.
    let (reader, writer) = tokio::io::duplex(1 << 10);
    let files = place.files.clone();
    let writing = tokio::spawn(async move {
        let order = Write { path: "file".into(), ..Write::default() };
        let mut reader = reader;
        files.write_from(&order, &mut reader).await
    });
    let mut writer = writer;
    tokio::io::AsyncWriteExt::write_all(&mut writer, &vec![1; 6_000_000]).await.unwrap();
    // What is not whole has no name.
    assert_eq!(place.inside("ls -A | grep '^[.]cofferdam-' || true").await, "");
    // Everything but process 1 and the shell itself.
    let killed = place.sandbox().exec(["sh", "-c", "kill -9 -1; :"]).await.unwrap();
    assert_eq!(killed.ending, Ending::Exited(0));
    drop(writer);
    assert_eq!(writing.await.unwrap().unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(place.inside("ls -A | grep '^[.]cofferdam-' || true").await, "");
    assert_eq!(place.files.read("file", 9).await.unwrap(), b"old");
    let order = Append { path: "file".into(), mode: None };
    place.files.append_from(&order, &mut &b"er"[..]).await.unwrap();
    assert_eq!(place.files.read("file", 9).await.unwrap(), b"older");
}

#[tokio::test]
async fn a_search_passes_over_what_is_no_file_and_leads_nowhere() {
    let place = Place::new("searched").await;
    place
        .inside(
            "mkfifo fifo; ln -s /tmp/out out; ln -s . loop; mkdir deep; cd deep
            ln -s ../../tmp/out up; ln /tmp/out/secret hard 2>/dev/null || cp /tmp/out/secret hard
            truncate -s 1T huge; echo outside >ok; echo '*.ok' >.gitignore; echo outside >x.ok",
        )
        .await;
    let bind = "import socket; socket.socket(socket.AF_UNIX).bind('sock')";
    place.inside(&format!("python3 -c \"{bind}\"")).await;
    let mut found = Vec::new();
    let order = Grep { patterns: vec!["outside".to_owned()], ..Grep::default() };
    let mut each = |hits: FileHits| {
        found.push(hits.path.to_string());
        ControlFlow::Continue(())
    };
    let search = Search::new(place.files.clone());
    let searched = search.grep(&order, &mut each).await.unwrap();
    assert_eq!(found, ["deep/hard", "deep/ok"]);
    let left: Vec<_> = searched.left_out.iter().map(|left| (left.reason, left.count)).collect();
    assert_eq!(left, [(Reason::TooLarge, 1)]);
    for name in ["fifo", "sock", "out/secret", "deep/up/secret", "deep/huge", "none"] {
        let paths = vec![name.into(), "deep/ok".into()];
        let order = ReadMany { paths, max_bytes: 100, total_bytes: 100 };
        let read = place.files.read_many(&order).await.unwrap();
        assert!(read[0].is_err(), "{name}");
        // The control: the file behind it comes.
        assert_eq!(read[1].as_ref().unwrap().bytes, b"outside\n", "{name}");
    }
}

#[tokio::test]
async fn a_tree_is_copied_whole_or_not_at_all() {
    let place = Place::new("trees").await;
    place
        .inside(
            "mkdir -p t/d t/closed; echo in >t/d/file; ln -s /tmp/out t/out; ln -s . t/loop
            mkfifo t/d/fifo; chmod 755 t/d/file; ln t/d/file t/hard; truncate -s 1T t/huge
            echo x >t/closed/x; chmod 555 t/closed; printf y >\"t/$(printf 'a\\nb')\"",
        )
        .await;
    let copied = place.files.copy_tree(&copy("t", "new/t")).await.unwrap();
    assert_eq!((copied.files, copied.directories, copied.links), (5, 3, 2));
    assert_eq!(copied.skipped.len(), 1);
    assert_eq!(
        (&copied.skipped[0].path, copied.skipped[0].kind),
        (&"d/fifo".into(), EntryKind::Fifo)
    );
    let seen = "cd new/t; cat d/file; readlink out; stat -c '%a %h' hard closed; stat -c %s huge
        [ $(stat -c %b huge) -lt 100 ]; cat \"$(printf 'a\\nb')\"; ls -A d; ls -A .. | wc -l";
    let seen = place.inside(seen).await;
    assert_eq!(seen, "in\n/tmp/out\n755 1\n555 2\n1099511627776\nyfile\n1\n");
    // What cannot be read as a whole leaves nothing, not even of what is closed.
    place.inside("mkdir z; mv t/closed z/a; echo x >z/b; chmod 0 z/b").await;
    let failed = place.files.copy_tree(&copy("z", "y")).await;
    if place.inside("cat z/b 2>/dev/null || echo denied").await == "denied\n" {
        let error = failed.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{error:?}");
        assert!(error.message.contains("\"b\""), "{error:?}");
        assert_eq!(place.inside("ls -A | grep -e '^.cofferdam-' -e '^y' || true").await, "");
    }
    for (from, kind) in [("t/d/fifo", ErrorKind::NotAFile), ("none", ErrorKind::NotFound)] {
        assert_eq!(place.files.copy_tree(&copy(from, "x")).await.unwrap_err().kind, kind);
    }
    let deep = "d/".repeat(100);
    place.inside(&format!("mkdir -p deep/{deep}; cd deep/{deep}; mkdir -p {deep}")).await;
    assert_eq!(place.files.copy_tree(&copy("deep", "x")).await.unwrap_err().kind, ErrorKind::Usage);
    assert_eq!(place.files.stat("x").await.unwrap_err().kind, ErrorKind::NotFound);
    // The control: a link is copied as one, and not what it leads to.
    place.files.copy_tree(&copy("t/out", "x")).await.unwrap();
    assert_eq!(place.files.stat("x").await.unwrap().kind, EntryKind::Link);
    place.outside_is_unchanged().await;
}

#[tokio::test]
async fn a_copy_has_an_end_and_holes_stay_holes() {
    let place = Place::new("copied").await;
    place.inside("mkdir many; cd many; seq 1 999 | xargs touch").await;
    let order = |max_entries| CopyTree { max_entries, ..copy("many", "x") };
    let error = place.files.copy_tree(&order(999)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge, "{error:?}");
    assert_eq!(place.inside("ls -A | grep -e '^.cofferdam-' -e '^x' || true").await, "");
    // The control: as many as that are copied.
    assert_eq!(place.files.copy_tree(&order(1000)).await.unwrap().files, 999);
    place.inside("mkdir h; echo a >h/f; truncate -s 1T h/f; printf z >>h/f").await;
    let copied = place.files.copy_tree(&copy("h", "i")).await.unwrap();
    assert_eq!(copied.bytes, (1 << 40) + 1);
    place
        .inside("head -c 2 i/f | grep a; tail -c 1 i/f | grep z; [ $(stat -c %b i/f) -lt 100 ]")
        .await;
}
