//! What waits in a session for somebody to allow it, and the answers.
//!
//! Two kinds wait: connections, which their gate holds, and requests, which somebody inside made before
//! there is a connection. Both have ids of one kind, and are answered alike. Nobody inside answers.

use crate::answer::{CALL_LIMIT, if_there, within};
use crate::store::{NewEvent, Row};
use crate::time::after;
use crate::{NetworkChange, PermissionId, PermissionTarget, Session, now_ms};
use cofferdam_core::policy::{Asked, Host, decide};
use cofferdam_core::{
    ConnectionHow, Error, ErrorKind, Opening, Permission, Result, SandboxRecord, Settlement,
    Verdict, made_visible,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How many requests of a session may be without an answer.
pub const MAX_REQUESTS: usize = 32;
/// How long a request can be answered.
pub const REQUEST_LASTS: Duration = Duration::from_secs(3600);
/// The longest reason of a request, in bytes.
pub const MAX_REASON_BYTES: usize = 500;
/// How many requests that have their answer are remembered.
const ANSWERED: usize = 32;
/// How long a gate may take to let somebody through who has its answer.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
/// How often is looked whether it did.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often is looked whether another process answered a request.
const ANSWER_EVERY: Duration = Duration::from_millis(250);

/// What waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionKind {
    /// A connection, which goes on when it is allowed.
    Connection,
    /// A request that was made before there is a connection.
    Request,
}

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionState {
    /// It waits for an answer.
    Waiting,
    /// It alone was let through.
    Approved,
    /// The rules of the session allow it.
    Allowed,
    /// Somebody said no.
    Denied,
    /// Nobody answered in time.
    TimedOut,
    /// It gave up, or its sandbox ended.
    Gone,
}

/// Something that waits to be allowed, or did so lately. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionReport {
    /// What `approve` takes.
    pub id: String,
    /// The id of the session.
    pub session: String,
    /// What it is.
    pub kind: PermissionKind,
    /// How it stands.
    pub state: PermissionState,
    /// The name that is asked for; null where an address is.
    pub host: Option<String>,
    /// The address that is asked for; null where a name is.
    pub address: Option<String>,
    /// The port.
    pub port: u16,
    /// How the connection came; null where there is none yet.
    pub how: Option<ConnectionHow>,
    /// Why it is not allowed; of a request, why it was made, in words from inside.
    pub reason: Option<String>,
    /// What would allow it, as it is written on the command line: `--egress example.com:443`. That may be
    /// more than what is asked for: see `leads_to`.
    pub allow: String,
    /// The address that would be opened, where that is none of the public network: the name that is asked
    /// for leads there, or it is asked for itself. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<String>,
    /// The same in words for the person who answers: which address of which sort of network would be
    /// opened, and by which rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// Since when, in milliseconds since 1970.
    pub requested_ms: u64,
    /// Until when it can be answered, in milliseconds since 1970.
    pub until_ms: u64,
}

/// What waits to be allowed. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionList {
    /// What waits and what did so lately, in the order in which it began.
    pub permissions: Vec<PermissionReport>,
}

/// What somebody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionAnswer {
    /// What waits may go on, and others that wait for the same; nothing that comes later.
    Once,
    /// The session may reach it from now on.
    Session,
    /// No.
    Deny,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requested {
    /// It was allowed before anybody asked.
    Open,
    /// Somebody was asked.
    Asked(Box<PermissionReport>),
}

/// The requests of a session, as they are written down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Requests {
    last: u64,
    all: Vec<Request>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Request {
    number: u64,
    at_ms: u64,
    host: Option<String>,
    address: Option<String>,
    port: u16,
    /// What would allow it, as it is written on the command line.
    remedy: String,
    reason: String,
    settled: Option<Settlement>,
}

impl Requests {
    pub(crate) fn is_empty(&self) -> bool {
        self.last == 0
    }

    fn waiting(&self, now_ms: u64) -> impl Iterator<Item = &Request> {
        self.all.iter().filter(move |one| one.state(now_ms) == PermissionState::Waiting)
    }

    fn find(&self, number: u64) -> Option<&Request> {
        self.all.iter().find(|one| one.number == number)
    }

    /// Adds one. The oldest of those that have their answer go.
    fn add(&mut self, asked: &Asked, (remedy, reason): (String, String), now_ms: u64) -> u64 {
        self.last = self.last.saturating_add(1);
        let (host, address) = match &asked.host {
            Host::Name(name) => (Some(name.to_string()), None),
            Host::Address(address) => (None, Some(address.to_string())),
        };
        self.all.push(Request {
            number: self.last,
            at_ms: now_ms,
            host,
            address,
            port: asked.port,
            remedy,
            reason,
            settled: None,
        });
        let answered = |one: &Request| one.state(now_ms) != PermissionState::Waiting;
        let mut over = self.all.iter().filter(|one| answered(one)).count().saturating_sub(ANSWERED);
        self.all.retain(|one| {
            let goes = over > 0 && answered(one);
            over -= usize::from(goes);
            !goes
        });
        self.last
    }

    fn settle(&mut self, number: u64, settled: Settlement) {
        if let Some(one) = self.all.iter_mut().find(|one| one.number == number) {
            one.settled = Some(settled);
        }
    }
}

impl Request {
    fn asked(&self) -> Result<Asked> {
        let text = self.host.as_deref().or(self.address.as_deref()).unwrap_or_default();
        let host = match text.parse::<IpAddr>() {
            Ok(address) => address.into(),
            Err(_) => text.parse()?,
        };
        Ok(Asked { host, port: self.port })
    }

    fn until_ms(&self) -> u64 {
        self.at_ms.saturating_add(u64::try_from(REQUEST_LASTS.as_millis()).unwrap_or(u64::MAX))
    }

    fn state(&self, now_ms: u64) -> PermissionState {
        match self.settled {
            None if self.until_ms() <= now_ms => PermissionState::TimedOut,
            settled => PermissionState::of(settled),
        }
    }

    fn report(&self, session: &Session) -> PermissionReport {
        let id = PermissionId::of_request(session.id(), self.number);
        self.shown(session.id().as_str(), id.to_string())
    }

    fn shown(&self, session: &str, id: String) -> PermissionReport {
        PermissionReport {
            id,
            session: session.to_owned(),
            kind: PermissionKind::Request,
            state: self.state(now_ms()),
            host: self.host.clone(),
            address: self.address.clone(),
            port: self.port,
            how: None,
            // HOSTILE: words from inside, which a person reads at any door.
            reason: Some(made_visible(&self.reason).into_owned()),
            allow: self.remedy.clone(),
            leads_to: leads_to(&self.remedy),
            notice: notice(&self.remedy, self.host.as_deref()),
            requested_ms: self.at_ms,
            until_ms: self.until_ms(),
        }
    }
}

impl PermissionState {
    fn of(settled: Option<Settlement>) -> Self {
        match settled {
            None => Self::Waiting,
            Some(Settlement::Approved) => Self::Approved,
            Some(Settlement::Allowed) => Self::Allowed,
            Some(Settlement::Denied) => Self::Denied,
            Some(Settlement::TimedOut) => Self::TimedOut,
            Some(Settlement::Gone) => Self::Gone,
        }
    }

    /// How it is said of something.
    fn words(self) -> &'static str {
        match self {
            Self::Waiting => "waits",
            Self::Approved => "was approved already",
            Self::Allowed => "is allowed already",
            Self::Denied => "was denied already",
            Self::TimedOut => "was not answered in time",
            Self::Gone => "waits no more",
        }
    }
}

impl Session {
    /// What waits to be allowed and what did so lately. Wakes nothing.
    pub async fn permissions(&self) -> Result<PermissionList> {
        let row = self.sessions.0.row(self.id()).await?;
        let mut permissions: Vec<PermissionReport> =
            row.facts.requests.all.iter().map(|request| request.report(self)).collect();
        let of_connections = self.of_connections(&row).await?;
        permissions.extend(of_connections.iter().map(|one| self.report(row.incarnation, one)));
        permissions.sort_by_key(|one| one.requested_ms);
        Ok(PermissionList { permissions })
    }

    /// Answers something that waits, and says what came of it: a connection that is let through goes on
    /// at once. What waits no more is a conflict, and one of which nothing is known is not found.
    pub async fn answer_permission(
        &self,
        id: &PermissionId,
        answer: PermissionAnswer,
    ) -> Result<PermissionReport> {
        match id.target() {
            PermissionTarget::Connection { incarnation, number } => {
                self.answer_connection(id, (incarnation, number), answer).await
            }
            PermissionTarget::Request { number } => self.answer_request(id, number, answer).await,
        }
    }

    /// Asks for one destination before there is a connection, and waits so long for an answer. The same
    /// destination asked for again while nobody answered is the same request. Grants nothing.
    ///
    /// Where the session has no way out it is a conflict: nobody can give it one.
    pub async fn request_permission(
        &self,
        asked: &Asked,
        reason: &str,
        patience: Duration,
    ) -> Result<Requested> {
        let deadline = after(patience);
        let decision = decide(&self.policy().await?, asked);
        let remedy = match decision.remedy {
            _ if decision.allowed => return Ok(Requested::Open),
            Some(remedy) => remedy,
            None => {
                let why = decision.reason.unwrap_or_else(|| format!("{asked} is denied"));
                return Err(Error::new(ErrorKind::Denied, why)
                    .hint("It is denied on purpose: do without it, or tell the user."));
            }
        };
        let number = self.note_request(asked, remedy, reason).await?;
        let mut written = self.sessions.written();
        loop {
            let row = self.sessions.0.row(self.id()).await?;
            let Some(request) = row.facts.requests.find(number) else {
                return Err(unknown(&PermissionId::of_request(self.id(), number)));
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if request.state(now_ms()) != PermissionState::Waiting || left.is_zero() {
                return Ok(Requested::Asked(Box::new(request.report(self))));
            }
            // What other processes write is not told.
            let _ = timeout(left.min(ANSWER_EVERY), written.changed()).await;
        }
    }

    async fn of_connections(&self, row: &Row) -> Result<Vec<Permission>> {
        let Some(record) = &row.record else { return Ok(Vec::new()) };
        self.asked_of(&row.backend, record).await
    }

    async fn asked_of(&self, backend: &str, record: &SandboxRecord) -> Result<Vec<Permission>> {
        let backend = self.sessions.0.backend(backend)?;
        let asked = backend.permissions(record);
        Ok(if_there("say what waits to be allowed", asked).await?.unwrap_or_default())
    }

    fn report(&self, incarnation: u32, one: &Permission) -> PermissionReport {
        let waiting = &one.waiting;
        PermissionReport {
            id: PermissionId::of_connection(self.id(), incarnation, waiting.number).to_string(),
            session: self.id().to_string(),
            kind: PermissionKind::Connection,
            state: PermissionState::of(one.settled),
            host: waiting.host.clone(),
            address: waiting.address.clone(),
            port: waiting.port,
            how: Some(waiting.how),
            reason: waiting.reason.clone(),
            allow: waiting.remedy.clone(),
            leads_to: leads_to(&waiting.remedy),
            notice: waiting.notice(),
            requested_ms: waiting.at_ms,
            until_ms: waiting.until_ms,
        }
    }

    async fn answer_connection(
        &self,
        id: &PermissionId,
        (incarnation, number): (u32, u64),
        answer: PermissionAnswer,
    ) -> Result<PermissionReport> {
        let inner = &self.sessions.0;
        let row = inner.row(self.id()).await?;
        let record = row.record.clone().filter(|_| row.incarnation == incarnation);
        let Some(record) = record else {
            let what = match incarnation > row.incarnation || incarnation == 0 {
                true => return Err(unknown(id)),
                false => format!("the sandbox in which {id} waited is gone"),
            };
            return Err(Error::new(ErrorKind::Conflict, what).hint(LIST));
        };
        let backend = inner.backend(&row.backend)?;
        let waits = self.asked_of(&row.backend, &record).await?;
        let waiting = waits.into_iter().find(|one| one.waiting.number == number);
        let say = async |verdict| {
            let answered = backend.answer_permission(&record, number, verdict);
            within(CALL_LIMIT, "answer what waits", answered).await
        };
        match answer {
            PermissionAnswer::Once => say(Verdict::Approve).await?,
            PermissionAnswer::Deny => say(Verdict::Deny).await?,
            PermissionAnswer::Session => {
                let one = waiting.as_ref().ok_or_else(|| unknown(id))?;
                if one.settled.is_some() {
                    return Err(over(id, PermissionState::of(one.settled)));
                }
                let asked = one.waiting.asked()?;
                self.open(Opening::of_remedy(&one.waiting.remedy)?, &asked).await?;
            }
        }
        if let Some(report) = self.settled(id, (&row, &record), number, answer).await? {
            return Ok(report);
        }
        // What went on by this answer may have been all that its sandbox was for.
        let one = waiting.ok_or_else(|| over(id, PermissionState::Gone))?;
        Ok(self.report(row.incarnation, &answered(one, answer)))
    }

    /// What came of a connection that has its answer. `None` where nobody can say that any more.
    async fn settled(
        &self,
        id: &PermissionId,
        (row, record): (&Row, &SandboxRecord),
        number: u64,
        answer: PermissionAnswer,
    ) -> Result<Option<PermissionReport>> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        loop {
            let all = self.asked_of(&row.backend, record).await?;
            let Some(one) = all.iter().find(|one| one.waiting.number == number) else {
                return Ok(None);
            };
            let is_as_said = match (one.settled, answer) {
                (Some(Settlement::Approved | Settlement::Allowed), PermissionAnswer::Once) => true,
                // The rule stands, whatever became of this one.
                (Some(_), PermissionAnswer::Session) => true,
                (Some(Settlement::Denied), PermissionAnswer::Deny) => true,
                (Some(_), _) => return Err(over(id, PermissionState::of(one.settled))),
                (None, _) => false,
            };
            if is_as_said {
                self.sessions.0.fold(row, row.incarnation, None).await?;
                return Ok(Some(self.report(row.incarnation, one)));
            }
            if Instant::now() >= deadline {
                let what = format!("the gate does not say what became of {id}");
                return Err(Error::new(ErrorKind::TimedOut, what).hint(LIST));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn answer_request(
        &self,
        id: &PermissionId,
        number: u64,
        answer: PermissionAnswer,
    ) -> Result<PermissionReport> {
        let row = self.sessions.0.row(self.id()).await?;
        let request = row.facts.requests.find(number).ok_or_else(|| unknown(id))?;
        let state = request.state(now_ms());
        if state != PermissionState::Waiting {
            return Err(over(id, state));
        }
        let settled = match answer {
            PermissionAnswer::Once => {
                let what = format!("no connection waits as {id}: it was asked for beforehand");
                return Err(Error::new(ErrorKind::Conflict, what)
                    .hint("Allow it with --session, or refuse it with --deny."));
            }
            PermissionAnswer::Session => {
                // ORDER: the rule first. Should this process end in between, the request waits on.
                self.open(Opening::of_remedy(&request.remedy)?, &request.asked()?).await?;
                Settlement::Allowed
            }
            PermissionAnswer::Deny => Settlement::Denied,
        };
        let mut desk = self.sessions.0.desk(self.id()).await?;
        desk.row.facts.requests.settle(number, settled);
        let said = NewEvent::now("permission_settled", json!({ "id": id, "settled": settled }));
        desk.amend(Some(said)).await?;
        let request = desk.row.facts.requests.find(number).ok_or_else(|| unknown(id))?;
        Ok(request.report(self))
    }

    /// Opens something that waits for the session, by a change of its rules: those that hold by then
    /// decide anew, and what they deny stays denied.
    async fn open(&self, opening: Opening, asked: &Asked) -> Result<()> {
        self.set_network(&NetworkChange::Answer { opening, asked: asked.clone() }).await.map(drop)
    }

    /// Writes a request down, unless the same one waits already.
    async fn note_request(&self, asked: &Asked, remedy: String, reason: &str) -> Result<u64> {
        let mut desk = self.sessions.0.desk(self.id()).await?;
        let (now_ms, requests) = (now_ms(), &mut desk.row.facts.requests);
        if let Some(same) = requests.waiting(now_ms).find(|one| one.remedy == remedy) {
            return Ok(same.number);
        }
        if requests.waiting(now_ms).count() >= MAX_REQUESTS {
            let what =
                format!("{MAX_REQUESTS} requests of this session wait for an answer already");
            return Err(Error::new(ErrorKind::Conflict, what)
                .hint("Wait for the user to answer some of them."));
        }
        let number = requests.add(asked, (remedy, shortened(reason)), now_ms);
        let request = requests.find(number).map(|request| request.report(self));
        let said = request.map(|request| {
            let said = json!({
                "id": request.id, "host": request.host, "address": request.address,
                "port": request.port, "how": request.how, "reason": request.reason,
                "allow": request.allow, "notice": request.notice, "until_ms": request.until_ms,
            });
            NewEvent::now("permission_requested", said)
        });
        desk.amend(said).await?;
        Ok(number)
    }
}

/// What to do when an id is not understood.
const LIST: &str = "List what waits with `cofferdam approve --list`.";

fn unknown(id: &PermissionId) -> Error {
    Error::new(ErrorKind::NotFound, format!("nothing ever waited as {id}")).hint(LIST)
}

fn over(id: &PermissionId, state: PermissionState) -> Error {
    Error::new(ErrorKind::Conflict, format!("{id} {}", state.words()))
        .hint("What comes next is ruled by `cofferdam network allow` and `cofferdam network deny`.")
}

/// The address beyond the public network that a remedy opens.
fn leads_to(remedy: &str) -> Option<String> {
    Some(Opening::of_remedy(remedy).ok()?.opens_private()?.to_string())
}

fn notice(remedy: &str, host: Option<&str>) -> Option<String> {
    Opening::of_remedy(remedy).ok()?.notice(host)
}

/// A reason as far as it is kept.
fn shortened(reason: &str) -> String {
    let mut end = reason.len().min(MAX_REASON_BYTES);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.get(..end).unwrap_or_default().to_owned()
}

/// What waited, with what came of it by this answer.
fn answered(one: Permission, answer: PermissionAnswer) -> Permission {
    let settled = match answer {
        PermissionAnswer::Deny => Settlement::Denied,
        PermissionAnswer::Once => Settlement::Approved,
        PermissionAnswer::Session => Settlement::Allowed,
    };
    Permission { settled: Some(settled), ..one }
}

#[cfg(test)]
#[path = "permissions_tests.rs"]
mod tests;
