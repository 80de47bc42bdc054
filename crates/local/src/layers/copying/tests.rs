//! What a copy is.

use super::limits::LeftOut;
use super::*;
use crate::layers::listing::LISTING;
use crate::test_directory::TestDirectory;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Made of what lines of shell make of an empty directory.
struct Ground(TestDirectory);

impl Ground {
    fn new(name: &str, script: &str) -> Self {
        let ground = Self(TestDirectory::new(name));
        std::fs::create_dir(ground.workspace()).unwrap();
        std::fs::create_dir(ground.0.path().join("into")).unwrap();
        ground.sh(script);
        ground
    }

    fn sh(&self, script: &str) {
        let mut sh = Command::new("sh");
        sh.args(["-c", &format!("set -eu\numask 022\n{script}")]).current_dir(self.workspace());
        let output = sh.output().unwrap();
        assert!(output.status.success(), "{output:?}\n{script}");
    }

    fn workspace(&self) -> PathBuf {
        self.0.path().join("w")
    }

    fn made(&self) -> PathBuf {
        self.0.path().join("into/upper")
    }

    fn copy(&self, bounds: Bounds) -> Result<Copied> {
        let (workspace, into) = (opened(&self.workspace()), opened(&self.0.path().join("into")));
        let placeholders = &Standing::default();
        let (workspace, into) = (&workspace, &into);
        copy_within(&Job { workspace, path: b"", into, name: "upper", placeholders }, bounds)
    }
}

fn opened(path: &Path) -> OwnedFd {
    std::fs::File::open(path).unwrap().into()
}

/// Type, permissions, owner, times of modification, size and content of everything, by name.
fn exact(root: &Path) -> Vec<String> {
    let listed = Command::new("find")
        .args([".", "-printf", "%P\\0%y %m %U:%G %T@ %s %l\\0"])
        .current_dir(root)
        .output()
        .unwrap();
    let sums = Command::new("sh")
        .args(["-c", "find . -type f -exec cksum {} + | sort"])
        .current_dir(root)
        .output()
        .unwrap();
    let mut lines: Vec<String> = listed
        .stdout
        .split(|b| *b == 0)
        .collect::<Vec<_>>()
        .chunks(2)
        .map(|pair| format!("{pair:?}"))
        .collect();
    lines.sort();
    lines.push(String::from_utf8_lossy(&sums.stdout).into_owned());
    lines
}

const TREE: &str = "
    mkdir -p d/e closed; printf a >a; printf x >d/e/x; ln -s ../a d/l; ln -s nowhere d/dangling
    printf linked >d/one; ln d/one two; mkfifo pipe; chmod 600 pipe
    printf s >script; chmod 755 script; printf r >read-only; chmod 444 read-only
    printf n >\"$(printf 'caf\\351\\n')\"; : >empty
    truncate -s 50M hole; printf end >>hole
    touch -d '2001-02-03 04:05:06.789' a d/e; touch -h -d 2002-01-01 d/l
    chmod 1777 d/e; chmod 555 closed";

#[test]
fn a_copied_workspace_is_exact() {
    let ground = Ground::new("copy-exact", TREE);
    ground.sh("perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un(\"sock\"))'");
    let before = exact(&ground.workspace());
    let copied = ground.copy(Bounds::DEFAULT).unwrap();
    assert_eq!(exact(&ground.made()), before);
    assert_eq!(copied.left_out, LeftOut::default());
    let of = |name: &str| std::fs::symlink_metadata(ground.made().join(name)).unwrap();
    assert_eq!(of("two").ino(), of("d/one").ino(), "names of one file are one there");
    assert!(of("sock").file_type().is_socket() && of("pipe").file_type().is_fifo());
    assert!(of("hole").blocks() * 512 < 1 << 20, "holes stay holes");
    assert_eq!(of("closed").permissions().mode() & 0o777, 0o555);
    // The control: what is compared notices a difference.
    ground.sh("touch a");
    assert_ne!(exact(&ground.made()), exact(&ground.workspace()));
}

#[test]
fn a_copy_leaves_no_trace_and_gives_nobody_rights() {
    let ground = Ground::new("copy-traces", "mkdir d; printf s >d/s; chmod 6755 d/s; chmod 2755 d");
    // Long ago, so that the kernel would take note of any reading.
    ground.sh("touch -a -d 2001-01-01 d/s d .");
    let times = || {
        ["", "d", "d/s"].map(|name| {
            let found = std::fs::symlink_metadata(ground.workspace().join(name)).unwrap();
            (found.atime(), found.mtime_nsec(), found.ctime_nsec())
        })
    };
    let before = times();
    drop(ground.copy(Bounds::DEFAULT).unwrap());
    assert_eq!(times(), before);
    let mode = |name: &str| {
        std::fs::metadata(ground.made().join(name)).unwrap().permissions().mode() & 0o7777
    };
    assert_eq!((mode("d/s"), mode("d")), (0o755, 0o2755));
}

#[test]
fn what_cannot_be_copied_is_left_out_and_named() {
    let is_root = rustix::process::geteuid().is_root();
    let ground =
        Ground::new("copy-left-out", "mkdir -p d/closed; printf s >d/closed/s; printf a >a");
    match is_root {
        true => ground.sh("mknod d/device c 1 3"),
        false => ground.sh("printf s >d/device; chmod 0 d/device d/closed"),
    }
    let copied = ground.copy(Bounds::DEFAULT).unwrap();
    let named = copied.left_out.first.join(" | ");
    assert!(named.contains("d/device: "), "{named}");
    assert!(!ground.made().join("d/device").exists() && ground.made().join("a").exists());
    let listed = copied.listing.get(b"d/device").unwrap();
    assert_eq!(listed.kind, None);
    if !is_root {
        assert!(named.contains("d/closed: it cannot be read"), "{named}");
        assert!(!ground.made().join("d/closed").exists());
        ground.sh("chmod 700 d/closed");
    }
}

#[test]
fn a_copy_has_bounds_and_each_is_named() {
    let script = "mkdir d; printf 12345 >a; printf 12345 >d/b; printf 12345 >d/c; truncate -s 1G h";
    let ground = Ground::new("copy-bounds", script);
    let refused = |bounds: Bounds, what: &str| {
        let error = ground.copy(bounds).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge);
        assert!(error.message.contains(what), "{error}");
        assert!(error.hint.is_some());
        std::fs::remove_dir_all(ground.made()).unwrap();
    };
    // a, d, d/b, d/c, h
    refused(Bounds { entries: 4, ..Bounds::DEFAULT }, "more than 4 entries");
    let copied = ground.copy(Bounds { entries: 5, bytes: 15 }).unwrap();
    assert_eq!(copied.entries, 5, "the control");
    let is_plain = copied.tier == LayerTier::Copy;
    drop(copied);
    std::fs::remove_dir_all(ground.made()).unwrap();
    if is_plain {
        refused(Bounds { bytes: 14, ..Bounds::DEFAULT }, "more than 14 bytes");
    }
    ground.sh("i=0; while [ $i -lt 200 ]; do mkdir d$i; cd d$i; i=$((i+1)); done");
    refused(Bounds::DEFAULT, "128 levels");
}

#[test]
fn a_landing_of_somebody_else_is_not_copied() {
    let ground =
        Ground::new("copy-stage", "mkdir .cofferdam-landing-1 d; touch d/.cofferdam-landing-1");
    let copied = ground.copy(Bounds::DEFAULT).unwrap();
    assert!(!ground.made().join(".cofferdam-landing-1").exists());
    assert!(
        ground.made().join("d/.cofferdam-landing-1").exists(),
        "the control: elsewhere it is a name"
    );
    assert!(copied.listing.get(b".cofferdam-landing-1").is_none());
}

/// Somebody exchanges a directory for a link out of the workspace, and a file for a pipe, as fast as it
/// goes, while the workspace is copied again and again.
#[test]
fn a_workspace_that_is_exchanged_meanwhile_leads_nothing_in() {
    let ground = Ground::new(
        "copy-swap",
        "mkdir -p d ../outside; printf mine >d/x; printf secret >../outside/x; ln -s ../outside link
         printf f >file; mkfifo pipe",
    );
    let over = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    let (mut seen, swaps) = std::thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            let at = |name: &str| ground.workspace().join(name);
            let swap = |one: &str, other: &str| {
                let (cwd, flags) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
                rustix::fs::renameat_with(cwd, at(one), cwd, at(other), flags).unwrap();
            };
            let mut swaps = 0;
            while !over.load(relaxed) {
                swap("d", "link");
                swap("file", "pipe");
                swaps += 1;
            }
            swaps
        });
        let mut seen = Vec::new();
        for _ in 0..60 {
            drop(ground.copy(Bounds::DEFAULT).unwrap());
            for name in ["d/x", "link/x"] {
                let path = ground.made().join(name);
                let is_own = !path.parent().unwrap().is_symlink();
                seen.extend(std::fs::read(&path).ok().filter(|_| is_own));
            }
            std::fs::remove_dir_all(ground.made()).unwrap();
        }
        over.store(true, relaxed);
        (seen, attacker.join().unwrap())
    });
    seen.sort();
    seen.dedup();
    assert!(swaps > 60, "the attack had its chances: {swaps}");
    assert_eq!(seen, [b"mine".to_vec()], "never what the link leads to");
}

/// A file that is written all the time is of one moment in the copy, or is told.
#[test]
fn a_file_that_changes_meanwhile_is_of_one_moment_or_told() {
    let ground = Ground::new("copy-torn", "head -c 1000000 /dev/zero >torn");
    let path = ground.workspace().join("torn");
    let over = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            for byte in (0..=u8::MAX).cycle() {
                std::os::unix::fs::FileExt::write_all_at(&file, &vec![byte; 1_000_000], 0).unwrap();
                if over.load(relaxed) {
                    break;
                }
            }
        });
        for _ in 0..20 {
            let copied = ground.copy(Bounds::DEFAULT).unwrap();
            let content = std::fs::read(ground.made().join("torn")).unwrap();
            let is_whole = content.iter().all(|byte| *byte == content[0]);
            let is_told = copied.left_out.first.iter().any(|what| what.starts_with("torn: "));
            assert!(
                content.len() == 1_000_000
                    && (is_whole || is_told || copied.tier == LayerTier::Reflink)
            );
            std::fs::remove_dir_all(ground.made()).unwrap();
        }
        over.store(true, relaxed);
    });
    // The control: once it stands still nothing is told.
    assert_eq!(ground.copy(Bounds::DEFAULT).unwrap().left_out, LeftOut::default());
}

#[test]
fn a_whole_copy_has_its_listing_beside_it() {
    let ground = Ground::new("copy-listing", "mkdir d; printf a >d/a");
    let (workspace, into) = (opened(&ground.workspace()), opened(&ground.0.path().join("into")));
    let copied = copy_whole((&workspace, &Standing::default()), &into, "upper").unwrap();
    assert!(ground.0.path().join("into").join(LISTING).is_file());
    assert_eq!(crate::layers::listing::Listing::read(&into).unwrap(), copied.listing);
    let made = std::fs::metadata(ground.made().join("d/a")).unwrap();
    assert_eq!(copied.listing.get(b"d/a").unwrap().copy.inode, made.ino());
}
