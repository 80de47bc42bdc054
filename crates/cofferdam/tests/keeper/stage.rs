//! A kept sandbox for one test, and what can be asked of it.

use crate::ground::{Ground, descendants, until};
use cofferdam::{
    Deadlines, DestroyReason, DurableBackend, Ending, ExecOrder, ExecStatus, Happened, KeptBackend,
    Part, ProcessId, Sandbox, SandboxId, SandboxOrder, SandboxRecord, Seen, Spec, Standard,
    kept_backend,
};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A place, and a backend there.
pub(crate) struct Stage {
    pub(crate) ground: Ground,
    pub(crate) backend: KeptBackend,
}

pub(crate) fn sandbox_id(text: &str) -> SandboxId {
    SandboxId::new(format!("{text}-{}", std::process::id())).unwrap()
}

pub(crate) fn id(text: &str) -> ProcessId {
    ProcessId::new(text).unwrap()
}

/// A command that is in the foreground and keeps little.
pub(crate) fn exec(name: &str, script: &str) -> ExecOrder {
    ExecOrder {
        command: cofferdam::Command::new(id(name), ["sh", "-c", script]),
        detached: false,
        keep_awake: false,
        spool_bytes: 1 << 20,
        max_output_bytes: None,
    }
}

pub(crate) fn detached(name: &str, script: &str) -> ExecOrder {
    ExecOrder { detached: true, ..exec(name, script) }
}

impl Stage {
    pub(crate) fn new(name: &str) -> Self {
        Self::on(Ground::new(name))
    }

    pub(crate) fn on(ground: Ground) -> Self {
        let backend = kept_backend(ground.place.join("state"));
        Self { ground, backend }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.ground.place.join("state")
    }

    pub(crate) fn spec(&self) -> Spec {
        Sandbox::builder().workspace(self.ground.workspace()).spec().unwrap()
    }

    pub(crate) async fn make(&self, name: &str) -> SandboxRecord {
        self.make_with(name, Deadlines::default()).await
    }

    pub(crate) async fn make_with(&self, name: &str, deadlines: Deadlines) -> SandboxRecord {
        let order = SandboxOrder {
            spec: self.spec(),
            owner: String::new(),
            deadlines,
            home: None,
            kept: None,
        };
        self.backend.create(&sandbox_id(name), &order).await.unwrap()
    }

    /// Waits for the end of a command.
    pub(crate) async fn wait(&self, of: &SandboxRecord, name: &str) -> ExecStatus {
        let end = Instant::now() + PATIENCE;
        let mut seen = Seen::default();
        loop {
            let status = self.backend.watch(of, &id(name), seen, PATIENCE).await.unwrap();
            if status.ended.is_some() {
                return status;
            }
            assert!(Instant::now() < end, "{status:?}");
            seen = Seen {
                stdout: status.stdout.written,
                stderr: status.stderr.written,
                ..Seen::default()
            };
        }
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, of: &SandboxRecord, order: &ExecOrder) -> Ending {
        self.backend.start(of, order).await.unwrap();
        self.wait(of, order.command.id.as_str()).await.ended.unwrap().ending
    }

    /// All that a command has written to standard output and that is kept.
    pub(crate) async fn output(&self, of: &SandboxRecord, name: &str) -> String {
        self.stream(of, name, Standard::Output).await
    }

    pub(crate) async fn stream(&self, of: &SandboxRecord, name: &str, stream: Standard) -> String {
        let (mut all, mut offset) = (Vec::new(), 0);
        loop {
            let part = Part { stream, offset, len: 1 << 20 };
            let chunk = self.backend.read(&of.id, &id(name), part).await.unwrap();
            if chunk.bytes.is_empty() {
                return String::from_utf8(all).unwrap();
            }
            offset = chunk.offset + chunk.bytes.len() as u64;
            all.extend(chunk.bytes);
        }
    }

    /// Waits until a command has written this.
    pub(crate) async fn says(&self, of: &SandboxRecord, name: &str, text: &str) {
        let end = Instant::now() + PATIENCE;
        let mut seen = Seen::default();
        loop {
            let status = self.backend.watch(of, &id(name), seen, PATIENCE).await.unwrap();
            if self.output(of, name).await.contains(text) {
                return;
            }
            assert!(status.ended.is_none() && Instant::now() < end, "{status:?}");
            seen = Seen {
                stdout: status.stdout.written,
                stderr: status.stderr.written,
                ..Seen::default()
            };
        }
    }

    pub(crate) async fn happened(&self, of: &SandboxId) -> Vec<Happened> {
        let entries = self.backend.journal(of, 0).await.unwrap();
        assert!(entries.iter().map(|entry| entry.seq).eq(1..=entries.len() as u64));
        entries.into_iter().map(|entry| entry.happened).collect()
    }

    /// Waits for the end of a sandbox and says why it came.
    pub(crate) async fn destroyed(&self, of: &SandboxRecord) -> DestroyReason {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(Happened::Destroyed(reason)) = self.happened(&of.id).await.last() {
                return *reason;
            }
            assert!(Instant::now() < end, "the sandbox does not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn end(&self, of: &SandboxRecord) {
        self.backend.destroy(of, DestroyReason::Success).await.unwrap();
        self.backend.forget(&of.id).await.unwrap();
    }

    /// The keepers of this place.
    pub(crate) fn keepers(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let exe = std::fs::read_link(entry.path().join("exe")).unwrap_or_default();
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if exe.starts_with(self.state()) && words.ends_with(b"\0keep\0") {
                found.push(pid);
            }
        }
        // A keeper's own copies are none.
        let copies: Vec<u32> = found.iter().flat_map(|pid| descendants(*pid)).collect();
        found.retain(|pid| !copies.contains(pid));
        found
    }

    /// The keeper of the only sandbox, the sandbox's first process, and the others in it.
    pub(crate) fn processes(&self) -> (u32, u32, Vec<u32>) {
        // A copy of a keeper may be there for a moment.
        until("one keeper is there", || self.keepers().len() == 1);
        let keepers = self.keepers();
        let keeper = keepers.first().unwrap();
        let inside = descendants(*keeper);
        let (first, others) = inside.split_first().unwrap();
        (*keeper, *first, others.to_vec())
    }

    pub(crate) fn await_no_keeper(&self) {
        until("no keeper is there", || self.keepers().is_empty());
    }

    /// Names in the folder of sessions.
    pub(crate) fn directories(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.state().join("sessions")) else {
            return Vec::new();
        };
        entries.flatten().map(|entry| entry.file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A test that failed may leave keepers.
        for keeper in self.keepers() {
            kill(keeper);
        }
    }
}

pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

pub(crate) fn in_ms(from_now: u64) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap() + from_now
}
