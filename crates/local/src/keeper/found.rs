//! What there is of sandboxes, and how they stand.

use super::backend::KeptBackend;
use super::client::{AT_ONCE, Trouble, odd};
use super::past::Outline;
use super::place::Place;
use super::talk::{Reply, Request};
use cofferdam_core::{Error, ErrorKind, Found, Result, SandboxId, SandboxRecord, SandboxStatus};
use tokio::task::JoinSet;

/// How many sandboxes are asked at once how they stand: those that do not answer are waited for together.
const ASKED_AT_ONCE: usize = 16;

impl KeptBackend {
    /// What there is of all sandboxes, in the order of their ids.
    pub(super) async fn all_found(&self) -> Result<Vec<Found>> {
        let mut ids = self.look(Place::all).await?.into_iter();
        let (mut asked, mut all) = (JoinSet::new(), Vec::new());
        loop {
            while asked.len() < ASKED_AT_ONCE
                && let Some(id) = ids.next()
            {
                let backend = self.clone();
                asked.spawn(async move { backend.found(&id).await });
            }
            let Some(found) = asked.join_next().await else { break };
            let found = found
                .map_err(|e| Error::new(ErrorKind::Io, "ask how a sandbox stands").source(e))?;
            all.extend(found?.map(|found| match found {
                (found, Ok(())) => found,
                (found, Err(error)) => Found { unreachable: Some(error.chain()), ..found },
            }));
        }
        all.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(all)
    }

    /// What there is of this id, and whether it could be asked how it stands.
    pub(super) async fn found(&self, id: &SandboxId) -> Result<Option<(Found, Result<()>)>> {
        let of = id.clone();
        let looked = self
            .look(move |state| {
                let Some(place) = Place::find(state, &of)? else { return Ok(None) };
                Ok(Some((place.is_kept()?, Outline::read(&place)?)))
            })
            .await?;
        let Some((is_kept, outline)) = looked else { return Ok(None) };
        let record = outline.record.filter(|_| !outline.is_over);
        let status = match &record {
            None if is_kept && !outline.is_over => Ok(SandboxStatus::Running),
            Some(record) if is_kept => self.live_status(record).await,
            None | Some(_) => Ok(SandboxStatus::Gone),
        };
        let (status, asked) = match status {
            Ok(status) => (status, Ok(())),
            Err(error) => (SandboxStatus::Running, Err(error)),
        };
        Ok(Some((Found { id: id.clone(), record, status, unreachable: None }, asked)))
    }

    /// How the very sandbox of this record stands.
    pub(super) async fn live_status(&self, sandbox: &SandboxRecord) -> Result<SandboxStatus> {
        let asked = async {
            let mut call = self.call(sandbox, Request::Status, AT_ONCE).await?;
            let reply = call.reply().await?;
            call.over();
            match reply {
                Reply::Status { paused: true } => Ok(SandboxStatus::Paused),
                Reply::Status { paused: false } => Ok(SandboxStatus::Running),
                Reply::Done
                | Reply::Exec(_)
                | Reply::Network(_)
                | Reply::Metrics(_)
                | Reply::Mapped(_)
                | Reply::Permissions(_)
                | Reply::Failed(_) => Err(Trouble::from(odd(&sandbox.id, &reply))),
            }
        };
        match asked.await {
            Ok(status) => Ok(status),
            Err(Trouble::NoKeeper(_)) => Ok(SandboxStatus::Gone),
            // Never there, or another one by now.
            Err(Trouble::Failed(error))
                if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Unavailable) =>
            {
                Ok(SandboxStatus::Gone)
            }
            Err(Trouble::Failed(error)) => Err(error),
            Err(Trouble::Silent(silence)) => Err(silence.into()),
        }
    }
}
