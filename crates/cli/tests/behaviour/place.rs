//! Where a test runs: who starts the program, in which directories, and how long it may take.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// An id that owns nothing on a usual machine and needs no account.
const NOBODY_IN_PARTICULAR: u32 = 54321;
/// The PATH of somebody who has installed nothing.
const PLAIN_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How long a run may take that is over at once, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// The system's own Python: a shim of the caller's may be no program for all.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

static NUMBER: AtomicU32 = AtomicU32::new(0);
/// The ids of all that was started here, which stand in the names of sandboxes, and when each was
/// first, in microseconds since 1970: an id is used again, by somebody whose traces are not ours.
pub(crate) static STARTED: Mutex<BTreeMap<u32, u128>> = Mutex::new(BTreeMap::new());
/// Tests that count what is on the machine run while no other does.
static MACHINE: RwLock<()> = RwLock::new(());

/// Who starts the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    /// Whoever runs the tests.
    Caller,
    /// Somebody without any right, where the caller is root.
    Ordinary,
}

/// A workspace with all around it, and the program. Gone with the value.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) person: Person,
    /// Holds everything below.
    pub(crate) base: PathBuf,
    /// The person's, and the directory that runs start in.
    pub(crate) workspace: PathBuf,
    /// The program's state directory.
    pub(crate) state: PathBuf,
    /// No other place has it: put into a command line it tells whose process one is.
    pub(crate) marker: String,
    program: PathBuf,
}

/// What came out of a run.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// Does something as each person that can be had, beside other tests.
pub(crate) fn everyone(promise: impl Fn(&Place)) {
    let _beside: RwLockReadGuard<'_, ()> = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    people().into_iter().for_each(|person| promise(&Place::new(person)));
}

/// The same while no other test of this program runs.
pub(crate) fn everyone_alone(promise: impl Fn(&Place)) {
    let _alone: RwLockWriteGuard<'_, ()> = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    people().into_iter().for_each(|person| promise(&Place::new(person)));
}

/// Says what cannot be shown here, in the words that `./test` collects.
pub(crate) fn skipped(feature: &str, reason: &str) {
    println!("skipped: {feature}: {reason}");
}

fn people() -> Vec<Person> {
    let is_run_again = std::env::var_os("TEST_COFFERDAM_BIN").is_some();
    match caller() == 0 && !is_run_again {
        true => vec![Person::Caller, Person::Ordinary],
        false => vec![Person::Caller],
    }
}

/// The id of whoever runs the tests.
pub(crate) fn caller() -> u32 {
    fs::metadata("/proc/self").unwrap().uid()
}

impl Place {
    fn new(person: Person) -> Self {
        let marker = format!(
            "cofferdam-behaviour-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let base = Path::new("/tmp").join(&marker);
        let built = std::env::var_os("TEST_COFFERDAM_BIN")
            .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_cofferdam")), PathBuf::from);
        let (workspace, state) = (base.join("workspace"), base.join("state"));
        let mut place = Self { person, base, workspace, state, marker, program: built };
        for directory in ["home", "state", "workspace"] {
            fs::create_dir_all(place.base.join(directory)).unwrap();
            place.give(&place.base.join(directory));
        }
        place.give(&place.base);
        fs::set_permissions(&place.base, fs::Permissions::from_mode(0o755)).unwrap();
        if person == Person::Ordinary {
            // A build directory may be closed to others; a copy is not.
            let copy = place.base.join("cofferdam");
            // By a program of its own: while this process holds a file open for writing, a child that
            // another test starts holds it too, and nobody can execute it.
            let copied = Command::new("cp").arg(&place.program).arg(&copy).status();
            assert!(copied.unwrap().success(), "{}", copy.display());
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
            place.program = copy;
        }
        place
    }

    /// Whether the program is started by root.
    pub(crate) fn is_root(&self) -> bool {
        self.uid() == 0
    }

    /// The id of the person.
    pub(crate) fn uid(&self) -> u32 {
        match self.person {
            Person::Caller => caller(),
            Person::Ordinary => NOBODY_IN_PARTICULAR,
        }
    }

    /// Makes a file or a directory the person's.
    pub(crate) fn give(&self, path: &Path) {
        if self.person == Person::Ordinary {
            lchown(path, Some(self.uid()), Some(self.uid())).unwrap();
        }
    }

    /// Writes a file of the person's in the workspace, with its directories.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.workspace.join(name);
        let mut directories: Vec<&Path> =
            path.ancestors().skip(1).take_while(|above| *above != self.workspace).collect();
        directories.reverse();
        for directory in directories {
            fs::create_dir_all(directory).unwrap();
            self.give(directory);
        }
        fs::write(&path, text).unwrap();
        self.give(&path);
        path
    }

    /// A program of the host, started by the person in the workspace, outside of any sandbox.
    pub(crate) fn host(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match self.person {
            Person::Caller => Command::new(program),
            Person::Ordinary => {
                let id = self.uid().to_string();
                let mut command = Command::new("setpriv");
                command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(program);
                command.env_clear().env("PATH", PLAIN_PATH).env("HOME", self.base.join("home"));
                command
            }
        };
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("COFFERDAM_") {
                command.env_remove(name);
            }
        }
        // The keyring of whoever runs the tests is none of theirs.
        command.env_remove("DBUS_SESSION_BUS_ADDRESS");
        command.env("COFFERDAM_HOME", &self.state);
        command.env("XDG_CONFIG_HOME", self.base.join("home/.config"));
        command.current_dir(&self.workspace).stdin(Stdio::null());
        command
    }

    /// The words that start the program, for a shell or a script of the person's.
    pub(crate) fn program(&self) -> &str {
        self.program.to_str().unwrap()
    }

    /// `cofferdam` with these words.
    pub(crate) fn cofferdam(&self, words: &[&str]) -> Command {
        let mut command = self.host(&self.program);
        command.args(words);
        command
    }

    /// What `cofferdam run` with these words comes to.
    pub(crate) fn run(&self, words: &[&str]) -> Said {
        let words: Vec<&str> = [&["run"], words].concat();
        outcome(&mut self.cofferdam(&words), SOON)
    }

    /// What `cofferdam run` with these words comes to, with an input.
    pub(crate) fn run_with_input(&self, words: &[&str], input: impl Into<Stdio>) -> Said {
        let words: Vec<&str> = [&["run"], words].concat();
        outcome(self.cofferdam(&words).stdin(input), SOON)
    }

    /// What `cofferdam` with these words comes to.
    pub(crate) fn say(&self, words: &[&str]) -> Said {
        outcome(&mut self.cofferdam(words), SOON)
    }

    /// The same, which must exit with this code.
    pub(crate) fn says(&self, words: &[&str], code: i32) -> Said {
        let said = self.say(words);
        assert_eq!(said.code(), Some(code), "as {}: {words:?}: {said:?}", self.uid());
        said
    }

    /// The object that `cofferdam run --json` with these words prints.
    pub(crate) fn report(&self, words: &[&str]) -> Value {
        self.run(&[&["--json"], words].concat()).object()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What a killed program left is the next start's, which must find the records.
        let mut owed = fs::read_dir(self.state.join("owed")).into_iter().flatten();
        if owed.next().is_some() {
            let _ = self.cofferdam(&["run", "--no-workspace", "--", "true"]).status();
        }
        if self.state.join("sessions.db").exists() {
            let listed = self.cofferdam(&["ls", "--json"]).output();
            let listed: Value = listed
                .ok()
                .and_then(|listed| serde_json::from_slice(&listed.stdout).ok())
                .unwrap_or_default();
            let sessions = listed["sessions"].as_array().into_iter().flatten();
            let ids = sessions.filter_map(|session| session["id"].as_str());
            let words: Vec<&str> = ["rm"].into_iter().chain(ids).collect();
            let _ = self.cofferdam(&words).stderr(Stdio::null()).status();
        }
        // Directories that checks closed keep an ordinary user out.
        let open =
            std::process::Command::new("chmod").args(["-R", "u+rwX"]).arg(&self.base).output();
        let _ = open.and_then(|_| fs::remove_dir_all(&self.base));
    }
}

impl Said {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard output as one JSON object.
    pub(crate) fn object(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs a command to its end, with all of its output.
pub(crate) fn outcome(command: &mut Command, within: Duration) -> Said {
    let begin = Instant::now();
    let child = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut said = ended(child, within);
    said.took = begin.elapsed();
    said
}

/// Starts a program whose traces will be looked for.
pub(crate) fn started(command: &mut Command) -> Child {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    let child = command.spawn().unwrap();
    STARTED.lock().unwrap_or_else(PoisonError::into_inner).entry(child.id()).or_insert(now);
    child
}

/// The lines that are written into a pipe, as they come; bytes that are not text are replaced.
pub(crate) fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let (mut pipe, mut line) = (BufReader::new(pipe), Vec::new());
        while pipe.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
            if sender.send(text).is_err() {
                return;
            }
            line.clear();
        }
    });
    lines
}

/// Waits until a child has ended and all is read. One that takes too long is a failure.
pub(crate) fn ended(mut child: Child, within: Duration) -> Said {
    let begin = Instant::now();
    drop(child.stdin.take());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = (everything(stdout), everything(stderr));
    let status = until(within, || child.try_wait().unwrap()).unwrap_or_else(|| {
        let _ = child.kill();
        let _ = child.wait();
        panic!("it did not end within {within:?}")
    });
    let whole = |pipe: Receiver<Vec<u8>>| {
        pipe.recv_timeout(within).expect("a process that is left holds its output open")
    };
    let (stdout, stderr) = (whole(stdout), whole(stderr));
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    Said { status, stdout, stderr, took: begin.elapsed() }
}

/// Reads a pipe to its end beside whatever else is done.
fn everything(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// Looks again and again until there is an answer, or the time is over.
pub(crate) fn until<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let give_up = Instant::now() + within;
    loop {
        let found = look();
        if found.is_some() || Instant::now() > give_up {
            return found;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
