//! One command on a line, from its start to its ending.

use crate::line::channel::{Channel, Line, Received};
use crate::line::guest::Surroundings;
use crate::line::slot::Accepts;
use crate::line::stdio::{Sink, Source, feed, pump};
use crate::line::table::{broken, parse};
use crate::{
    Cause, Command, Ending, Error, ErrorKind, Given, Killer, LimitHits, LimitWatch, ProcessEvent,
    ProcessId, ProcessInput, Result, Standard, Stdin,
};
use cofferdam_wire::ByteString;
use cofferdam_wire::message::{
    Descendants, Ended, FromProcess, HostOpens, How, News, NotStarted, Spawn, Stdio, Stream,
    ToProcess,
};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// What a command's standard streams are, where it has no terminal.
#[derive(Debug)]
pub enum Standards {
    /// Output comes as events, input goes as [`ProcessInput`].
    Line,
    /// These descriptors; its one event is the ending. Only over a line that carries descriptors.
    Given(Given),
}

/// The commands that run now.
#[derive(Debug, Clone, Default)]
pub(super) struct Running(Arc<Mutex<BTreeSet<ProcessId>>>);

/// A place in [`Running`], left when dropped.
#[derive(Debug)]
pub(super) struct Registered {
    running: Running,
    id: ProcessId,
}

impl Running {
    pub(super) fn register(&self, id: &ProcessId) -> Result<Registered> {
        if !self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone()) {
            return Err(Error::new(ErrorKind::Conflict, format!("process id {id} is in use"))
                .hint("Give the command an id that no other has."));
        }
        Ok(Registered { running: self.clone(), id: id.clone() })
    }

    pub(super) fn ids(&self) -> Vec<ProcessId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.running.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// All that a command needs to run.
pub(super) struct Start {
    pub(super) line: Line,
    pub(super) watch: Arc<dyn LimitWatch>,
    pub(super) registered: Registered,
    pub(super) events: mpsc::Sender<ProcessEvent>,
    pub(super) inputs: mpsc::Receiver<ProcessInput>,
    pub(super) killer: Killer,
}

/// A command that was asked for.
pub(super) struct Asked {
    pub(super) channels: Channels,
    has_terminal: bool,
    pub(super) before: LimitHits,
}

/// The channels of one command.
pub(super) struct Channels {
    pub(super) control: Arc<Channel>,
    stdin: Option<Channel>,
    pub(super) stdout: Option<Channel>,
    pub(super) stderr: Option<Channel>,
}

/// Asks the guest for a command. Nothing was asked by a call that is given up.
pub(super) async fn ask(
    line: &Line,
    surroundings: &Surroundings,
    command: &Command,
    standards: Standards,
    news: News,
) -> Result<Asked> {
    command.refuse_secrets()?;
    let (channels, stdio, descriptors) = open_channels(line, command, standards)?;
    let spawn = Spawn { news, ..request(command, surroundings, stdio) };
    let spawn = HostOpens::Spawn(Box::new(spawn));
    let before = surroundings.watch.hits();
    channels.control.send_message(&spawn, descriptors).await?;
    Ok(Asked { channels, has_terminal: command.terminal.is_some(), before })
}

/// Sees a command through that was asked for. A caller who is not there any more when it has started
/// kills it.
pub(super) async fn run(start: Start, asked: Asked, answer: oneshot::Sender<Result<()>>) {
    let Start { line, watch, registered, events, inputs, killer } = start;
    let master = match first_word(&line, &asked).await {
        Ok(First::Started(master)) => master,
        Ok(First::NotStarted(reason)) => {
            drop(registered);
            answer.send(Ok(())).ok();
            events.send(not_started_event(reason)).await.ok();
            return;
        }
        Err(error) => {
            if error.kind == ErrorKind::Protocol {
                line.close(&error);
            }
            answer.send(Err(error)).ok();
            return;
        }
    };
    if answer.send(Ok(())).is_err() {
        killer.kill();
    }
    let Asked { channels: Channels { control, stdin, stdout, stderr }, before, .. } = asked;
    let (sink, [out, err]) = standard_streams(master, stdin, stdout, stderr);
    let pumps = async {
        tokio::join!(
            pump(out, Standard::Output, events.clone()),
            pump(err, Standard::Error, events.clone())
        );
    };
    let feeder = feed(Arc::clone(&control), sink, inputs, killer);
    let Ok(ended) = attend(pumps, feeder, &control, &line).await else { return };
    let ended = end_event(&ended, before, watch.as_ref());
    // ORDER: before the event, so that who saw the end may use the id again.
    drop(registered);
    events.send(ended).await.ok();
}

/// The last event of a command that ran, with its cause.
pub(super) fn end_event(ended: &Ended, before: LimitHits, watch: &dyn LimitWatch) -> ProcessEvent {
    ProcessEvent::Ended {
        ending: explained(ended, before, watch),
        cpu_us: Some(ended.cpu_us),
        peak_memory_bytes: Some(ended.peak_rss_bytes),
    }
}

/// The only event of a command that could not be started.
pub(super) fn not_started_event(reason: NotStarted) -> ProcessEvent {
    ProcessEvent::Ended { ending: not_started(reason), cpu_us: None, peak_memory_bytes: None }
}

/// Carries output and input until the command has ended and its output too. All in one task: more of
/// them would cost a short command more than its line.
async fn attend(
    pumps: impl Future<Output = ()>,
    feeder: impl Future<Output = ()>,
    control: &Channel,
    line: &Line,
) -> Result<Ended> {
    let mut pumps = std::pin::pin!(pumps);
    let mut is_pumped = false;
    let ended = {
        let (mut feeder, mut waiting) = (std::pin::pin!(feeder), std::pin::pin!(wait(control)));
        loop {
            tokio::select! {
                ended = &mut waiting => break ended,
                () = &mut pumps, if !is_pumped => is_pumped = true,
                // It never ends by itself.
                () = &mut feeder => {}
            }
        }
    };
    if let Err(error) = &ended
        && error.kind == ErrorKind::Protocol
    {
        line.close(error);
    }
    // What came before a line closed is still passed on.
    if !is_pumped {
        pumps.await;
    }
    ended
}

/// The ending with its cause. The host is asked only where a limit can be it.
fn explained(ended: &Ended, before: LimitHits, watch: &dyn LimitWatch) -> Ending {
    match ended.how {
        How::Exited(0) => ending(ended),
        How::Exited(_) | How::Signaled(_) => before.explain(watch.hits(), ending(ended)),
    }
}

/// What came of a start.
enum First {
    Started(Option<Box<dyn crate::Duplex>>),
    NotStarted(NotStarted),
}

async fn first_word(line: &Line, asked: &Asked) -> Result<First> {
    let (message, master) = from_process(&asked.channels.control).await?;
    match message {
        FromProcess::NotStarted(reason) => Ok(First::NotStarted(reason)),
        FromProcess::Started { .. } if asked.has_terminal => {
            Ok(First::Started(Some(terminal(line, master)?)))
        }
        FromProcess::Started { .. } => Ok(First::Started(None)),
        FromProcess::Stopped { .. } | FromProcess::Ended(_) | FromProcess::Emptied => {
            Err(broken("a command ended that had not started"))
        }
    }
}

fn open_channels(
    line: &Line,
    command: &Command,
    standards: Standards,
) -> Result<(Channels, Stdio, Vec<OwnedFd>)> {
    let control = |accepts| line.open_channel(accepts).map(Arc::new);
    let none = |control| Channels { control, stdin: None, stdout: None, stderr: None };
    if let Some(size) = command.terminal {
        let control = control(Accepts::TerminalMessages)?;
        return Ok((none(control), Stdio::Terminal(size), Vec::new()));
    }
    match standards {
        Standards::Given(Given { stdin, stdout, stderr }) => {
            let mut descriptors = vec![stdout, stderr];
            descriptors.extend(stdin);
            let stdio = Stdio::Streams {
                stdin: if descriptors.len() > 2 { Stream::Descriptor(2) } else { Stream::Null },
                stdout: Stream::Descriptor(0),
                stderr: Stream::Descriptor(1),
            };
            Ok((none(control(Accepts::Messages)?), stdio, descriptors))
        }
        Standards::Line => {
            let control = control(Accepts::Messages)?;
            let stdout = line.open_channel(Accepts::Data)?;
            let stderr = line.open_channel(Accepts::Data)?;
            let stdin = match command.stdin {
                Stdin::Null => None,
                Stdin::Piped => Some(line.open_channel(Accepts::Nothing)?),
            };
            let stdio = Stdio::Streams {
                stdin: stdin.as_ref().map_or(Stream::Null, |stdin| Stream::Line(stdin.id())),
                stdout: Stream::Line(stdout.id()),
                stderr: Stream::Line(stderr.id()),
            };
            let channels = Channels { control, stdin, stdout: Some(stdout), stderr: Some(stderr) };
            Ok((channels, stdio, Vec::new()))
        }
    }
}

fn request(command: &Command, surroundings: &Surroundings, stdio: Stdio) -> Spawn {
    let mut env = surroundings.env.clone();
    env.extend(command.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    let timeout_ms = command.timeout.map(|timeout| {
        // A part of a millisecond still is time; 0 would be none.
        u64::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(u64::MAX).max(1)
    });
    Spawn {
        id: command.id.as_str().to_owned(),
        argv: command.argv.iter().map(|word| ByteString::from(word.as_os_str())).collect(),
        env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: command.cwd.as_ref().unwrap_or(&surroundings.workspace).as_os_str().into(),
        stdio,
        timeout_ms,
        descendants: Descendants::Die,
        news: News::AtOnce,
        handed: Vec::new(),
    }
}

pub(super) async fn from_process(control: &Channel) -> Result<(FromProcess, Option<OwnedFd>)> {
    match control.receive().await? {
        Received::Message(body, descriptor) => Ok((parse(&body)?, descriptor)),
        Received::Data(_) | Received::End => Err(broken("a command's channel ended before it")),
    }
}

fn terminal(line: &Line, master: Option<OwnedFd>) -> Result<Box<dyn crate::Duplex>> {
    let (Some(carried), Some(master)) = (line.descriptors(), master) else {
        return Err(broken("a terminal came without its descriptor"));
    };
    carried
        .terminal(master)
        .map_err(|error| broken("the guest's terminal cannot be used").source(error))
}

/// Where input goes, and where standard output and standard error come from.
fn standard_streams(
    master: Option<Box<dyn crate::Duplex>>,
    stdin: Option<Channel>,
    stdout: Option<Channel>,
    stderr: Option<Channel>,
) -> (Sink, [Option<Source>; 2]) {
    if let Some(master) = master {
        let (read, write) = tokio::io::split(master);
        return (Sink::Terminal(write), [Some(Source::Terminal(read)), None]);
    }
    let sources = [stdout, stderr].map(|channel| channel.map(Source::Line));
    (stdin.map_or(Sink::Nothing, Sink::Line), sources)
}

async fn wait(control: &Channel) -> Result<Ended> {
    loop {
        match from_process(control).await?.0 {
            FromProcess::Ended(ended) => return Ok(ended),
            // Job control is the command line's own affair, which has no line.
            FromProcess::Stopped { .. } => {}
            FromProcess::Started { .. } | FromProcess::NotStarted(_) => {
                return Err(broken("a command started twice"));
            }
            FromProcess::Emptied => return Err(nothing_stays()),
        }
    }
}

/// No command here was told that what it starts may stay.
pub(super) fn nothing_stays() -> Error {
    broken("a command left something that was to die with it")
}

fn ending(ended: &Ended) -> Ending {
    match (ended.timed_out, ended.how) {
        (true, _) => Ending::Killed(Cause::Time),
        (false, How::Exited(code)) => Ending::Exited(code),
        (false, How::Signaled(signal)) => Ending::Signaled(signal),
    }
}

/// How much of the guest's own words about a failed start is passed on.
const MAX_DETAIL_CHARS: usize = 1000;

fn not_started(reason: NotStarted) -> Ending {
    let code = reason.reason.exit_code();
    // HOSTILE: the text comes from inside, and will be shown to people.
    let detail = reason.detail.chars().filter(|c| !c.is_control()).take(MAX_DETAIL_CHARS).collect();
    Ending::NotStarted { code, detail }
}

/// Says something to a command.
pub(super) async fn tell(control: &Channel, what: ToProcess) {
    // A line that is closed has killed the command already.
    control.send_message(&what, Vec::new()).await.ok();
}
