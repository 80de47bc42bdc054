//! A backend whose commands are real processes of this machine, without any isolation: shells are
//! driven by a real shell.

use async_trait::async_trait;
use cofferdam_core::fake::FakeDurable;
use cofferdam_core::{
    Capabilities, Chunk, Deadlines, DestroyReason, DurableBackend, Ending, Error, ErrorKind,
    ExecEnded, ExecInput, ExecOrder, ExecStatus, Files, Found, JournalEntry, Part, ProcessId,
    Result, SandboxId, SandboxOrder, SandboxRecord, SandboxStatus, Seen, Spooled, Standard, Stdin,
    UsageReport,
};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};
use tokio::sync::watch;

/// Sandboxes of the fake, with real commands.
pub(crate) struct Real {
    pub(crate) fake: FakeDurable,
    pub(crate) home: PathBuf,
    pub(crate) commands: Mutex<BTreeMap<ProcessId, Arc<Running>>>,
}

pub(crate) struct Running {
    status: Mutex<ExecStatus>,
    streams: Mutex<[Vec<u8>; 2]>,
    stdin: tokio::sync::Mutex<Option<ChildStdin>>,
    group: Pid,
    changed: watch::Sender<()>,
}

impl Running {
    async fn spool(self: Arc<Self>, mut from: impl AsyncRead + Unpin, stream: usize) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            self.streams.lock().unwrap()[stream].extend(&buffer[..count]);
            let mut status = self.status.lock().unwrap();
            let spooled = if stream == 0 { &mut status.stdout } else { &mut status.stderr };
            spooled.written += count as u64;
            drop(status);
            self.changed.send_replace(());
        }
    }
}

impl Real {
    fn find(&self, id: &ProcessId) -> Result<Arc<Running>> {
        let found = self.commands.lock().unwrap().get(id).cloned();
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no command {id}")))
    }

    fn spawn(&self, order: &ExecOrder) -> Arc<Running> {
        // As every sandbox does: a caller in the background of a shell ignores the signal.
        let mut child = Command::new("env")
            .arg("--default-signal=INT")
            .args(&order.command.argv)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.home)
            .current_dir(&self.home)
            .process_group(0)
            .stdin(if order.command.stdin == Stdin::Piped { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let argv = order.command.argv.iter().map(|word| word.to_string_lossy().into_owned());
        let status = ExecStatus {
            id: order.command.id.clone(),
            argv: argv.collect(),
            detached: order.detached,
            terminal: false,
            started_ms: 1,
            ended: None,
            left: None,
            stops: 0,
            stdout: Spooled::default(),
            stderr: Spooled::default(),
        };
        let running = Arc::new(Running {
            status: Mutex::new(status),
            streams: Mutex::default(),
            stdin: tokio::sync::Mutex::new(child.stdin.take()),
            group: Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap(),
            changed: watch::Sender::new(()),
        });
        let out = tokio::spawn(Arc::clone(&running).spool(child.stdout.take().unwrap(), 0));
        let err = tokio::spawn(Arc::clone(&running).spool(child.stderr.take().unwrap(), 1));
        let waits = Arc::clone(&running);
        tokio::spawn(async move {
            let exit = child.wait().await.unwrap();
            // What it left behind would hold its streams.
            kill_process_group(waits.group, Signal::KILL).ok();
            out.await.ok();
            err.await.ok();
            let ending = match (exit.code(), exit.signal()) {
                (Some(code), _) => Ending::Exited(code),
                (None, signal) => Ending::Signaled(signal.unwrap_or(9)),
            };
            let usage = UsageReport::default();
            waits.status.lock().unwrap().ended = Some(ExecEnded {
                ending,
                at_ms: 2,
                usage,
                killed_descendants: None,
                denials: Vec::new(),
            });
            waits.changed.send_replace(());
        });
        running
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        for running in self.commands.lock().unwrap().values() {
            if running.status.lock().unwrap().ended.is_none() {
                kill_process_group(running.group, Signal::KILL).ok();
            }
        }
    }
}

#[async_trait]
impl DurableBackend for Real {
    fn name(&self) -> &'static str {
        self.fake.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.fake.capabilities()
    }

    async fn create(&self, id: &SandboxId, order: &SandboxOrder) -> Result<SandboxRecord> {
        self.fake.create(id, order).await
    }

    async fn status(&self, sandbox: &SandboxRecord) -> Result<SandboxStatus> {
        self.fake.status(sandbox).await
    }

    async fn pause(&self, sandbox: &SandboxRecord) -> Result<()> {
        self.fake.pause(sandbox).await
    }

    async fn resume(&self, sandbox: &SandboxRecord) -> Result<()> {
        self.fake.resume(sandbox).await
    }

    async fn set_deadlines(&self, sandbox: &SandboxRecord, to: &Deadlines) -> Result<()> {
        self.fake.set_deadlines(sandbox, to).await
    }

    async fn destroy(&self, sandbox: &SandboxRecord, reason: DestroyReason) -> Result<()> {
        self.fake.destroy(sandbox, reason).await
    }

    async fn forget(&self, id: &SandboxId) -> Result<()> {
        self.fake.forget(id).await
    }

    async fn ids(&self) -> Result<Vec<SandboxId>> {
        self.fake.ids().await
    }

    async fn list(&self) -> Result<Vec<Found>> {
        self.fake.list().await
    }

    async fn journal(&self, id: &SandboxId, after: u64) -> Result<Vec<JournalEntry>> {
        self.fake.journal(id, after).await
    }

    async fn start(&self, _sandbox: &SandboxRecord, order: &ExecOrder) -> Result<ExecStatus> {
        let mut commands = self.commands.lock().unwrap();
        let running = commands.entry(order.command.id.clone()).or_insert_with(|| self.spawn(order));
        Ok(running.status.lock().unwrap().clone())
    }

    async fn execs(&self, _sandbox: &SandboxRecord) -> Result<Vec<ExecStatus>> {
        let commands = self.commands.lock().unwrap();
        Ok(commands.values().map(|running| running.status.lock().unwrap().clone()).collect())
    }

    async fn watch(
        &self,
        _sandbox: &SandboxRecord,
        id: &ProcessId,
        seen: Seen,
        patience: Duration,
    ) -> Result<ExecStatus> {
        let running = self.find(id)?;
        let mut changed = running.changed.subscribe();
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            changed.mark_unchanged();
            let status = running.status.lock().unwrap().clone();
            let news = status.ended.is_some()
                || status.stdout.written > seen.stdout
                || status.stderr.written > seen.stderr;
            if news || tokio::time::timeout_at(deadline, changed.changed()).await.is_err() {
                return Ok(status);
            }
        }
    }

    async fn read(&self, _sandbox: &SandboxId, id: &ProcessId, part: Part) -> Result<Chunk> {
        let running = self.find(id)?;
        let streams = running.streams.lock().unwrap();
        let kept = &streams[usize::from(part.stream == Standard::Error)];
        let from = usize::try_from(part.offset).unwrap().min(kept.len());
        let to = (from + part.len as usize).min(kept.len());
        Ok(Chunk { offset: from as u64, bytes: kept[from..to].to_vec() })
    }

    async fn files(&self, sandbox: &SandboxRecord) -> Result<Files> {
        self.fake.files(sandbox).await
    }

    async fn input(
        &self,
        _sandbox: &SandboxRecord,
        id: &ProcessId,
        input: &ExecInput,
    ) -> Result<()> {
        let running = self.find(id)?;
        let ended = running.status.lock().unwrap().ended.is_some();
        match input {
            ExecInput::Bytes(bytes) => {
                let mut stdin = running.stdin.lock().await;
                let written = stdin.as_mut().unwrap().write_all(bytes).await;
                written.map_err(|e| Error::new(ErrorKind::Conflict, "write").source(e))?;
            }
            ExecInput::Close => drop(running.stdin.lock().await.take()),
            ExecInput::Signal(signal) => {
                let signal = Signal::from_named_raw(*signal).unwrap();
                kill_process_group(running.group, signal).unwrap();
            }
            ExecInput::Kill if ended => {}
            ExecInput::Kill => kill_process_group(running.group, Signal::KILL).unwrap(),
            ExecInput::Resize(_) | ExecInput::Unread(_) => {}
        }
        Ok(())
    }
}
