//! Sessions behind a server: what verbs ask of them, by requests.

use super::chosen::{self, Server};
use super::session::{Beside, here_alone};
use super::wish;
use crate::sessions::missing;
use cofferdam_client::{Address, Client, Sandbox};
use cofferdam_core::secret::{SecretName, SecretValue};
use cofferdam_core::{
    Chunk, EgressRule, Error, ErrorKind, ExecInput, ExecOrder, ExecStatus, Files, Part,
    ProbeReport, ProcessId, Receipt, Result, Seen,
};
use cofferdam_search::{Glob, Grep};
use cofferdam_session::edit::{Edit, Places};
use cofferdam_session::objects::{EditWish, ExecNews, FileMatches, FileNames, ForkWish, UndoWish};
use cofferdam_session::window::{Window, WindowOrder};
use cofferdam_session::{
    ConnectionList, Doing, Edited, EventReport, ExecReport, HistoryReport, MetricsReport,
    NetworkChange, NetworkReport, PatchOptions, Patched, PermissionAnswer, PermissionId,
    PermissionList, PermissionReport, SecretReport, SessionId, SessionReport, SnapshotExported,
    SnapshotImported, SnapshotReport, Target, UndoOrder, UndoReport, Way,
};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

mod layers;
mod lines;
mod search;

/// The server that was chosen, if one was.
pub(crate) fn connect() -> Result<Option<super::Sessions>> {
    let Some(server) = chosen::chosen() else { return Ok(None) };
    let client = client(server)?;
    Ok(Some(super::Sessions::There(Sessions { client })))
}

fn client(server: &Server) -> Result<Client> {
    let origin = server.origin;
    let named = |error: Error| Error { message: format!("{origin}: {}", error.message), ..error };
    let address = Address::parse(&server.address.to_string_lossy()).map_err(named)?;
    Client::new(address, chosen::key(server)?.as_ref())
}

/// All sessions that a server has for this caller.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    pub(crate) client: Client,
}

impl Sessions {
    /// The session that a text names. A server takes whole names and ids; a beginning is looked for here.
    pub(super) async fn find(&self, text: &str) -> Result<SessionId> {
        match self.client.sandbox(text).status().await {
            Ok(report) => return SessionId::new(report.id),
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let all = self.client.list(&BTreeMap::new()).await?;
        let fits = |report: &&SessionReport| {
            let name = report.name.as_deref();
            report.id.starts_with(text) || name.is_some_and(|name| name.starts_with(text))
        };
        let found: Vec<&SessionReport> = all.iter().filter(fits).collect();
        match found.as_slice() {
            [one] if !text.is_empty() => SessionId::new(one.id.clone()),
            [] | [_] => Err(missing(text)),
            several => {
                let shown: Vec<&str> = several
                    .iter()
                    .map(|report| report.name.as_deref().unwrap_or(&report.id))
                    .collect();
                let what = format!("{text:?} begins several sessions: {}", shown.join(", "));
                Err(Error::new(ErrorKind::Conflict, what).hint("Write more of the id or name."))
            }
        }
    }

    pub(super) fn session(&self, id: SessionId) -> Session {
        let sandbox = self.client.sandbox(id.as_str());
        Session { sandbox, id, not_kept: Arc::default() }
    }

    fn sandbox(&self, id: &SessionId) -> Sandbox {
        self.client.sandbox(id.as_str())
    }

    pub(super) async fn list(
        &self,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<SessionReport>> {
        self.client.list(labels).await
    }

    pub(super) async fn status(&self, id: &SessionId) -> Result<SessionReport> {
        self.sandbox(id).status().await
    }

    pub(super) async fn secrets(&self) -> Result<Vec<SecretReport>> {
        self.client.secrets().await
    }

    pub(super) async fn put_secret(
        &self,
        name: SecretName,
        value: SecretValue,
    ) -> Result<SecretReport> {
        self.client.put_secret(&name, &value).await
    }

    pub(super) async fn remove_secret(&self, name: SecretName) -> Result<()> {
        self.client.remove_secret(&name).await
    }

    pub(super) async fn pause(&self, id: &SessionId) -> Result<()> {
        self.sandbox(id).pause().await.map(drop)
    }

    pub(super) async fn resume(&self, id: &SessionId) -> Result<()> {
        self.sandbox(id).resume().await.map(drop)
    }

    pub(super) async fn stop(&self, id: &SessionId) -> Result<()> {
        self.sandbox(id).stop().await.map(drop)
    }

    pub(super) async fn delete(&self, id: &SessionId) -> Result<bool> {
        match self.sandbox(id).delete().await {
            Ok(()) => Ok(true),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn extend(&self, id: &SessionId, by: Duration) -> Result<u64> {
        let report = self.sandbox(id).extend(by).await?;
        report.lease_until_ms.ok_or_else(|| missing(id.as_str()))
    }

    pub(super) async fn events(
        &self,
        session: Option<&SessionId>,
        after: u64,
    ) -> Result<Vec<EventReport>> {
        self.client.events(session.map(SessionId::as_str), after).await
    }

    pub(super) async fn fork(
        &self,
        id: &SessionId,
        point: Option<&str>,
        name: &str,
    ) -> Result<Session> {
        let wish = ForkWish { name: name.to_owned(), point: point.map(str::to_owned) };
        let forked = self.sandbox(id).fork(&wish).await?;
        Ok(self.session(SessionId::new(forked.id)?))
    }

    pub(super) async fn snapshot(
        &self,
        id: &SessionId,
        label: Option<String>,
    ) -> Result<SnapshotReport> {
        self.sandbox(id).snapshot(label).await
    }

    pub(super) async fn snapshots(&self, id: &SessionId) -> Result<Vec<SnapshotReport>> {
        self.sandbox(id).snapshots().await
    }

    pub(super) async fn restore(&self, id: &SessionId, name: &str) -> Result<UndoReport> {
        self.sandbox(id).restore(name).await
    }

    pub(super) async fn remove_snapshot(
        &self,
        id: &SessionId,
        name: &str,
    ) -> Result<SnapshotReport> {
        self.sandbox(id).remove_snapshot(name).await
    }

    #[expect(clippy::unnecessary_wraps, reason = "on this machine it may fail")]
    pub(super) fn export_snapshot(&self, id: &SessionId, name: &str) -> Result<Export> {
        Ok(Export { sandbox: self.sandbox(id), name: name.to_owned() })
    }

    pub(super) async fn import_snapshot(
        &self,
        id: &SessionId,
        input: Box<dyn Read + Send>,
        label: Option<String>,
    ) -> Result<SnapshotImported> {
        let mut source = crate::blocking::Blocking(input);
        self.sandbox(id).import_snapshot(&mut source, label).await
    }
}

/// A snapshot that is about to be written as one file.
#[derive(Debug)]
pub(crate) struct Export {
    sandbox: Sandbox,
    name: String,
}

impl Export {
    /// Writes all of it.
    pub(super) async fn write<W: Write + Send + Unpin + 'static>(
        self,
        out: W,
    ) -> Result<(W, SnapshotExported)> {
        let mut sink = crate::blocking::Blocking(out);
        let exported = self.sandbox.export_snapshot(&self.name, &mut sink).await?;
        Ok((sink.0, exported))
    }
}

/// One session of a server.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    sandbox: Sandbox,
    id: SessionId,
    /// Why ends of commands are no points, until somebody asks.
    not_kept: Arc<Mutex<BTreeMap<ProcessId, String>>>,
}

impl Session {
    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(super) fn sessions(&self) -> Sessions {
        Sessions { client: self.sandbox.client().clone() }
    }

    /// What asks for it.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub(super) async fn start(&self, order: &ExecOrder) -> Result<ExecStatus> {
        self.start_with(order, &Beside::default()).await
    }

    pub(super) async fn start_with(
        &self,
        order: &ExecOrder,
        beside: &Beside<'_>,
    ) -> Result<ExecStatus> {
        let exec = self.sandbox.start(&wish::exec(order, beside)?).await?;
        let is_told = exec.ending.is_none() && !exec.terminal;
        if is_told {
            let left = None;
            let news = ExecNews { exec, stops: 0, left, stage: None, detail: None, not_kept: None };
            return news.status();
        }
        self.follow(&order.command.id, Seen::default(), Duration::ZERO).await
    }

    pub(super) async fn follow(
        &self,
        exec: &ProcessId,
        seen: Seen,
        patience: Duration,
    ) -> Result<ExecStatus> {
        self.told(exec, self.sandbox.news(exec.as_str(), seen, patience).await?)
    }

    pub(super) async fn follow_on(
        &self,
        exec: &ProcessId,
        seen: Seen,
        patience: Duration,
    ) -> Result<ExecStatus> {
        self.told(exec, self.sandbox.further_news(exec.as_str(), seen, patience).await?)
    }

    /// Keeps what is told once.
    fn told(&self, exec: &ProcessId, news: ExecNews) -> Result<ExecStatus> {
        if let Some(why) = &news.not_kept {
            let mut all = self.not_kept.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(exec.clone(), why.clone());
        }
        news.status()
    }

    pub(super) async fn receipt(&self, exec: &ProcessId) -> Result<Receipt> {
        self.sandbox.receipt(exec.as_str()).await
    }

    pub(super) fn not_kept(&self, exec: &ProcessId) -> Option<String> {
        self.not_kept.lock().unwrap_or_else(PoisonError::into_inner).remove(exec)
    }

    pub(super) async fn wait(
        &self,
        exec: &ProcessId,
        patience: Option<Duration>,
    ) -> Result<ExecStatus> {
        self.sandbox.wait(exec.as_str(), patience).await
    }

    pub(super) async fn status(&self, exec: &ProcessId) -> Result<ExecReport> {
        self.sandbox.exec(exec.as_str()).await
    }

    pub(super) async fn execs(&self) -> Result<Vec<ExecReport>> {
        self.sandbox.execs().await
    }

    pub(super) async fn read(&self, exec: &ProcessId, part: Part) -> Result<Chunk> {
        self.sandbox.output(exec.as_str(), part).await
    }

    pub(super) async fn input(&self, exec: &ProcessId, input: &ExecInput) -> Result<()> {
        let exec = exec.as_str();
        match input {
            ExecInput::Bytes(bytes) => self.sandbox.input(exec, bytes.clone(), false).await,
            ExecInput::Close => self.sandbox.input(exec, Vec::new(), true).await,
            ExecInput::Signal(signal) => self.sandbox.signal(exec, *signal).await,
            ExecInput::Resize(size) => self.sandbox.resize(exec, *size).await,
            ExecInput::Unread(_) => self.sandbox.signal(exec, SIGPIPE).await,
            ExecInput::Kill => self.sandbox.signal(exec, SIGKILL).await,
        }
    }

    pub(super) async fn signal(&self, exec: &ProcessId, signal: i32) -> Result<()> {
        self.sandbox.signal(exec.as_str(), signal).await
    }

    pub(super) fn files(&self) -> Files {
        self.sandbox.files()
    }

    pub(super) async fn edit_file(
        &self,
        path: &OsStr,
        edits: &[Edit],
        doing: Doing,
    ) -> Result<Edited> {
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec()).map_err(|_| wish::not_text("the text of an edit"))
        };
        let edits = edits.iter().map(|edit| {
            let all = edit.places == Places::All;
            Ok(EditWish { old: text(&edit.old)?, new: text(&edit.new)?, all })
        });
        let edits = edits.collect::<Result<_>>()?;
        let done = self.sandbox.edit(path, edits, doing == Doing::DryRun).await?;
        Ok(Edited { report: done.report, changed: done.changed, sha256: done.sha256 })
    }

    pub(super) async fn apply_patch(&self, text: &[u8], options: PatchOptions) -> Result<Patched> {
        let (is_dry, reverse) = (options.doing == Doing::DryRun, options.way == Way::Reverse);
        let done = self.sandbox.patch(text, is_dry, reverse).await?;
        Ok(Patched { report: done.report, changed: done.changed })
    }

    pub(super) async fn glob(&self, order: &Glob) -> Result<FileNames> {
        self.sandbox.glob(&search::names(order)?).await
    }

    pub(super) async fn grep(&self, order: &Grep) -> Result<FileMatches> {
        self.sandbox.grep(&search::lines(order)).await
    }

    pub(super) async fn read_window(&self, path: &OsStr, order: WindowOrder) -> Result<Window> {
        Ok(self.sandbox.window(path, order.offset, order.limit).await?.window)
    }

    pub(super) async fn history(&self, most: usize) -> Result<HistoryReport> {
        self.sandbox.history(most).await
    }

    pub(super) async fn metrics(&self) -> Result<MetricsReport> {
        self.sandbox.metrics().await
    }

    pub(super) async fn prove(&self) -> Result<ProbeReport> {
        self.sandbox.prove().await
    }

    pub(super) async fn network(&self) -> Result<NetworkReport> {
        self.sandbox.network().await
    }

    pub(super) async fn set_network(&self, change: &NetworkChange) -> Result<NetworkReport> {
        let words = |rules: &[EgressRule]| -> Vec<String> {
            rules.iter().map(ToString::to_string).collect()
        };
        match change {
            NetworkChange::Set { allow, deny, host_ports, ask } => {
                let ports = "ports of its machine are for the operator of the server to open";
                refuse_if(host_ports.is_some(), "--allow-host-port", ports)?;
                let ask_ms = ask.map(|ask| u64::try_from(ask.as_millis()).unwrap_or(u64::MAX));
                self.sandbox.set_network(&words(allow), &words(deny), ask_ms).await
            }
            NetworkChange::Allow(rules) => self.sandbox.allow(&words(rules)).await,
            NetworkChange::Deny(rules) => self.sandbox.deny(&words(rules)).await,
            NetworkChange::Answer { .. } => Err(here_alone(
                "an answer to what waits",
                "the server changes the rules itself when it is given one",
            )),
        }
    }

    pub(super) async fn permissions(&self) -> Result<PermissionList> {
        self.sandbox.approvals().await
    }

    pub(super) async fn answer_permission(
        &self,
        id: &PermissionId,
        answer: PermissionAnswer,
    ) -> Result<PermissionReport> {
        self.sandbox.answer(&id.to_string(), answer).await
    }

    pub(super) async fn connections(&self, from: u64) -> Result<ConnectionList> {
        self.sandbox.connections(from).await
    }

    pub(super) async fn undo(&self, order: &UndoOrder) -> Result<UndoReport> {
        let (count, to) = match order.target {
            Target::Back(count) => (Some(count), None),
            Target::Point(point) => (None, Some(point)),
        };
        let wish = UndoWish { count, to, dry_run: order.dry_run, force: order.may_lose };
        self.sandbox.undo(&wish).await
    }
}

/// What kills a command.
const SIGKILL: i32 = 9;
/// What a program gets that writes where nobody reads.
const SIGPIPE: i32 = 13;

/// Refuses an option whose meaning is of the machine where something runs.
pub(crate) fn refuse_if(is_wanted: bool, option: &str, why: &str) -> Result<()> {
    if is_wanted { Err(here_alone(option, why)) } else { Ok(()) }
}
