//! Events of a command, put together.

use crate::{
    Command, Ending, Error, ErrorKind, Guest, Killer, Omitted, Process, ProcessEvent, Standard,
    Stdin,
};

/// What came of a command whose output was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The first bytes of standard output; for a terminal, of all output.
    pub stdout: Vec<u8>,
    /// The first bytes of standard error.
    pub stderr: Vec<u8>,
    /// How many bytes followed those and were dropped.
    pub omitted: Omitted,
    /// How it ended.
    pub ending: Ending,
    /// Processor time, if known, in microseconds.
    pub cpu_us: Option<u64>,
    /// The most memory that one of its processes held, if known, in bytes.
    pub peak_memory_bytes: Option<u64>,
}

/// What is left of a command whose sandbox went away before it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The first bytes of standard output.
    pub stdout: Vec<u8>,
    /// The first bytes of standard error.
    pub stderr: Vec<u8>,
    /// How many bytes followed those and were dropped.
    pub omitted: Omitted,
}

impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        let bytes = lost.stdout.len() + lost.stderr.len();
        Self::new(
            ErrorKind::Unavailable,
            format!(
                "the sandbox went away before its command ended, after {bytes} bytes of output"
            ),
        )
    }
}

/// Reads a command to its end, and keeps the first `cap` bytes of each stream.
///
/// It goes on reading past the cap, so that the command is never stopped by it. Standard input is
/// closed first; a caller who writes to it must use a [`Collector`]. Giving up the call does not
/// end the command.
pub async fn collect(process: Process, cap: usize) -> Result<Output, Lost> {
    let Process { mut events, input, .. } = process;
    drop(input);
    let mut collector = Collector::new(cap);
    while let Some(event) = events.recv().await {
        if let Some(output) = collector.push(event) {
            return Ok(output);
        }
    }
    Err(collector.lost())
}

/// [`Guest::run`] by [`Guest::spawn`], for guests that have no shorter way.
pub async fn run_by_spawning<G: Guest + ?Sized>(
    guest: &G,
    command: &Command,
    kept: usize,
) -> Result<Output, Error> {
    let command = Command { stdin: Stdin::Null, ..command.clone() };
    let process = guest.spawn(&command).await?;
    let _given_up = KillOnDrop(process.killer.clone());
    collect(process, kept).await.map_err(Error::from)
}

/// A command whose caller may give up. Killing what has ended does nothing.
#[derive(Debug)]
pub struct KillOnDrop(pub Killer);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Takes events one by one.
#[derive(Debug)]
pub struct Collector {
    cap: usize,
    stdout: Kept,
    stderr: Kept,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    /// Where the first event was; what came before it, somebody else took.
    base: Option<u64>,
    seen: u64,
}

impl Collector {
    /// Keeps the first `cap` bytes of each stream.
    pub fn new(cap: usize) -> Self {
        Self { cap, stdout: Kept::default(), stderr: Kept::default() }
    }

    /// Takes the next event; gives the whole when it was the last one.
    pub fn push(&mut self, event: ProcessEvent) -> Option<Output> {
        match event {
            ProcessEvent::Output { stream, offset, bytes } => {
                let kept = match stream {
                    Standard::Output => &mut self.stdout,
                    Standard::Error => &mut self.stderr,
                };
                kept.take(self.cap, offset, bytes);
                None
            }
            ProcessEvent::Ended { ending, cpu_us, peak_memory_bytes } => {
                let Lost { stdout, stderr, omitted } = self.take();
                Some(Output { stdout, stderr, omitted, ending, cpu_us, peak_memory_bytes })
            }
        }
    }

    /// What there is, where the events stopped without an ending.
    pub fn lost(mut self) -> Lost {
        self.take()
    }

    fn take(&mut self) -> Lost {
        let stdout = std::mem::take(&mut self.stdout);
        let stderr = std::mem::take(&mut self.stderr);
        let omitted = Omitted { stdout: stdout.omitted(), stderr: stderr.omitted() };
        Lost { stdout: stdout.bytes, stderr: stderr.bytes, omitted }
    }
}

impl Kept {
    fn take(&mut self, cap: usize, offset: u64, bytes: Vec<u8>) {
        // INVARIANT: `bytes` is the unbroken head of the stream. After a gap nothing is kept, and
        // what is missing counts as omitted.
        let offset = offset.saturating_sub(*self.base.get_or_insert(offset));
        let whole = self.seen == self.bytes.len() as u64 && offset == self.seen;
        self.seen = self.seen.max(offset.saturating_add(bytes.len() as u64));
        let room = cap.saturating_sub(self.bytes.len());
        if !whole || room == 0 {
            return;
        }
        if self.bytes.is_empty() && bytes.len() <= room {
            self.bytes = bytes;
        } else {
            self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
        }
    }

    fn omitted(&self) -> u64 {
        self.seen.saturating_sub(self.bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(offset: u64, bytes: &[u8]) -> ProcessEvent {
        ProcessEvent::Output { stream: Standard::Output, offset, bytes: bytes.to_vec() }
    }

    fn check(cap: usize, events: &[(u64, &[u8])], kept: &[u8], omitted: u64) {
        let mut collector = Collector::new(cap);
        for (offset, bytes) in events {
            assert_eq!(collector.push(out(*offset, bytes)), None);
        }
        let end = ProcessEvent::Ended {
            ending: Ending::Exited(0),
            cpu_us: None,
            peak_memory_bytes: None,
        };
        let output = collector.push(end).unwrap();
        assert_eq!((output.stdout.as_slice(), output.omitted.stdout), (kept, omitted));
        assert_eq!((output.stderr.as_slice(), output.omitted.stderr), (&b""[..], 0));
    }

    #[test]
    fn what_is_kept_and_what_is_omitted_add_up() {
        check(4, &[(0, b"abc"), (3, b"def"), (6, b"g")], b"abcd", 3);
        check(100, &[(0, b"abc"), (3, b"def")], b"abcdef", 0);
        check(3, &[(0, b"abc")], b"abc", 0);
        check(0, &[(0, b"abc")], b"", 3);
        check(100, &[], b"", 0);
    }

    #[test]
    fn a_collector_may_begin_amid_the_output() {
        check(4, &[(10, b"abc"), (13, b"def")], b"abcd", 2);
    }

    #[test]
    fn bytes_that_never_came_are_omitted_and_nothing_is_glued_over_the_gap() {
        check(100, &[(0, b"abc"), (5, b"def")], b"abc", 5);
    }

    #[tokio::test]
    async fn a_sandbox_that_goes_away_leaves_the_output_so_far() {
        let (send, events) = tokio::sync::mpsc::channel(2);
        let (input, _) = tokio::sync::mpsc::channel(1);
        let id = crate::ProcessId::new("a").unwrap();
        send.send(out(0, b"abc")).await.unwrap();
        drop(send);
        let process = Process { id, events, input, killer: crate::Killer::default() };
        let lost = collect(process, 10).await.unwrap_err();
        assert_eq!(lost.stdout, b"abc");
        assert_eq!(Error::from(lost).kind, ErrorKind::Unavailable);
    }
}
