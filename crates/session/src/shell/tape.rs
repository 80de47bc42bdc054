//! What a shell writes, from any place on, and where its commands end.

use super::frame::{Piece, Word, longest_mark, pieces};
use super::{OUTPUT_WITHIN, Shell};
use crate::time::after;
use cofferdam_core::{EndingKind, Part, Result, Seen, Standard};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How much is read at once.
const PIECE_BYTES: u32 = 64 << 10;

/// What a shell writes, in order. It is read from what is kept on disk, so that nobody waits for whoever
/// reads it, and it can be read again from every place that it names.
#[derive(Debug)]
pub struct ShellTape {
    shell: Shell,
    /// Where the next read begins.
    at: u64,
    /// What lies before is known already.
    from: u64,
    /// What may be the beginning of a mark.
    held: Vec<u8>,
    /// What was read already.
    read: VecDeque<ShellNews>,
    /// Whether somebody waits for it already: a session that was paused meanwhile stays so.
    is_begun: bool,
    is_over: bool,
}

/// The next thing on a tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellNews {
    /// Output of commands, both streams in one.
    Output {
        /// Where it begins.
        offset: u64,
        /// What it is.
        bytes: Vec<u8>,
    },
    /// What was written from here on is not kept any more.
    Dropped {
        /// The first place that is gone.
        offset: u64,
        /// The first place that is kept.
        next: u64,
    },
    /// A command ended.
    Ended {
        /// Its number.
        seq: u64,
        /// Its exit code, where it is known still.
        exit_code: Option<i32>,
        /// Where the output of the next one begins.
        next: u64,
    },
    /// The shell ended. Nothing follows.
    Died {
        /// How.
        ending: EndingKind,
    },
}

impl Shell {
    /// What it writes from this place on: 0 is the beginning. In the middle of a mark it is that mark.
    pub fn tape(&self, from: u64) -> ShellTape {
        let shell = self.clone();
        // What is read from its middle on would be taken for output.
        let at = from.saturating_sub(longest_mark(shell.key()));
        ShellTape {
            shell,
            at,
            from,
            held: Vec::new(),
            read: VecDeque::new(),
            is_begun: false,
            is_over: false,
        }
    }
}

impl ShellTape {
    /// The next thing; `None` where nothing came until `patience` was over, and after the last. A call
    /// that is given up loses nothing.
    pub async fn next(&mut self, patience: Duration) -> Result<Option<ShellNews>> {
        let deadline = after(patience);
        loop {
            if let Some(news) = self.read.pop_front() {
                return self.told(news).await.map(Some);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if self.is_over || !self.fill(left).await? && left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// Adds what a piece alone does not say. It is put back where that fails or is given up.
    async fn told(&mut self, news: ShellNews) -> Result<ShellNews> {
        let ShellNews::Ended { seq, next, .. } = news else { return Ok(news) };
        self.read.push_front(news);
        let exit_code = self.exit_code(seq).await?;
        self.read.pop_front();
        Ok(ShellNews::Ended { seq, exit_code, next })
    }

    /// Reads what is there, or waits for more. Whether something came.
    async fn fill(&mut self, patience: Duration) -> Result<bool> {
        let Shell { session, exec, .. } = &self.shell;
        let part = Part { stream: Standard::Output, offset: self.at, len: PIECE_BYTES };
        let chunk = session.read(exec, part).await?;
        if !chunk.bytes.is_empty() {
            self.add(chunk.offset, &chunk.bytes);
            return Ok(true);
        }
        let seen = Seen { stdout: self.at, stderr: u64::MAX, ..Seen::default() };
        let status = match self.is_begun {
            false => session.follow(exec, seen, patience).await?,
            true => session.follow_on(exec, seen, patience).await?,
        };
        self.is_begun = true;
        if let Some(ended) = status.ended.filter(|_| status.stdout.written <= self.at) {
            self.release();
            self.read.push_back(ShellNews::Died { ending: ended.ending.kind() });
            self.is_over = true;
            return Ok(true);
        }
        if status.stdout.written > self.at && status.stdout.dropped >= status.stdout.written {
            // All of it is gone, and nothing new was written.
            self.add(status.stdout.written, b"");
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes in what was read.
    fn add(&mut self, offset: u64, bytes: &[u8]) {
        if offset > self.at {
            self.release();
            if offset > self.from {
                let gone = self.at.max(self.from);
                self.read.push_back(ShellNews::Dropped { offset: gone, next: offset });
            }
            self.at = offset;
        }
        let mut place = self.at - self.held.len() as u64;
        self.at += bytes.len() as u64;
        self.held.extend_from_slice(bytes);
        let (found, rest) = pieces(&self.held, self.shell.key());
        for piece in found {
            match piece {
                Piece::Output(bytes) => {
                    let offset = place;
                    place += bytes.len() as u64;
                    self.output(offset, bytes);
                }
                Piece::Mark { seq, len } => {
                    place += len as u64;
                    if place > self.from {
                        let ended = ShellNews::Ended { seq, exit_code: None, next: place };
                        self.read.push_back(ended);
                    }
                }
            }
        }
        self.held = rest;
    }

    /// Lets go of what turned out to be no mark.
    fn release(&mut self) {
        let bytes = std::mem::take(&mut self.held);
        let offset = self.at - bytes.len() as u64;
        self.output(offset, bytes);
    }

    /// Takes in output, but for what is known already.
    fn output(&mut self, offset: u64, mut bytes: Vec<u8>) {
        let known = self.from.saturating_sub(offset).min(bytes.len() as u64);
        bytes.drain(..usize::try_from(known).unwrap_or(bytes.len()));
        if !bytes.is_empty() {
            self.read.push_back(ShellNews::Output { offset: offset + known, bytes });
        }
    }

    /// The exit code of a command whose mark was read. The word of it may come a moment later.
    async fn exit_code(&self, seq: u64) -> Result<Option<i32>> {
        let deadline = Instant::now() + OUTPUT_WITHIN;
        let mut seen = Seen::default();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (status, heard) = self.shell.hear(seen, left).await?;
            let mut is_past = false;
            for word in &heard {
                match word {
                    Word::Ended(of, code) if *of == seq => return Ok(Some(*code)),
                    Word::Ended(of, _) | Word::Began(of) => is_past |= *of > seq,
                }
            }
            if is_past || status.ended.is_some() || left.is_zero() {
                return Ok(None);
            }
            seen = Seen { stdout: u64::MAX, stderr: status.stderr.written, ..Seen::default() };
        }
    }
}
