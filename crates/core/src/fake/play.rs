//! The steps of a command.

use super::Fault;
use super::inside::Inside;
use crate::{Cause, Command, Ending, ProcessEvent, Standard, Terminal};
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Bytes of standard input.
pub(super) type Received = Vec<u8>;

/// How much output passes where the rest is lost.
const UNCOUNTED_BYTES: usize = 64 << 10;

/// The most that is written at once.
const PIECE_BYTES: usize = 64 << 10;

/// One command that is played.
pub(super) struct Player {
    inside: Arc<Inside>,
    command: Command,
    events: mpsc::Sender<ProcessEvent>,
    stdin: mpsc::UnboundedReceiver<Received>,
    sizes: watch::Receiver<Option<Terminal>>,
    written: [u64; 2],
}

/// Whether a command goes on after a step.
enum Next {
    Step,
    Ends(Ending),
}

impl Player {
    pub(super) fn new(
        inside: Arc<Inside>,
        command: Command,
        events: mpsc::Sender<ProcessEvent>,
        stdin: mpsc::UnboundedReceiver<Received>,
        sizes: watch::Receiver<Option<Terminal>>,
    ) -> Self {
        Self { inside, command, events, stdin, sizes, written: [0; 2] }
    }

    pub(super) async fn play(&mut self) -> Ending {
        let name = self.command.argv.first().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if let Some(cwd) = self.command.cwd.as_ref().filter(|cwd| !is_workspace(cwd)) {
            let detail = format!("{}: no such directory", cwd.to_string_lossy());
            return Ending::NotStarted { code: 125, detail };
        }
        let steps = match self.inside.programs.get(&name) {
            Some(steps) => steps.clone(),
            None => {
                let words = self.command.argv.iter();
                words.map(|word| word.to_string_lossy().into_owned()).collect()
            }
        };
        for step in steps {
            match self.step(&step).await {
                Next::Step => {}
                Next::Ends(ending) => return ending,
            }
        }
        Ending::Exited(0)
    }

    fn listen(&self, port: u64) {
        let port = u16::try_from(port).unwrap_or(0);
        self.inside.state().ports.insert(port, self.command.id.clone());
    }

    async fn step(&mut self, step: &str) -> Next {
        let (word, value) = step.split_once('=').unwrap_or((step, ""));
        match word {
            "out" => self.write(Standard::Output, value.as_bytes()).await,
            "err" => self.write(Standard::Error, value.as_bytes()).await,
            "every-byte" => {
                let bytes: Vec<u8> = (0..=u8::MAX).collect();
                self.write(Standard::Output, &bytes).await;
            }
            "bytes" => self.flood(number(value)).await,
            "cat" => {
                while let Some(bytes) = self.stdin.recv().await {
                    self.write(Standard::Output, &bytes).await;
                }
            }
            "sleep" => tokio::time::sleep(Duration::from_millis(number(value))).await,
            "listen" => self.listen(number(value)),
            "child" => {
                let child = (value.to_owned(), self.command.id.clone());
                self.inside.state().children.push(child);
            }
            "children" => self.say(self.inside.children_called(value)).await,
            "env" => {
                let name = OsStr::new(value);
                let found = self.command.env.get(name).or_else(|| self.inside.env.get(name));
                let found = found.map(|found| found.to_string_lossy().into_owned());
                self.say(found.unwrap_or_default()).await;
            }
            "resized" => {
                let lost = self.inside.has(Fault::ResizeLost);
                if lost || self.sizes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                let size = *self.sizes.borrow();
                if let Some(Terminal { rows, columns }) = size {
                    self.say(format!("{rows} {columns}")).await;
                }
            }
            "read" => return self.read(value).await,
            "write" => return self.write_file(value),
            "link" => return self.link(value),
            "memory" => return self.use_memory(number(value)),
            "processes" => return self.make_processes(number(value)),
            "sees" => return exit_unless(value == "1" || self.inside.has(Fault::HostPidVisible)),
            "terminal" => {
                let given = self.command.terminal.is_some();
                return exit_unless(given && !self.inside.has(Fault::TerminalPretended));
            }
            "signal" => return Next::Ends(Ending::Signaled(number(value).try_into().unwrap_or(9))),
            "exit" => return Next::Ends(Ending::Exited(number(value).try_into().unwrap_or(0))),
            _ => {
                let detail = format!("{step}: no such program");
                return Next::Ends(Ending::NotStarted { code: 127, detail });
            }
        }
        Next::Step
    }

    async fn read(&mut self, path: &str) -> Next {
        let found = self.inside.files.get(path);
        let is_found = found.is_some();
        if let Some(bytes) = found {
            self.say(String::from_utf8_lossy(&bytes)).await;
        } else if self.inside.has(Fault::HostFileReadable) {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            self.say(text).await;
        }
        exit_unless(is_found)
    }

    fn write_file(&self, path: &str) -> Next {
        exit_unless(self.inside.files.put(path, b"written"))
    }

    fn link(&self, words: &str) -> Next {
        let (path, target) = words.split_once(':').unwrap_or((words, ""));
        exit_unless(self.inside.files.link(path, target))
    }

    fn use_memory(&self, bytes: u64) -> Next {
        match bytes > self.inside.limits.memory_bytes.value() {
            true => Next::Ends(Ending::Killed(Cause::Memory)),
            false => Next::Step,
        }
    }

    fn make_processes(&self, count: u64) -> Next {
        let limit = u64::from(self.inside.limits.pids.value());
        match count >= limit && !self.inside.has(Fault::PidsUnlimited) {
            true => Next::Ends(Ending::Killed(Cause::Pids { code: 1 })),
            false => Next::Step,
        }
    }

    async fn say(&mut self, what: impl Display) {
        self.write(Standard::Output, format!("{what}\n").as_bytes()).await;
    }

    async fn flood(&mut self, mut left: u64) {
        let piece = vec![b'x'; PIECE_BYTES];
        while left > 0 {
            let len = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            self.write(Standard::Output, piece.get(..len).unwrap_or_default()).await;
            left -= len as u64;
        }
    }

    async fn write(&mut self, stream: Standard, bytes: &[u8]) {
        let merged = self.command.terminal.is_some() || self.inside.has(Fault::MergesStreams);
        let stream = if merged { Standard::Output } else { stream };
        let written = match stream {
            Standard::Output => &mut self.written[0],
            Standard::Error => &mut self.written[1],
        };
        let offset = *written;
        if self.inside.has(Fault::OutputUncounted) && offset >= UNCOUNTED_BYTES as u64 {
            return;
        }
        if self.inside.has(Fault::PartialOutputLost) && self.command.timeout.is_some() {
            return;
        }
        let mut bytes = bytes.to_vec();
        if self.inside.has(Fault::DropsBytes) {
            bytes.retain(|byte| byte.is_ascii() && *byte != 0);
        }
        *written += bytes.len() as u64;
        let event = ProcessEvent::Output { stream, offset, bytes };
        if self.inside.has(Fault::SlowReaderBlocksAll) {
            let _line = self.inside.line.lock().await;
            self.events.send(event).await.ok();
        } else {
            self.events.send(event).await.ok();
        }
    }
}

/// Whether this is the workspace, from there or from the root. A point in the middle changes nothing.
fn is_workspace(cwd: &OsStr) -> bool {
    let workspace = Path::new("/workspace");
    workspace.join(cwd).components().eq(workspace.components())
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// Goes on, or exits 1.
fn exit_unless(good: bool) -> Next {
    if good { Next::Step } else { Next::Ends(Ending::Exited(1)) }
}
