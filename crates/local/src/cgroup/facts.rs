//! Where this process can make groups, and with which controllers.

use super::layout::{Layout, Place};
use crate::kernel_text::kernel_text;
use cofferdam_core::Result;
use rustix::fs::{Access, AtFlags, CWD};
use std::path::{Path, PathBuf};

/// Where this process can make groups. Facts of one process: a child elsewhere has its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupFacts {
    /// Where version 2 groups can be made, with or without controllers.
    pub unified: Option<Unified>,
    /// What holds a limit of memory.
    pub memory: Where,
    /// What holds a limit of processes.
    pub pids: Where,
    /// What holds a limit of processor time.
    pub cpu: Where,
    /// Where version 1 groups can be made that freeze.
    pub freezer: Option<PathBuf>,
    /// Whether version 1 has the controllers here, so that no delegation of version 2 helps.
    pub is_v1: bool,
}

/// What holds a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// A version 2 group below [`CgroupFacts::unified`].
    Unified,
    /// A version 1 group below this directory.
    V1(PathBuf),
    /// Nothing, for this reason.
    Nowhere(String),
}

/// Where version 2 groups can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unified {
    /// The directory that they are made in.
    pub parent: PathBuf,
    /// The controllers that they have.
    pub controllers: Controllers,
    /// What has to be done first.
    pub first: First,
    /// What the groups between ours and the parent allow. A group that is made above them would
    /// escape it, so it is made part of its limits.
    pub ceiling: Ceiling,
}

/// What has to be done before a group can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// Nothing.
    Nothing,
    /// Our process has to move into a leaf of its own, because a group with processes can give no
    /// controllers to its children.
    StepAside,
}

/// A set of controllers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Controllers {
    /// Memory.
    pub memory: bool,
    /// Processes.
    pub pids: bool,
    /// Processor time.
    pub cpu: bool,
    /// Freezing, in version 1; version 2 always can.
    pub freezer: bool,
}

/// The lowest limits of some groups; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ceiling {
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes.
    pub pids: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u64>,
}

impl CgroupFacts {
    /// What is true of this process now.
    pub fn read() -> Result<Self> {
        Ok(Self::of(&Layout::read()?, &is_writable))
    }

    /// The same, looked at no further than limits need.
    ///
    /// Where version 1 has the controllers, a group of the version 2 hierarchy, or one of the freezer,
    /// could only freeze, which a start has no time for: then [`super::Cgroups::freeze`] stops each
    /// process by a signal.
    pub fn read_for_limits() -> Result<Self> {
        let mut layout = Layout::read()?;
        if layout.memory.is_some() && layout.pids.is_some() {
            layout.unified = None;
            layout.freezer = None;
        }
        Ok(Self::of(&layout, &is_writable))
    }

    /// What follows from a layout, the files in it, and which of its directories can be written.
    pub fn of(layout: &Layout, writable: &dyn Fn(&Path) -> bool) -> Self {
        let unified = layout.unified.as_ref().and_then(|place| find_parent(place, writable));
        let of = unified.as_ref().map(|unified| unified.controllers).unwrap_or_default();
        let find = |controller: &str, place: Option<&Place>, in_unified: bool| match place {
            Some(place) if writable(&place.own) => Where::V1(place.own.clone()),
            Some(place) => Where::Nowhere(format!(
                "the {controller} controller's group {} cannot be written by this user",
                place.own.display()
            )),
            None if in_unified => Where::Unified,
            None => Where::Nowhere(why_not(controller, layout.unified.as_ref())),
        };
        Self {
            memory: find("memory", layout.memory.as_ref(), of.memory),
            pids: find("pids", layout.pids.as_ref(), of.pids),
            cpu: find("cpu", layout.cpu.as_ref(), of.cpu),
            freezer: layout.freezer.as_ref().map(|p| p.own.clone()).filter(|own| writable(own)),
            is_v1: layout.memory.is_some() || layout.pids.is_some(),
            unified,
        }
    }

    /// What to do about a limit that nothing holds.
    pub fn remedy(&self) -> &'static str {
        match self.unified {
            _ if self.is_v1 => {
                "Start the program as root, or boot with cgroup version 2 \
                 (systemd.unified_cgroup_hierarchy=1)."
            }
            Some(_) => {
                "Enable the controller for the group's children, or start the program alone in a \
                 delegated scope: systemd-run --user --scope -p Delegate=yes cofferdam …"
            }
            None => {
                "Start the program in a delegated scope: \
                 systemd-run --user --scope -p Delegate=yes cofferdam …"
            }
        }
    }
}

impl Controllers {
    /// The set that a file like `cgroup.controllers` names.
    pub(super) fn parse(text: &str) -> Self {
        let has = |name: &str| text.split_whitespace().any(|word| word == name);
        Self { memory: has("memory"), pids: has("pids"), cpu: has("cpu"), freezer: false }
    }

    fn hold_a_fork_bomb(self) -> bool {
        self.memory && self.pids
    }

    fn any(self) -> bool {
        self.memory || self.pids || self.cpu
    }
}

impl Ceiling {
    fn lower(self, group: &Path) -> Self {
        let number = |name: &str| first_word(&read(group, name)).parse().ok();
        Self {
            memory_bytes: lowest(self.memory_bytes, number("memory.max")),
            pids: lowest(self.pids, number("pids.max")),
            cpu_millis: lowest(self.cpu_millis, cpu_millis(&read(group, "cpu.max"))),
        }
    }
}

/// Whether it looks as if only version 2 were here. A guess, which decides no more than what is done
/// first.
pub(crate) fn are_groups_unified() -> bool {
    Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
}

/// The lower of a limit and a ceiling.
pub(super) fn lowest(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// `max 100000` or `150000 100000`: quota and period in microseconds.
fn cpu_millis(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace().map(str::parse::<u64>);
    let (quota, period) = (words.next()?.ok()?, words.next()?.ok()?);
    quota.saturating_mul(1000).checked_div(period)
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

/// The nearest place, from our own group upward, where groups with controllers can be made; else
/// our own group, if its children could have some; else the nearest where any group can be made.
fn find_parent(place: &Place, writable: &dyn Fn(&Path) -> bool) -> Option<Unified> {
    let usable = |dir: &Path| {
        // The second is asked of the common ancestor of where a process comes from and goes to.
        writable(dir) && writable(&dir.join("cgroup.procs"))
    };
    let above = || place.own.ancestors().take_while(|dir| dir.starts_with(&place.top));
    let plain = |parent: &Path| Unified {
        parent: parent.to_path_buf(),
        controllers: Controllers::parse(&read(parent, "cgroup.subtree_control")),
        first: First::Nothing,
        ceiling: above().take_while(|dir| *dir != parent).fold(Ceiling::default(), Ceiling::lower),
    };
    let candidates = || above().filter(|dir| usable(dir)).map(plain);
    candidates()
        .find(|found| found.controllers.hold_a_fork_bomb())
        .or_else(|| step_aside(place, &usable))
        .or_else(|| candidates().find(|found| found.controllers.any()))
        .or_else(|| candidates().next())
}

/// Our own group as a parent, if nobody but us is in it: others cannot be asked to move.
fn step_aside(place: &Place, usable: &dyn Fn(&Path) -> bool) -> Option<Unified> {
    let own = &place.own;
    let controllers = Controllers::parse(&read(own, "cgroup.controllers"));
    let me = rustix::process::getpid().as_raw_nonzero().to_string();
    let alone = read(own, "cgroup.procs").split_whitespace().all(|pid| pid == me);
    let enough = controllers.hold_a_fork_bomb()
        && alone
        && usable(own)
        && is_writable(&own.join("cgroup.subtree_control"));
    enough.then(|| Unified {
        parent: own.clone(),
        controllers,
        first: First::StepAside,
        ceiling: Ceiling::default(),
    })
}

fn why_not(controller: &str, unified: Option<&Place>) -> String {
    match unified {
        None => format!("no control group file system with the {controller} controller is mounted"),
        Some(place) => format!(
            "no group from {} upward both can be written by this user and gives its children the \
             {controller} controller",
            place.own.display()
        ),
    }
}

fn read(dir: &Path, name: &str) -> String {
    kernel_text(dir.join(name)).unwrap_or_default()
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;

    /// A made-up hierarchy: directories with the files that are read.
    struct Tree {
        directory: TestDirectory,
        writable: Vec<PathBuf>,
    }

    impl Tree {
        fn new(name: &str) -> Self {
            Self { directory: TestDirectory::new(&format!("cg-{name}")), writable: Vec::new() }
        }

        fn group(&mut self, path: &str, files: &[(&str, &str)]) -> &mut Self {
            let dir = self.directory.path().join(path);
            std::fs::create_dir_all(&dir).unwrap();
            for (name, content) in files {
                std::fs::write(dir.join(name), content).unwrap();
            }
            self
        }

        fn ours(&mut self, path: &str) -> &mut Self {
            let dir = self.directory.path().join(path);
            self.writable.push(dir.join("cgroup.procs"));
            self.writable.push(dir);
            self
        }

        fn facts(&self, own: &str) -> CgroupFacts {
            let top = self.directory.path().to_path_buf();
            let unified = Some(Place { own: top.join(own), top });
            let layout = Layout { unified, ..Layout::default() };
            CgroupFacts::of(&layout, &|path| self.writable.iter().any(|ours| ours == path))
        }
    }

    const BOTH: (&str, &str) = ("cgroup.subtree_control", "memory pids\n");

    #[test]
    fn a_user_service_uses_its_slice() {
        let mut tree = Tree::new("user");
        tree.group("", &[("cgroup.subtree_control", "cpu memory pids\n")])
            .group("user/app.slice", &[("cgroup.subtree_control", "cpu memory pids")])
            .group("user/app.slice/run.scope", &[("memory.max", "1048576"), ("pids.max", "max")])
            .ours("user/app.slice")
            .ours("user/app.slice/run.scope");
        let facts = tree.facts("user/app.slice/run.scope");
        let unified = facts.unified.as_ref().unwrap();
        assert!(unified.parent.ends_with("user/app.slice"));
        assert_eq!(unified.first, First::Nothing);
        assert_eq!(unified.ceiling.memory_bytes, Some(1_048_576), "the scope's own limit holds on");
        assert_eq!((unified.ceiling.pids, unified.ceiling.cpu_millis), (None, None));
        assert_eq!([&facts.memory, &facts.pids, &facts.cpu], [&Where::Unified; 3]);
    }

    #[test]
    fn a_login_session_of_root_can_make_none() {
        let mut tree = Tree::new("login");
        tree.group("", &[BOTH]).group("user.slice/session-3.scope", &[]);
        let facts = tree.facts("user.slice/session-3.scope");
        assert_eq!(facts.unified, None);
        assert!(matches!(&facts.memory, Where::Nowhere(why) if why.contains("session-3.scope")));
        assert!(facts.remedy().contains("systemd-run --user --scope -p Delegate=yes"));
    }

    #[test]
    fn a_slice_that_is_ours_without_its_procs_is_no_place() {
        let mut tree = Tree::new("procs");
        tree.group("a", &[BOTH]).group("a/b", &[]);
        tree.writable.push(tree.directory.path().join("a"));
        assert_eq!(tree.facts("a/b").unified, None);
    }

    #[test]
    fn alone_in_a_delegated_group_we_step_aside() {
        let mut tree = Tree::new("aside");
        let me = std::process::id().to_string();
        let files = |procs: &str| {
            [
                ("cgroup.controllers", "cpu memory pids".to_owned()),
                ("cgroup.subtree_control", String::new()),
                ("cgroup.procs", procs.to_owned()),
            ]
        };
        let alone = files(&me);
        let alone: Vec<_> = alone.iter().map(|(n, c)| (*n, c.as_str())).collect();
        tree.group("svc", &alone).ours("svc");
        let unified = tree.facts("svc").unified.unwrap();
        assert_eq!(unified.first, First::StepAside);
        assert!(unified.controllers.cpu);
        let crowded = files(&format!("{me}\n1\n"));
        let crowded: Vec<_> = crowded.iter().map(|(n, c)| (*n, c.as_str())).collect();
        tree.group("svc", &crowded);
        let facts = tree.facts("svc");
        assert_eq!(facts.unified.as_ref().unwrap().first, First::Nothing, "it freezes and kills");
        assert!(matches!(facts.pids, Where::Nowhere(_)));
    }

    #[test]
    fn the_real_root_group_gives_controllers_though_it_has_processes() {
        let mut tree = Tree::new("root");
        tree.group("", &[BOTH]).ours("");
        let facts = tree.facts("");
        assert_eq!(facts.memory, Where::Unified);
        assert!(matches!(facts.cpu, Where::Nowhere(_)));
    }

    #[test]
    fn version_1_needs_its_own_group_to_be_writable() {
        let place = |path: &str| Some(Place { top: "/c".into(), own: path.into() });
        let layout = Layout { memory: place("/c/m"), pids: place("/c/p"), ..Layout::default() };
        let facts = CgroupFacts::of(&layout, &|path| path == Path::new("/c/m"));
        assert_eq!(facts.memory, Where::V1("/c/m".into()));
        assert!(facts.remedy().contains("as root"));
        assert!(matches!(facts.pids, Where::Nowhere(_)));
    }

    #[test]
    fn quotas_are_read() {
        assert_eq!(cpu_millis("150000 100000\n"), Some(1500));
        assert_eq!(cpu_millis("max 100000\n"), None);
        assert_eq!(cpu_millis("1 0"), None);
        assert_eq!(cpu_millis(""), None);
    }
}
