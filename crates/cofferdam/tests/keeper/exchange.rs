//! Another layer under a sandbox that lives on.

use crate::ground::until;
use crate::stage::{PATIENCE, Stage, detached, exec, id, sandbox_id};
use cofferdam::{
    Deadlines, DestroyReason, DurableBackend, Ending, Error, ErrorKind, Exchanged, Happened,
    LayerExchange, Sandbox, SandboxOrder, SandboxRecord, SandboxStatus,
};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How often a layer is exchanged in a row.
const TIMES: usize = 40;

/// A copy-on-write sandbox with a file in its workspace; `None` where the kernel makes no overlay for us.
async fn make(stage: &Stage, name: &str, hides: bool) -> Option<(SandboxRecord, Layer)> {
    let kept = stage.ground.place.join("kept");
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(stage.ground.workspace().join("below"), "below\n").unwrap();
    let mut builder = Sandbox::builder().copy_on_write_workspace(stage.ground.workspace());
    if hides {
        builder = builder.hide(stage.ground.workspace().join("below"));
    }
    let order = SandboxOrder {
        spec: builder.spec().unwrap(),
        owner: String::new(),
        deadlines: Deadlines::default(),
        home: None,
        kept: Some(kept.clone()),
    };
    let record = stage.backend.create(&sandbox_id(name), &order).await.unwrap();
    if !kept.join("cow/work").exists() {
        println!("skipped: {name}: there is no overlayfs for this user");
        stage.end(&record).await;
        return None;
    }
    Some((record, Layer(kept.join("cow"))))
}

/// A layer that can be removed when it goes: the kernel lets nobody into what it works in.
struct Layer(PathBuf);

impl std::ops::Deref for Layer {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        let inner = self.0.join("work/work");
        let _ = std::fs::set_permissions(inner, PermissionsExt::from_mode(0o700));
    }
}

/// Puts an upper directory with this one file in the place of the present one.
fn exchange(layer: &Path, name: &str) -> LayerExchange {
    let (layer, name) = (layer.to_owned(), name.to_owned());
    Box::new(move || {
        let (upper, fresh) = (layer.join("upper"), layer.join("fresh"));
        let facts = std::fs::metadata(&upper).unwrap();
        std::fs::create_dir(&fresh).unwrap();
        std::fs::write(fresh.join(&name), format!("{name}\n")).unwrap();
        for path in [&fresh, &fresh.join(&name)] {
            std::os::unix::fs::chown(path, Some(facts.uid()), Some(facts.gid())).unwrap();
        }
        std::fs::remove_dir_all(&upper).unwrap();
        // The kernel lets nobody into what it works in.
        let inner =
            std::fs::set_permissions(layer.join("work/work"), PermissionsExt::from_mode(0o700));
        inner.unwrap();
        std::fs::remove_dir_all(layer.join("work")).unwrap();
        std::fs::rename(&fresh, &upper).unwrap();
        Ok(())
    })
}

/// How many overlays the processes of the sandbox see.
fn overlays(stage: &Stage) -> usize {
    let (_, first, _) = stage.processes();
    let mounts = std::fs::read_to_string(format!("/proc/{first}/mounts")).unwrap_or_default();
    mounts.lines().filter(|line| line.contains(" overlay ")).count()
}

/// One command looks at another one, talks to it and ends it: they are under the same rules.
async fn commands_deal_with_each_other(stage: &Stage, sandbox: &SandboxRecord, when: &str) {
    let (server, client) = (format!("server-{when}"), format!("client-{when}"));
    let script = "exec 9>/tmp/held; echo $$ >/tmp/pid; echo ready; exec sleep 300";
    stage.backend.start(sandbox, &detached(&server, script)).await.unwrap();
    stage.says(sandbox, &server, "ready").await;
    let script = "p=$(cat /tmp/pid) && readlink /proc/$p/fd/9 /proc/$p/cwd && kill -TERM $p";
    let ended = stage.run(sandbox, &exec(&client, script)).await;
    let said = stage.output(sandbox, &client).await;
    assert_eq!((ended, said.lines().next()), (Ending::Exited(0), Some("/tmp/held")), "{when}");
    let ended = stage.wait(sandbox, &server).await.ended.unwrap().ending;
    assert_eq!(ended, Ending::Signaled(15), "{when}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_is_exchanged_under_a_sandbox_that_lives_on() {
    let stage = Stage::new("kept-exchange");
    let Some((sandbox, layer)) = make(&stage, "kept-exchange", false).await else { return };
    let before = overlays(&stage);
    let first = "echo mine > mine; echo changed > below; touch /tmp/mark";
    assert_eq!(stage.run(&sandbox, &exec("first", first)).await, Ending::Exited(0));
    let script = "(trap '' TERM HUP INT; setsid sleep 300 & exec sleep 300) & \
                  cd sub 2>/dev/null; exec 9>held; echo ready; exec sleep 300";
    stage.backend.start(&sandbox, &detached("server", script)).await.unwrap();
    stage.says(&sandbox, "server", "ready").await;

    commands_deal_with_each_other(&stage, &sandbox, "before").await;
    for round in 0..TIMES {
        let name = format!("other-{round}");
        stage.backend.hold(&sandbox).await.unwrap();
        let exchanged = stage.backend.exchange_layer(&sandbox, exchange(&layer, &name)).await;
        assert!(matches!(exchanged, Ok(Exchanged::Lives)), "{round}: {exchanged:?}");
        let look = format!(
            "test -f /tmp/mark && ! test -e mine && cat {name} /workspace/{name} below && \
             echo again > again && echo there > /workspace/there && cat again there"
        );
        let look = exec(&format!("look-{round}"), &look);
        assert_eq!(stage.run(&sandbox, &look).await, Ending::Exited(0), "{round}");
        let said = stage.output(&sandbox, look.command.id.as_str()).await;
        assert_eq!(said, format!("{name}\n{name}\nbelow\nagain\nthere\n"), "{round}");
        // What is written lands in the layer that is there now, and nowhere else.
        assert!(layer.join("upper/again").exists() && layer.join("upper/there").exists());
    }
    commands_deal_with_each_other(&stage, &sandbox, "after").await;
    let server = stage.wait(&sandbox, "server").await.ended.unwrap().ending;
    assert_eq!(server, Ending::Canceled);
    until("nothing is left in it", || stage.processes().2.is_empty());
    assert_eq!(overlays(&stage), before, "none was left behind");
    assert!(!stage.ground.workspace().join("again").exists());
    let happened = stage.happened(&sandbox.id).await;
    let is_paused = |happened: &Happened| matches!(happened, Happened::Paused { .. });
    assert!(!happened.iter().any(is_paused), "{happened:?}");
    stage.end(&sandbox).await;
    stage.await_no_keeper();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_layer_may_be_another_one_ends() {
    let stage = Stage::new("kept-exchange-fails");
    let Some((sandbox, _layer)) = make(&stage, "kept-exchange-fails", false).await else { return };
    stage.backend.hold(&sandbox).await.unwrap();
    let fails: LayerExchange = Box::new(|| Err(Error::new(ErrorKind::Io, "no such luck")));
    let error = stage.backend.exchange_layer(&sandbox, fails).await.unwrap_err();
    assert_eq!(error.to_string(), "no such luck");
    assert_eq!(stage.destroyed(&sandbox).await, DestroyReason::Error);
    stage.await_no_keeper();
    stage.backend.forget(&sandbox.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_starts_while_a_layer_is_exchanged() {
    let stage = Stage::new("kept-exchange-between");
    let Some((sandbox, layer)) = make(&stage, "kept-exchange-between", false).await else {
        return;
    };
    stage.backend.hold(&sandbox).await.unwrap();
    let (backend, record) = (stage.backend.clone(), sandbox.clone());
    let handle = tokio::runtime::Handle::current();
    let inner = exchange(&layer, "other");
    let exchange: LayerExchange = Box::new(move || {
        let started = handle.block_on(backend.start(&record, &exec("between", "true")));
        assert_eq!(started.unwrap_err().kind, ErrorKind::Conflict);
        let held = handle.block_on(backend.hold(&record));
        assert_eq!(held.unwrap_err().kind, ErrorKind::Conflict);
        inner()
    });
    let exchanged = stage.backend.exchange_layer(&sandbox, exchange).await;
    assert!(matches!(exchanged, Ok(Exchanged::Lives)), "{exchanged:?}");
    assert_eq!(stage.run(&sandbox, &exec("after", "cat other")).await, Ending::Exited(0));
    stage.end(&sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_that_cannot_be_exchanged_stays_and_so_does_all_that_runs() {
    let stage = Stage::new("kept-exchange-refused");
    let Some((sandbox, layer)) = make(&stage, "kept-exchange-refused", true).await else { return };
    stage.backend.start(&sandbox, &detached("server", "echo ready; sleep 300")).await.unwrap();
    stage.says(&sandbox, "server", "ready").await;
    stage.backend.hold(&sandbox).await.unwrap();
    let exchanged = stage.backend.exchange_layer(&sandbox, exchange(&layer, "other")).await;
    assert!(matches!(exchanged, Ok(Exchanged::Refused(_))), "{exchanged:?}");
    stage.backend.resume(&sandbox).await.unwrap();
    let until = Instant::now() + PATIENCE;
    while stage.backend.status(&sandbox).await.unwrap() != SandboxStatus::Running {
        assert!(Instant::now() < until);
    }
    let all = stage.backend.execs(&sandbox).await.unwrap();
    let server = all.iter().find(|exec| exec.id == id("server")).unwrap();
    assert!(server.ended.is_none());
    // One that is not held is not cleared either.
    stage.end(&sandbox).await;
    let other = Stage::new("kept-exchange-runs");
    let Some((sandbox, layer)) = make(&other, "kept-exchange-runs", false).await else { return };
    let exchanged = other.backend.exchange_layer(&sandbox, exchange(&layer, "other")).await;
    assert!(matches!(exchanged, Ok(Exchanged::Refused(_))), "{exchanged:?}");
    other.end(&sandbox).await;
}
