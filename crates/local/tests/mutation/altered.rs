//! One sandbox with an altered plan, attacked in a process of its own.

use crate::table::MUTATIONS;
use cofferdam_core::{Axis, Caller, Degree, Error, ErrorKind, Limit, Spec, Workspace};
use cofferdam_local::probe::{Altered, probe_with};
use cofferdam_local::state::StateDirectory;
use cofferdam_local::verdict::{CheckReport, Verdict};
use serde_json::{Value, json};
use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Which mutation the inner run makes.
pub(crate) const NAME: &str = "TEST_COFFERDAM_MUTATION";
/// Where the inner run has its state and puts what it found.
const PLACE: &str = "TEST_COFFERDAM_MUTATION_PLACE";
/// What the battery says of an attack that was cut short.
const LATE: &str = "no answer in time";
/// Why nothing started where there was nothing to take away.
const ABSENT: &str = "the plan has no such mechanism";
/// An id that owns nothing on a usual machine.
const ORDINARY: u32 = 54321;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Who starts the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    /// Whoever runs the tests.
    Caller,
    /// Somebody without any right, where the caller is root.
    Ordinary,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The plan has no such mechanism on this host.
    Absent,
    /// It did not come to the battery.
    Refused(String),
    /// The battery ran.
    Attacked {
        /// Checks that did not hold.
        failed: Vec<String>,
        /// Those that gave no answer in time, which on a busy machine tells nothing.
        late: Vec<String>,
        /// What the first of them came to.
        first: String,
        /// Axes that are not full.
        lowered: Vec<String>,
        /// Whether the host found process 1 as the plan wants it.
        verified: bool,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not in the plan"),
            Self::Refused(why) => write!(f, "does not start: {why}"),
            Self::Attacked { failed, late: _, first, lowered, verified } => {
                let host = if *verified { "sees nothing" } else { "sees it" };
                let some: Vec<&str> = failed.iter().take(6).map(String::as_str).collect();
                write!(
                    f,
                    "host {host}; axes {lowered:?}; {} failed: {some:?}: {first}",
                    failed.len()
                )
            }
        }
    }
}

/// The id of whoever runs the tests.
pub(crate) fn caller() -> u32 {
    fs::metadata("/proc/self").unwrap().uid()
}

/// Where the inner runs of one person take place. Gone with the value.
#[derive(Debug)]
pub(crate) struct Ground {
    person: Person,
    base: PathBuf,
    program: PathBuf,
}

impl Ground {
    pub(crate) fn new(person: Person) -> Self {
        // Short, because the path of a socket below it is.
        let name =
            format!("cofferdam-m-{}-{}", std::process::id(), u8::from(person == Person::Caller));
        let base = Path::new("/tmp").join(name);
        fs::create_dir_all(&base).unwrap();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).unwrap();
        let mut program = std::env::current_exe().unwrap();
        if person == Person::Ordinary {
            // A build directory may be closed to others; a copy is not.
            let copy = base.join("program");
            fs::copy(program, &copy).unwrap();
            program = copy;
        }
        Self { person, base, program }
    }

    /// Attacks in a process of its own, as the person.
    pub(crate) fn run(&self, name: &str) -> Outcome {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let place = self.base.join(number.to_string());
        for directory in [&place, &place.join("home"), &place.join("tmp")] {
            fs::create_dir(directory).unwrap();
            if self.person == Person::Ordinary {
                lchown(directory, Some(ORDINARY), Some(ORDINARY)).unwrap();
            }
        }
        let mut command = match self.person {
            Person::Caller => Command::new(&self.program),
            Person::Ordinary => {
                let id = ORDINARY.to_string();
                let mut command = Command::new("setpriv");
                command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]);
                command.arg(&self.program);
                command.env("HOME", place.join("home")).env("PATH", "/usr/bin:/bin");
                command
            }
        };
        command.args(["--exact", "one_altered_sandbox_is_attacked", "--test-threads=1"]);
        command.env(NAME, name).env(PLACE, &place).env("TMPDIR", place.join("tmp"));
        let output = command.output().unwrap();
        let found = fs::read(place.join("found")).ok();
        let found = found.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        found.map_or_else(
            || Outcome::Refused(format!("nothing was found: {output:?}")),
            |found| understood(&found),
        )
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

fn understood(found: &Value) -> Outcome {
    let words = |name: &str| {
        let words = found[name].as_array().unwrap();
        words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    match found["refused"].as_str() {
        Some(ABSENT) => Outcome::Absent,
        Some(why) => Outcome::Refused(why.to_owned()),
        None => Outcome::Attacked {
            failed: words("failed"),
            late: words("late"),
            first: found["first"].as_str().unwrap_or_default().to_owned(),
            lowered: words("lowered"),
            verified: found["verified"] == true,
        },
    }
}

/// The inner run.
pub(crate) fn attack(name: &str) {
    crate::sys::have_a_keyring();
    let place = PathBuf::from(std::env::var_os(PLACE).unwrap());
    let state = StateDirectory::open(&place.join("state")).unwrap();
    let caller = Caller {
        env: std::env::vars_os().collect(),
        home: std::env::var_os("HOME").map(Into::into),
    };
    let mut spec = Spec::new(Workspace::Directory(place.clone()), caller);
    let mutation = MUTATIONS.iter().find(|mutation| mutation.name == name);
    spec.profile = mutation.map(|mutation| mutation.profile).unwrap_or_default();
    if crate::altered::caller() == 0 {
        // Less than by default is used up sooner, which counts on a busy machine; and more than the
        // private files that the battery makes.
        spec.limits.memory_bytes = Limit::Asked(160 << 20);
    }
    let found = probe_with(&spec, &state, |plan| {
        let before = plan.clone();
        if let Some(mutation) = mutation {
            (mutation.change)(plan);
        }
        let is_absent = mutation.is_some() && *plan == before;
        if is_absent { Err(Error::new(ErrorKind::NotFound, ABSENT)) } else { Ok(()) }
    });
    let found = match found {
        Ok(altered) => told(&altered),
        Err(error) => json!({"refused": error.chain()}),
    };
    fs::write(place.join("found"), found.to_string()).unwrap();
}

fn told(altered: &Altered) -> Value {
    let report = &altered.report;
    let is_lower = |axis: &Axis| report.enforced.degree(*axis) != Degree::Full;
    let lowered: Vec<&str> = Axis::ALL.into_iter().filter(is_lower).map(Axis::name).collect();
    let fails =
        |check: &&CheckReport| !matches!(check.verdict, Verdict::Held | Verdict::NotApplicable);
    let (late, failed): (Vec<&CheckReport>, Vec<&CheckReport>) =
        report.checks.iter().filter(fails).partition(|check| check.attack == LATE);
    let names = |checks: &[&CheckReport]| -> Vec<String> {
        checks.iter().map(|check| check.name.clone()).collect()
    };
    let first = failed.first().map(|c| format!("attack: {}; control: {}", c.attack, c.control));
    json!({
        "lowered": lowered,
        "failed": names(&failed),
        "late": names(&late),
        "first": first,
        "verified": altered.verified.is_ok(),
    })
}
