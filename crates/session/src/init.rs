//! Commands that prepare a session, each list once.

use cofferdam_core::{ByteString, Ending, EndingKind, Error, ErrorKind, ProcessId, Result};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::time::Duration;

/// How long one command may take unless it says so itself.
const DEFAULT_LIMIT: Duration = Duration::from_secs(600);
/// The most commands of one list.
const MAX_COMMANDS: usize = 100;

/// A command that prepares a session, or checks it before a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitCommand {
    argv: Vec<ByteString>,
    timeout_ms: u64,
}

/// What failed while a session was prepared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InitFailure {
    /// The command, for people.
    pub command: String,
    /// The exit code that stands for its ending; null where it could not be tried.
    pub exit_code: Option<i32>,
    /// How it ended; null where it could not be tried.
    pub ending: Option<EndingKind>,
    /// Its output, or beginning and end of it, standard error last; bytes that are not text are replaced.
    pub output: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// How far a session is prepared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Init {
    pub(crate) commands: Vec<InitCommand>,
    /// How many succeeded, in this incarnation.
    pub(crate) done: usize,
    pub(crate) incarnation: u32,
    /// How often the present command failed.
    pub(crate) failures: u32,
    pub(crate) last_error: Option<InitFailure>,
}

/// How far a session is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InitState {
    /// All commands of the list succeeded.
    Done,
    /// Some did not run yet.
    Pending,
    /// One failed; the next ensure tries it again.
    Failed,
}

impl InitCommand {
    /// A program with its arguments, never read by a shell.
    pub fn new<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> Self {
        let argv = argv.into_iter().map(|word| ByteString::from(word.into())).collect();
        Self { argv, timeout_ms: millis(DEFAULT_LIMIT) }
    }

    /// A text that `/bin/sh` reads.
    pub fn shell(text: impl Into<OsString>) -> Self {
        Self::new([OsString::from("/bin/sh"), "-c".into(), text.into()])
    }

    /// It is killed after this long instead of ten minutes.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.timeout_ms = millis(limit).max(1);
        self
    }

    pub(crate) fn argv(&self) -> Vec<OsString> {
        self.argv.iter().map(|word| word.as_os_str().to_owned()).collect()
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// The command as a person would write it.
    pub(crate) fn shown(&self) -> String {
        let words: Vec<String> = self.argv.iter().map(ToString::to_string).collect();
        match words.as_slice() {
            [shell, flag, text] if shell == "/bin/sh" && flag == "-c" => text.clone(),
            _ => words.join(" "),
        }
    }
}

impl Init {
    pub(crate) fn new(commands: Vec<InitCommand>) -> Result<Self> {
        if commands.len() > MAX_COMMANDS {
            let what = format!("{} init commands are too many", commands.len());
            return Err(Error::new(ErrorKind::Usage, what)
                .hint(format!("Use at most {MAX_COMMANDS}, or put them into one script.")));
        }
        if commands.iter().any(|command| command.argv.is_empty()) {
            return Err(Error::new(ErrorKind::Usage, "an init command has no program")
                .hint("Name a program, or leave the command out."));
        }
        Ok(Self { commands, ..Self::default() })
    }

    /// Starts anew where the sandbox is another one.
    pub(crate) fn enter(&mut self, incarnation: u32) {
        if self.incarnation != incarnation {
            self.incarnation = incarnation;
            self.done = 0;
            self.failures = 0;
            self.last_error = None;
        }
    }

    /// Takes a list. Another one than before is run from its beginning.
    pub(crate) fn replace(&mut self, commands: Vec<InitCommand>) -> bool {
        let changed = self.commands != commands;
        if changed {
            *self = Self { incarnation: self.incarnation, commands, ..Self::default() };
        }
        changed
    }

    pub(crate) fn state(&self) -> InitState {
        match (&self.last_error, self.done < self.commands.len()) {
            (_, false) => InitState::Done,
            (Some(_), true) => InitState::Failed,
            (None, true) => InitState::Pending,
        }
    }

    /// The command that is next, and the name of its next run.
    ///
    /// The name says list, place and attempt: a run whose result was not written down is found again
    /// and not repeated.
    pub(crate) fn next(&self) -> Result<Option<(InitCommand, ProcessId)>> {
        let Some(command) = self.commands.get(self.done) else { return Ok(None) };
        let list = fingerprint(&self.commands);
        let id = ProcessId::new(format!("init-{list:016x}-{}-{}", self.done, self.failures))?;
        Ok(Some((command.clone(), id)))
    }

    pub(crate) fn succeeded(&mut self) {
        self.done += 1;
        self.failures = 0;
        self.last_error = None;
    }

    pub(crate) fn failed(&mut self, failure: InitFailure) {
        // What could not even be tried is found again under the same name.
        self.failures += u32::from(failure.ending.is_some());
        self.last_error = Some(failure);
    }
}

impl InitFailure {
    pub(crate) fn ended(command: &InitCommand, ending: &Ending, output: String) -> Self {
        Self {
            command: command.shown(),
            exit_code: Some(ending.exit_code()),
            ending: Some(ending.kind()),
            output,
            at_ms: crate::now_ms(),
        }
    }

    pub(crate) fn not_tried(command: &InitCommand, error: &Error) -> Self {
        Self {
            command: command.shown(),
            exit_code: None,
            ending: None,
            output: error.chain(),
            at_ms: crate::now_ms(),
        }
    }

    /// The failure as an error that names command and code.
    pub(crate) fn error(&self) -> Error {
        let how = match self.exit_code {
            Some(code) => format!("exited {code}"),
            None => "could not be run".to_owned(),
        };
        let mut what = format!("init command {:?} {how}", self.command);
        // One such as `false` fails and says nothing.
        let said = self.output.trim_end();
        if !said.is_empty() {
            what.extend([": ", said]);
        }
        Error::new(ErrorKind::SetupFailed, what)
            .hint("Repair it and ensure the session again; it goes on at this command.")
    }
}

/// FNV-1a over the list, the same in every version.
fn fingerprint(commands: &[InitCommand]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for command in commands {
        for word in &command.argv {
            add(word.as_bytes());
            add(&[0]);
        }
        add(&[1]);
    }
    hash
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_list_runs_again_and_an_empty_one_is_done() {
        let mut init = Init::new(Vec::new()).unwrap();
        assert_eq!(init.state(), InitState::Done);
        assert!(init.replace(vec![InitCommand::shell("a")]));
        assert_eq!(init.state(), InitState::Pending);
        init.succeeded();
        assert_eq!(init.state(), InitState::Done);
        assert!(!init.replace(vec![InitCommand::shell("a")]));
        assert_eq!(init.state(), InitState::Done);
        init.enter(2);
        assert_eq!(init.state(), InitState::Pending);
    }

    #[test]
    fn a_list_has_so_many_commands_at_most() {
        let list = |count| vec![InitCommand::shell("a"); count];
        assert!(Init::new(list(MAX_COMMANDS)).is_ok());
        let error = Init::new(list(MAX_COMMANDS + 1)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.hint.unwrap().contains("100"));
    }

    #[test]
    fn a_failure_ends_with_what_the_command_said_last_if_it_said_anything() {
        let check = |output: &str, expected: &str| {
            let command = InitCommand::shell("x");
            let failure = InitFailure::ended(&command, &Ending::Exited(3), output.to_owned());
            assert_eq!(failure.error().message, expected);
        };
        check("", "init command \"x\" exited 3");
        check(" \n", "init command \"x\" exited 3");
        check("no y\n", "init command \"x\" exited 3: no y");
    }

    #[test]
    fn each_attempt_has_a_name_of_its_own() {
        let mut init = Init::new(vec![InitCommand::shell("a"), InitCommand::shell("b")]).unwrap();
        let (first, id) = init.next().unwrap().unwrap();
        init.failed(InitFailure::not_tried(&first, &Error::new(ErrorKind::Unavailable, "x")));
        assert_eq!(init.next().unwrap().unwrap().1, id);
        init.failed(InitFailure::ended(&first, &Ending::Exited(3), String::new()));
        let again = init.next().unwrap().unwrap().1;
        assert_ne!(again, id);
        init.succeeded();
        assert_ne!(init.next().unwrap().unwrap().1, again);
    }
}
