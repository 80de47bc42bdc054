//! How much can be used.

use crate::check::{Verdict, fail, same};
use crate::fixture::{Action, Need};
use crate::stage::Stage;
use cofferdam_core::{Ending, EndingKind, Limit};

const MEMORY_BYTES: u64 = 64 << 20;

const PIDS: u32 = 48;

pub(crate) async fn memory_names_its_cause(stage: &mut Stage) -> Verdict {
    stage.needs(Need::MemoryLimit)?;
    let mut spec = stage.spec();
    spec.limits.memory_bytes = Limit::Asked(MEMORY_BYTES);
    let record = stage.create(&spec).await?;
    let guest = stage.open(&record).await?;
    let little = stage.run(&guest, &Action::UseMemory(MEMORY_BYTES / 8)).await?;
    same("control: a little", &little.ending, &Ending::Exited(0))?;
    let much = stage.run(&guest, &Action::UseMemory(MEMORY_BYTES * 4)).await?;
    // It may be a process of the command's that was killed, whose end the command then tells.
    same("too much", &much.ending.kind(), &EndingKind::OutOfMemory)?;
    let after = stage.run(&guest, &Action::Exit(7)).await?;
    same("the next command", &after.ending, &Ending::Exited(7))
}

pub(crate) async fn fork_bomb_contained(stage: &mut Stage) -> Verdict {
    stage.needs(Need::ProcessLimit)?;
    let mut spec = stage.spec();
    spec.limits.pids = Limit::Asked(PIDS);
    let record = stage.create(&spec).await?;
    let guest = stage.open(&record).await?;
    let few = stage.run(&guest, &Action::HaveProcesses(PIDS / 4)).await?;
    same("control: a few", &few.ending, &Ending::Exited(0))?;
    let many = stage.run(&guest, &Action::HaveProcesses(PIDS * 4)).await?;
    if many.ending == Ending::Exited(0) {
        return fail(format!("a command had {} processes under a limit of {PIDS}", PIDS * 4));
    }
    let after = stage.run(&guest, &Action::Exit(8)).await?;
    same("the next command", &after.ending, &Ending::Exited(8))
}
