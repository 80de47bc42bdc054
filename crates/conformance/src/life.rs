//! Sandboxes from their making to their end.

use crate::check::{Stop, Verdict, fail, same};
use crate::fixture::Action;
use crate::stage::{Stage, refused, wait_for};
use cofferdam_core::{Ending, ErrorKind, NoGate, ProcessEvent, SandboxStatus};
use std::sync::Arc;

pub(crate) async fn destroy_twice(stage: &mut Stage) -> Verdict {
    let record = stage.create(&stage.spec()).await?;
    let backend = Arc::clone(&stage.subject().backend);
    backend.destroy(&record).await?;
    backend.destroy(&record).await?;
    same("status", &backend.status(&record).await?, &SandboxStatus::Gone)
}

pub(crate) async fn gone_is_gone(stage: &mut Stage) -> Verdict {
    let record = stage.create(&stage.spec()).await?;
    let backend = Arc::clone(&stage.subject().backend);
    same("status before", &backend.status(&record).await?, &SandboxStatus::Running)?;
    let guest = stage.open(&record).await?;
    let mut process = stage.spawn(&guest, &Action::PrintThenWait("here".to_owned())).await?;
    wait_for(&mut process, b"here").await?;
    backend.destroy(&record).await?;
    while let Some(event) = process.events.recv().await {
        match event {
            ProcessEvent::Output { .. }
            | ProcessEvent::Ended { ending: Ending::Canceled | Ending::Signaled(_), .. } => {}
            ProcessEvent::Ended { ending, .. } => {
                return fail(format!("a command of a sandbox that was ended: {ending:?}"));
            }
        }
    }
    same("status", &backend.status(&record).await?, &SandboxStatus::Gone)?;
    same("listed", &stage.lists(&record.id).await?, &false)?;
    let kinds = [ErrorKind::Unavailable, ErrorKind::NotFound];
    let command = stage.command(&Action::Exit(0))?;
    refused("a command", guest.spawn(&command).await, &kinds)?;
    refused("a new hatch", backend.open(&record, Arc::new(NoGate)).await, &kinds)
}

pub(crate) async fn five_at_once_are_five(stage: &mut Stage) -> Verdict {
    let mut tasks = Vec::new();
    for _ in 0..5 {
        let (id, spec) = (stage.id()?, stage.spec());
        let backend = Arc::clone(&stage.subject().backend);
        tasks.push(tokio::spawn(async move { backend.create(&id, &spec).await }));
    }
    let mut records = Vec::new();
    for task in tasks {
        records.push(task.await.map_err(|error| Stop::Failed(error.to_string()))??);
    }
    let mut names: Vec<&str> = records.iter().map(|record| record.external_id.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    same("different sandboxes", &names.len(), &5)?;
    for (record, code) in records.iter().zip(10..) {
        same("listed", &stage.lists(&record.id).await?, &true)?;
        let guest = stage.open(record).await?;
        let output = stage.run(&guest, &Action::Exit(code)).await?;
        same("ending", &output.ending, &Ending::Exited(code))?;
    }
    Ok(())
}

pub(crate) async fn same_id_is_a_conflict(stage: &mut Stage) -> Verdict {
    let record = stage.create(&stage.spec()).await?;
    let again = stage.subject().backend.create(&record.id, &stage.spec()).await;
    refused("the same id", again, &[ErrorKind::Conflict])?;
    let guest = stage.open(&record).await?;
    let output = stage.run(&guest, &Action::Exit(5)).await?;
    same("the first one", &output.ending, &Ending::Exited(5))
}

pub(crate) async fn crash_after_create_is_found(stage: &mut Stage) -> Verdict {
    let id = stage.create(&stage.spec()).await?.id;
    let backend = Arc::clone(&stage.subject().backend);
    let found = backend.list().await?.into_iter().find(|record| record.id == id);
    let Some(record) = found else { return fail("a sandbox that was made is not listed") };
    let guest = stage.open(&record).await?;
    let output = stage.run(&guest, &Action::Exit(6)).await?;
    same("a command in what was found", &output.ending, &Ending::Exited(6))?;
    backend.destroy(&record).await?;
    same("listed after its end", &stage.lists(&id).await?, &false)
}
