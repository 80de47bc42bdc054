//! A durable backend in memory, with mishaps to order.
//!
//! Its world is shared by all clones and outlives each of them, as a keeper outlives its client: a
//! test drops everything else, which is a crash, and opens it again with a clone. The words of a
//! command are those of the [module](super) as far as they make sense here, and these:
//!
//! | word | does |
//! |---|---|
//! | `hang` | waits until it is killed |
//! | `child=NAME` | leaves a child, which goes on where the command is detached, until a signal |
//! | `tick=NAME` | counts in the world how often it came here, over all sandboxes |
//! | `fail-until=NAME:N` | exits 1 unless it came here N times before |
//! | `connect=HOST:PORT` | exits 1 unless the rules of its way out allow that; nothing is dialed |
//!
//! `/bin/sh -c TEXT` plays the words of the text.

mod files;
mod mishap;
mod network;
mod play;
mod world;

use crate::{
    Basis, Capabilities, Chunk, Connections, Deadlines, DestroyReason, DurableBackend, Enforced,
    Error, ErrorKind, ExecInput, ExecOrder, ExecStatus, Files, Found, JournalEntry, LimitsCount,
    NetworkPolicy, Part, Pause, ProbeReport, ProcessId, Result, SandboxId, SandboxMetrics,
    SandboxOrder, SandboxRecord, SandboxStatus, SecretAlarm, Seen, Spec,
};
use async_trait::async_trait;
use files::DurableFiles;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use world::{Knows, World};

pub use mishap::{Call, Mishap};
pub use network::NetworkFault;

/// A durable backend in memory. Clones share one world.
#[derive(Debug, Clone)]
pub struct FakeDurable {
    name: &'static str,
    world: Arc<World>,
}

impl Default for FakeDurable {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeDurable {
    /// A backend called `fake` with an empty world.
    pub fn new() -> Self {
        Self::named("fake")
    }

    /// A backend of another name with an empty world.
    pub fn named(name: &'static str) -> Self {
        Self { name, world: Arc::default() }
    }

    /// Lets the `nth` call of this kind from now on go wrong; 1 is the next.
    pub fn mishap(&self, call: Call, nth: usize, mishap: Mishap) {
        self.world.state().mishaps.push((call, nth, mishap));
    }

    /// Makes its way out wrong in this way, for good.
    pub fn network_fault(&self, fault: NetworkFault) {
        self.world.state().faults.insert(fault);
    }

    /// Forgets the mishaps that did not happen yet.
    pub fn calm(&self) {
        self.world.state().mishaps.clear();
    }

    /// The calls so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.world.state().calls.clone()
    }

    /// The sandboxes that live, running or paused.
    pub fn alive(&self) -> Vec<SandboxId> {
        self.world.state().alive()
    }

    /// The sandboxes that live or have left a journal.
    pub fn traces(&self) -> Vec<SandboxId> {
        self.world.state().sandboxes.keys().cloned().collect()
    }

    /// The order that a sandbox was made by.
    pub fn order(&self, id: &SandboxId) -> Option<SandboxOrder> {
        self.world.state().sandboxes.get(id).map(|sandbox| sandbox.order.clone())
    }

    /// How often the word `tick` was played with this name.
    pub fn ticks(&self, name: &str) -> u64 {
        self.world.state().ticks.get(name).copied().unwrap_or(0)
    }

    /// Kills a sandbox with its keeper: nothing is written down.
    pub fn vanish(&self, id: &SandboxId) {
        self.world.change(|state| state.vanish(id));
    }

    /// Pauses a sandbox as its keeper does when nobody uses it.
    pub fn fall_asleep(&self, id: &SandboxId) {
        self.world.change(|state| state.pause(id, true)).ok();
    }

    /// Freezes a sandbox as its keeper does after an alarm about a secret.
    pub fn raise(&self, id: &SandboxId, alarm: SecretAlarm) {
        self.world.change(|state| state.raise(id, alarm)).ok();
    }

    /// Lets the keepers see this moment, in milliseconds since 1970: deadlines before it fire.
    pub fn pass_time(&self, now_ms: u64) {
        self.world.change(|state| state.pass_time(now_ms));
    }

    /// Returns once a crash that was ordered has come. The caller then drops what it did.
    pub async fn crashed(&self) {
        self.world.crashed.notified().await;
    }

    /// Does something, unless a mishap comes in its way.
    async fn call<T: Send + 'static>(
        &self,
        call: Call,
        id: Option<&SandboxId>,
        deed: impl FnOnce(&Arc<World>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        // Each call gives way once, as one that asks another process does.
        tokio::task::yield_now().await;
        let mishap = self.world.state().next_mishap(call);
        match mishap {
            None => deed(&self.world),
            Some(Mishap::FailBefore) => Err(unavailable("the request was lost")),
            Some(Mishap::FailAfter) => {
                deed(&self.world)?;
                Err(unavailable("the reply was lost"))
            }
            Some(Mishap::HangBefore) => std::future::pending().await,
            Some(Mishap::HangAfter) => {
                deed(&self.world)?;
                std::future::pending().await
            }
            Some(Mishap::Late(delay)) => self.late(delay, deed).await,
            Some(Mishap::CrashBefore) => {
                self.world.crashed.notify_one();
                std::future::pending().await
            }
            Some(Mishap::CrashAfter) => {
                deed(&self.world).ok();
                self.world.crashed.notify_one();
                std::future::pending().await
            }
            Some(Mishap::Vanish) => {
                if let Some(id) = id {
                    self.vanish(id);
                }
                deed(&self.world)
            }
        }
    }

    /// Does something after a while, even if the caller does not wait for it.
    async fn late<T: Send + 'static>(
        &self,
        delay: Duration,
        deed: impl FnOnce(&Arc<World>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let world = Arc::clone(&self.world);
        let task = tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            deed(&world)
        });
        match task.await {
            Ok(result) => result,
            Err(_) => Err(unavailable("the world ended")),
        }
    }
}

fn unavailable(what: &str) -> Error {
    Error::new(ErrorKind::Unavailable, what)
}

#[async_trait]
impl DurableBackend for FakeDurable {
    fn name(&self) -> &'static str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pause: Pause::MemoryKept, terminal: true, limits: true }
    }

    async fn create(&self, id: &SandboxId, order: &SandboxOrder) -> Result<SandboxRecord> {
        let (made, order, name) = (id.clone(), order.clone(), self.name);
        self.call(Call::Create, Some(id), move |world| {
            world.change(|state| state.create(made, order, name))
        })
        .await
    }

    async fn status(&self, sandbox: &SandboxRecord) -> Result<SandboxStatus> {
        let id = sandbox.id.clone();
        self.call(Call::Status, Some(&sandbox.id), move |world| Ok(world.state().status(&id))).await
    }

    async fn pause(&self, sandbox: &SandboxRecord) -> Result<()> {
        let id = sandbox.id.clone();
        self.call(Call::Pause, Some(&sandbox.id), move |world| {
            world.change(|state| state.pause(&id, false))
        })
        .await
    }

    async fn resume(&self, sandbox: &SandboxRecord) -> Result<()> {
        let id = sandbox.id.clone();
        self.call(Call::Resume, Some(&sandbox.id), move |world| {
            world.change(|state| state.resume(&id, Knows::Nothing))
        })
        .await
    }

    async fn resume_on_purpose(&self, sandbox: &SandboxRecord) -> Result<()> {
        let id = sandbox.id.clone();
        self.call(Call::Resume, Some(&sandbox.id), move |world| {
            world.change(|state| state.resume(&id, Knows::OfAlarms))
        })
        .await
    }

    async fn set_deadlines(&self, sandbox: &SandboxRecord, deadlines: &Deadlines) -> Result<()> {
        let (id, deadlines) = (sandbox.id.clone(), *deadlines);
        self.call(Call::SetDeadlines, Some(&sandbox.id), move |world| {
            world.change(|state| state.set_deadlines(&id, deadlines))
        })
        .await
    }

    async fn destroy(&self, sandbox: &SandboxRecord, reason: DestroyReason) -> Result<()> {
        let id = sandbox.id.clone();
        self.call(Call::Destroy, Some(&sandbox.id), move |world| {
            world.change(|state| state.destroy(&id, reason));
            Ok(())
        })
        .await
    }

    async fn forget(&self, id: &SandboxId) -> Result<()> {
        let gone = id.clone();
        self.call(Call::Forget, Some(id), move |world| world.change(|state| state.forget(&gone)))
            .await
    }

    async fn ids(&self) -> Result<Vec<SandboxId>> {
        self.call(Call::Ids, None, |world| Ok(world.state().sandboxes.keys().cloned().collect()))
            .await
    }

    async fn list(&self) -> Result<Vec<Found>> {
        self.call(Call::List, None, |world| Ok(world.state().list())).await
    }

    async fn journal(&self, id: &SandboxId, after: u64) -> Result<Vec<JournalEntry>> {
        let of = id.clone();
        self.call(Call::Journal, Some(id), move |world| world.state().journal(&of, after)).await
    }

    async fn start(&self, sandbox: &SandboxRecord, order: &ExecOrder) -> Result<ExecStatus> {
        order.command.check()?;
        order.command.refuse_secrets()?;
        let (id, order) = (sandbox.id.clone(), order.clone());
        self.call(Call::Start, Some(&sandbox.id), move |world| play::start(world, &id, order)).await
    }

    async fn execs(&self, sandbox: &SandboxRecord) -> Result<Vec<ExecStatus>> {
        let id = sandbox.id.clone();
        self.call(Call::Execs, Some(&sandbox.id), move |world| world.state().execs(&id)).await
    }

    async fn watch(
        &self,
        sandbox: &SandboxRecord,
        id: &ProcessId,
        seen: Seen,
        patience: Duration,
    ) -> Result<ExecStatus> {
        let mut changed = self.world.changed();
        let begun = tokio::time::Instant::now();
        loop {
            changed.mark_unchanged();
            let (of, exec) = (sandbox.id.clone(), id.clone());
            let look = move |world: &Arc<World>| world.state().exec_status(&of, &exec);
            let status = self.call(Call::Watch, Some(&sandbox.id), look).await?;
            let news = status.ended.is_some() && (!seen.end || status.left.is_none())
                || status.stdout.written > seen.stdout
                || status.stderr.written > seen.stderr;
            // No deadline, for there is none after a patience that no clock can tell.
            let left = patience.saturating_sub(begun.elapsed());
            if news || tokio::time::timeout(left, changed.changed()).await.is_err() {
                return Ok(status);
            }
        }
    }

    async fn read(&self, sandbox: &SandboxId, id: &ProcessId, part: Part) -> Result<Chunk> {
        let (of, exec) = (sandbox.clone(), id.clone());
        self.call(Call::Read, Some(sandbox), move |world| world.state().read(&of, &exec, part))
            .await
    }

    async fn input(
        &self,
        sandbox: &SandboxRecord,
        id: &ProcessId,
        input: &ExecInput,
    ) -> Result<()> {
        let (of, exec, input) = (sandbox.id.clone(), id.clone(), input.clone());
        self.call(Call::Input, Some(&sandbox.id), move |world| {
            world.change(|state| state.input(&of, &exec, input))
        })
        .await
    }

    async fn network(&self, sandbox: &SandboxRecord) -> Result<Option<NetworkPolicy>> {
        let id = sandbox.id.clone();
        self.call(Call::Network, Some(&sandbox.id), move |world| world.state().network(&id)).await
    }

    async fn set_network(&self, sandbox: &SandboxRecord, policy: &NetworkPolicy) -> Result<()> {
        let (id, policy) = (sandbox.id.clone(), policy.clone());
        self.call(Call::SetNetwork, Some(&sandbox.id), move |world| {
            world.change(|state| state.set_network(&id, policy))
        })
        .await
    }

    async fn metrics(&self, sandbox: &SandboxRecord) -> Result<SandboxMetrics> {
        let id = sandbox.id.clone();
        self.call(Call::Status, Some(&sandbox.id), move |world| world.state().metrics(&id)).await
    }

    /// Nothing is attacked: nothing runs.
    async fn prove(&self, spec: &Spec) -> Result<ProbeReport> {
        let enforced = Enforced::full(Basis::Probed);
        let overall = enforced.overall(LimitsCount::Yes);
        let profile = spec.profile.name().to_owned();
        Ok(ProbeReport { profile, overall, enforced, checks: Vec::new() })
    }

    async fn connections(&self, id: &SandboxId, from: u64) -> Result<Connections> {
        let of = id.clone();
        self.call(Call::Connections, Some(id), move |world| world.state().connections(&of, from))
            .await
    }

    async fn files(&self, sandbox: &SandboxRecord) -> Result<Files> {
        let id = sandbox.id.clone();
        let door = DurableFiles { world: Arc::clone(&self.world), id };
        self.call(Call::Files, Some(&sandbox.id), move |_| Ok(Files::new(Arc::new(door)))).await
    }
}

/// Counts by name.
type Ticks = BTreeMap<String, u64>;
