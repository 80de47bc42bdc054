//! One session, wherever it is.

use super::Sessions;
#[cfg(feature = "remote")]
use super::remote;
use cofferdam_core::secret::SecretWish;
use cofferdam_core::{
    ApplyOrder, ApplyReport, Change, Chunk, DiscardOrder, Error, ErrorKind, ExecInput, ExecOrder,
    ExecStatus, Files, Part, ProbeReport, ProcessId, Receipt, Result, Seen,
};
use cofferdam_search::{Glob, Grep};
use cofferdam_session::diff::FileDiff;
use cofferdam_session::edit::Edit;
use cofferdam_session::objects::{FileMatches, FileNames, LayerChange};
use cofferdam_session::window::{Window, WindowOrder};
use cofferdam_session::{
    BeforeCommand, ConnectionList, Discarded, Doing, Edited, ExecReport, HistoryReport,
    MetricsReport, NetworkChange, NetworkReport, PatchOptions, Patched, PermissionAnswer,
    PermissionId, PermissionList, PermissionReport, PointRange, PointSpan, SessionId, UndoOrder,
    UndoReport,
};
use std::ffi::{OsStr, OsString};
use std::time::Duration;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

/// One session, wherever it is.
#[derive(Debug, Clone)]
pub(crate) enum Session {
    /// On this machine.
    Here(cofferdam_session::Session),
    /// Behind a server.
    #[cfg(feature = "remote")]
    There(remote::Session),
}

impl AsRef<SessionId> for Session {
    fn as_ref(&self) -> &SessionId {
        self.id()
    }
}

/// How a session stood before a command, for the command's receipt.
#[derive(Debug)]
pub(crate) enum Before {
    /// On this machine.
    Here(BeforeCommand),
    /// Its server looks when it starts the command, and keeps in mind what it saw.
    #[cfg(feature = "remote")]
    There,
}

/// What a server has to know of a command beside its order.
#[derive(Debug, Default)]
#[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "there is no server to know it"))]
pub(crate) struct Beside<'a> {
    /// The secrets that it is given: those of the server's store.
    pub(super) secrets: &'a [SecretWish],
    /// Whether its receipt is wanted.
    pub(super) receipt: bool,
    /// How the words of its sandbox's image lead it.
    #[cfg(feature = "remote")]
    pub(super) start: Option<&'a super::StartOf>,
}

impl<'a> Beside<'a> {
    pub(crate) fn new(secrets: &'a [SecretWish]) -> Self {
        Self { secrets, ..Self::default() }
    }

    pub(crate) fn for_receipt(self, receipt: bool) -> Self {
        Self { receipt, ..self }
    }

    #[cfg(feature = "remote")]
    pub(crate) fn led(self, start: Option<&'a super::StartOf>) -> Self {
        Self { start, ..self }
    }
}

/// Changes that somebody has looked at and chosen to land.
#[derive(Debug)]
pub(crate) enum Chosen {
    /// On this machine.
    Here(Box<ApplyOrder>),
    /// Behind a server.
    #[cfg(feature = "remote")]
    There(Vec<cofferdam_session::objects::ChosenWish>),
}

/// A change, and what is told of it with its lines counted.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    /// The change.
    pub(crate) change: Change,
    /// What is told.
    pub(crate) told: LayerChange,
}

impl Session {
    /// Its id.
    pub(crate) fn id(&self) -> &SessionId {
        wherever!(self, session => session.id())
    }

    /// Carries a connection to a port inside, until it ends.
    pub(crate) async fn carry(&self, port: u16, mut stream: TcpStream) -> Result<()> {
        match self {
            Self::Here(session) => {
                let mut inside = session.connect(port).await?;
                // How a connection ends is a matter of its two ends.
                let _ = copy_bidirectional(&mut stream, &mut inside).await;
            }
            #[cfg(feature = "remote")]
            Self::There(session) => session.sandbox().connect(port).await?.carry(stream).await,
        }
        Ok(())
    }

    /// All sessions that it is one of.
    pub(crate) fn sessions(&self) -> Sessions {
        match self {
            Self::Here(session) => Sessions::Here(session.sessions().clone()),
            #[cfg(feature = "remote")]
            Self::There(session) => Sessions::There(session.sessions()),
        }
    }

    /// An order for this command, with a fresh id.
    pub(crate) fn order<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> Result<ExecOrder> {
        cofferdam_session::Session::order(argv)
    }

    /// Starts a command.
    pub(crate) async fn start(&self, order: &ExecOrder) -> Result<ExecStatus> {
        wherever!(self, session => session.start(order).await)
    }

    /// Waits until there is more of a command than is known, or the time is over.
    pub(crate) async fn follow(
        &self,
        exec: &ProcessId,
        seen: Seen,
        patience: Duration,
    ) -> Result<ExecStatus> {
        wherever!(self, session => session.follow(exec, seen, patience).await)
    }

    /// The same for who has followed it until now: a session that was paused meanwhile stays so.
    pub(crate) async fn follow_on(
        &self,
        exec: &ProcessId,
        seen: Seen,
        patience: Duration,
    ) -> Result<ExecStatus> {
        wherever!(self, session => session.follow_on(exec, seen, patience).await)
    }

    /// Waits until a command has ended, or the time is over.
    pub(crate) async fn wait(
        &self,
        exec: &ProcessId,
        patience: Option<Duration>,
    ) -> Result<ExecStatus> {
        wherever!(self, session => session.wait(exec, patience).await)
    }

    /// How a command stands.
    pub(crate) async fn status(&self, exec: &ProcessId) -> Result<ExecReport> {
        wherever!(self, session => session.status(exec).await)
    }

    /// Its commands, oldest first.
    pub(crate) async fn execs(&self) -> Result<Vec<ExecReport>> {
        wherever!(self, session => session.execs().await)
    }

    /// A part of what a command wrote.
    pub(crate) async fn read(&self, exec: &ProcessId, part: Part) -> Result<Chunk> {
        wherever!(self, session => session.read(exec, part).await)
    }

    /// Does something to a command.
    pub(crate) async fn input(&self, exec: &ProcessId, input: &ExecInput) -> Result<()> {
        wherever!(self, session => session.input(exec, input).await)
    }

    /// Sends a signal to a command.
    pub(crate) async fn signal(&self, exec: &ProcessId, signal: i32) -> Result<()> {
        wherever!(self, session => session.signal(exec, signal).await)
    }

    /// Why the end of a command is no point of the history, told once.
    pub(crate) fn not_kept(&self, exec: &ProcessId) -> Option<String> {
        wherever!(self, session => session.not_kept(exec))
    }

    /// How it stands, for the receipt of a command that is started next.
    pub(crate) async fn before_command(&self) -> Result<Before> {
        match self {
            Self::Here(session) => session.before_command().await.map(Before::Here),
            #[cfg(feature = "remote")]
            Self::There(_) => Ok(Before::There),
        }
    }

    /// Starts a command of which a server has to know more than its order.
    pub(crate) async fn start_with(
        &self,
        order: &ExecOrder,
        beside: &Beside<'_>,
    ) -> Result<ExecStatus> {
        match self {
            #[cfg(feature = "remote")]
            Self::Here(_) if beside.start.is_some() => Err(super::elsewhere()),
            Self::Here(session) => session.start(order).await,
            #[cfg(feature = "remote")]
            Self::There(session) => session.start_with(order, beside).await,
        }
    }

    /// The receipt of a command that has ended.
    pub(crate) async fn receipt(&self, before: &Before, exec: &ProcessId) -> Result<Receipt> {
        match (self, before) {
            (Self::Here(session), Before::Here(before)) => session.receipt(before, exec).await,
            #[cfg(feature = "remote")]
            (Self::There(session), Before::There) => session.receipt(exec).await,
            #[cfg(feature = "remote")]
            (Self::Here(_), Before::There) | (Self::There(_), Before::Here(_)) => {
                Err(super::elsewhere())
            }
        }
    }

    /// The files of its workspace.
    pub(crate) fn files(&self) -> Files {
        wherever!(self, session => session.files())
    }

    /// Edits a file of its workspace: all edits, or none.
    pub(crate) async fn edit_file(
        &self,
        path: &OsStr,
        edits: &[Edit],
        doing: Doing,
    ) -> Result<Edited> {
        wherever!(self, session => session.edit_file(path, edits, doing).await)
    }

    /// Applies a patch to its workspace, whole or not at all.
    pub(crate) async fn apply_patch(&self, text: &[u8], options: PatchOptions) -> Result<Patched> {
        wherever!(self, session => session.apply_patch(text, options).await)
    }

    /// The names that match, as one object.
    pub(crate) async fn glob(&self, order: &Glob) -> Result<FileNames> {
        wherever!(self, session => session.glob(order).await)
    }

    /// The lines that match, as one object.
    pub(crate) async fn grep(&self, order: &Grep) -> Result<FileMatches> {
        wherever!(self, session => session.grep(order).await)
    }

    /// A window of a file of its workspace.
    pub(crate) async fn read_window(&self, path: &OsStr, order: WindowOrder) -> Result<Window> {
        wherever!(self, session => session.read_window(path, order).await)
    }

    /// The last so many points of its history.
    pub(crate) async fn history(&self, most: usize) -> Result<HistoryReport> {
        wherever!(self, session => session.history(most).await)
    }

    /// What it uses now.
    pub(crate) async fn metrics(&self) -> Result<MetricsReport> {
        wherever!(self, session => session.metrics().await)
    }

    /// What attacks from inside a sandbox like its own come to.
    pub(crate) async fn prove(&self) -> Result<ProbeReport> {
        wherever!(self, session => session.prove().await)
    }

    /// What it may reach.
    pub(crate) async fn network(&self) -> Result<NetworkReport> {
        wherever!(self, session => session.network().await)
    }

    /// Changes what it may reach.
    pub(crate) async fn set_network(&self, change: &NetworkChange) -> Result<NetworkReport> {
        wherever!(self, session => session.set_network(change).await)
    }

    /// What became of its connections, from this place on.
    pub(crate) async fn connections(&self, from: u64) -> Result<ConnectionList> {
        wherever!(self, session => session.connections(from).await)
    }

    /// What waits to be allowed, and what did so lately.
    pub(crate) async fn permissions(&self) -> Result<PermissionList> {
        wherever!(self, session => session.permissions().await)
    }

    /// Answers something that waits.
    pub(crate) async fn answer_permission(
        &self,
        id: &PermissionId,
        answer: PermissionAnswer,
    ) -> Result<PermissionReport> {
        wherever!(self, session => session.answer_permission(id, answer).await)
    }

    /// Goes back to a point.
    pub(crate) async fn undo(&self, order: &UndoOrder) -> Result<UndoReport> {
        wherever!(self, session => session.undo(order).await)
    }

    /// What it changed at these paths, or what changed there between two points of its history.
    pub(crate) async fn changes(
        &self,
        range: Option<&PointRange>,
        paths: &[OsString],
    ) -> Result<Vec<Change>> {
        match self {
            Self::Here(session) => {
                let scope = session.scope(paths).await?;
                match range {
                    Some(range) => Ok(session.changes_between(range, &scope).await?.1),
                    None => session.changes(&scope).await,
                }
            }
            #[cfg(feature = "remote")]
            Self::There(session) => session.changes(range, paths).await,
        }
    }

    /// The same with its lines counted, and which points were compared.
    pub(crate) async fn counted(
        &self,
        range: Option<&PointRange>,
        paths: &[OsString],
    ) -> Result<(Option<PointSpan>, Vec<Counted>)> {
        match self {
            Self::Here(session) => {
                let mut all = Vec::new();
                let each = |diff: FileDiff| {
                    let told = LayerChange::counted(&diff);
                    all.push(Counted { change: diff.change, told });
                    Ok(())
                };
                let span = diff(session, (range, paths), each).await?;
                Ok((span, all))
            }
            #[cfg(feature = "remote")]
            Self::There(session) => session.counted(range, paths).await,
        }
    }

    /// The same as a unified diff, some whole lines at a time.
    pub(crate) async fn diff_text(
        &self,
        range: Option<&PointRange>,
        paths: &[OsString],
        mut each: impl FnMut(&[u8]) -> Result<()> + Send,
    ) -> Result<()> {
        match self {
            Self::Here(session) => {
                let each = |diff: FileDiff| each(&diff.text());
                diff(session, (range, paths), each).await.map(drop)
            }
            #[cfg(feature = "remote")]
            Self::There(session) => session.diff_text(range, paths, &mut each).await,
        }
    }

    /// Lands what it changed at these paths in the workspace.
    pub(crate) async fn apply(&self, paths: &[OsString], order: ApplyOrder) -> Result<ApplyReport> {
        match self {
            Self::Here(session) => {
                let paths = session.scope(paths).await?;
                session.check_named(&paths).await?;
                session.apply(&ApplyOrder { paths, ..order }).await
            }
            #[cfg(feature = "remote")]
            Self::There(session) => session.apply(paths, (order.dry_run, order.overwrite)).await,
        }
    }

    /// Lands what somebody chose. Of the order only how that is done counts.
    pub(crate) async fn apply_chosen(
        &self,
        chosen: Chosen,
        how: ApplyOrder,
    ) -> Result<ApplyReport> {
        let ApplyOrder { dry_run, progress, .. } = how;
        match (self, chosen) {
            (Self::Here(session), Chosen::Here(order)) => {
                session.apply(&ApplyOrder { dry_run, progress, ..*order }).await
            }
            #[cfg(feature = "remote")]
            (Self::There(session), Chosen::There(hunks)) => {
                session.apply_chosen(hunks, dry_run).await
            }
            #[cfg(feature = "remote")]
            (Self::Here(_), Chosen::There(_)) | (Self::There(_), Chosen::Here(_)) => {
                Err(super::elsewhere())
            }
        }
    }

    /// Drops what it changed at these paths.
    pub(crate) async fn discard(&self, paths: &[OsString], dry_run: bool) -> Result<Discarded> {
        match self {
            Self::Here(session) => {
                let paths = session.scope(paths).await?;
                session.check_named(&paths).await?;
                session.discard(&DiscardOrder { paths, dry_run }).await
            }
            #[cfg(feature = "remote")]
            Self::There(session) => session.discard(paths, dry_run).await,
        }
    }
}

/// An error about what is of the machine of the server alone.
pub(super) fn here_alone(what: &str, why: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} with a server: {why}"))
        .hint(format!("Leave {what} out, or run it on the machine of the server."))
}

async fn diff(
    session: &cofferdam_session::Session,
    (range, paths): (Option<&PointRange>, &[OsString]),
    each: impl FnMut(FileDiff) -> Result<()>,
) -> Result<Option<PointSpan>> {
    let scope = session.scope(paths).await?;
    match range {
        Some(range) => session.diff_between(range, &scope, each).await.map(Some),
        None => session.diff(&scope, each).await.map(|()| None),
    }
}
