//! Starting a program.

mod sys;

use cofferdam_wire::message::{NotStarted, NotStartedReason, Spawn};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use std::ffi::CString;
use sys::{ChildPlan, Stage};

pub(crate) use sys::Starting;

/// The longest single word or variable that the kernel hands to a program, with the byte at its end: 32 pages.
const WORD_PAGES: usize = 32;
/// How much of a name an error quotes, in characters: a longer message would be none on the line.
const QUOTED_CHARS: usize = 100;
/// Where programs are looked for when the environment names no `PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// How a command is tied to what it starts, and kept from us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tie<'a> {
    /// Whether its orphans gather under it.
    pub(crate) gathers_orphans: bool,
    /// Rules that keep its signals among itself and what it starts.
    pub(crate) scope: Option<BorrowedFd<'a>>,
}

/// A request to start a program, as C strings.
pub(crate) struct Prepared {
    programs: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
    /// Descriptors that it has beside the three streams, and their numbers.
    given: Vec<(OwnedFd, u32)>,
    /// How many descriptors it may have.
    open_files: Option<u64>,
}

impl Prepared {
    /// Checks the request and lays out all that the new process needs.
    pub(crate) fn new(spawn: &Spawn) -> Result<Self, NotStarted> {
        let Some(program) = spawn.argv.first().filter(|name| !name.as_bytes().is_empty()) else {
            return Err(bad_request("the command is empty"));
        };
        let argv: Option<Vec<CString>> =
            spawn.argv.iter().map(|arg| CString::new(arg.as_bytes()).ok()).collect();
        let env: Option<Vec<CString>> = spawn
            .env
            .iter()
            .map(|(name, value)| {
                let mut pair = name.as_bytes().to_vec();
                pair.push(b'=');
                pair.extend_from_slice(value.as_bytes());
                CString::new(pair).ok()
            })
            .collect();
        let cwd = CString::new(spawn.cwd.as_bytes()).ok();
        let (Some(argv), Some(env), Some(cwd)) = (argv, env, cwd) else {
            return Err(bad_request("an argument, a variable or the directory holds a NUL byte"));
        };
        let path = spawn
            .env
            .iter()
            .rev()
            .find(|(name, _)| name.as_bytes() == b"PATH")
            .map_or(DEFAULT_PATH, |(_, value)| value.as_bytes());
        Ok(Self {
            programs: candidates(program.as_bytes(), path),
            argv,
            env,
            cwd,
            given: Vec::new(),
            open_files: None,
        })
    }

    /// The same with more descriptors, under these numbers.
    pub(crate) fn with(self, given: Vec<(OwnedFd, u32)>) -> Self {
        Self { given, ..self }
    }

    /// The same with so many descriptors at most.
    pub(crate) fn within(self, open_files: Option<u64>) -> Self {
        Self { open_files, ..self }
    }

    /// The descriptors that it has beside the three streams.
    pub(crate) fn given(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.given.iter().map(|(fd, _)| fd.as_fd())
    }

    /// Starts the program, and does not wait until it runs.
    pub(crate) fn start(
        self,
        stdio: [BorrowedFd<'_>; 3],
        terminal: Option<BorrowedFd<'_>>,
        tie: Tie<'_>,
    ) -> Result<Starting, NotStarted> {
        let given = self.given.iter();
        let mut given: Vec<_> = given
            .filter_map(|(fd, number)| {
                Some((i32::try_from(*number).ok()?, sys::number(fd.as_fd())))
            })
            .collect();
        given.sort_unstable();
        let plan = ChildPlan {
            given,
            programs: self.programs,
            argv: self.argv,
            envp: self.env,
            cwd: self.cwd,
            stdio: stdio.map(sys::number),
            terminal: terminal.map(sys::number),
            gathers_orphans: tie.gathers_orphans,
            scope: tie.scope.map(sys::number),
            open_files: self.open_files.map(|most| [most; 2]),
            #[cfg(test)]
            stops: false,
        };
        Starting::new(plan).map_err(|errno| exhausted("no process could be made", errno))
    }
}

/// Why the program of a process that has ended, or runs it, was not started; `None` if it was.
pub(crate) fn not_started(starting: &Starting) -> Option<NotStarted> {
    let (stage, errno) = starting.failure()?;
    let plan = starting.plan();
    let name = quoted(plan.argv.first().map(CString::as_bytes).unwrap_or_default());
    let (reason, detail) = match (stage, errno) {
        (Stage::Group | Stage::Stdio, _) => {
            (NotStartedReason::Exhausted, format!("no process could be made for {name}"))
        }
        (Stage::Cwd, Errno::NAMETOOLONG) => {
            (NotStartedReason::BadWorkingDirectory, too_long_to_enter(plan))
        }
        (Stage::Cwd, _) => {
            let cwd = quoted(plan.cwd.as_bytes());
            let detail = format!("the working directory {cwd} cannot be entered");
            (NotStartedReason::BadWorkingDirectory, detail)
        }
        (Stage::Exec, Errno::NOENT | Errno::NOTDIR) => (
            NotStartedReason::NotFound,
            match there(plan) {
                // For the kernel it is the same.
                Some(program) => {
                    let program = quoted(program.as_bytes());
                    format!("{program} is there, and what is to run it was not found")
                }
                None => format!("{name} was not found"),
            },
        ),
        (Stage::Exec, Errno::NOMEM | Errno::AGAIN | Errno::MFILE) => {
            (NotStartedReason::Exhausted, format!("{name} could not be loaded"))
        }
        (Stage::Exec, Errno::TOOBIG) => (NotStartedReason::NotExecutable, too_big(plan, &name)),
        (Stage::Exec, _) => (NotStartedReason::NotExecutable, format!("{name} cannot be executed")),
    };
    Some(NotStarted { reason, errno: errno.raw_os_error(), detail })
}

/// A name in quotes, or the beginning of one that is long.
fn quoted(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    match name.char_indices().nth(QUOTED_CHARS) {
        None => format!("{name:?}"),
        Some((end, _)) => {
            let shown = name.get(..end).unwrap_or_default();
            format!("{shown:?}… ({} bytes)", name.len())
        }
    }
}

fn too_long_to_enter(plan: &ChildPlan) -> String {
    let cwd = quoted(plan.cwd.as_bytes());
    format!(
        "the working directory {cwd} is too long: a path has at most 4095 bytes, and each of its names 255; \
         start in a directory above, and change to it inside"
    )
}

/// What the kernel does not hand over to a program, and what to do about it.
fn too_big(plan: &ChildPlan, name: &str) -> String {
    let remedy = "pass it by a file or by standard input";
    let most = rustix::param::page_size().saturating_mul(WORD_PAGES).saturating_sub(1);
    let is_long = |word: &&CString| word.as_bytes().len() > most;
    if let Some(at) = plan.argv.iter().position(|word| is_long(&word)) {
        let bytes = plan.argv.get(at).map_or(0, |word| word.as_bytes().len());
        return format!(
            "argument {at} of {name} has {bytes} bytes, and {most} are the most; {remedy}"
        );
    }
    if let Some(variable) = plan.envp.iter().find(is_long) {
        let bytes = variable.as_bytes().len();
        let key = variable.as_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
        let key = quoted(key);
        return format!(
            "the variable {key} of {name} has {bytes} bytes, and {most} are the most; {remedy}"
        );
    }
    let all: usize = plan.argv.iter().chain(&plan.envp).map(|word| word.as_bytes().len() + 1).sum();
    format!(
        "the arguments and variables of {name} are too long together, {all} bytes; pass what is long by a \
         file or by standard input, or fewer at once"
    )
}

/// The first file that the program's name may mean and that is there.
fn there(plan: &ChildPlan) -> Option<CString> {
    let inside = |program: &CString| match program.as_bytes() {
        [b'/', ..] => Some(program.clone()),
        relative => CString::new([plan.cwd.as_bytes(), b"/", relative].concat()).ok(),
    };
    let is_there = |path: &CString| rustix::fs::statat(CWD, path, AtFlags::empty()).is_ok();
    plan.programs.iter().filter_map(inside).find(is_there)
}

/// There is not enough of something.
pub(crate) fn exhausted(detail: &str, errno: Errno) -> NotStarted {
    NotStarted {
        reason: NotStartedReason::Exhausted,
        errno: errno.raw_os_error(),
        detail: detail.to_owned(),
    }
}

fn bad_request(detail: &str) -> NotStarted {
    NotStarted {
        reason: NotStartedReason::BadRequest,
        errno: Errno::INVAL.raw_os_error(),
        detail: detail.to_owned(),
    }
}

/// The files that a program's name may mean, in the order of `PATH`.
fn candidates(program: &[u8], path: &[u8]) -> Vec<CString> {
    if program.contains(&b'/') {
        return CString::new(program).into_iter().collect();
    }
    path.split(|byte| *byte == b':')
        .filter(|directory| directory.starts_with(b"/"))
        .filter_map(|directory| {
            let mut file = directory.to_vec();
            file.push(b'/');
            file.extend_from_slice(program);
            CString::new(file).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use std::time::Duration;

    fn check(program: &str, path: &str, expected: &[&str]) {
        let found: Vec<String> = candidates(program.as_bytes(), path.as_bytes())
            .into_iter()
            .map(|file| file.into_string().unwrap())
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_is_looked_for_in_absolute_directories_only() {
        check("ls", "/a:/b", &["/a/ls", "/b/ls"]);
        check("ls", ":.:bin:/a", &["/a/ls"]);
        check("./ls", "/a", &["./ls"]);
        check("/x/ls", "/a", &["/x/ls"]);
    }

    fn plan(argv: &[&str], stops: bool) -> (ChildPlan, std::fs::File) {
        let null = std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
        let fd = sys::number(null.as_fd());
        let argv: Vec<CString> = argv.iter().map(|word| CString::new(*word).unwrap()).collect();
        let plan = ChildPlan {
            given: Vec::new(),
            programs: vec![argv[0].clone()],
            argv,
            envp: Vec::new(),
            cwd: c"/".to_owned(),
            stdio: [fd; 3],
            terminal: None,
            gathers_orphans: true,
            scope: None,
            open_files: None,
            stops,
        };
        (plan, null)
    }

    fn reap(pid: i32) -> i32 {
        crate::sys::wait4(pid, 0).unwrap().unwrap().status
    }

    #[test]
    fn a_program_runs_and_what_it_borrowed_is_free() {
        let (plan, _null) = plan(&["/bin/sh", "-c", "exit 3"], false);
        let starting = Starting::new(plan).unwrap();
        assert!(starting.settle(None));
        assert_eq!(not_started(&starting), None);
        assert_eq!(libc::WEXITSTATUS(reap(starting.pid())), 3);
    }

    #[test]
    fn a_start_that_fails_says_where() {
        for (argv, cwd, reason) in [
            ("/no/such", c"/", NotStartedReason::NotFound),
            ("/etc/passwd", c"/", NotStartedReason::NotExecutable),
            ("/bin/true", c"/no/such", NotStartedReason::BadWorkingDirectory),
        ] {
            let (mut plan, _null) = plan(&[argv], false);
            plan.cwd = cwd.to_owned();
            let starting = Starting::new(plan).unwrap();
            assert!(starting.settle(None));
            assert_eq!(not_started(&starting).unwrap().reason, reason);
            reap(starting.pid());
        }
    }

    #[test]
    fn what_is_too_long_is_named_with_the_remedy_and_in_few_words() {
        let detail = |argv: &[&str], cwd: &str, env: &[&str]| {
            let (mut plan, _null) = plan(argv, false);
            plan.cwd = CString::new(cwd).unwrap();
            plan.envp = env.iter().map(|pair| CString::new(*pair).unwrap()).collect();
            let starting = Starting::new(plan).unwrap();
            assert!(starting.settle(None));
            let why = not_started(&starting).unwrap();
            reap(starting.pid());
            assert!(why.detail.len() < 1000, "{}", why.detail);
            (why.reason, why.detail)
        };
        let most = rustix::param::page_size() * WORD_PAGES - 1;
        let long = "x".repeat(most + 1);
        let (reason, told) = detail(&["/bin/true", "a", &long], "/", &[]);
        assert_eq!(reason, NotStartedReason::NotExecutable);
        let expected = format!(
            "argument 2 of \"/bin/true\" has {} bytes, and {most} are the most; pass it by a file or by \
             standard input",
            most + 1
        );
        assert_eq!(told, expected);
        let (_, told) = detail(&["/bin/true"], "/", &[&format!("KEY={long}")]);
        assert!(told.starts_with("the variable \"KEY\" of \"/bin/true\" has "), "{told}");
        let many = vec![&long[1..]; 100];
        let words: Vec<&str> = ["/bin/true"].into_iter().chain(many).collect();
        let (_, told) = detail(&words, "/", &[]);
        assert!(told.contains("too long together") && told.contains("fewer at once"), "{told}");
        for bytes in [4096, 200_000] {
            let cwd = "/a".repeat(bytes / 2);
            let (reason, told) = detail(&["/bin/true"], &cwd, &[]);
            assert_eq!(reason, NotStartedReason::BadWorkingDirectory);
            assert!(told.contains(&format!("({bytes} bytes) is too long")), "{told}");
        }
        let (_, told) = detail(&["/bin/true"], &"\u{1}".repeat(4000), &[]);
        assert!(told.starts_with("the working directory"), "{told}");
        // The control: what is just short enough runs.
        let (plan, _null) = plan(&["/bin/true", &long[1..]], false);
        let starting = Starting::new(plan).unwrap();
        assert!(starting.settle(None));
        assert_eq!(not_started(&starting), None);
        reap(starting.pid());
    }

    #[test]
    fn a_process_that_is_stopped_before_its_program_runs_stops_nobody_else() {
        let (plan, _null) = plan(&["/bin/true"], true);
        let starting = Starting::new(plan).unwrap();
        let status = crate::sys::wait4(starting.pid(), libc::WUNTRACED).unwrap().unwrap().status;
        assert!(libc::WIFSTOPPED(status));
        assert!(!starting.settle(Some(Duration::from_millis(1))));
        crate::sys::kill(starting.pid(), libc::SIGCONT).unwrap();
        assert!(starting.settle(None));
        assert_eq!(not_started(&starting), None);
        assert_eq!(reap(starting.pid()), 0);
    }

    #[test]
    fn what_is_killed_before_its_program_runs_has_not_failed() {
        let (plan, _null) = plan(&["/bin/true"], true);
        let starting = Starting::new(plan).unwrap();
        crate::sys::wait4(starting.pid(), libc::WUNTRACED).unwrap();
        crate::sys::kill(starting.pid(), libc::SIGKILL).unwrap();
        assert!(starting.settle(None));
        assert_eq!(not_started(&starting), None);
        assert_eq!(libc::WTERMSIG(reap(starting.pid())), libc::SIGKILL);
    }
}
