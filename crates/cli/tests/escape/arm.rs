//! Who attacks, and what confines them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An id that owns nothing on a usual machine and needs no account.
const ORDINARY: u32 = 54321;

/// The Python that attacks are written in. A path, because a shim of the caller's may be no program
/// of the sandbox.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Who runs `cofferdam`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    /// Whoever runs the tests.
    Caller,
    /// A user without any right: another one where the tests run as root.
    Ordinary,
}

/// What confines the attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confinement {
    /// Nothing.
    None,
    /// `cofferdam run` with this profile.
    Profile(&'static str),
}

/// One row of arms: a person and a confinement, with a place of their own.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) name: String,
    pub(crate) person: Person,
    pub(crate) confinement: Confinement,
    /// A directory that is removed in the end.
    pub(crate) place: PathBuf,
    program: PathBuf,
}

impl Arm {
    pub(crate) fn new(name: &str, person: Person, confinement: Confinement) -> Self {
        let place = PathBuf::from(format!("/tmp/cofferdam-escape-{}-{name}", std::process::id()));
        fs::create_dir_all(place.join("state")).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        let built = std::env::var_os("COFFERDAM_BIN")
            .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_cofferdam")), PathBuf::from);
        // A build directory may be closed to others; a copy is not.
        let program = place.join("cofferdam");
        fs::copy(&built, &program).unwrap_or_else(|e| panic!("copy {}: {e}", built.display()));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let arm = Self { name: name.to_owned(), person, confinement, place, program };
        arm.give(&arm.place.join("state"));
        arm
    }

    /// The id that owns what the person has.
    pub(crate) fn uid(&self) -> u32 {
        match self.person {
            Person::Ordinary if caller() == 0 => ORDINARY,
            Person::Ordinary | Person::Caller => caller(),
        }
    }

    /// Makes a file or a directory the person's.
    pub(crate) fn give(&self, path: &Path) {
        if caller() == 0 {
            std::os::unix::fs::lchown(path, Some(self.uid()), Some(self.uid())).unwrap();
        }
    }

    /// What comes before a program so that the person runs it.
    pub(crate) fn prefix(&self) -> Vec<String> {
        if self.uid() == caller() {
            return Vec::new();
        }
        let id = self.uid().to_string();
        let words = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups", "--"];
        words.map(str::to_owned).to_vec()
    }

    /// A program run by the person, outside any sandbox.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut words = self.prefix();
        words.push(program.to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// `cofferdam` run by the person.
    pub(crate) fn cofferdam(&self) -> Command {
        let mut command = self.command(self.program.to_str().unwrap());
        command.env("COFFERDAM_HOME", self.place.join("state"));
        command
    }

    /// Whether the workspace can be written.
    pub(crate) fn writes(&self) -> bool {
        self.confinement != Confinement::Profile("read-only")
    }

    /// The words that come before the command: the whole of the confinement.
    pub(crate) fn confining(&self, workspace: &Path, options: &[String]) -> Vec<String> {
        let mut words = self.prefix();
        if let Confinement::Profile(profile) = self.confinement {
            words.push(self.program.to_str().unwrap().to_owned());
            words.extend(["run", "--profile", profile, "-w"].map(str::to_owned));
            words.push(workspace.to_str().unwrap().to_owned());
            words.extend(options.iter().cloned());
            // An ordinary user cannot always hold the limits that this profile insists on; what
            // else it promises is attacked all the same.
            if profile == "ci-only" && self.uid() != 0 {
                words.extend(["--on-unavailable", "degrade"].map(str::to_owned));
            }
            words.extend(["-i", "--"].map(str::to_owned));
        }
        words
    }
}

impl Drop for Arm {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// The id of whoever runs the tests.
pub(crate) fn caller() -> u32 {
    fs::metadata("/proc/self").unwrap().uid()
}
