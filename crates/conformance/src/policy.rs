//! What is promised, and what is refused instead.

use crate::check::{Stop, Verdict, fail, same};
use crate::fixture::Action;
use crate::stage::{CAP_BYTES, Stage, refused};
use cofferdam_core::{
    Axis, Ending, Enforcement, ErrorKind, LimitsCount, OnUnavailable, Profile, Spec, Terminal,
    Workspace, collect,
};
use std::sync::Arc;

pub(crate) async fn refuse_beats_degrade(stage: &mut Stage) -> Verdict {
    let mut spec = stage.subject().fixture.unenforceable().map_err(Stop::Skipped)?;
    spec.on_unavailable = OnUnavailable::Refuse;
    let id = stage.id()?;
    let made = stage.subject().backend.create(&id, &spec).await;
    refused("what cannot be enforced", made, &[ErrorKind::Unenforceable])?;
    same("listed", &stage.lists(&id).await?, &false)?;
    spec.on_unavailable = OnUnavailable::Degrade;
    let record = stage.create(&spec).await?;
    if record.enforced.overall(LimitsCount::Yes) == Enforcement::FullyEnforced {
        return fail("a degraded sandbox says that it is fully enforced");
    }
    if record.enforced.reasons.is_empty() {
        return fail("a degraded sandbox does not say what is missing");
    }
    let guest = stage.open(&record).await?;
    let output = stage.run(&guest, &Action::Exit(2)).await?;
    same("a command in it", &output.ending, &Ending::Exited(2))
}

pub(crate) async fn probe_agrees_with_create(stage: &mut Stage) -> Verdict {
    let weaker = stage.subject().fixture.unenforceable();
    for mut spec in [Ok(stage.spec()), weaker].into_iter().flatten() {
        spec.on_unavailable = OnUnavailable::Degrade;
        let probed = stage.subject().backend.probe(&spec).await?;
        let kept = stage.create(&spec).await?.enforced;
        for axis in Axis::ALL {
            if probed.degree(axis) > kept.degree(axis) {
                let (name, probed) = (axis.name(), probed.degree(axis));
                let kept = kept.degree(axis);
                return fail(format!("{name}: the probe says {probed:?}, the sandbox {kept:?}"));
            }
        }
    }
    Ok(())
}

pub(crate) async fn unsupported_is_said_beforehand(stage: &mut Stage) -> Verdict {
    let mut spec = stage.spec();
    spec.profile = Profile::RepoWrite;
    spec.egress = vec!["example.com:443".parse()?];
    let id = stage.id()?;
    let made = stage.subject().backend.create(&id, &spec).await;
    let kinds = [ErrorKind::Unsupported, ErrorKind::Unenforceable, ErrorKind::Unavailable];
    refused("a way out that nobody serves", made, &kinds)?;
    same("listed", &stage.lists(&id).await?, &false)?;

    let guest = stage.guest().await?;
    let mut command = stage.command(&Action::IsTerminal)?;
    let output = collect(guest.spawn(&command).await?, CAP_BYTES).await?;
    if output.ending == Ending::Exited(0) {
        return fail("control: a command without a terminal has one");
    }
    command.terminal = Some(Terminal { rows: 24, columns: 80 });
    let spawned = guest.spawn(&command).await;
    if !stage.subject().backend.capabilities().terminal {
        return refused("a terminal", spawned, &[ErrorKind::Unsupported]);
    }
    let output = collect(spawned?, CAP_BYTES).await?;
    same("a terminal that was promised", &output.ending, &Ending::Exited(0))
}

pub(crate) async fn read_only_refuses_writes(stage: &mut Stage) -> Verdict {
    let backend = Arc::clone(&stage.subject().backend);
    for (profile, written) in [(Profile::NoNetwork, true), (Profile::ReadOnly, false)] {
        let mut spec = stage.spec();
        spec.profile = profile;
        let record = stage.create(&spec).await?;
        let guest = stage.open(&record).await?;
        let path = format!("{}/written-by-{profile}", record.workspace);
        let write = stage.run(&guest, &Action::WriteFile(path.clone())).await?;
        let wrote = write.ending == Ending::Exited(0);
        same(&format!("{profile}: a write succeeds"), &wrote, &written)?;
        let read = stage.run(&guest, &Action::ReadFile(path)).await?;
        let there = read.ending == Ending::Exited(0);
        same(&format!("{profile}: the file is there"), &there, &written)?;
        backend.destroy(&record).await?;
    }
    Ok(())
}

pub(crate) async fn copy_on_write_lands_beside(stage: &mut Stage) -> Verdict {
    let directory = stage.subject().fixture.workspace().map_err(Stop::Skipped)?;
    let over = |workspace| Spec { workspace, ..stage.spec() };
    let plain = over(Workspace::Directory(directory.clone()));
    let beside = over(Workspace::CopyOnWrite(directory));
    let backend = Arc::clone(&stage.subject().backend);
    // The first writes what all see, the second what none but itself sees.
    for (spec, own, seen) in [
        (&plain, Some("control"), &[("control", true), ("beside", false)]),
        (&beside, Some("beside"), &[("control", true), ("beside", true)]),
        (&plain, None, &[("control", true), ("beside", false)]),
        (&beside, None, &[("control", true), ("beside", false)]),
    ] {
        let record = stage.create(spec).await?;
        let guest = stage.open(&record).await?;
        let path = |name: &str| format!("{}/{name}", record.workspace);
        if let Some(own) = own {
            let write = stage.run(&guest, &Action::WriteFile(path(own))).await?;
            same(&format!("{own}: a write"), &write.ending, &Ending::Exited(0))?;
        }
        for (name, there) in seen {
            let read = stage.run(&guest, &Action::ReadFile(path(name))).await?;
            let found = read.ending == Ending::Exited(0);
            same(&format!("{name} is seen, with {own:?} written"), &found, there)?;
        }
        backend.destroy(&record).await?;
    }
    Ok(())
}
