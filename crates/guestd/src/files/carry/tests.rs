//! Carries on a real file system, with something happening between every two steps.

use super::super::failure::Trouble;
use super::super::talk::Talk;
use super::super::walk::Root;
use super::fault::{self, Fault};
use super::leftover::MAX_JOURNAL_BYTES;
use super::{carry, recover};
use cofferdam_wire::files::{
    Answer, Before, Carry, CarryEnd, Failure, MAX_CARRIED_BYTES, MAX_CARRY_DEPTH,
    MAX_HELD_DIRECTORIES, MAX_STEPS, Step, Why,
};
use cofferdam_wire::frame::{self, Kind};
use cofferdam_wire::message::Files;
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a test looks at: kind and mode, inode, bytes or target.
type Seen = BTreeMap<PathBuf, (u32, u64, Vec<u8>)>;

/// A workspace with a little of everything. Gone in the end.
struct Workspace(PathBuf);

static COUNT: AtomicU64 = AtomicU64::new(0);

impl Workspace {
    fn new() -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cofferdam-carry-{}-{count}", std::process::id());
        // In memory where that is possible: a thousand workspaces are made here.
        let memory = PathBuf::from("/dev/shm");
        let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let workspace = Self(place.join(name));
        fs::create_dir_all(workspace.0.join("dir/sub")).unwrap();
        for (name, text) in FILES {
            fs::write(workspace.0.join(name), text).unwrap();
        }
        fs::set_permissions(workspace.0.join("b"), fs::Permissions::from_mode(0o750)).unwrap();
        symlink("a", workspace.0.join("link")).unwrap();
        workspace
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn root(&self) -> Root {
        let root = self.0.as_os_str().into();
        Root::open(&Files { root, names: Vec::new() }).unwrap()
    }

    fn seen(&self) -> Seen {
        let mut seen = Seen::new();
        look(&self.0, &self.0, &mut seen);
        seen
    }

    /// Carries the steps out, with what follows each.
    fn carry(&self, steps: &[(Step, &[u8])]) -> Result<Answer, Trouble> {
        carry(&self.root(), &named("test"), &mut talk(steps, Kind::End))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const FILES: [(&str, &str); 6] = [
    ("a", "one\n"),
    ("b", "two\n"),
    ("c", "three\n"),
    ("dir/d", "four\n"),
    ("dir/sub/e", "five\n"),
    ("f", "six\n"),
];

fn look(root: &Path, place: &Path, seen: &mut Seen) {
    for entry in fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        let stat = fs::symlink_metadata(&path).unwrap();
        let bytes = if stat.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else if stat.is_file() {
            fs::read(&path).unwrap()
        } else {
            look(root, &path, seen);
            Vec::new()
        };
        let name = path.strip_prefix(root).unwrap().to_owned();
        seen.insert(name, (stat.mode(), stat.ino(), bytes));
    }
}

fn named(name: &str) -> Carry {
    Carry { name: name.to_owned() }
}

/// The worker's end of a connection on which the request has been read and its steps come.
fn talk(steps: &[(Step, &[u8])], last: Kind) -> Talk {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut out = Vec::new();
    let request = cofferdam_wire::files::Request::Carry(named("test"));
    let text = serde_json::to_vec(&request).unwrap();
    frame::encode(1, Kind::Message, &text, &mut out).unwrap();
    let sent: Vec<u8> = steps
        .iter()
        .flat_map(|(step, bytes)| [step.encode().unwrap().as_slice(), bytes].concat())
        .collect();
    // In pieces that end anywhere.
    let size = if sent.len() < 100_000 { 7 } else { 65_537 };
    for piece in sent.chunks(size) {
        frame::encode(1, Kind::Data, piece, &mut out).unwrap();
    }
    if last == Kind::End {
        frame::encode(1, Kind::End, b"", &mut out).unwrap();
    }
    std::thread::spawn(move || theirs.write_all(&out).map(|()| theirs));
    let mut talk = Talk::new(ours.into());
    talk.next_request().unwrap();
    talk
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file(path: &str, text: &str, mode: u32) -> (Step, &'static [u8]) {
    let is = Before::File { sha256: sha256(text), mode };
    (Step::Expect { path: path.into(), is }, b"")
}

fn nothing(path: &str) -> (Step, &'static [u8]) {
    (Step::Expect { path: path.into(), is: Before::Nothing }, b"")
}

fn put<'b>(path: &str, bytes: &'b [u8]) -> (Step, &'b [u8]) {
    (Step::File { path: path.into(), mode: 0o644, bytes: bytes.len() as u64 }, bytes)
}

/// One of everything: a file replaced, one gone, one moved, a link replaced, one made, a directory that
/// makes room for a file, a directory made with what is in it.
fn all() -> Vec<(Step, &'static [u8])> {
    let link = Before::Link { target: "a".into() };
    vec![
        file("a", "one\n", 0o644),
        file("b", "two\n", 0o750),
        file("c", "three\n", 0o644),
        file("f", "six\n", 0o644),
        file("dir/sub/e", "five\n", 0o644),
        file("dir/d", "four\n", 0o644),
        nothing("g"),
        nothing("moved"),
        nothing("new"),
        (Step::Expect { path: "link".into(), is: link }, b""),
        (Step::Rename { from: "c".into(), to: "moved".into() }, b""),
        (Step::Remove { path: "f".into() }, b""),
        (Step::Remove { path: "dir/sub/e".into() }, b""),
        (Step::RemoveDirectory { path: "dir/sub".into() }, b""),
        put("dir/sub", b"a file now\n"),
        put("a", b"one and more\n"),
        (Step::File { path: "b".into(), mode: 0o700, bytes: 0 }, b""),
        (Step::Link { path: "link".into(), target: "b".into() }, b""),
        (Step::Link { path: "g".into(), target: "nowhere".into() }, b""),
        (Step::Directory { path: "new".into(), mode: Some(0o750) }, b""),
        (Step::Directory { path: "new/deep".into(), mode: None }, b""),
        put("new/deep/h", b"deep\n"),
        put("new/i", b"shallow\n"),
        (Step::Rename { from: "dir/d".into(), to: "new/deep/d".into() }, b""),
    ]
}

fn check_done(workspace: &Workspace) {
    let text = |name: &str| fs::read_to_string(workspace.path(name)).unwrap();
    let mode = |name: &str| fs::metadata(workspace.path(name)).unwrap().mode() & 0o7777;
    assert_eq!((text("a").as_str(), text("b").as_str()), ("one and more\n", ""));
    assert_eq!((text("moved").as_str(), text("dir/sub").as_str()), ("three\n", "a file now\n"));
    assert_eq!((text("new/deep/h").as_str(), text("new/i").as_str()), ("deep\n", "shallow\n"));
    assert_eq!((mode("a"), mode("b"), mode("new")), (0o644, 0o700, 0o750));
    assert_eq!(fs::read_link(workspace.path("link")).unwrap(), Path::new("b"));
    assert_eq!(fs::read_link(workspace.path("g")).unwrap(), Path::new("nowhere"));
    let names: Vec<PathBuf> = workspace.seen().into_keys().collect();
    let expected = ["a", "b", "dir", "dir/sub", "g", "link", "moved", "new", "new/deep"];
    let expected: Vec<PathBuf> =
        expected.iter().chain(&["new/deep/d", "new/deep/h", "new/i"]).map(PathBuf::from).collect();
    assert_eq!(names, expected);
}

fn moments() -> usize {
    let workspace = Workspace::new();
    fault::follow(|_| None);
    assert_eq!(workspace.carry(&all()).unwrap(), Answer::Carried { steps: 24 });
    check_done(&workspace);
    fault::clear()
}

#[test]
fn whatever_fails_between_two_steps_all_is_as_it_was() {
    let moments = moments();
    assert!(moments > 40, "{moments}");
    for at in 1..=moments {
        for fault in [Fault::Refused(Errno::NOSPC), Fault::Refused(Errno::ACCESS), Fault::Gone] {
            let workspace = Workspace::new();
            let before = workspace.seen();
            fault::follow(move |moment| (moment == at).then_some(fault));
            let error = workspace.carry(&all()).unwrap_err();
            fault::clear();
            assert_eq!(workspace.seen(), before, "{fault:?} at {at} of {moments}: {error:?}");
            // The control: it goes when nothing fails.
            workspace.carry(&all()).unwrap();
            check_done(&workspace);
        }
    }
}

#[test]
fn what_is_done_is_told_as_that_where_what_was_there_cannot_be_removed() {
    let workspace = Workspace::new();
    fault::set_stays(true);
    let Trouble::Failed(failure) = workspace.carry(&all()).unwrap_err() else { panic!() };
    assert!(failure.detail.starts_with("all of it is done"), "{failure:?}");
    assert_eq!((failure.why, failure.errno), (Why::Io, Errno::IO.raw_os_error()));
    let left = workspace.path(".cofferdam-gone-test");
    assert!(left.exists());
    assert!(recover(&workspace.root(), &named("test")).is_err(), "it is not told as removed");
    fault::set_stays(false);
    let end = recover(&workspace.root(), &named("test")).unwrap();
    assert_eq!((end, left.exists()), (Answer::Recovered(CarryEnd::NoTrace), false));
    check_done(&workspace);
}

#[test]
fn a_worker_that_is_killed_between_two_steps_is_put_right_by_the_next() {
    let moments = moments();
    for at in 1..=moments {
        let workspace = Workspace::new();
        let before = workspace.seen();
        fault::follow(move |moment| (moment == at).then_some(Fault::Killed));
        assert!(matches!(workspace.carry(&all()).unwrap_err(), Trouble::Gone));
        fault::clear();
        assert_ne!(workspace.seen(), before, "at {at}: nothing was left, so nothing is shown");
        let end = recover(&workspace.root(), &named("test")).unwrap();
        assert_eq!(end, Answer::Recovered(CarryEnd::Undone));
        assert_eq!(workspace.seen(), before, "at {at} of {moments}");
        let end = recover(&workspace.root(), &named("test")).unwrap();
        assert_eq!(end, Answer::Recovered(CarryEnd::NoTrace));
        // Killed once more, and met by another carry instead.
        fault::follow(move |moment| (moment == at).then_some(Fault::Killed));
        workspace.carry(&all()).unwrap_err();
        fault::clear();
        let other = named("other");
        let mut steps = talk(&all(), Kind::End);
        assert!(carry(&workspace.root(), &other, &mut steps).is_ok(), "at {at}");
        check_done(&workspace);
    }
}

#[test]
fn who_writes_between_two_steps_is_met_before_or_stays() {
    let moments = moments();
    for (name, at) in
        ["a", "b", "f", "link"].into_iter().flat_map(|n| (1..=moments).map(move |at| (n, at)))
    {
        let workspace = Workspace::new();
        let before = workspace.seen();
        let path = workspace.path(name);
        let beside = workspace.path("beside");
        fault::follow(move |moment| {
            if moment == at {
                // As editors do.
                fs::write(&beside, "theirs\n").unwrap();
                fs::rename(&beside, &path).unwrap();
            }
            None
        });
        let outcome = workspace.carry(&all());
        fault::clear();
        let mut seen = workspace.seen();
        let theirs = seen.get(Path::new(name)).map(|(_, _, bytes)| bytes.clone());
        assert_eq!(theirs.as_deref(), Some(&b"theirs\n"[..]), "{name} at {at}");
        match outcome {
            Err(error) => {
                let Trouble::Failed(Failure { why: Why::Changed, .. }) = &error else {
                    panic!("{error:?}")
                };
                let own = before[Path::new(name)].clone();
                seen.insert(name.into(), own);
                assert_eq!(seen, before, "{name} at {at}");
            }
            // They came after it.
            Ok(_) => assert_eq!(fs::read(workspace.path("new/i")).unwrap(), b"shallow\n"),
        }
    }
}

#[test]
fn a_directory_that_is_swapped_with_a_link_between_two_steps_leads_nowhere() {
    let moments = moments();
    for at in 1..=moments {
        let workspace = Workspace::new();
        let outside = Workspace::new();
        let before = outside.seen();
        let (dir, away, out) = (workspace.path("dir"), workspace.path("away"), outside.path("dir"));
        fault::follow(move |moment| {
            if moment == at {
                fs::rename(&dir, &away).unwrap();
                symlink(&out, &dir).unwrap();
            }
            None
        });
        let _ = workspace.carry(&all());
        fault::clear();
        assert_eq!(outside.seen(), before, "at {at} of {moments}");
    }
}

#[test]
fn what_is_not_as_expected_is_refused_before_anything_changes() {
    let dead = Before::File { sha256: sha256("other"), mode: 0o644 };
    let link = Before::Link { target: "b".into() };
    let wrong = [
        vec![nothing("a"), put("a", b"x")],
        vec![file("a", "one\n", 0o600), put("a", b"x")],
        vec![(Step::Expect { path: "a".into(), is: dead }, &b""[..]), put("b", b"x")],
        vec![(Step::Expect { path: "link".into(), is: link }, b"")],
        vec![file("link", "one\n", 0o644)],
        vec![file("dir", "", 0o755)],
        vec![file("none", "", 0o644)],
        vec![(Step::RemoveDirectory { path: "dir".into() }, b"")],
    ];
    for steps in wrong {
        let workspace = Workspace::new();
        let before = workspace.seen();
        let Trouble::Failed(failure) = workspace.carry(&steps).unwrap_err() else { panic!() };
        assert!(matches!(failure.why, Why::Changed | Why::BadRequest), "{steps:?}: {failure:?}");
        assert_eq!(workspace.seen(), before, "{steps:?}");
    }
}

#[test]
fn paths_that_are_not_plain_or_unsaid_or_behind_links_are_refused() {
    for path in ["", "/a", "../a", "x/../a", "a//b", "./a", "a/"] {
        let workspace = Workspace::new();
        let Trouble::Failed(failure) =
            workspace.carry(&[nothing(path), put(path, b"x")]).unwrap_err()
        else {
            panic!()
        };
        assert_eq!(failure.why, Why::BadRequest, "{path:?}");
    }
    let workspace = Workspace::new();
    symlink("dir", workspace.path("way")).unwrap();
    let before = workspace.seen();
    for steps in [vec![put("a", b"x")], vec![nothing("way/new"), put("way/new", b"x")]] {
        assert!(matches!(workspace.carry(&steps).unwrap_err(), Trouble::Failed(_)));
        assert_eq!(workspace.seen(), before, "{steps:?}");
    }
}

#[test]
fn a_host_that_goes_away_in_the_middle_leaves_nothing() {
    let workspace = Workspace::new();
    let before = workspace.seen();
    let mut steps = all();
    steps.pop();
    let gone = carry(&workspace.root(), &named("test"), &mut talk(&steps, Kind::Data));
    assert!(matches!(gone.unwrap_err(), Trouble::Gone));
    assert_eq!(workspace.seen(), before);
}

#[test]
fn what_looks_like_a_leftover_stops_nobody() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path(".cofferdam-carry-a")).unwrap();
    fs::write(workspace.path(".cofferdam-carry-a/journal"), "nonsense").unwrap();
    fs::write(workspace.path(".cofferdam-carry-b"), "a file").unwrap();
    symlink("/", workspace.path(".cofferdam-carry-c")).unwrap();
    workspace.carry(&all()).unwrap();
    let text = fs::read(workspace.path(".cofferdam-carry-a/journal")).unwrap();
    assert_eq!(text, b"nonsense");
    assert!(recover(&workspace.root(), &named("a")).is_err());
    assert!(recover(&workspace.root(), &named("../x")).is_err());
}

#[test]
fn steps_bytes_and_directories_have_limits() {
    let refused = |workspace: &Workspace, steps: &[(Step, &[u8])]| {
        let before = workspace.seen();
        let Trouble::Failed(failure) = workspace.carry(steps).unwrap_err() else { panic!() };
        assert_eq!(workspace.seen(), before);
        failure.why
    };
    let workspace = Workspace::new();
    let mut steps = vec![nothing("none"); MAX_STEPS];
    assert!(workspace.carry(&steps).is_ok());
    steps.push(nothing("none"));
    assert_eq!(refused(&workspace, &steps), Why::TooLarge);
    let bytes = MAX_CARRIED_BYTES + 1;
    let large = Step::File { path: "none".into(), mode: 0o644, bytes };
    assert_eq!(refused(&workspace, &[nothing("none"), (large, b"")]), Why::TooLarge);
    let way = |names: usize| vec!["d"; names].join("/");
    let deep = |names: usize| {
        let directory =
            |names| (Step::Directory { path: way(names).as_str().into(), mode: None }, &b""[..]);
        [vec![nothing("d")], (1..=names).map(directory).collect()].concat()
    };
    assert_eq!(refused(&workspace, &deep(MAX_CARRY_DEPTH + 1)), Why::BadRequest);
    // What fails in the end leaves nothing, however deep.
    let steps = [deep(MAX_CARRY_DEPTH), vec![nothing("a")]].concat();
    assert_eq!(refused(&workspace, &steps), Why::Changed);
    let mut steps = Vec::new();
    for at in 0..=MAX_HELD_DIRECTORIES {
        fs::create_dir(workspace.path(&format!("{at}"))).unwrap();
        steps.push(nothing(&format!("{at}/none")));
    }
    assert_eq!(refused(&workspace, &steps), Why::TooLarge);
    steps.pop();
    assert!(workspace.carry(&steps).is_ok());
}

#[test]
fn a_journal_has_a_largest_size() {
    let workspace = Workspace::new();
    let stage = workspace.path(".cofferdam-carry-test");
    fs::create_dir(&stage).unwrap();
    let journal = |blanks: usize| " ".repeat(blanks) + "[]";
    fs::write(stage.join("journal"), journal(MAX_JOURNAL_BYTES)).unwrap();
    assert!(recover(&workspace.root(), &named("test")).is_err());
    fs::write(stage.join("journal"), journal(100)).unwrap();
    let end = recover(&workspace.root(), &named("test")).unwrap();
    assert_eq!(end, Answer::Recovered(CarryEnd::Undone));
    assert!(!stage.exists());
}

#[test]
fn what_is_half_removed_tells_nothing_of_its_carry_and_is_removed_by_the_next() {
    let workspace = Workspace::new();
    let before = workspace.seen();
    let stage = workspace.path(".cofferdam-carry-test");
    fs::create_dir(&stage).unwrap();
    fs::write(stage.join("1"), "what was there").unwrap();
    fs::write(stage.join("done"), "[]").unwrap();
    let end = recover(&workspace.root(), &named("test")).unwrap();
    assert_eq!(end, Answer::Recovered(CarryEnd::Done));
    assert_eq!(workspace.seen(), before);
    let gone = workspace.path(".cofferdam-gone-test");
    fs::create_dir(&gone).unwrap();
    fs::write(gone.join("1"), "what was there").unwrap();
    let end = recover(&workspace.root(), &named("test")).unwrap();
    assert_eq!(end, Answer::Recovered(CarryEnd::NoTrace));
    workspace.carry(&all()).unwrap();
    check_done(&workspace);
}

#[test]
fn what_a_killed_worker_was_removing_goes_by_its_name_and_with_the_next_carry() {
    for at in ["by its name", "with the next"] {
        let workspace = Workspace::new();
        fault::follow(|_| None);
        workspace.carry(&all()).unwrap();
        let moments = fault::clear();
        drop(workspace);
        // Killed where all is done, then between the renaming and the removal.
        let workspace = Workspace::new();
        fault::follow(move |moment| (moment == moments).then_some(Fault::Killed));
        workspace.carry(&all()).unwrap_err();
        fault::clear();
        let gone = workspace.path(".cofferdam-gone-test");
        fs::rename(workspace.path(".cofferdam-carry-test"), &gone).unwrap();
        assert!(gone.is_dir(), "control");
        match at {
            "by its name" => {
                let end = recover(&workspace.root(), &named("test")).unwrap();
                assert_eq!(end, Answer::Recovered(CarryEnd::NoTrace));
            }
            _ => {
                let mut steps = talk(&[nothing("none")], Kind::End);
                assert!(carry(&workspace.root(), &named("other"), &mut steps).is_ok());
            }
        }
        assert!(!gone.exists(), "{at}");
    }
}

#[test]
fn a_directory_of_a_command_with_such_a_name_stays() {
    let workspace = Workspace::new();
    let own = [".cofferdam-gone-x", ".cofferdam-carry-y", ".cofferdam-gone-z"];
    for name in own {
        fs::create_dir(workspace.path(name)).unwrap();
        fs::write(workspace.path(name).join("theirs"), "theirs").unwrap();
    }
    // A copy of a stage has another number than the one that it tells.
    fs::write(workspace.path(own[2]).join("stage"), "1").unwrap();
    workspace.carry(&all()).unwrap();
    for name in own {
        assert_eq!(fs::read(workspace.path(name).join("theirs")).unwrap(), b"theirs", "{name}");
    }
}
