//! The preparation of a session: its init list, command by command.

use crate::answer::{CALL_LIMIT, within};
use crate::desk::Desk;
use crate::excerpt::{HEAD_BYTES, TAIL_BYTES, WHOLE_BYTES, joined};
use crate::follow;
use crate::init::{InitCommand, InitFailure, InitState};
use crate::provision::ManifestState;
use crate::store::{NewEvent, Row};
use crate::{Event, Phase, Session, SessionId, Sessions};
use cofferdam_core::{
    Command, Ending, Error, ErrorKind, ExecOrder, ExecStatus, Part, ProcessId, Result, Standard,
};
use serde_json::json;
use tokio::task::JoinSet;

/// How much of the output of an init command is kept on disk, in bytes.
const SPOOL_BYTES: u64 = 1 << 20;

impl Sessions {
    /// Goes on with the init lists of sessions that run and that nobody prepares any more, because whoever did was
    /// ended. Says what could not be taken up and why; a command that fails is told by its session.
    ///
    /// A session whose manifest was not brought to its end is left: what it wants is known to whoever ensures it. So is
    /// one whose init failed, and one that somebody paused, stopped or lost.
    pub async fn prepare_what_was_left(&self) -> Result<Vec<(SessionId, Error)>> {
        self.refuse_a_part("going on with what others prepared")?;
        let rows = self.0.store.all().await?;
        // At once: a list takes as long as its commands, and the next one is no slower for it.
        let mut work = JoinSet::new();
        for row in rows.into_iter().filter(is_left) {
            let sessions = self.clone();
            work.spawn(async move {
                let error = sessions.prepare_the_rest(&row.id).await.err()?;
                Some((row.id, error))
            });
        }
        Ok(work.join_all().await.into_iter().flatten().collect())
    }

    async fn prepare_the_rest(&self, id: &SessionId) -> Result<()> {
        // Who is at work on it has this, and prepares it.
        let Some(mut desk) = Desk::try_open(&self.0, id).await? else { return Ok(()) };
        if !is_left(&desk.row) {
            return Ok(());
        }
        desk.settle().await?;
        if !matches!(desk.row.phase, Phase::Running | Phase::Paused) {
            return Ok(());
        }
        desk.refuse_while_frozen().await?;
        // One that fell asleep meanwhile by itself is woken, as by whoever was preparing it.
        desk.drive(Event::Ensure).await?;
        match desk.prepare().await {
            Err(_) if desk.row.facts.init.state() == InitState::Failed => Ok(()),
            Err(error) => Err(error),
            Ok(()) => Session::first_point(&mut desk).await,
        }
    }
}

/// Whether a session is one whose preparation was broken off, if nobody is at work on it.
fn is_left(row: &Row) -> bool {
    let manifest = row.facts.manifest.as_ref().map(crate::provision::Provided::state);
    row.phase == Phase::Running
        && !row.facts.scope.has_owner()
        && row.facts.init.state() == InitState::Pending
        && manifest != Some(ManifestState::Pending)
}

impl Desk {
    /// Runs what is left of the init list. Stops at the first command that fails, and keeps the
    /// sandbox. The endings of the commands stand among the events before what follows from them.
    pub(crate) async fn prepare(&mut self) -> Result<()> {
        let mut ran = false;
        while let Some((command, id)) = self.row.facts.init.next()? {
            ran = true;
            match self.try_init(&command, &id).await {
                Ok(None) => {
                    self.row.facts.init.succeeded();
                    self.amend(None).await?;
                }
                Ok(Some(failure)) => return Err(self.init_failed(failure).await?),
                Err(error) => {
                    let failure = InitFailure::not_tried(&command, &error);
                    self.init_failed(failure).await?;
                    return Err(error);
                }
            }
        }
        if ran {
            self.fold(None).await?;
            let commands = self.row.facts.init.commands.len();
            let data = json!({ "incarnation": self.row.incarnation, "commands": commands });
            self.amend(Some(NewEvent::now("init_completed", data))).await?;
        }
        Ok(())
    }

    async fn init_failed(&mut self, failure: InitFailure) -> Result<Error> {
        let data = json!({
            "incarnation": self.row.incarnation,
            "command": failure.command,
            "exit_code": failure.exit_code,
            "ending": failure.ending,
        });
        let error = failure.error();
        self.row.facts.init.failed(failure);
        // What failed is told even where the journal cannot be read now.
        self.fold(None).await.ok();
        self.amend(Some(NewEvent::now("init_failed", data))).await?;
        Ok(error)
    }

    /// Runs one command to its end, and says how it failed if it did.
    async fn try_init(&self, command: &InitCommand, id: &ProcessId) -> Result<Option<InitFailure>> {
        let record = self.record()?;
        let mut order = ExecOrder {
            command: Command::new(id.clone(), command.argv()),
            detached: false,
            keep_awake: false,
            spool_bytes: SPOOL_BYTES,
            max_output_bytes: None,
        };
        order.command.timeout = Some(command.timeout());
        let backend = self.backend();
        let wait = async {
            within(CALL_LIMIT, "start a command", backend.start(record, &order)).await?;
            follow::to_end(backend, record, id).await
        };
        // The keeper kills it in time; this is for a keeper that does not.
        let status = within(command.timeout() + 2 * CALL_LIMIT, "run a command", wait).await?;
        match status.ended.as_ref().map(|ended| &ended.ending) {
            Some(Ending::Exited(0)) => Ok(None),
            Some(Ending::Lost) | None => Err(Error::new(
                ErrorKind::Unavailable,
                "the sandbox was lost while it was prepared",
            )),
            Some(ending) => {
                let output = self.said(&status).await;
                Ok(Some(InitFailure::ended(command, ending, output)))
            }
        }
    }

    /// What a command wrote, or beginning and end of it; what cannot be read is left out.
    async fn said(&self, status: &ExecStatus) -> String {
        let mut bytes = Vec::new();
        let streams = [(Standard::Output, status.stdout), (Standard::Error, status.stderr)];
        for (stream, spooled) in streams {
            let written = spooled.written;
            let part = |offset, len| Part { stream, offset, len };
            if written <= WHOLE_BYTES.into() {
                bytes.extend(self.part(status, part(0, WHOLE_BYTES)).await);
                continue;
            }
            let head = self.part(status, part(0, HEAD_BYTES)).await;
            let from = written.saturating_sub(TAIL_BYTES.into());
            let tail = self.part(status, part(from, TAIL_BYTES)).await;
            bytes.extend(joined(&head, &tail, written));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn part(&self, status: &ExecStatus, part: Part) -> Vec<u8> {
        let Ok(id) = self.row.id.sandbox(self.row.incarnation) else { return Vec::new() };
        let read = self.backend().read(&id, &status.id, part);
        let read = within(CALL_LIMIT, "read output", read).await;
        read.map_or_else(|_| Vec::new(), |chunk| chunk.bytes)
    }
}
