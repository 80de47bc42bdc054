//! Nothing is left of sandboxes, however they end.
#![expect(clippy::unwrap_used, reason = "the functions beside the tests are of tests too")]

mod ground;

use cofferdam::{
    Backend, ErrorKind, LocalBackend, NoGate, Preparation, Sandbox, SandboxId, SandboxStatus,
    prepared_backend,
};
use ground::{Ground, await_ends, descendants, hold, until};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};

/// Leaves a child behind, in a session of its own.
const DAEMON: [&str; 3] = ["sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & echo up"];

/// What a backend keeps beside its sandboxes: a template, its opener and the next sandbox, or a launcher.
const KEPT: usize = 3;

/// One test at a time, because all processes of this program are counted.
async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

fn id(name: &str, number: usize) -> SandboxId {
    SandboxId::new(format!("{name}-{}-{number}", std::process::id())).unwrap()
}

async fn make(ground: &Ground, backend: &Arc<LocalBackend>, id: SandboxId) -> Sandbox {
    let sandbox = ground.builder(backend).id(id).create().await.unwrap();
    let output = sandbox.exec(DAEMON).await.unwrap();
    assert_eq!(output.stdout, b"up\n", "{output:?}");
    sandbox
}

fn own_processes() -> Vec<u32> {
    descendants(std::process::id())
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_at_once_leave_nothing() {
    let _alone = alone().await;
    let ground = Arc::new(Ground::new("fifty"));
    let backend = ground.backend();
    make(&ground, &backend, id("fifty", 0)).await.destroy().await.unwrap();
    let before = ground.left("fifty");
    let tasks = (1..=50).map(|number| {
        let (ground, backend) = (Arc::clone(&ground), Arc::clone(&backend));
        tokio::spawn(async move { make(&ground, &backend, id("fifty", number)).await })
    });
    let mut all = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        all.push(task.await.unwrap());
    }
    assert_eq!(backend.list().await.unwrap().len(), 50);
    assert_ne!(ground.left("fifty"), before, "there must be something to count");
    assert!(own_processes().len() > 50);
    let ends = all.into_iter().map(|sandbox| tokio::spawn(sandbox.destroy()));
    for end in ends.collect::<Vec<_>>() {
        end.await.unwrap().unwrap();
    }
    assert_eq!(ground.left("fifty"), before);
    assert_eq!(backend.list().await.unwrap(), []);
    // Once they have seen the last of their children.
    until("no sandbox's process is there", || own_processes().len() <= KEPT);
    drop(backend);
    assert_eq!(own_processes(), [0; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_that_is_given_up_leaves_nothing() {
    let _alone = alone().await;
    let ground = Ground::new("given-up");
    let backend = ground.backend();
    make(&ground, &backend, id("given-up", 0)).await.destroy().await.unwrap();
    let before = ground.left("given-up");
    let mut given_up = 0;
    for number in 1..=20_u8 {
        let creation = ground.builder(&backend).id(id("given-up", number.into())).create();
        let moment = Duration::from_micros(500) * number.into();
        given_up += usize::from(tokio::time::timeout(moment, creation).await.is_err());
    }
    assert!(given_up > 0, "every creation was faster than its deadline");
    until("nothing is left", || ground.left("given-up") == before && own_processes().len() <= KEPT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_sandbox_ends_in_the_background() {
    let _alone = alone().await;
    let ground = Ground::new("let-go");
    let backend = ground.backend();
    let before = ground.left("let-go");
    drop(make(&ground, &backend, id("let-go", 0)).await);
    until("nothing is left", || ground.left("let-go") == before && own_processes().len() <= KEPT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_backend_ends_its_sandboxes() {
    let _alone = alone().await;
    let ground = Ground::new("dropped");
    let backend = ground.backend();
    let before = ground.left("dropped");
    let spec = ground.builder(&backend).spec().unwrap();
    let record = backend.create(&id("dropped", 0), &spec).await.unwrap();
    let guest = backend.open(&record, Arc::new(NoGate)).await.unwrap();
    drop(backend);
    assert_eq!(ground.left("dropped"), before);
    assert_eq!(own_processes(), [0; 0]);
    until("the guest says that it is gone", || {
        let gone = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(guest.processes())
        });
        gone.is_err_and(|error| error.kind == ErrorKind::Unavailable)
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_died_by_itself_is_gone_and_its_id_free() {
    let _alone = alone().await;
    let ground = Ground::new("died");
    let backend = ground.backend();
    let before = ground.left("died");
    let sandbox = make(&ground, &backend, id("died", 0)).await;
    let record = sandbox.record().clone();
    let first = record.external_id.split('-').next().unwrap().parse::<i32>().unwrap();
    let first = rustix::process::Pid::from_raw(first).unwrap();
    rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
    until("its first process is gone", || own_processes().len() <= KEPT);
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Gone);
    assert_eq!(backend.list().await.unwrap(), []);
    assert_eq!(sandbox.exec(["true"]).await.unwrap_err().kind, ErrorKind::Unavailable);
    let next = make(&ground, &backend, id("died", 0)).await;
    // The record of the dead one does not name the new one.
    sandbox.destroy().await.unwrap();
    assert_eq!(next.status().await.unwrap(), SandboxStatus::Running);
    next.destroy().await.unwrap();
    assert_eq!(ground.left("died"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launcher_that_was_killed_is_replaced() {
    let _alone = alone().await;
    let ground = Ground::new("replaced");
    let backend = ground.backend();
    let before = ground.left("replaced");
    let sandbox = make(&ground, &backend, id("replaced", 0)).await;
    let all = own_processes();
    let launcher = rustix::process::Pid::from_raw(all[0].cast_signed()).unwrap();
    let held = hold(&all);
    rustix::process::kill_process(launcher, rustix::process::Signal::KILL).unwrap();
    await_ends(&held);
    assert_eq!(sandbox.status().await.unwrap(), SandboxStatus::Gone);
    let next = make(&ground, &backend, id("replaced", 1)).await;
    sandbox.destroy().await.unwrap();
    next.destroy().await.unwrap();
    assert_eq!(ground.left("replaced"), before);
}

/// Set for the process that is to be killed: where its ground is.
const HOLDER: &str = "LEAKS_HOLDER";

/// What leads the names of its sandboxes.
const NAME: &str = "LEAKS_NAME";

/// Set where its sandboxes are to be built from nothing, by a launcher, and not copied.
const BUILT: &str = "LEAKS_BUILT";

/// Not a test of its own: what [`a_killed_process_leaves_nothing`] kills.
#[tokio::test(flavor = "multi_thread")]
async fn holder() {
    let (Some(place), Ok(name)) = (std::env::var_os(HOLDER), std::env::var(NAME)) else { return };
    let ground = std::mem::ManuallyDrop::new(Ground { place: place.into() });
    let backend = match std::env::var_os(BUILT) {
        None => ground.backend(),
        Some(_) => Arc::new(prepared_backend(ground.place.join("state"), Preparation::Nothing)),
    };
    let mut all = Vec::new();
    for number in 0..5 {
        let sandbox = make(&ground, &backend, id(&name, number)).await;
        let command = sandbox.exec(["sh", "-c", "setsid sleep 300 & sleep 300"]).spawn().await;
        all.push((sandbox, command.unwrap()));
    }
    println!("\nholding");
    std::future::pending::<()>().await;
}

/// Dropping it kills it.
struct Holder(Child);

impl Holder {
    /// Starts one, and waits until its sandboxes are made.
    fn start(ground: &Ground, name: &str, variables: &[(&str, &str)]) -> Self {
        let mut holder = Self(
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "holder", "--nocapture"])
                .env(HOLDER, &ground.place)
                .env(NAME, name)
                .envs(variables.iter().copied())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap(),
        );
        let said = BufReader::new(holder.0.stdout.take().unwrap()).lines();
        assert!(said.map_while(Result::ok).any(|line| line == "holding"), "it makes sandboxes");
        holder
    }

    /// What it started, to wait for.
    fn all(&self) -> Vec<OwnedFd> {
        let all = descendants(self.0.id());
        assert!(all.len() > 10, "it must hold sandboxes and what runs in them: {all:?}");
        hold(&all)
    }

    /// Copies of all its descriptors, which is what a child has that it forked.
    fn forked(&self) -> Vec<OwnedFd> {
        let pid = Pid::from_raw(self.0.id().cast_signed()).unwrap();
        let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        std::fs::read_dir(format!("/proc/{}/fd", self.0.id()))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
            .map(|number| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).unwrap())
            .collect()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_nothing() {
    let _alone = alone().await;
    let ground = Ground::new("killed");
    let before = ground.left("killed");
    let holder = Holder::start(&ground, "killed", &[]);
    let held = holder.all();
    drop(holder);
    await_ends(&held);
    // What the kernel does not do itself, the next start does.
    let backend = ground.backend();
    make(&ground, &backend, id("after", 0)).await.destroy().await.unwrap();
    assert_eq!(ground.left("killed"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_no_sandbox_to_a_child_that_it_forked() {
    let _alone = alone().await;
    for (name, variables) in [("forked-copied", &[][..]), ("forked-built", &[(BUILT, "1")][..])] {
        let ground = Ground::new(name);
        let before = ground.left(name);
        let holder = Holder::start(&ground, name, variables);
        let (held, forked) = (holder.all(), holder.forked());
        drop(holder);
        await_ends(&held);
        // LIMIT: records are locked as long as such a child lives.
        drop(forked);
        let backend = ground.backend();
        make(&ground, &backend, id("after", 0)).await.destroy().await.unwrap();
        assert_eq!(ground.left(name), before, "{name}");
    }
}
