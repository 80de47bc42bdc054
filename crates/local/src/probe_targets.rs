//! Things on the host that a battery of attacks tries to reach.
//!
//! What is made here is real: a file that holds a canary, sockets that listen, a process that lives.
//! An attack that finds nothing would otherwise be no news.

pub(crate) mod leftovers;

use crate::sys::SharedMemory;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_wire::message::Targets;
use rustix::fs::OFlags;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// Leads the name of everything that a probe leaves lying about on the host while it runs.
pub(crate) const PROBE_LEAD: &str = ".cofferdam-probe-";

/// Where targets are made, and what the caller knows of the sandbox that will be attacked.
#[derive(Debug, Clone)]
pub struct Surroundings<'a> {
    /// An existing directory on the host, outside the file view, in which the targets are made.
    pub directory: &'a Path,
    /// Further directories, such as the home directory, `/tmp` and `/run`: each gets a canary
    /// where the caller may write it.
    pub other_directories: &'a [&'a Path],
    /// Host directories that the sandbox shows. No canary is made below one.
    pub shown: &'a [&'a Path],
    /// A variable of the caller's environment that commands must not get.
    pub secret_variable: &'a str,
}

/// The targets, for as long as this lives. Dropping it removes them.
#[derive(Debug)]
pub struct ProbeTargets {
    targets: Targets,
    directory: PathBuf,
    canaries: Vec<PathBuf>,
    _loopback: TcpListener,
    _path_socket: UnixListener,
    _abstract_socket: UnixListener,
    _shared_memory: Option<SharedMemory>,
}

impl ProbeTargets {
    /// Makes the targets. The caller adds what it knows of the sandbox: workspace, protected names,
    /// limits.
    ///
    /// Fails where the first directory cannot be written; the others are skipped then.
    pub fn create(around: &Surroundings<'_>) -> Result<Self> {
        Self::create_announced(around, |_| Ok(()))
    }

    /// The same, and tells every path outside of the first directory before anything is there, so that
    /// the caller can note what a killed process would leave behind.
    pub(crate) fn create_announced(
        around: &Surroundings<'_>,
        announce: impl FnOnce(&[PathBuf]) -> Result<()>,
    ) -> Result<Self> {
        let mark = random_mark()?;
        let canaries = further_canaries(around, &mark);
        announce(&canaries)?;
        let path = around.directory.join(format!("cofferdam-probe-{mark}"));
        // HOSTILE: other users of this host may enter the directory at the end. Until then it is ours
        // alone, and no mode is set by a name that somebody else could have put a link at.
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|e| at(&path, e))?;
        let made = Self::fill(around, &path, &mark, canaries);
        if made.is_err() {
            let _ = fs::remove_dir_all(&path);
        }
        made
    }

    fn fill(
        around: &Surroundings<'_>,
        directory: &Path,
        mark: &str,
        canaries: Vec<PathBuf>,
    ) -> Result<Self> {
        let opened = open_directory(directory).map_err(|e| at(directory, e))?;
        let canary = format!("canary-{mark}");
        let outside_file = directory.join("canary");
        write_canary(&outside_file, &canary).map_err(|e| at(&outside_file, e))?;
        let loopback = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .map_err(|e| failed("listen on loopback", e))?;
        let host_port =
            loopback.local_addr().map_err(|e| failed("read the port of a listener", e))?.port();
        let socket = directory.join("socket");
        let path_socket = UnixListener::bind(&socket).map_err(|e| at(&socket, e))?;
        // A socket has no descriptor to set its mode by. Nobody else can enter the directory yet.
        fs::set_permissions(&socket, Permissions::from_mode(0o777)).map_err(|e| at(&socket, e))?;
        let host_abstract = format!("cofferdam-probe-{mark}");
        let abstract_socket = SocketAddr::from_abstract_name(&host_abstract)
            .and_then(|address| UnixListener::bind_addr(&address))
            .map_err(|e| failed("listen on an abstract socket", e))?;
        let canaries = scatter(canaries, &canary);
        // A kernel may have been built without it.
        let shared_memory = SharedMemory::new().ok();
        // ORDER: last. The directory and what is in it are open to all, because an attack must fail by
        // the sandbox, not by the permissions of its target.
        opened.set_permissions(Permissions::from_mode(0o777)).map_err(|e| at(directory, e))?;
        let targets = Targets {
            outside_file: text(&outside_file)?,
            other_outside_files: canaries.iter().filter_map(|path| text(path).ok()).collect(),
            canary,
            outside_directory: text(directory)?,
            host_pid: std::process::id().cast_signed(),
            host_pid_started: own_start().unwrap_or(0),
            host_port,
            host_socket: text(&socket)?,
            host_abstract,
            host_shared_memory: shared_memory.as_ref().map(SharedMemory::id),
            secret_variable: around.secret_variable.to_owned(),
            host_name: first_line("/proc/sys/kernel/hostname"),
            machine_id: first_line("/etc/machine-id"),
            boot_id: first_line("/proc/sys/kernel/random/boot_id"),
            ..Targets::default()
        };
        Ok(Self {
            targets,
            directory: directory.to_owned(),
            canaries,
            _loopback: loopback,
            _path_socket: path_socket,
            _abstract_socket: abstract_socket,
            _shared_memory: shared_memory,
        })
    }

    /// What the battery is told of them.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }
}

impl Drop for ProbeTargets {
    fn drop(&mut self) {
        for path in &self.canaries {
            let _ = fs::remove_file(path);
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Where the further directories get their canaries.
fn further_canaries(around: &Surroundings<'_>, mark: &str) -> Vec<PathBuf> {
    let hidden = |directory: &&&Path| !around.shown.iter().any(|s| directory.starts_with(s));
    let places = around.other_directories.iter().filter(hidden);
    places.map(|directory| directory.join(format!("{PROBE_LEAD}{mark}"))).collect()
}

/// Puts a canary at each of these paths that takes one.
fn scatter(paths: Vec<PathBuf>, canary: &str) -> Vec<PathBuf> {
    paths.into_iter().filter(|path| write_canary(path, canary).is_ok()).collect()
}

/// HOSTILE: somebody else may be able to exchange the name once it is there, so that the mode is set
/// by the descriptor.
fn write_canary(path: &Path, canary: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(canary.as_bytes())?;
    file.set_permissions(Permissions::from_mode(0o666))
}

fn open_directory(path: &Path) -> std::io::Result<fs::File> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn random_mark() -> Result<String> {
    let mut bytes = [0_u8; 8];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| failed("read /dev/urandom", e))?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

/// Field 22 of `stat`, behind the name in brackets.
fn own_start() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

fn first_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Error::new(ErrorKind::Io, format!("use {} as a target", path.display()))
            .hint("Use a directory whose path is UTF-8.")
    })
}

fn at(path: &Path, error: std::io::Error) -> Error {
    failed(&format!("make {}", path.display()), error)
}

fn failed(what: &str, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, what).source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn make(root: &Path) -> ProbeTargets {
        let (other, shown) = (root.join("other"), root.join("shown"));
        fs::create_dir_all(&other).unwrap();
        fs::create_dir_all(&shown).unwrap();
        ProbeTargets::create(&Surroundings {
            directory: root,
            other_directories: &[&other, &shown],
            shown: &[&shown],
            secret_variable: "SECRET",
        })
        .unwrap()
    }

    fn files_below(root: &Path) -> usize {
        let entries = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
    }

    /// Whether a directory in which others may exchange names still lacks something.
    fn is_open_too_early(directory: &Path) -> bool {
        let mode = |path: &Path| fs::symlink_metadata(path).map(|found| found.mode() & 0o777);
        // ORDER: the directory first. What is missing after it was seen open was missing then.
        let is_open = mode(directory).is_ok_and(|mode| mode & 0o022 != 0);
        let is_whole = mode(&directory.join("canary")).ok() == Some(0o666)
            && mode(&directory.join("socket")).ok() == Some(0o777);
        is_open && !is_whole
    }

    #[test]
    fn others_can_enter_only_when_all_is_in_place() {
        let root = std::env::temp_dir().join(format!("targets-closed-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let (is_done, too_early) = (AtomicBool::new(false), AtomicBool::new(false));
        // Removed when nobody looks any more, because half of one looks like one in the making.
        let made: Vec<ProbeTargets> = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    for entry in fs::read_dir(&root).unwrap().flatten() {
                        if is_open_too_early(&entry.path()) {
                            too_early.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
            let made = (0..100)
                .map(|_| {
                    ProbeTargets::create(&Surroundings {
                        directory: &root,
                        other_directories: &[],
                        shown: &[],
                        secret_variable: "SECRET",
                    })
                    .unwrap()
                })
                .collect();
            is_done.store(true, Ordering::Relaxed);
            made
        });
        drop(made);
        fs::remove_dir_all(&root).unwrap();
        assert!(!too_early.load(Ordering::Relaxed));
    }

    #[test]
    fn targets_can_be_reached_and_are_gone_afterwards() {
        let root = std::env::temp_dir().join(format!("targets-{}", std::process::id()));
        let made = make(&root);
        let targets = made.targets().clone();
        assert_eq!(fs::read_to_string(&targets.outside_file).unwrap(), targets.canary);
        assert_eq!(targets.other_outside_files.len(), 1, "none below what is shown");
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, targets.host_port)).is_ok());
        assert!(UnixStream::connect(&targets.host_socket).is_ok());
        let address = SocketAddr::from_abstract_name(&targets.host_abstract).unwrap();
        assert!(UnixStream::connect_addr(&address).is_ok());
        assert!(targets.host_pid_started > 0);
        drop(made);
        assert_eq!(files_below(&root), 0);
        assert!(UnixStream::connect_addr(&address).is_err());
        fs::remove_dir_all(&root).unwrap();
    }
}
