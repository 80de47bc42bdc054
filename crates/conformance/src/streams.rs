//! Output that nobody reads, and terminals.

use crate::check::{Stop, Verdict, fail, same};
use crate::fixture::Action;
use crate::stage::{CAP_BYTES, Stage, wait_for};
use cofferdam_core::{Ending, ProcessInput, Terminal, collect};
use std::time::Duration;

/// More than pipes, credit and queues hold together.
const FLOOD_BYTES: u64 = 32 << 20;

pub(crate) async fn slow_reader_stops_nobody(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let slow = stage.spawn(&guest, &Action::PrintBytes(FLOOD_BYTES)).await?;
    let quick = Action::Print { stdout: "quick".to_owned(), stderr: String::new() };
    // Nothing tells of a queue that has filled, so it is looked at until it has.
    while slow.events.len() < slow.events.max_capacity() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..20 {
        let output = stage.run(&guest, &quick).await?;
        same("the other command's output", &output.stdout, &b"quick".to_vec())?;
    }
    same("what runs", &guest.processes().await?, &vec![slow.id.clone()])?;
    let output = collect(slow, CAP_BYTES).await?;
    let came = output.stdout.len() as u64 + output.omitted.stdout;
    same("what the slow one wrote", &came, &FLOOD_BYTES)
}

pub(crate) async fn resize_arrives(stage: &mut Stage) -> Verdict {
    if !stage.subject().backend.capabilities().terminal {
        return Err(Stop::Skipped("the backend has no terminals".to_owned()));
    }
    let guest = stage.guest().await?;
    let mut command = stage.command(&Action::PrintNextSize)?;
    command.terminal = Some(Terminal { rows: 10, columns: 20 });
    let mut process = guest.spawn(&command).await?;
    wait_for(&mut process, b"ready").await?;
    let size = Terminal { rows: 31, columns: 97 };
    if process.input.send(ProcessInput::Resize(size)).await.is_err() {
        return fail("the command takes no input any more");
    }
    // The sender stays, or the program would read the end of its terminal.
    let input = process.input.clone();
    let output = collect(process, CAP_BYTES).await?;
    drop(input);
    let text = String::from_utf8_lossy(&output.stdout);
    same("the size inside", &text.trim(), &"31 97")?;
    same("ending", &output.ending, &Ending::Exited(0))
}
