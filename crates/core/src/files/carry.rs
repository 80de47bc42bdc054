//! Many changes at once, whole or not at all.

use super::failure::is_answer;
use super::{Body, Files, unasked};
use crate::{Error, ErrorKind, Result};
use cofferdam_wire::files::{Answer, Carry, CarryEnd, MAX_CARRIED_BYTES, MAX_STEPS, Request, Step};
use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};

/// How often it is asked what has become of a carry whose worker is not gone yet, and how long between.
const ASKED: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(50);

/// A step, and what goes with it.
#[derive(Debug)]
pub struct Load {
    /// The step. How many bytes a file has is taken from its content.
    pub step: Step,
    /// What a file holds; nothing for every other step.
    pub content: Content,
}

/// What a file is to hold.
pub enum Content {
    /// Nothing.
    Nothing,
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// So many bytes of a regular file of the host, from where it is opened at. Fewer fail the carry.
    Later {
        /// Opens it when its turn comes.
        open: Box<dyn FnOnce() -> io::Result<std::fs::File> + Send>,
        /// How many bytes.
        bytes: u64,
    },
}

impl From<Step> for Load {
    fn from(step: Step) -> Self {
        Self { step, content: Content::Nothing }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl Content {
    fn len(&self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Later { bytes, .. } => *bytes,
        }
    }
}

impl Files {
    /// Carries all steps out, or none, and answers how many there were.
    ///
    /// Everything that is expected is looked at before anything is changed, and what is replaced or goes
    /// is looked at again when nobody reaches it by its name any more. Whatever fails, what was done is
    /// taken back. If the worker is killed, another one takes it back. If that cannot be found out, the
    /// error says so; then too there is all or nothing, once the next carry has begun.
    pub async fn carry(&self, load: Vec<Load>) -> Result<u64> {
        let expected: Vec<Step> = load.iter().filter_map(|load| expectation(&load.step)).collect();
        let count = load.len() as u64;
        let order = Carry { name: new_name() };
        let request = Request::Carry(order.clone());
        let mut source = Source::new(load)?;
        match self.call(request.clone(), Body::Source(&mut source)).await {
            Ok(Answer::Carried { steps }) => Ok(steps),
            Ok(answer) => Err(unasked(&answer)),
            Err(error) if is_answer(&request, &error) => Err(error),
            Err(error) if source.is_ours() => Err(unchanged(error)),
            Err(error) => self.find_out(order, error, expected).await.map(|()| count),
        }
    }

    /// What has become of a carry of which nothing more was heard. Succeeds if it was done.
    async fn find_out(&self, order: Carry, error: Error, expected: Vec<Step>) -> Result<()> {
        if error.kind == ErrorKind::Unsupported {
            return Err(error);
        }
        for _ in 0..ASKED {
            match self.ask(Request::Recover(order.clone())).await {
                Ok(Answer::Recovered(CarryEnd::Done)) => return Ok(()),
                Ok(Answer::Recovered(CarryEnd::Undone)) => return Err(unchanged(error)),
                // Who dies may need a moment, and whoever kills workers may do it again.
                Ok(Answer::Recovered(CarryEnd::Busy)) => tokio::time::sleep(BETWEEN).await,
                Err(error) if error.kind == ErrorKind::Unavailable => {
                    tokio::time::sleep(BETWEEN).await;
                }
                Ok(Answer::Recovered(CarryEnd::NoTrace)) => {
                    return match self.is_as_expected(expected).await {
                        Ok(()) => Err(unchanged(error)),
                        Err(_) => Err(unknown(error)),
                    };
                }
                Ok(answer) => return Err(unasked(&answer)),
                // What is left stays until it can be put right.
                Err(_) => return Err(unknown(error)),
            }
        }
        Err(unknown(error))
    }

    async fn is_as_expected(&self, expected: Vec<Step>) -> Result<()> {
        if expected.is_empty() {
            return Err(Error::new(ErrorKind::Conflict, "nothing was expected"));
        }
        let load = expected.into_iter().map(Load::from).collect();
        let order = Carry { name: new_name() };
        self.call(Request::Carry(order), Body::Source(&mut Source::new(load)?)).await.map(drop)
    }
}

fn unchanged(mut error: Error) -> Error {
    error.message.push_str("; nothing was changed");
    error
}

fn unknown(mut error: Error) -> Error {
    error.message.push_str("; it is not known whether the files were changed, all of them or none");
    error.hint = Some("Look at the files, then decide anew.".to_owned());
    error
}

fn expectation(step: &Step) -> Option<Step> {
    match step {
        Step::Expect { .. } => Some(step.clone()),
        Step::File { .. }
        | Step::Link { .. }
        | Step::Directory { .. }
        | Step::Remove { .. }
        | Step::RemoveDirectory { .. }
        | Step::Rename { .. } => None,
    }
}

/// A name that no other carry has.
fn new_name() -> String {
    // The standard library seeds these from the system's source of randomness.
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}

/// The steps as they are sent.
struct Source {
    /// What is left, each part behind the one before.
    parts: VecDeque<Part>,
    /// Whether anything was taken.
    begun: bool,
    /// Whether what went wrong went wrong here.
    failed: bool,
}

enum Part {
    Bytes(io::Cursor<Vec<u8>>),
    Shared(io::Cursor<Arc<[u8]>>),
    Later(Box<dyn FnOnce() -> io::Result<std::fs::File> + Send>, u64),
    Open(io::Take<std::fs::File>),
}

impl Source {
    fn new(load: Vec<Load>) -> Result<Self> {
        let bytes = load.iter().map(|load| load.content.len());
        let bytes = bytes.fold(0, u64::saturating_add);
        if load.len() > MAX_STEPS || bytes > MAX_CARRIED_BYTES {
            let what = format!(
                "there are more than {MAX_STEPS} steps or {MAX_CARRIED_BYTES} bytes to carry out"
            );
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Do it in parts."));
        }
        let mut parts = VecDeque::with_capacity(load.len());
        for Load { mut step, content } in load {
            if let Step::File { bytes, .. } = &mut step {
                *bytes = content.len();
            } else if content.len() > 0 {
                return Err(Error::new(ErrorKind::Usage, "bytes go with what is no file"));
            }
            let head = step.encode().ok_or_else(|| {
                Error::new(ErrorKind::Usage, "a path or a link's target is too long")
                    .hint("Name a shorter one.")
            })?;
            parts.push_back(Part::Bytes(io::Cursor::new(head)));
            match content {
                Content::Nothing => {}
                Content::Bytes(bytes) => parts.push_back(Part::Shared(io::Cursor::new(bytes))),
                Content::Later { open, bytes } => parts.push_back(Part::Later(open, bytes)),
            }
        }
        Ok(Self { parts, begun: false, failed: false })
    }

    /// Whether a failure says that nothing was done: nothing was sent, or its end was not.
    fn is_ours(&self) -> bool {
        !self.begun || self.failed
    }

    fn open_first(&mut self) -> io::Result<()> {
        match self.parts.pop_front() {
            Some(Part::Later(open, bytes)) => {
                self.parts.push_front(Part::Open(open()?.take(bytes)));
            }
            Some(other) => self.parts.push_front(other),
            None => {}
        }
        Ok(())
    }

    fn fill(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while let Some(part) = self.parts.front_mut() {
            if matches!(part, Part::Later(..)) {
                self.open_first()?;
                continue;
            }
            let (count, is_short) = match part {
                Part::Bytes(bytes) => (bytes.read(room)?, false),
                Part::Shared(bytes) => (bytes.read(room)?, false),
                Part::Later(..) => (0, false),
                Part::Open(file) => (file.read(room)?, file.limit() > 0),
            };
            match count {
                0 if is_short => return Err(io::Error::other("a file of the host became shorter")),
                0 => drop(self.parts.pop_front()),
                count => return Ok(count),
            }
        }
        Ok(0)
    }
}

impl AsyncRead for Source {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.begun = true;
        let filled = self.fill(room.initialize_unfilled());
        self.failed |= filled.is_err();
        Poll::Ready(filled.map(|count| room.advance(count)))
    }
}
