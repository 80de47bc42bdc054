//! Facts about control groups.

use super::{Fact, State};
use crate::host::HostFacts;
use rustix::fs::Access;
use std::path::Path;

/// Where hierarchies are mounted, by convention.
const MOUNTED: &str = "/sys/fs/cgroup";

/// The controllers that limits need.
const NEEDED: &[&str] = &["memory", "pids", "cpu"];

/// Which kind of hierarchy has the controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Two,
    One,
    None,
}

pub(super) fn version() -> Fact {
    const NAME: &str = "cgroups";
    match found() {
        (Version::Two, detail) => {
            Fact::new(NAME, State::Ok, detail, "limits hold for all processes together")
        }
        (Version::One, detail) => Fact::new(
            NAME,
            State::Ok,
            detail,
            "limits hold for all processes together where root starts them; joining costs more \
             than in version 2",
        ),
        (Version::None, detail) => Fact::new(
            NAME,
            State::Missing,
            detail,
            "limits hold for each process by itself, which is reported as partial",
        )
        .remedy("Mount them: sudo mount -t cgroup2 none /sys/fs/cgroup"),
    }
}

fn found() -> (Version, String) {
    let root = Path::new(MOUNTED);
    let controllers =
        |path: &Path| std::fs::read_to_string(path.join("cgroup.controllers")).unwrap_or_default();
    let has = |text: &str| NEEDED.iter().all(|name| text.split_whitespace().any(|c| c == *name));
    let unified = controllers(root);
    if has(&unified) {
        return (Version::Two, format!("version 2 with {}", unified.trim()));
    }
    let one: Vec<&str> =
        NEEDED.iter().copied().filter(|name| root.join(name).join("tasks").exists()).collect();
    if !one.is_empty() {
        return (Version::One, format!("version 1 with {}", one.join(" ")));
    }
    (Version::None, "no hierarchy with memory, pids and cpu".to_owned())
}

pub(super) fn delegation(facts: &HostFacts) -> Fact {
    const NAME: &str = "cgroup_delegation";
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    match found().0 {
        Version::None => Fact::new(
            NAME,
            State::Unknown,
            "no hierarchy",
            "without control groups there is nothing to delegate",
        ),
        Version::One => writable(NAME, &version_one_group(&own), facts, "Start it as root."),
        Version::Two => {
            let group = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
            let group = format!("{MOUNTED}{group}");
            let remedy = "systemd-run --user --scope -p Delegate=yes cofferdam …";
            writable(NAME, &group, facts, remedy)
        }
    }
}

fn version_one_group(own: &str) -> String {
    let path = own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == "memory").then_some(path)
    });
    format!("{MOUNTED}/memory{}", path.unwrap_or("/"))
}

fn writable(name: &str, group: &str, facts: &HostFacts, remedy: &str) -> Fact {
    let group = group.trim_end_matches('/');
    match rustix::fs::access(group, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => {
            let consequence = "limits of memory, processes and processor time can be held";
            Fact::new(name, State::Ok, format!("{group} can be written"), consequence)
        }
        Err(error) => Fact::new(
            name,
            State::Forbidden,
            format!("{group} cannot be written by user {} ({error})", facts.uid),
            "limits hold for each process by itself; a limit that is asked for is refused",
        )
        .remedy(remedy),
    }
}
