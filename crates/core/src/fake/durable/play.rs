//! The steps of a command that is kept.

use super::world::{Exec, Sandbox, World, now_ms};
use crate::{
    Cause, Ending, Error, ErrorKind, ExecOrder, ExecStatus, Happened, ProcessId, Result, SandboxId,
    SandboxStatus, Spooled, Standard, Stdin,
};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// Starts a command, or finds the one of this id.
pub(super) fn start(world: &Arc<World>, id: &SandboxId, order: ExecOrder) -> Result<ExecStatus> {
    let argv = order.command.argv.clone();
    let timeout = order.command.timeout;
    let (status, fresh) = world.change(|state| admit(state.living(id)?, id, order))?;
    if fresh {
        let (world, id, exec) = (Arc::clone(world), id.clone(), status.id.clone());
        tokio::spawn(async move {
            let play = play(&world, &id, &exec, words(&argv));
            let ending = match timeout {
                None => play.await,
                Some(limit) => tokio::time::timeout(limit, play)
                    .await
                    .unwrap_or(Some(Ending::Killed(Cause::Time))),
            };
            if let Some(ending) = ending {
                with(&world, &id, &exec, |sandbox, at| sandbox.end(at, ending));
            }
        });
    }
    Ok(status)
}

fn admit(sandbox: &mut Sandbox, id: &SandboxId, order: ExecOrder) -> Result<(ExecStatus, bool)> {
    let conflict = |what: String| {
        Err(Error::new(ErrorKind::Conflict, what)
            .hint("Resume it, or give the command its own id."))
    };
    if let Ok(known) = sandbox.exec(&order.command.id) {
        return match known.argv == order.command.argv {
            true => Ok((known.status.clone(), false)),
            false => conflict(format!("command {} is another one", order.command.id)),
        };
    }
    if sandbox.status == SandboxStatus::Paused {
        return conflict(format!("sandbox {id} is paused"));
    }
    let argv = order.command.argv.iter().map(|word| word.to_string_lossy().into_owned());
    let status = ExecStatus {
        id: order.command.id,
        argv: argv.collect(),
        detached: order.detached,
        terminal: order.command.terminal.is_some(),
        started_ms: now_ms(),
        ended: None,
        left: None,
        stops: 0,
        stdout: Spooled::default(),
        stderr: Spooled::default(),
    };
    sandbox.execs.push(Exec {
        argv: order.command.argv,
        status: status.clone(),
        spool_bytes: order.spool_bytes,
        max_output_bytes: order.max_output_bytes,
        streams: [Vec::new(), Vec::new()],
        input: Vec::new(),
        children: 0,
        closed: order.command.stdin == Stdin::Null,
    });
    sandbox.write(Happened::ExecStarted(Box::new(status.clone())));
    Ok((status, true))
}

/// The steps: the words, or those of the text that a shell is given.
fn words(argv: &[OsString]) -> Vec<String> {
    let words: Vec<String> = argv.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    match words.as_slice() {
        [shell, flag, text] if shell == "/bin/sh" && flag == "-c" => {
            text.split_whitespace().map(str::to_owned).collect()
        }
        _ => words,
    }
}

/// Does something with a command that still runs; `None` once it does not.
fn with<T>(
    world: &World,
    id: &SandboxId,
    exec: &ProcessId,
    deed: impl FnOnce(&mut Sandbox, usize) -> T,
) -> Option<T> {
    world.change(|state| {
        let sandbox = state.living(id).ok()?;
        let at = sandbox.position(exec).ok()?;
        let runs = sandbox.execs.get(at).is_some_and(|exec| exec.status.ended.is_none());
        runs.then(|| deed(sandbox, at))
    })
}

/// Plays, and says how it ended unless somebody ended it meanwhile.
async fn play(
    world: &World,
    id: &SandboxId,
    exec: &ProcessId,
    words: Vec<String>,
) -> Option<Ending> {
    for step in words {
        awake(world, id).await?;
        let (word, value) = step.split_once('=').unwrap_or((&step, ""));
        let ends = match word {
            "out" => write(world, id, exec, (Standard::Output, value.as_bytes()))?,
            "err" => write(world, id, exec, (Standard::Error, value.as_bytes()))?,
            "bytes" => {
                let bytes = vec![b'x'; value.parse().unwrap_or(0)];
                write(world, id, exec, (Standard::Output, &bytes))?
            }
            "cat" => cat(world, id, exec).await?,
            "sleep" => {
                tokio::time::sleep(Duration::from_millis(value.parse().unwrap_or(0))).await;
                None
            }
            "child" => {
                with(world, id, exec, |sandbox, at| {
                    if let Some(exec) = sandbox.execs.get_mut(at) {
                        exec.children += 1;
                    }
                })?;
                None
            }
            "connect" => {
                let is_made = world.change(|state| state.connect(id, value));
                (!is_made).then_some(Ending::Exited(1))
            }
            "hang" => std::future::pending().await,
            "tick" => {
                tick(world, value);
                None
            }
            "fail-until" => {
                let (name, times) = value.split_once(':').unwrap_or((value, "1"));
                let before = tick(world, name);
                (before < times.parse().unwrap_or(1)).then_some(Ending::Exited(1))
            }
            "signal" => Some(Ending::Signaled(value.parse().unwrap_or(9))),
            "exit" => Some(Ending::Exited(value.parse().unwrap_or(0))),
            _ => {
                let detail = format!("{step}: no such program");
                Some(Ending::NotStarted { code: 127, detail })
            }
        };
        if ends.is_some() {
            return ends;
        }
    }
    Some(Ending::Exited(0))
}

/// Waits while the sandbox is paused; `None` once it is gone.
async fn awake(world: &World, id: &SandboxId) -> Option<()> {
    let mut changed = world.changed();
    loop {
        changed.mark_unchanged();
        match world.state().status(id) {
            SandboxStatus::Running => return Some(()),
            SandboxStatus::Gone => return None,
            SandboxStatus::Paused => {}
        }
        changed.changed().await.ok()?;
    }
}

/// Counts, and says how often it was counted before.
fn tick(world: &World, name: &str) -> u64 {
    world.change(|state| {
        let count = state.ticks.entry(name.to_owned()).or_default();
        *count += 1;
        *count - 1
    })
}

/// Writes what it reads, until its input ends.
async fn cat(world: &World, id: &SandboxId, exec: &ProcessId) -> Option<Option<Ending>> {
    let mut changed = world.changed();
    loop {
        changed.mark_unchanged();
        awake(world, id).await?;
        let (bytes, closed) = {
            let mut state = world.state();
            let exec = state.living(id).ok()?.exec(exec).ok()?;
            (std::mem::take(&mut exec.input), exec.closed)
        };
        if !bytes.is_empty() {
            write(world, id, exec, (Standard::Output, &bytes))?;
        } else if closed {
            return Some(None);
        } else {
            changed.changed().await.ok()?;
        }
    }
}

/// Writes to a spool. The inner value is the ending of a command that wrote too much.
fn write(
    world: &World,
    id: &SandboxId,
    exec: &ProcessId,
    (stream, bytes): (Standard, &[u8]),
) -> Option<Option<Ending>> {
    with(world, id, exec, |sandbox, at| {
        let exec = sandbox.execs.get_mut(at)?;
        let stream = if exec.status.terminal { Standard::Output } else { stream };
        let [out, err] = &mut exec.streams;
        let (kept, spooled) = match stream {
            Standard::Output => (out, &mut exec.status.stdout),
            Standard::Error => (err, &mut exec.status.stderr),
        };
        kept.extend(bytes);
        spooled.written += bytes.len() as u64;
        let spool = usize::try_from(exec.spool_bytes).unwrap_or(usize::MAX);
        let over = kept.len().saturating_sub(spool);
        kept.drain(..over);
        spooled.dropped += over as u64;
        let much = exec.max_output_bytes.is_some_and(|max| spooled.written > max);
        much.then_some(Ending::Killed(Cause::Output))
    })
}
