//! Commands and how they end.

use crate::check::{Stop, Verdict, fail, same};
use crate::fixture::Action;
use crate::stage::{CAP_BYTES, Stage, refused, wait_for};
use cofferdam_core::{
    Cause, Command, Ending, ErrorKind, Guest, Process, ProcessEvent, ProcessInput, Stdin, collect,
};
use std::sync::Arc;
use std::time::Duration;

/// Time for a command to write its first words and not to end by itself.
const SHORT: Duration = Duration::from_millis(1500);

pub(crate) async fn nonzero_is_not_an_error(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    for code in [0, 1, 3, 255] {
        let output = stage.run(&guest, &Action::Exit(code)).await?;
        same("ending", &output.ending, &Ending::Exited(code))?;
    }
    Ok(())
}

pub(crate) async fn stdout_and_stderr_stay_apart(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let action = Action::Print { stdout: "to out".to_owned(), stderr: "to err".to_owned() };
    let output = stage.run(&guest, &action).await?;
    same("standard output", &output.stdout, &b"to out".to_vec())?;
    same("standard error", &output.stderr, &b"to err".to_vec())
}

pub(crate) async fn bytes_survive(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let every: Vec<u8> = (0..=u8::MAX).collect();
    let output = stage.run(&guest, &Action::PrintEveryByte).await?;
    same("bytes from inside", &output.stdout, &every)?;
    let process = piped(stage, &guest).await?;
    send(&process, ProcessInput::Bytes(every.clone())).await?;
    send(&process, ProcessInput::Close).await?;
    let output = collect(process, CAP_BYTES).await?;
    same("bytes there and back", &output.stdout, &every)
}

async fn piped(stage: &Stage, guest: &Arc<dyn Guest>) -> Result<Process, Stop> {
    let mut command = stage.command(&Action::CopyInput)?;
    command.stdin = Stdin::Piped;
    Ok(guest.spawn(&command).await?)
}

async fn send(process: &Process, input: ProcessInput) -> Verdict {
    let gone = || Stop::Failed("the command takes no input any more".to_owned());
    process.input.send(input).await.map_err(|_| gone())
}

pub(crate) async fn stdin_closed_unless_asked(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let process = stage.spawn(&guest, &Action::CopyInput).await?;
    // A sender that lives must make no difference.
    let input = process.input.clone();
    let output = collect(process, CAP_BYTES).await?;
    drop(input);
    same("ending", &output.ending, &Ending::Exited(0))?;
    same("what was read", &output.stdout, &Vec::new())
}

pub(crate) async fn not_started_says_why(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let id = stage.command(&Action::Exit(0))?.id;
    let missing = Command::new(id, ["cofferdam-has-no-such-program"]);
    not_started(&guest, &missing, 127).await?;
    let mut nowhere = stage.command(&Action::Exit(0))?;
    nowhere.cwd = Some("/cofferdam-has-no-such-directory".into());
    not_started(&guest, &nowhere, 125).await?;
    let output = stage.run(&guest, &Action::Exit(127)).await?;
    same("a program that exits 127", &output.ending, &Ending::Exited(127))
}

async fn not_started(guest: &Arc<dyn Guest>, command: &Command, expected: i32) -> Verdict {
    let ending = collect(guest.spawn(command).await?, CAP_BYTES).await?.ending;
    if let Ending::NotStarted { code, detail } = &ending
        && *code == expected
        && !detail.is_empty()
    {
        return Ok(());
    }
    fail(format!("found {ending:?}, expected not started with {expected}"))
}

pub(crate) async fn signal_is_told_apart(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let output = stage.run(&guest, &Action::DieOf(15)).await?;
    same("by its own hand", &output.ending, &Ending::Signaled(15))?;
    let output = stage.run(&guest, &Action::Exit(143)).await?;
    same("an exit that looks like one", &output.ending, &Ending::Exited(143))?;
    let wait = Action::PrintThenWait("here".to_owned());
    for (input, signal) in [(ProcessInput::Signal(15), 15), (ProcessInput::Kill, 9)] {
        let mut process = stage.spawn(&guest, &wait).await?;
        wait_for(&mut process, b"here").await?;
        send(&process, input).await?;
        let output = collect(process, CAP_BYTES).await?;
        same("by the caller", &output.ending, &Ending::Signaled(signal))?;
    }
    let mut process = stage.spawn(&guest, &wait).await?;
    wait_for(&mut process, b"here").await?;
    process.killer.kill();
    same("killed", &collect(process, CAP_BYTES).await?.ending, &Ending::Signaled(9))
}

pub(crate) async fn same_id_runs_once(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let command = stage.command(&Action::PrintThenWait("here".to_owned()))?;
    let mut process = guest.spawn(&command).await?;
    wait_for(&mut process, b"here").await?;
    refused("the same id", guest.spawn(&command).await, &[ErrorKind::Conflict])?;
    same("what runs", &guest.processes().await?, &vec![command.id.clone()])?;
    process.killer.kill();
    collect(process, CAP_BYTES).await?;
    same("what runs afterwards", &guest.processes().await?, &Vec::new())?;
    let mut again = stage.command(&Action::Exit(4))?;
    again.id = command.id;
    let output = collect(guest.spawn(&again).await?, CAP_BYTES).await?;
    same("the id once more", &output.ending, &Ending::Exited(4))
}

pub(crate) async fn output_past_the_cap_is_counted(stage: &mut Stage) -> Verdict {
    let written = 3 * CAP_BYTES as u64 + 7;
    let guest = stage.guest().await?;
    let output = stage.run(&guest, &Action::PrintBytes(written)).await?;
    same("kept", &output.stdout.len(), &CAP_BYTES)?;
    same("omitted", &output.omitted.stdout, &(written - CAP_BYTES as u64))?;
    same("ending", &output.ending, &Ending::Exited(0))
}

pub(crate) async fn timeout_kills_the_tree(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let mut command = stage.command(&Action::LeaveChildAndWait("TreeOfTimeout".to_owned()))?;
    command.timeout = Some(SHORT);
    let mut process = guest.spawn(&command).await?;
    wait_for(&mut process, b"left").await?;
    let count = Action::CountChildren("TreeOfTimeout".to_owned());
    let before = stage.run(&guest, &count).await?;
    // The child counts twice for as long as its own child has not become another program.
    same("control: the child runs", &(before.stdout != b"0\n"), &true)?;
    let output = collect(process, CAP_BYTES).await?;
    same("ending", &output.ending, &Ending::Killed(Cause::Time))?;
    let after = stage.run(&guest, &count).await?;
    same("descendants that are left", &after.stdout, &b"0\n".to_vec())
}

pub(crate) async fn partial_output_survives_timeout(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let wait = Action::PrintThenWait("half".to_owned());
    let output = stage.run_for(&guest, &wait, SHORT).await?;
    same("output", &output.stdout, &b"half".to_vec())?;
    same("ending", &output.ending, &Ending::Killed(Cause::Time))
}

pub(crate) async fn background_child_does_not_delay(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let mut process = stage.spawn(&guest, &Action::LeaveChild("LeftBehind".to_owned())).await?;
    let mut ending = None;
    let mut seen = Vec::new();
    while let Some(event) = process.events.recv().await {
        match event {
            ProcessEvent::Output { bytes, .. } => seen.extend(bytes),
            ProcessEvent::Ended { ending: how, .. } => ending = Some(how),
        }
    }
    same("ending", &ending, &Some(Ending::Exited(0)))?;
    same("output", &seen, &b"left".to_vec())?;
    let count = Action::CountChildren("LeftBehind".to_owned());
    let left = stage.run(&guest, &count).await?;
    same("children that are left", &left.stdout, &b"0\n".to_vec())
}
