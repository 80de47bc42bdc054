//! Things outside that must stay out of reach, each with a control that shows the attack works.

use crate::check::{Verdict, fail, same};
use crate::fixture::Action;
use crate::stage::Stage;
use cofferdam_core::Ending;

const SECRET: &str = "COFFERDAM_CONFORMANCE_SECRET";

const GIVEN: &str = "COFFERDAM_CONFORMANCE_GIVEN";

pub(crate) async fn host_pid_invisible(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let first = stage.run(&guest, &Action::SeesProcess(1)).await?;
    same("control: the sandbox's own first process", &first.ending, &Ending::Exited(0))?;
    let ours = stage.run(&guest, &Action::SeesProcess(std::process::id())).await?;
    if ours.ending == Ending::Exited(0) {
        return fail("a process of the host is seen from inside");
    }
    Ok(())
}

pub(crate) async fn host_file_unreadable(stage: &mut Stage) -> Verdict {
    let file = stage.subject().fixture.host_file();
    let record = stage.create(&stage.spec()).await?;
    let guest = stage.open(&record).await?;
    let own = format!("{}/own", record.workspace);
    stage.run(&guest, &Action::WriteFile(own.clone())).await?;
    let read = stage.run(&guest, &Action::ReadFile(own)).await?;
    same("control: a file of the workspace", &read.ending, &Ending::Exited(0))?;
    let path = file.path.to_string_lossy().into_owned();
    let read = stage.run(&guest, &Action::ReadFile(path)).await?;
    if String::from_utf8_lossy(&read.stdout).contains(&file.secret) {
        return fail("a file of the host was read from inside");
    }
    if read.ending == Ending::Exited(0) {
        return fail("a file is where one of the host is, and nobody showed it");
    }
    Ok(())
}

pub(crate) async fn environment_is_clean(stage: &mut Stage) -> Verdict {
    let mut spec = stage.spec();
    spec.caller.env.insert(SECRET.into(), "secret".into());
    spec.env.insert(GIVEN.into(), "given".into());
    let record = stage.create(&spec).await?;
    let guest = stage.open(&record).await?;
    let given = stage.run(&guest, &Action::PrintVariable(GIVEN.to_owned())).await?;
    same("control: a variable that was given", &given.stdout, &b"given\n".to_vec())?;
    let secret = stage.run(&guest, &Action::PrintVariable(SECRET.to_owned())).await?;
    same("a variable of the caller", &secret.stdout, &b"\n".to_vec())
}
