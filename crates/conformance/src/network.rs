//! What a kept sandbox may reach, changed while it lives.

use crate::check::{Running, Stop, Verdict, same};
use crate::stage::refused;
use cofferdam_core::{
    Command, ConnectionDecision, Deadlines, DestroyReason, DurableBackend, Ending, ErrorKind,
    ExecOrder, NetworkPolicy, ProcessId, SandboxId, SandboxOrder, SandboxRecord, Seen, Spec,
};
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::time::timeout;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A backend whose sandboxes have a way out, and what the suite must know of it.
#[derive(Clone)]
pub struct NetworkSubject {
    /// Its name.
    pub name: String,
    /// The backend.
    pub backend: Arc<dyn DurableBackend>,
    /// How its sandboxes connect.
    pub ground: Arc<dyn NetworkGround>,
    /// A check that takes longer has failed.
    pub patience: Duration,
}

/// Says how the suite's sandboxes are made and how a command in them connects.
pub trait NetworkGround: Send + Sync {
    /// A sandbox with a workspace of its own that can have a way out, or why there is none.
    fn spec(&self) -> Result<Spec, String>;

    /// A command that exits 0 if it got a connection to this port of the host's own loopback, and
    /// otherwise not.
    fn connect(&self, port: u16) -> Vec<OsString>;
}

/// One promise of a backend whose sandboxes have a way out.
#[derive(Debug, Clone, Copy)]
pub struct NetworkCheck {
    /// Its stable name, as in `network.rules_are_shown`.
    pub name: &'static str,
    /// What is promised, as a sentence.
    pub promise: &'static str,
    /// Tries it.
    pub run: for<'a> fn(&'a mut NetworkStage) -> Running<'a>,
}

macro_rules! check {
    ($name:literal, $run:path, $promise:literal) => {
        NetworkCheck { name: $name, promise: $promise, run: |stage| Box::pin($run(stage)) }
    };
}

/// All checks of the way out, in the order of the document.
pub const NETWORK: &[NetworkCheck] = &[
    check!(
        "network.rules_are_shown",
        rules_are_shown,
        "What a sandbox may reach is shown as it holds, at first and after a change."
    ),
    check!(
        "network.rules_hold_from_the_next_connection",
        rules_hold_from_the_next_connection,
        "A change opens and closes from the next connection on, in a sandbox that lives."
    ),
    check!(
        "network.versions_follow",
        versions_follow,
        "Rules whose edition is not the next are a conflict, and change nothing."
    ),
    check!(
        "network.no_way_out_gets_none",
        no_way_out_gets_none,
        "A sandbox that was made without a way out has no rules and gets none."
    ),
    check!(
        "network.connections_are_written_down",
        connections_are_written_down,
        "Every connection is told with what became of it, once, also when the sandbox is gone."
    ),
];

/// Makes one check, and clears away what it made.
pub async fn perform_network(check: &NetworkCheck, subject: &NetworkSubject) -> Verdict {
    let mut stage = NetworkStage::new(subject.clone())?;
    let verdict = timeout(subject.patience, (check.run)(&mut stage)).await;
    let verdict = verdict
        .unwrap_or_else(|_| Err(Stop::Failed(format!("took longer than {:?}", subject.patience))));
    let cleared = stage.clear().await;
    // A failure to clear up never hides what the check itself found.
    verdict.and(cleared)
}

/// Servers of the host for one check, and its sandboxes.
pub struct NetworkStage {
    subject: NetworkSubject,
    listeners: [TcpListener; 2],
    records: Vec<SandboxRecord>,
}

impl NetworkStage {
    fn new(subject: NetworkSubject) -> Result<Self, Stop> {
        let listen = || {
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .map_err(|error| Stop::Failed(format!("listen on the host: {error}")))
        };
        Ok(Self { subject, listeners: [listen()?, listen()?], records: Vec::new() })
    }

    /// The ports of two servers of the host.
    fn ports(&self) -> Result<[u16; 2], Stop> {
        let [one, two] = self.listeners.each_ref().map(|listener| {
            let address = listener.local_addr();
            address.map(|at| at.port()).map_err(|error| Stop::Failed(error.to_string()))
        });
        Ok([one?, two?])
    }

    fn backend(&self) -> &dyn DurableBackend {
        self.subject.backend.as_ref()
    }

    /// A sandbox that reaches these ports of the host.
    async fn sandbox(&mut self, host_ports: &[u16]) -> Result<SandboxRecord, Stop> {
        let mut spec = self.subject.ground.spec().map_err(Stop::Skipped)?;
        spec.host_ports = host_ports.to_vec();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = SandboxId::new(format!("network-{}-{number}", std::process::id()))?;
        let order = SandboxOrder {
            owner: String::new(),
            spec,
            deadlines: Deadlines::default(),
            home: None,
            kept: None,
        };
        let record = self.backend().create(&id, &order).await?;
        self.records.push(record.clone());
        Ok(record)
    }

    /// Whether a command in it got a connection.
    async fn reaches(&self, of: &SandboxRecord, port: u16) -> Result<bool, Stop> {
        let id = ProcessId::new(format!("p{}", NEXT.fetch_add(1, Ordering::Relaxed)))?;
        let order = ExecOrder {
            command: Command::new(id.clone(), self.subject.ground.connect(port)),
            detached: false,
            keep_awake: false,
            spool_bytes: 1 << 16,
            max_output_bytes: None,
        };
        self.backend().start(of, &order).await?;
        let end = Instant::now() + self.subject.patience;
        let mut seen = Seen::default();
        while Instant::now() < end {
            let status = self.backend().watch(of, &id, seen, Duration::from_secs(5)).await?;
            if let Some(ended) = status.ended {
                return Ok(ended.ending == Ending::Exited(0));
            }
            let (stdout, stderr) = (status.stdout.written, status.stderr.written);
            seen = Seen { stdout, stderr, ..Seen::default() };
        }
        Err(Stop::Failed("a connection was neither made nor refused".to_owned()))
    }

    async fn clear(self) -> Verdict {
        let clearing = async {
            for record in &self.records {
                self.backend().destroy(record, DestroyReason::Success).await?;
                self.backend().forget(&record.id).await?;
            }
            Ok(())
        };
        let late = || Err(Stop::Failed("the sandboxes could not be ended in time".to_owned()));
        timeout(self.subject.patience, clearing).await.unwrap_or_else(|_| late())
    }
}

/// The edition of the rules under which these ports of the host are reached.
fn policy(version: u64, port: u16) -> NetworkPolicy {
    NetworkPolicy { version, host_ports: vec![port], ..NetworkPolicy::default() }
}

async fn rules_are_shown(stage: &mut NetworkStage) -> Verdict {
    let [one, two] = stage.ports()?;
    let sandbox = stage.sandbox(&[one]).await?;
    let shown = stage.backend().network(&sandbox).await?;
    same("the first rules", &shown, &Some(policy(1, one)))?;
    stage.backend().set_network(&sandbox, &policy(2, two)).await?;
    let shown = stage.backend().network(&sandbox).await?;
    same("the next rules", &shown, &Some(policy(2, two)))
}

async fn rules_hold_from_the_next_connection(stage: &mut NetworkStage) -> Verdict {
    let [one, two] = stage.ports()?;
    let sandbox = stage.sandbox(&[one]).await?;
    same("what is allowed is reached", &stage.reaches(&sandbox, one).await?, &true)?;
    same("what is not is reached", &stage.reaches(&sandbox, two).await?, &false)?;
    stage.backend().set_network(&sandbox, &policy(2, two)).await?;
    same("what was allowed is reached", &stage.reaches(&sandbox, one).await?, &false)?;
    same("what is allowed now is reached", &stage.reaches(&sandbox, two).await?, &true)
}

async fn versions_follow(stage: &mut NetworkStage) -> Verdict {
    let [one, two] = stage.ports()?;
    let sandbox = stage.sandbox(&[one]).await?;
    for version in [1, 3] {
        let set = stage.backend().set_network(&sandbox, &policy(version, two)).await;
        refused("rules of another edition", set, &[ErrorKind::Conflict])?;
    }
    let shown = stage.backend().network(&sandbox).await?;
    same("the rules", &shown, &Some(policy(1, one)))?;
    same("what they allow is reached", &stage.reaches(&sandbox, one).await?, &true)
}

async fn no_way_out_gets_none(stage: &mut NetworkStage) -> Verdict {
    let [one, _] = stage.ports()?;
    let sandbox = stage.sandbox(&[]).await?;
    same("its rules", &stage.backend().network(&sandbox).await?, &None)?;
    for version in [1, 2] {
        let set = stage.backend().set_network(&sandbox, &policy(version, one)).await;
        refused("rules for one without a way out", set, &[ErrorKind::Conflict])?;
    }
    same("a port of the host is reached", &stage.reaches(&sandbox, one).await?, &false)
}

async fn connections_are_written_down(stage: &mut NetworkStage) -> Verdict {
    let [one, two] = stage.ports()?;
    let sandbox = stage.sandbox(&[one]).await?;
    stage.reaches(&sandbox, one).await?;
    stage.reaches(&sandbox, two).await?;
    stage.backend().destroy(&sandbox, DestroyReason::Success).await?;
    let told = stage.backend().connections(&sandbox.id, 0).await?;
    // Questions for names stand among them, without a port.
    let decisions: Vec<(u16, ConnectionDecision, u64)> = told
        .reports
        .iter()
        .filter(|report| report.port != 0)
        .map(|report| (report.port, report.decision, report.policy_version))
        .collect();
    let expected =
        vec![(one, ConnectionDecision::Allowed, 1), (two, ConnectionDecision::Denied, 1)];
    same("the connections", &decisions, &expected)?;
    let again = stage.backend().connections(&sandbox.id, told.next).await?;
    same("what is told twice", &again.reports, &Vec::new())
}
