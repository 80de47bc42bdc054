//! One fresh sandbox, one command, gone. What `cofferdam run` does, without any runtime, and with one
//! thread as long as there is a sandbox.

mod drive;
mod greeting;
mod screen;
mod stream;

use crate::assemble::{Assembly, Stay, assemble_and_launch};
use crate::cgroup::Cgroups;
use crate::cow;
use crate::gate::{self, GateProgram, GatedSecrets, Gatehouse};
use crate::handing;
use crate::launch::{Born, io_error, not_set_up, remedy};
use crate::plan::Tier;
use crate::state::StateDirectory;
use crate::verify::verify;
use crate::watchman::Watchman;
use cofferdam_core::secret::{Mask, SecretValue};
use cofferdam_core::{
    Cause, Command, Denial, Ending, Enforced, Error, ErrorKind, LayerNote, Omitted, Result,
    SandboxId, Spec, Stdin, UsageReport,
};
use cofferdam_guestd::line::Line;
use cofferdam_wire::ByteString;
use cofferdam_wire::message::{
    Descendants, Ended, FromProcess, How, News, NotStarted, SetupFailure, Spawn, Stdio, Stream,
};
use drive::{Drive, Driven, Killed, StartWatch};
pub use drive::{ENDING, PASSED_ON};
pub(crate) use greeting::await_hello;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use screen::Screen;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
pub(crate) use stream::large_pipe;
use stream::{Input, Output, Sink};

/// How much later than ours the clock inside strikes.
const GRACE: Duration = Duration::from_millis(200);

/// A command and what becomes of its output.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The sandbox that is wanted.
    pub spec: &'a Spec,
    /// The command. Where it has a terminal and its input is piped, the caller's terminal is tied
    /// to it.
    pub command: &'a Command,
    /// What becomes of its output.
    pub output: OutputTo,
    /// The program of the gate, for a sandbox with a way out.
    pub gate: Option<&'a GateProgram>,
    /// The secrets that the gate puts in.
    pub secrets: Option<&'a GatedSecrets>,
}

/// What becomes of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputTo {
    /// It goes to the caller's own streams as it comes. A stream that exceeds this many bytes ends
    /// the command.
    Caller {
        /// The most bytes of a stream; `u64::MAX` is no limit.
        limit_bytes: u64,
    },
    /// It is kept. What exceeds this many bytes of a stream is dropped and counted.
    Memory {
        /// The most bytes that are kept of a stream.
        limit_bytes: u64,
    },
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// How the command ended.
    pub ending: Ending,
    /// Its standard output, where it was kept.
    pub stdout: Vec<u8>,
    /// Its standard error, where it was kept.
    pub stderr: Vec<u8>,
    /// What was dropped.
    pub omitted: Omitted,
    /// From the command's start to its end.
    pub duration: Duration,
    /// What it used.
    pub usage: UsageReport,
    /// How far the policy held.
    pub enforced: Enforced,
    /// What its layer was, where its workspace was copy-on-write.
    pub layer: Option<LayerNote>,
    /// Why the kernel made no overlay, where that is why the command was not started and a copy will do.
    no_overlay: Option<String>,
    /// What was denied.
    pub denials: Vec<Denial>,
    /// Control files that appeared in the workspace, relative to it.
    pub new_control_files: Vec<String>,
    /// What could not be cleaned up, and is owed by the next start.
    pub leftovers: Vec<Error>,
}

/// Runs one command in a fresh sandbox and takes the sandbox away.
///
/// Fails only before the sandbox exists; from then on whatever happens is an ending. The caller
/// must have one thread only, and no use for its signal handlers while this runs.
pub fn run(run: Run<'_>, state: &StateDirectory) -> Result<Outcome> {
    let has_secrets = !run.command.secrets.is_empty();
    if run.secrets.is_none() {
        gate::refuse_secrets(run.spec)?;
    }
    let trusted = run.secrets.map(GatedSecrets::trusted);
    let stay = |no_overlay| Stay::Passing { no_overlay, has_secrets, trusted };
    let outcome = run_over(run, stay(None), state)?;
    match &outcome.no_overlay {
        None => Ok(outcome),
        Some(why) => run_over(run, stay(Some(why)), state),
    }
}

fn run_over(run: Run<'_>, stay: Stay<'_>, state: &StateDirectory) -> Result<Outcome> {
    let id = SandboxId::new(format!("run-{}", unique()))?;
    if run.gate.is_none() && run.spec.network_policy()?.is_some() {
        return Err(gate::no_program());
    }
    let (mut assembly, mut born) = assemble_and_launch((run.spec, stay), state, &id)?;
    let started = Instant::now();
    let line = born.take_line().ok_or_else(|| lost_line("it has none"))?;
    let mut line = Line::new(line);
    // Made while the sandbox sets itself up.
    let (spawn, descriptors, drive) = prepare(run, &assembly)?;
    let driven = match await_hello(&mut line)? {
        Ok((_hello, came)) => {
            verify(born.pid, &assembly.planned)?;
            assembly.confirm();
            let gate = gatehouse(&id, run, &assembly, came)?;
            let ends_by_kernel = assembly.planned.tier == Tier::Namespaces;
            let drive =
                Drive { ends_by_kernel, gate, watch: Some(watch(&assembly, &born)), ..drive };
            Ok(drive::drive(&born, line, spawn, descriptors, drive)?)
        }
        Err(failure) => Err(failure),
    };
    born.wait()?;
    let duration = started.elapsed();
    let (mut ending, usage) = judge(&driven, &assembly);
    let no_overlay = driven.as_ref().err().map(not_set_up);
    let no_overlay = no_overlay.and_then(|error| cow::copies_instead(run.spec, &error));
    let layer = assembly.layer.clone();
    let enforced = assembly.enforced.clone();
    // ORDER: the sandbox's mounts before what they are on. To remove a name from under a mount takes
    // the kernel ten times as long.
    drop(born);
    let farewell = assembly.dissolve();
    let (stdout, stderr, unmounting, gate) = driven.map_or((None, None, None, None), |driven| {
        (driven.stdout, driven.stderr, driven.unmounting, driven.gate)
    });
    let (denials, alarm) = gate.map_or(Ok((Vec::new(), None)), Gatehouse::close)?;
    if alarm.is_some() {
        // However it ended meanwhile.
        ending = Ending::Killed(Cause::SecretAlarm);
    }
    // A part of their end was left to do meanwhile.
    let _ = unmounting.map(JoinHandle::join);
    let kept = |output: Option<Output>| output.map(Output::into_memory).unwrap_or_default();
    let told_by = told_by(run.command);
    refuse_unwritten(&ending, told_by, [("output", &stdout), ("error", &stderr)])?;
    let ((stdout, omitted_stdout), (stderr, omitted_stderr)) = (kept(stdout), kept(stderr));
    Ok(Outcome {
        ending,
        stdout,
        stderr,
        omitted: Omitted { stdout: omitted_stdout, stderr: omitted_stderr },
        duration,
        usage,
        enforced,
        layer,
        no_overlay,
        denials,
        new_control_files: farewell.new_control_files,
        leftovers: farewell.leftovers,
    })
}

/// Fails where the caller's disk did not take what a command wrote, unless the command failed by itself.
fn refuse_unwritten(
    ending: &Ending,
    told_by: i32,
    streams: [(&str, &Option<Output>); 2],
) -> Result<()> {
    // One that had more to write was told, and a shell says so of it by its code.
    let is_spoilt = match ending {
        Ending::Exited(code) => *code == 0 || *code == 128 + told_by,
        Ending::Signaled(signal) => *signal == told_by,
        Ending::Killed(_)
        | Ending::NotStarted { .. }
        | Ending::SetupFailed { .. }
        | Ending::Canceled
        | Ending::Lost => false,
    };
    for (name, output) in streams {
        let refused = output.as_ref().and_then(|output| output.refused).filter(|_| is_spoilt);
        if let Some(errno) = refused {
            let what = format!(
                "standard {name} cannot be written, and what the command wrote is not whole"
            );
            return Err(Error::new(ErrorKind::Io, what).source(std::io::Error::from(errno)));
        }
    }
    Ok(())
}

/// The signal that tells a command that nobody takes what it writes: a pipe breaks, a terminal hangs up.
fn told_by(command: &Command) -> i32 {
    match command.terminal {
        Some(_) => libc::SIGHUP,
        None => libc::SIGPIPE,
    }
}

/// Who holds the sockets of the way out, if there is one.
fn gatehouse(
    id: &SandboxId,
    run: Run<'_>,
    assembly: &Assembly,
    came: Vec<OwnedFd>,
) -> Result<Option<Gatehouse>> {
    let Some(way_out) = &assembly.planned.way_out else { return Ok(None) };
    let sockets = gate::Sockets::new(&way_out.sockets(), came)?;
    let program = run.gate.ok_or_else(gate::no_program)?.clone();
    let secrets = run.secrets.map(GatedSecrets::for_gate).transpose()?;
    let (policy, log) = (way_out.policy.clone(), gate::in_memory()?);
    Ok(Some(Gatehouse::new(id, program, policy, sockets, log).with_secrets(secrets)))
}

/// A number of this process and one of this moment: a process that was killed may have left things
/// of its number behind where no record tells of them.
pub(crate) fn unique() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_micros());
    format!("{}-{now:x}", rustix::process::getpid().as_raw_nonzero())
}

fn lost_line(why: &str) -> Error {
    Error::new(ErrorKind::SetupFailed, format!("the sandbox's line is lost: {why}"))
}

fn watch<'a>(assembly: &'a Assembly, born: &'a Born) -> StartWatch<'a> {
    Box::new(|| Watchman::start(assembly, born))
}

fn prepare<'a>(run: Run<'_>, assembly: &Assembly) -> Result<(Spawn, Vec<OwnedFd>, Drive<'a>)> {
    let (stdio, mut descriptors, drive) = streams(run, assembly.outside_ids)?;
    let secrets = &run.command.secrets;
    let handed = handing::handed(secrets);
    if assembly.planned.tier == Tier::Landlock {
        handing::refuse_files(&handed)?;
    }
    let values = secrets.iter().map(|secret| &secret.value);
    descriptors.extend(handing::as_files(values, Some(assembly.outside_ids))?);
    let spawn = Spawn {
        id: run.command.id.as_str().to_owned(),
        argv: run.command.argv.iter().map(|arg| ByteString::from(arg.as_os_str())).collect(),
        env: environment(run.command, assembly),
        cwd: run.command.cwd.as_deref().map_or_else(
            || ByteString::from(assembly.planned.cwd.as_str()),
            |cwd| within(&assembly.planned.cwd, cwd),
        ),
        stdio,
        // A second clock, for when we are stopped ourselves.
        timeout_ms: run
            .command
            .timeout
            .map(|timeout| u64::try_from((timeout + GRACE).as_millis()).unwrap_or(u64::MAX)),
        descendants: match assembly.planned.tier {
            Tier::Namespaces => Descendants::DieWithSandbox,
            // Nothing ends them with process 1 here.
            Tier::Landlock => Descendants::Die,
        },
        news: News::AtOnce,
        handed,
    };
    handing::refuse_long(&spawn)?;
    Ok((spawn, descriptors, drive))
}

/// A relative directory is one below the workspace.
fn within(workspace: &str, cwd: &std::ffi::OsStr) -> ByteString {
    let path = std::path::Path::new(workspace).join(cwd);
    ByteString::from(path.into_os_string())
}

fn environment(command: &Command, assembly: &Assembly) -> Vec<(ByteString, ByteString)> {
    let mut all = assembly.planned.env.clone();
    all.extend(command.env.clone());
    all.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

type Streams<'a> = (Stdio, Vec<OwnedFd>, Drive<'a>);

fn streams<'a>(run: Run<'_>, user: (u32, u32)) -> Result<Streams<'a>> {
    // ORDER: the sandbox stands, and has no copy of what is read here.
    let put_in = run.secrets.map(GatedSecrets::values).transpose()?.unwrap_or_default();
    let given = run.command.secrets.iter().map(|secret| &secret.value);
    let all: Vec<&SecretValue> = given.chain(&put_in).collect();
    let mask = match all.is_empty() {
        true => None,
        false => Some(Mask::new(all)?),
    };
    open_streams(run, user, mask).map_err(|errno| io_error("make the command's streams", errno))
}

fn open_streams<'a>(
    run: Run<'_>,
    user: (u32, u32),
    mask: Option<Mask>,
) -> rustix::io::Result<Streams<'a>> {
    let command = run.command;
    let reads = command.stdin == Stdin::Piped;
    let mut drive = Drive {
        ends_by_kernel: true,
        gate: None,
        watch: None,
        pins: None,
        stdout: None,
        stderr: None,
        stdin: None,
        screen: None,
        timeout: command.timeout,
        max_output: match run.output {
            OutputTo::Caller { limit_bytes } => limit_bytes,
            OutputTo::Memory { .. } => u64::MAX,
        },
    };
    if let Some(size) = command.terminal {
        drive.screen = Some(Screen::new(reads, run.output, mask));
        return Ok((Stdio::Terminal(size), Vec::new(), drive));
    }
    let mut descriptors = Vec::new();
    let mut stdin = Stream::Null;
    if reads {
        let (theirs, ours) = large_pipe(user)?;
        drive.stdin = Some(Input::new(rustix::stdio::stdin(), ours)?);
        stdin = Stream::Descriptor(0);
        descriptors.push(theirs);
    }
    let [stdout, stderr] = [rustix::stdio::stdout(), rustix::stdio::stderr()];
    let mut outputs = Vec::with_capacity(2);
    for caller in [stdout, stderr] {
        let (ours, theirs) = large_pipe(user)?;
        outputs.push(Output::new(ours, sink(run.output, caller)?, mask.as_ref())?);
        descriptors.push(theirs);
    }
    drive.stderr = outputs.pop();
    drive.stdout = outputs.pop();
    let first = u32::from(reads);
    let stdio = Stdio::Streams {
        stdin,
        stdout: Stream::Descriptor(first),
        stderr: Stream::Descriptor(first + 1),
    };
    Ok((stdio, descriptors, drive))
}

fn sink(output: OutputTo, caller: BorrowedFd<'_>) -> rustix::io::Result<Sink> {
    match output {
        OutputTo::Caller { .. } => Sink::caller(caller.as_fd()),
        OutputTo::Memory { limit_bytes } => Ok(Sink::memory(limit_bytes)),
    }
}

/// How it ended, from what the host knows and what the guest said.
fn judge(driven: &Result<Driven, SetupFailure>, assembly: &Assembly) -> (Ending, UsageReport) {
    let driven = match driven {
        Ok(driven) => driven,
        Err(failure) => return (setup_failed(failure), UsageReport::default()),
    };
    let causes = assembly.cgroups().map(Cgroups::causes).unwrap_or_default();
    let mut usage = UsageReport::default();
    if let Some(used) = assembly.cgroups().map(Cgroups::usage) {
        usage.cpu_ms = used.cpu_us.map(milliseconds);
        usage.peak_memory_bytes = used.peak_memory_bytes;
    }
    let mut out_of_time = driven.killed == Some(Killed::Time);
    let own = match &driven.last {
        Some(FromProcess::NotStarted(why)) => return (not_started(why), usage),
        Some(FromProcess::Ended(Ended { how, cpu_us, peak_rss_bytes, timed_out, .. })) => {
            out_of_time |= *timed_out;
            usage.cpu_ms.get_or_insert(milliseconds(*cpu_us));
            usage.peak_memory_bytes.get_or_insert(*peak_rss_bytes);
            match how {
                How::Exited(code) => Ending::Exited(*code),
                How::Signaled(signal) => Ending::Signaled(*signal),
            }
        }
        // It went with its sandbox: by us, for a cause below, or nobody knows how.
        Some(FromProcess::Started { .. } | FromProcess::Stopped { .. } | FromProcess::Emptied)
        | None => Ending::Lost,
    };
    let succeeded = own == Ending::Exited(0);
    let ending = if out_of_time {
        Ending::Killed(Cause::Time)
    } else if driven.killed == Some(Killed::SecretAlarm) {
        Ending::Killed(Cause::SecretAlarm)
    } else if driven.killed == Some(Killed::Output) {
        Ending::Killed(Cause::Output)
    } else if !succeeded && causes.oom_kills.is_some_and(|kills| kills > 0) {
        Ending::Killed(Cause::memory(&own))
    } else if !succeeded && own != Ending::Lost && causes.pids_hits.is_some_and(|hits| hits > 0) {
        Ending::Killed(Cause::Pids { code: own.exit_code() })
    } else if driven.is_full {
        Ending::Killed(Cause::Disk { code: own.exit_code() })
    } else {
        own
    };
    (ending, usage)
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of a process fit a float exactly")]
fn milliseconds(us: u64) -> f64 {
    us as f64 / 1000.0
}

fn setup_failed(failure: &SetupFailure) -> Ending {
    let error = std::io::Error::from_raw_os_error(failure.errno);
    let remedy = remedy(failure).map_or_else(String::new, |remedy| format!(". {remedy}"));
    Ending::SetupFailed {
        stage: failure.step.clone(),
        detail: format!("{}: {error}{remedy}", failure.call),
    }
}

pub(crate) fn not_started(why: &NotStarted) -> Ending {
    let code = why.reason.exit_code();
    let error = std::io::Error::from_raw_os_error(why.errno);
    Ending::NotStarted { code, detail: format!("{}: {error}", why.detail) }
}
