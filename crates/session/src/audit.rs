//! What callers of a server did: who, what, when, and what came of it.

use crate::store::StoredAudit;
use crate::{MAX_EVENTS, Sessions, now_ms};
use cofferdam_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that a caller did. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// The id of the key that it was done with; null for the local user.
    pub key: Option<String>,
    /// What was done: method and path of the request, without what follows a `?`.
    pub action: String,
    /// The status of the answer; 0 where nobody waited for it.
    pub status: u16,
    /// The number of the request, which the answer has in `x-request-id`.
    pub request: String,
}

/// The same with its number and its moment. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditReport {
    /// Its number, growing over all owners.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The id of the key that it was done with; null for the local user.
    pub key: Option<String>,
    /// What was done: method and path of the request, without what follows a `?`.
    pub action: String,
    /// The status of the answer; 0 where nobody waited for it.
    pub status: u16,
    /// The number of the request, which the answer has in `x-request-id`.
    pub request: String,
}

impl Sessions {
    /// Writes down what an owner did.
    pub async fn audit(&self, owner: &str, entry: AuditEntry) -> Result<()> {
        self.0.store.audit(owner, now_ms(), entry).await
    }

    /// What was done after the entry of this number, at most [`MAX_EVENTS`], oldest first: by the owner
    /// of these sessions, or by all.
    pub async fn audited(&self, after: u64) -> Result<Vec<AuditReport>> {
        let found = self.0.store.audited(after, MAX_EVENTS).await?;
        Ok(found.into_iter().map(AuditReport::from).collect())
    }
}

impl From<StoredAudit> for AuditReport {
    fn from(stored: StoredAudit) -> Self {
        let StoredAudit { seq, at_ms, entry } = stored;
        let AuditEntry { key, action, status, request } = entry;
        Self { seq, at_ms, key, action, status, request }
    }
}
