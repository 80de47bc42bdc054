//! What a program does with the files of a sandbox.
#![expect(clippy::unwrap_used, reason = "the functions beside the tests are of tests too")]

use cofferdam::files::{Append, Entry, EntryKind, List, Move, Only, Read, Remove, Watch, Write};
use cofferdam::{ErrorKind, Files, Sandbox, own_backend};
use std::path::PathBuf;
use std::sync::Arc;

/// A workspace and a state directory. Gone in the end.
struct Ground(PathBuf);

impl Ground {
    fn new(name: &str) -> Self {
        let place = std::env::temp_dir().join(format!("cofferdam-{name}-{}", std::process::id()));
        std::fs::create_dir_all(place.join("workspace/.git/hooks")).unwrap();
        std::fs::write(place.join("workspace/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        Self(place)
    }

    fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn stand(ground: &Ground) -> (Sandbox, Files) {
    let backend = Arc::new(own_backend(ground.0.join("state")));
    let builder = Sandbox::builder().workspace(ground.workspace()).backend(backend);
    let sandbox = builder.create().await.unwrap();
    let files = sandbox.files().await.unwrap();
    (sandbox, files)
}

fn listing(depth: u32, limit: u32) -> List {
    List { path: "t".into(), depth, after: None, limit }
}

fn paths(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| entry.path.to_string()).collect()
}

#[tokio::test]
async fn what_is_written_is_read_by_all() {
    let ground = Ground::new("files-written");
    let (sandbox, files) = stand(&ground).await;
    let written = files.write("a/b/new.txt", b"first\n").await.unwrap();
    assert_eq!((written.bytes, written.created), (6, true));
    assert_eq!(std::fs::read(ground.workspace().join("a/b/new.txt")).unwrap(), b"first\n");
    let output = sandbox.exec(["cat", "a/b/new.txt"]).await.unwrap();
    assert_eq!(output.stdout, b"first\n");
    assert!(!files.append("/workspace/a/b/new.txt", b"second\n").await.unwrap().created);
    let mut middle = Vec::new();
    let order = Read {
        path: "a/b/new.txt".into(),
        offset: 3,
        length: Some(5),
        hash: true,
        max_bytes: None,
    };
    let read = files.read_to(&order, &mut middle).await.unwrap();
    assert_eq!((middle.as_slice(), read.size, read.bytes), (&b"st\nse"[..], 13, 5));
    let order = Write {
        path: "a/b/new.txt".into(),
        only: Only::IfMatch(read.sha256.unwrap()),
        mode: Some(0o600),
    };
    files.write_from(&order, &mut &b"third"[..]).await.unwrap();
    let again = files.write_from(&order, &mut &b"fourth"[..]).await.unwrap_err();
    assert_eq!(again.kind, ErrorKind::Conflict);
    assert_eq!(files.read("a/b/new.txt", 100).await.unwrap(), b"third");
    assert_eq!(files.stat("a/b/new.txt").await.unwrap().mode, 0o600);
    let above = files.read("a/b/new.txt", 4).await.unwrap_err();
    assert_eq!(above.kind, ErrorKind::TooLarge);
    sandbox.destroy().await.unwrap();
}

#[tokio::test]
async fn names_are_changed_listed_and_removed() {
    let ground = Ground::new("files-names");
    let (sandbox, files) = stand(&ground).await;
    assert!(files.make_directory("t/d/e").await.unwrap());
    assert!(!files.make_directory("t/d/e").await.unwrap());
    files.write("t/d/e/one", b"1").await.unwrap();
    let order = Move { from: "t/d/e/one".into(), to: "t/d/two".into(), replace: false };
    files.rename(&order).await.unwrap();
    assert_eq!(files.rename(&order).await.unwrap_err().kind, ErrorKind::NotFound);
    let copy = Move { from: "t/d/two".into(), to: "t/three".into(), replace: false };
    assert_eq!(files.copy(&copy).await.unwrap().bytes, 1);
    assert_eq!(files.copy(&copy).await.unwrap_err().kind, ErrorKind::Conflict);
    files.copy(&Move { replace: true, ..copy }).await.unwrap();
    assert_eq!(files.set_mode("t/three", 0o755).await.unwrap().mode, 0o755);
    assert_eq!(files.set_mode("t/three", 0o4755).await.unwrap_err().kind, ErrorKind::Usage);
    let all = files.list(&listing(9, 100)).await.unwrap();
    assert_eq!(paths(&all.entries), ["d", "d/e", "d/two", "three"]);
    assert_eq!((all.entries[2].kind, all.entries[2].size), (EntryKind::File, 1));
    let mut order = listing(9, 1);
    let mut seen = Vec::new();
    loop {
        let page = files.list(&order).await.unwrap();
        seen.extend(paths(&page.entries));
        order.after = page.next;
        if order.after.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["d", "d/e", "d/two", "three"]);
    let mut order = Remove { path: "t/d".into(), recursive: false };
    assert_eq!(files.remove(&order).await.unwrap_err().kind, ErrorKind::Conflict);
    order.recursive = true;
    files.remove(&order).await.unwrap();
    assert_eq!(files.remove(&order).await.unwrap_err().kind, ErrorKind::NotFound);
    let append = Append { path: "log".into(), mode: Some(0o640) };
    assert!(files.append_from(&append, &mut &b"x"[..]).await.unwrap().created);
    assert_eq!(files.stat("log").await.unwrap().mode, 0o640);
    sandbox.destroy().await.unwrap();
}

#[tokio::test]
async fn large_files_pass_in_pieces() {
    let ground = Ground::new("files-large");
    let (sandbox, files) = stand(&ground).await;
    let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let written = files.write("t/large", &bytes).await.unwrap();
    assert_eq!(written.bytes, 12_000_000);
    assert!(files.read("t/large", 12_000_000).await.unwrap() == bytes);
    // A failure that comes before the end of what is sent is heard, and nothing else suffers.
    let order = Write { path: "t/large".into(), only: Only::IfMissing, mode: None };
    let refused = files.write_from(&order, &mut bytes.as_slice()).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert_eq!(files.stat("t/large").await.unwrap().size, 12_000_000);
    let listed = files.list(&listing(1, 10)).await.unwrap();
    assert_eq!(paths(&listed.entries), ["large"]);
    sandbox.destroy().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_call_at_once_all_are_served() {
    let ground = Ground::new("files-crowd");
    let (sandbox, files) = stand(&ground).await;
    let _watch = files.watch(&Watch::default()).await.unwrap();
    for round in 0..3 {
        let calls = (0..64).map(|number| {
            let (files, path) = (files.clone(), format!("crowd/{round}-{number}"));
            tokio::spawn(async move {
                files.write(&path, b"x").await?;
                files.read(&path, 10).await
            })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap().unwrap(), b"x");
        }
    }
    // Whoever asks for the files anew has no more than all have together.
    let mut asked = Vec::new();
    for _ in 0..20 {
        asked.push(sandbox.files().await.unwrap());
    }
    for files in &asked {
        files.read("crowd/0-0", 10).await.unwrap();
    }
    sandbox.destroy().await.unwrap();
}
