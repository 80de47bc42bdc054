//! Shells that stay: they keep directory, variables and functions from command to command.
//!
//! A shell is a detached command that plays a driver. Commands go to it by its standard input; what
//! they write, both streams in one, is its standard output; and its standard error, which no command
//! has, says when each began and ended and with which code. So nothing that a command prints can be
//! taken for the end of one. A mark with a random word stands between outputs; it says where they
//! part, and nothing else.
//!
//! What was started in a shell goes on when the shell has ended, as with every detached command.
//!
//! HOSTILE: a command that looks for the channel in the processes of its own sandbox can lie about
//! itself, as it could by its exit code.

mod frame;
mod tape;

pub use tape::{ShellNews, ShellTape};

use crate::lock::Lock;
use crate::time::after;
use crate::{ExecReport, Session, now_ms, random_text};
use cofferdam_core::{
    EndingKind, Error, ErrorKind, ExecInput, ExecStatus, Part, ProcessId, Result, Seen, Standard,
    Stdin,
};
use frame::{Word, cut, directory, frame, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::Instant;

/// Leads the ids of commands that are shells.
const SHELL: &str = "shell-";
/// The longest name of a shell.
const MAX_NAME: usize = 32;
/// The longest text of one command, in bytes.
pub const MAX_SHELL_TEXT: usize = 256 << 10;
/// How much of a shell's channel is read from its end: thousands of commands.
const CHANNEL_BYTES: u32 = 128 << 10;
/// How long a command may take to begin in a shell that is not busy.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);
/// How long the end of some output may come after the word that its command ended.
const OUTPUT_WITHIN: Duration = Duration::from_secs(5);
/// How long one question waits for news.
const PATIENCE: Duration = Duration::from_secs(20);
/// Starts the driver under bash where there is one, else under sh.
const START: &str = "if command -v bash >/dev/null 2>&1; then s='bash --noprofile --norc'; \
     else s=sh; fi; exec $s -c \"$0\" shell \"$@\"";
const DRIVER: &str = include_str!("driver.sh");
const SIGINT: i32 = 2;

/// A shell that stays.
#[derive(Debug, Clone)]
pub struct Shell {
    session: Session,
    name: String,
    exec: ProcessId,
}

/// A command of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShellTicket {
    /// Its number, growing within a shell.
    pub seq: u64,
    /// Where its output begins in that of the shell, in bytes.
    pub offset: u64,
}

/// How a command of a shell stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellOutput {
    /// Its exit code; `None` while it runs, and where the shell died with it.
    pub exit_code: Option<i32>,
    /// How the shell ended, if it is dead.
    pub died: Option<EndingKind>,
    /// The exit code that stands for the shell's ending, if it is dead.
    pub died_code: Option<i32>,
    /// What it wrote, both streams in one, up to the most that was wanted.
    pub output: Vec<u8>,
    /// Whether more was written than is in here.
    pub is_cut: bool,
}

/// A shell. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellReport {
    /// Its name.
    pub name: String,
    /// The command that it is.
    pub exec: ExecReport,
}

impl Session {
    /// The shell of this name, started if there is none that lives.
    pub async fn shell(&self, name: &str) -> Result<Shell> {
        check_name(name)?;
        let _lock = self.shell_lock(name).await?;
        if let Some(report) = self.shells().await?.into_iter().find(|shell| shell.name == name)
            && report.exec.ending.is_none()
        {
            return self.shell_of(name, report.exec.id);
        }
        let key = random_text()?;
        let id = ProcessId::new(format!("{SHELL}{name}-{key}"))?;
        let argv = ["/bin/sh", "-c", START, DRIVER, &key, &fifo(name)];
        let mut order = Self::order(argv)?;
        order.command.id = id.clone();
        order.command.stdin = Stdin::Piped;
        order.detached = true;
        self.start(&order).await?;
        self.shell_of(name, id.to_string())
    }

    /// The latest shell of this name, dead or alive. Starts nothing.
    pub async fn find_shell(&self, name: &str) -> Result<Shell> {
        check_name(name)?;
        let found = self.shells().await?.into_iter().find(|shell| shell.name == name);
        let found = found.ok_or_else(|| {
            let what = format!("session {} has no shell {name:?}", self.id());
            Error::new(ErrorKind::NotFound, what).hint("Open it first.")
        })?;
        self.shell_of(name, found.exec.id)
    }

    /// The latest shell of each name, dead ones included.
    pub async fn shells(&self) -> Result<Vec<ShellReport>> {
        let mut found: Vec<ShellReport> = Vec::new();
        for exec in self.execs().await? {
            let named = exec.id.strip_prefix(SHELL).and_then(|rest| rest.rsplit_once('-'));
            let Some(name) = named.map(|(name, _)| name.to_owned()) else { continue };
            found.retain(|shell| shell.name != name);
            found.push(ShellReport { name, exec });
        }
        Ok(found)
    }

    fn shell_of(&self, name: &str, exec: String) -> Result<Shell> {
        let exec = ProcessId::new(exec)?;
        Ok(Shell { session: self.clone(), name: name.to_owned(), exec })
    }

    async fn shell_lock(&self, name: &str) -> Result<AtWork> {
        let key = format!("{}.shell-{name}", self.id());
        let lock = self.sessions.0.locks.take(&key, BEGINS_WITHIN * 2).await?;
        Ok(AtWork(Some(lock)))
    }
}

/// Keeps others from a shell. Names of shells are many and nobody counts them, so that no file of one stays.
struct AtWork(Option<Lock>);

impl Drop for AtWork {
    fn drop(&mut self) {
        if let Some(lock) = self.0.take() {
            lock.retire();
        }
    }
}

impl Shell {
    /// The random word in its marks.
    fn key(&self) -> &str {
        self.exec.as_str().rsplit('-').next().unwrap_or_default()
    }

    /// The command that it is. Its standard output is what all its commands wrote.
    pub fn exec(&self) -> &ProcessId {
        &self.exec
    }

    /// Runs a command and waits for its end, or until `patience` is over: then it goes on, and
    /// [`Shell::check`] asks for more. At most so many bytes of output are returned.
    pub async fn run(
        &self,
        text: &[u8],
        patience: Duration,
        max_bytes: usize,
    ) -> Result<(ShellTicket, ShellOutput)> {
        let ticket = self.send(text, false).await?;
        let output = self.check(ticket, patience, max_bytes).await?;
        Ok((ticket, output))
    }

    /// Starts a command and returns when it began. One that takes input reads what
    /// [`Shell::input`] writes, and no end of it; another one reads nothing.
    ///
    /// A shell that runs a command already is a conflict, and so is one that is dead.
    pub async fn send(&self, text: &[u8], takes_input: bool) -> Result<ShellTicket> {
        if text.len() > MAX_SHELL_TEXT || text.contains(&0) {
            let what =
                format!("a command of a shell has a NUL byte or over {MAX_SHELL_TEXT} bytes");
            return Err(Error::new(ErrorKind::Usage, what).hint("Write it to a file and run that."));
        }
        let _lock = self.session.shell_lock(&self.name).await?;
        let (status, heard) = self.hear(Seen::default(), Duration::ZERO).await?;
        if let Some(ended) = &status.ended {
            let what = format!(
                "shell {:?} is dead: {} ({})",
                self.name,
                name_of(ended.ending.kind()),
                ended.ending.exit_code()
            );
            return Err(Error::new(ErrorKind::Conflict, what).hint("Open it again."));
        }
        let last = match heard.last() {
            Some(Word::Began(_)) => {
                let what = format!("shell {:?} runs a command already", self.name);
                return Err(Error::new(ErrorKind::Conflict, what)
                    .hint("Wait for it, interrupt it, or open another shell."));
            }
            Some(Word::Ended(seq, _)) => *seq,
            None => 0,
        };
        // Times are different for all who send, so that no two commands have one number.
        let seq = now_ms().saturating_mul(1000).max(last + 1);
        let ticket = ShellTicket { seq, offset: status.stdout.written };
        let bytes = ExecInput::Bytes(frame(seq, takes_input, text));
        if self.session.input(&self.exec, &bytes).await.is_err() {
            // A frame that comes twice is taken once.
            self.session.input(&self.exec, &bytes).await?;
        }
        self.begun(seq, status).await?;
        Ok(ticket)
    }

    /// Waits until a command has begun, or the shell died of it.
    async fn begun(&self, seq: u64, mut status: ExecStatus) -> Result<()> {
        let deadline = Instant::now() + BEGINS_WITHIN;
        while Instant::now() < deadline {
            let seen = Seen { stdout: u64::MAX, stderr: status.stderr.written, ..Seen::default() };
            let (now, heard) = self.hear(seen, Duration::from_secs(1)).await?;
            if now.ended.is_some() || heard.contains(&Word::Began(seq)) {
                return Ok(());
            }
            status = now;
        }
        let what = format!("shell {:?} does not begin with the command", self.name);
        Err(Error::new(ErrorKind::Unavailable, what).hint("Interrupt the shell, or terminate it."))
    }

    /// Waits for the end of a command, or until `patience` is over, and says how it stands.
    pub async fn check(
        &self,
        ticket: ShellTicket,
        patience: Duration,
        max_bytes: usize,
    ) -> Result<ShellOutput> {
        let deadline = after(patience);
        let mut seen = Seen::default();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (status, heard) = self.hear(seen, left.min(PATIENCE)).await?;
            let code = heard.iter().find_map(|word| match word {
                Word::Ended(seq, code) if *seq == ticket.seq => Some(*code),
                Word::Ended(..) | Word::Began(_) => None,
            });
            if code.is_some() || status.ended.is_some() || left.is_zero() {
                let is_whole = code.is_some();
                let (output, is_cut) = self.output(ticket, max_bytes, is_whole).await?;
                let died = status.ended.as_ref().map(|ended| ended.ending.kind());
                let died_code = status.ended.map(|ended| ended.ending.exit_code());
                return Ok(ShellOutput { exit_code: code, died, died_code, output, is_cut });
            }
            seen = Seen { stdout: u64::MAX, stderr: status.stderr.written, ..Seen::default() };
        }
    }

    /// The command that began last, with so much of the end of the shell's output: for who did not keep
    /// its ticket. Nothing where none began.
    pub async fn latest(&self, tail_bytes: u64) -> Result<Option<ShellTicket>> {
        let (status, heard) = self.hear(Seen::default(), Duration::ZERO).await?;
        let offset = status.stdout.written.saturating_sub(tail_bytes);
        Ok(heard.last().map(|word| match word {
            Word::Began(seq) | Word::Ended(seq, _) => ShellTicket { seq: *seq, offset },
        }))
    }

    /// The directory that a command began in, as far as the shell can say it.
    pub async fn directory(&self, ticket: ShellTicket) -> Result<Option<String>> {
        let status = self.session.wait(&self.exec, Some(Duration::ZERO)).await?;
        Ok(directory(&self.channel(&status).await?, ticket.seq))
    }

    /// Writes to the command that runs, if it takes input.
    pub async fn input(&self, bytes: &[u8]) -> Result<()> {
        let script = format!("exec cat >\"$HOME/{}\"", fifo(&self.name));
        let mut order = Session::order(["/bin/sh", "-c", &script])?;
        order.command.stdin = Stdin::Piped;
        order.command.timeout = Some(PATIENCE);
        let writer = self.session.start(&order).await?.id;
        self.session.input(&writer, &ExecInput::Bytes(bytes.to_vec())).await?;
        self.session.input(&writer, &ExecInput::Close).await?;
        let ended = self.session.wait(&writer, Some(PATIENCE * 2)).await?.ended;
        match ended.map(|ended| ended.ending.exit_code()) {
            Some(0) => Ok(()),
            _ => {
                let what = format!("shell {:?} took no input", self.name);
                Err(Error::new(ErrorKind::Unavailable, what).hint("Look whether it is dead."))
            }
        }
    }

    /// Interrupts the command that runs, as by Ctrl-C. The shell goes on.
    pub async fn interrupt(&self) -> Result<()> {
        self.session.signal(&self.exec, SIGINT).await
    }

    /// Kills the shell and all that runs in it, or that it left. Repeating it succeeds.
    pub async fn terminate(&self) -> Result<()> {
        self.session.input(&self.exec, &ExecInput::Kill).await?;
        self.session.wait(&self.exec, Some(PATIENCE)).await.map(|_| ())
    }

    /// Waits for news, and says what the shell said last.
    async fn hear(&self, seen: Seen, patience: Duration) -> Result<(ExecStatus, Vec<Word>)> {
        // Whoever knows something has asked before, and woken the session then.
        let status = match seen == Seen::default() {
            true => self.session.follow(&self.exec, seen, patience).await?,
            false => self.session.follow_on(&self.exec, seen, patience).await?,
        };
        let heard = words(&self.channel(&status).await?);
        Ok((status, heard))
    }

    /// The end of what the driver said.
    async fn channel(&self, status: &ExecStatus) -> Result<Vec<u8>> {
        let offset = status.stderr.written.saturating_sub(CHANNEL_BYTES.into());
        let part = Part { stream: Standard::Error, offset, len: CHANNEL_BYTES };
        Ok(self.session.read(&self.exec, part).await?.bytes)
    }

    /// The output of a command so far, and whether it was cut. Where the command has ended its mark
    /// is waited for, since the streams come one by one.
    async fn output(
        &self,
        ticket: ShellTicket,
        max_bytes: usize,
        is_whole: bool,
    ) -> Result<(Vec<u8>, bool)> {
        let key = self.key();
        let deadline = Instant::now() + OUTPUT_WITHIN;
        // What comes before the beginning and after the end has to fit too.
        let room = max_bytes.saturating_add(1024);
        let mut read = Vec::new();
        loop {
            let len = u32::try_from(room - read.len()).unwrap_or(u32::MAX).min(256 << 10);
            let offset = ticket.offset + read.len() as u64;
            let part = Part { stream: Standard::Output, offset, len };
            let chunk = self.session.read(&self.exec, part).await?;
            let nothing = chunk.bytes.is_empty() || chunk.offset != offset;
            if !nothing {
                read.extend(chunk.bytes);
            }
            let (mut output, marked) = cut(&read, key, ticket.seq);
            let full = read.len() >= room;
            let patient = is_whole && Instant::now() < deadline;
            if marked || full || nothing && !patient {
                let is_cut = output.len() > max_bytes || full && !marked;
                output.truncate(max_bytes);
                return Ok((output, is_cut));
            }
            if nothing {
                let seen = Seen { stdout: offset, stderr: u64::MAX, ..Seen::default() };
                self.session.follow_on(&self.exec, seen, Duration::from_millis(100)).await?;
            }
        }
    }
}

fn check_name(name: &str) -> Result<()> {
    let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(good) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Usage, format!("{name:?} cannot be the name of a shell"))
        .hint(format!("Use 1 to {MAX_NAME} letters, digits, '-' or '_'.")))
}

/// Where the input of a shell's commands comes from, below the home directory.
fn fifo(name: &str) -> String {
    format!(".cofferdam-shell-{name}")
}

fn name_of(ending: EndingKind) -> String {
    let json = serde_json::to_value(ending).unwrap_or_default();
    json.as_str().unwrap_or("ended").to_owned()
}
