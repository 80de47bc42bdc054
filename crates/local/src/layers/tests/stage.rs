//! A workspace, a layer that a real overlay makes of commands, or a copy that they change, and what the
//! commands saw.

use crate::cow::base::{Base, LayerOwner, Xattrs};
use crate::layers::{Layer, copy_whole, open_workspace};
use crate::placeholders::Standing;
use crate::state::StateDirectory;
use crate::test_directory::TestDirectory;
use cofferdam_core::{ApplyOrder, ApplyReport, Change, GuestPath, LayerNote, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// What stands under a path: type and permissions, and content.
pub(super) type Tree = BTreeMap<String, (String, Vec<u8>)>;

pub(super) struct Stage {
    directory: TestDirectory,
    way: Way,
    made_ns: u64,
}

/// What makes a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// An overlay with marks that everybody may set.
    User,
    /// One with marks of the host's root.
    Trusted,
    /// A copy.
    Copy,
}

impl Way {
    fn xattrs(self) -> Xattrs {
        match self {
            Self::User | Self::Copy => Xattrs::User,
            Self::Trusted => Xattrs::Trusted,
        }
    }

    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::User | Self::Copy => "user",
            Self::Trusted => "trusted",
        }
    }
}

/// All ways that can be tried here.
pub(super) fn ways() -> Vec<Way> {
    overlays().into_iter().chain([Way::Copy]).collect()
}

/// Both ways of overlays that can be tried here: a host's root has both.
pub(super) fn overlays() -> Vec<Way> {
    let all = if rustix::process::geteuid().is_root() {
        vec![Way::User, Way::Trusted]
    } else {
        vec![Way::User]
    };
    let can = |way: &Way| {
        let name = format!("layers-probe-{way:?}");
        let stage = Stage::new(&name, *way, "");
        let output = stage.try_inside("true");
        let works = output.status.success();
        if !works {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            eprintln!("skipped: overlay: {way:?}: {}", why.trim());
        }
        works
    };
    all.into_iter().filter(can).collect()
}

pub(super) fn path(text: impl AsRef<[u8]>) -> GuestPath {
    GuestPath::new(text).unwrap()
}

impl Stage {
    /// A workspace as these lines of shell make it, and an empty layer.
    pub(super) fn new(name: &str, way: Way, workspace: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = TestDirectory::new(&format!("layers-{name}-{way:?}-{count}"));
        for folder in ["workspace", "cow", "mount", "saw", "outside"] {
            std::fs::create_dir(directory.path().join(folder)).unwrap();
        }
        let mut stage = Self { directory, way, made_ns: 0 };
        stage.outside(workspace);
        stage.made_ns = stage.change_ns();
        let copied = (way == Way::Copy).then(|| stage.copy());
        if copied.is_none() {
            for folder in ["cow/upper", "cow/work"] {
                std::fs::create_dir(stage.directory.path().join(folder)).unwrap();
            }
        }
        let found = std::fs::metadata(stage.workspace()).unwrap();
        Base {
            workspace: stage.workspace().to_str().unwrap().to_owned(),
            device: found.dev(),
            inode: found.ino(),
            made_ns: stage.made_ns,
            xattrs: way.xattrs(),
            owner: LayerOwner { uid: found.uid(), gid: found.gid() },
            copied,
        }
        .write(std::fs::File::open(stage.cow()).unwrap())
        .unwrap();
        stage.wait_for_the_clock();
        stage
    }

    fn copy(&self) -> LayerNote {
        let found = std::fs::metadata(self.workspace()).unwrap();
        let workspace = self.workspace();
        let workspace = workspace.to_str().unwrap();
        let workspace = open_workspace(workspace, found.dev(), found.ino()).unwrap();
        let cow = std::fs::File::open(self.cow()).unwrap().into();
        let copied = copy_whole((&workspace, &Standing::default()), &cow, "upper").unwrap();
        assert!(copied.left_out.first.is_empty());
        LayerNote { tier: copied.tier, why: None, left_out: Vec::new(), left_out_more: 0 }
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    pub(super) fn cow(&self) -> PathBuf {
        self.directory.path().join("cow")
    }

    /// A directory that nothing may touch.
    pub(super) fn elsewhere(&self) -> PathBuf {
        self.directory.path().join("outside")
    }

    pub(super) fn state(&self) -> StateDirectory {
        StateDirectory::open(&self.directory.path().join("state")).unwrap()
    }

    /// The stages of landings that lie beside the records, and in the workspace.
    pub(super) fn stages(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let stages = |directory: PathBuf| {
            let entries = std::fs::read_dir(directory).into_iter().flatten();
            let is_stage = |path: &PathBuf| {
                path.file_name().unwrap().as_bytes().starts_with(b".cofferdam-landing-")
            };
            entries.map(|entry| entry.unwrap().path()).filter(is_stage).collect()
        };
        (stages(self.directory.path().join("state/owed")), stages(self.workspace()))
    }

    pub(super) fn assert_no_stage_is_left(&self) {
        assert_eq!(self.stages(), (Vec::new(), Vec::new()));
    }

    /// The time of change that a file gets now. The kernel is finer with it than with its clock.
    fn change_ns(&self) -> u64 {
        let probe = self.directory.path().join("probe");
        std::fs::write(&probe, "").unwrap();
        let found = std::fs::metadata(&probe).unwrap();
        found.ctime() as u64 * 1_000_000_000 + found.ctime_nsec() as u64
    }

    /// Waits until what changes now is later than the layer.
    fn wait_for_the_clock(&self) {
        while self.change_ns() <= self.made_ns {
            std::thread::yield_now();
        }
    }

    /// Waits until what changes now is later than all before, also by the clock of layers.
    pub(super) fn wait_for_a_later_time(&self) {
        let now_ns = self.change_ns();
        while crate::cow::base::now_ns() <= now_ns {
            std::thread::yield_now();
        }
        while self.change_ns() <= now_ns {
            std::thread::yield_now();
        }
    }

    /// Runs lines of shell in the workspace itself.
    pub(super) fn outside(&self, script: &str) {
        let script = format!("set -eu\numask 022\n{script}");
        let output =
            Command::new("sh").args(["-c", &script]).current_dir(self.workspace()).output();
        assert_success(&output.unwrap(), &script);
    }

    /// Runs lines of shell in the layer, and keeps what they saw at the end.
    pub(super) fn inside(&self, script: &str) {
        let output = self.try_inside(script);
        assert_success(&output, script);
    }

    pub(super) fn try_inside(&self, script: &str) -> Output {
        let (unshare, options) = match self.way {
            Way::User => ("-Urm", ",userxattr"),
            Way::Trusted => ("-m", ""),
            Way::Copy => return self.try_in_copy(script),
        };
        let script = format!(
            "set -eu\numask 022\n\
             mount -t overlay overlay -o lowerdir=workspace,upperdir=cow/upper,workdir=cow/work{options} mount\n\
             rm -rf saw; mkdir saw\n\
             (cd mount; {script}\n)\ncp -a mount/. saw/\n"
        );
        Command::new("unshare")
            .args([unshare, "sh", "-c", &script])
            .current_dir(self.directory.path())
            .output()
            .unwrap()
    }

    fn try_in_copy(&self, script: &str) -> Output {
        let script = format!(
            "set -eu\numask 022\nrm -rf saw; mkdir saw\n\
             (cd cow/upper; {script}\n)\ncp -a cow/upper/. saw/\n"
        );
        Command::new("sh")
            .args(["-c", &script])
            .current_dir(self.directory.path())
            .output()
            .unwrap()
    }

    pub(super) fn layer(&self) -> Layer {
        Layer::open(&self.cow()).unwrap().unwrap()
    }

    pub(super) fn changes(&self) -> Vec<Change> {
        self.layer().changes(&[]).unwrap()
    }

    /// Every change as a letter, its path and its standing where it does not land.
    pub(super) fn shown(&self) -> Vec<String> {
        self.changes().iter().map(shown).collect()
    }

    pub(super) fn try_apply(&self, paths: &[&str]) -> Result<ApplyReport> {
        let paths = paths.iter().map(path).collect();
        let order = ApplyOrder { paths, ..ApplyOrder::default() };
        self.layer().apply(&order, &self.state())
    }

    pub(super) fn apply(&self, paths: &[&str]) -> ApplyReport {
        self.try_apply(paths).unwrap()
    }

    pub(super) fn real(&self) -> Tree {
        tree(&self.workspace())
    }

    /// The workspace is what the last lines of shell saw, and names of the layer that are one file are
    /// one there.
    pub(super) fn assert_landed(&self) {
        assert_eq!(self.real(), self.saw());
        let (real, upper) = (self.workspace(), self.cow().join("upper"));
        assert_eq!(one_file(&real, &upper), one_file(&upper, &real));
    }

    /// What the last lines of shell saw.
    pub(super) fn saw(&self) -> Tree {
        tree(&self.directory.path().join("saw"))
    }
}

pub(super) fn shown(change: &Change) -> String {
    let letter = &change.kind.name()[..1];
    let standing = change.standing.name();
    let why = if standing == "lands" { String::new() } else { format!(" ({standing})") };
    format!("{letter} {}{why}", change.path)
}

fn assert_success(output: &Output, script: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}\n{script}");
}

pub(super) fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    for path in below(root) {
        let found = std::fs::symlink_metadata(&path).unwrap();
        let content = if found.is_file() {
            std::fs::read(&path).unwrap()
        } else if found.is_symlink() {
            std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
        } else {
            Vec::new()
        };
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        tree.insert(name, (format!("{:o}", found.permissions().mode()), content));
    }
    tree
}

/// Everything below a directory.
fn below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if std::fs::symlink_metadata(&path).unwrap().is_dir() {
            found.extend(below(&path));
        }
        found.push(path);
    }
    found
}

/// Sets of names that are one file, of those that both trees have as files.
fn one_file(root: &Path, other: &Path) -> BTreeSet<Vec<PathBuf>> {
    let mut groups: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
    for path in below(root) {
        let found = std::fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(root).unwrap();
        let there = std::fs::symlink_metadata(other.join(name));
        if found.is_file() && there.is_ok_and(|there| there.is_file()) {
            groups.entry(found.ino()).or_default().push(name.to_owned());
        }
    }
    let mut groups: Vec<Vec<PathBuf>> = groups.into_values().collect();
    groups.iter_mut().for_each(|group| group.sort());
    groups.into_iter().collect()
}

impl Stage {
    /// Why the layer cannot be opened, if it cannot.
    pub(super) fn try_open(&self) -> Option<cofferdam_core::ErrorKind> {
        Layer::open(&self.cow()).err().map(|error| error.kind)
    }
}
