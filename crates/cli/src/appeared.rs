//! Control files that appeared in a workspace while a sandbox lived that has ended now.

use crate::moment::now_ms;
use crate::report;
use cofferdam_core::Result;
use cofferdam_session::{EventReport, MAX_EVENTS, SessionId, Sessions};

/// Says that these appeared.
pub(crate) fn tell(names: &str) {
    report::note(&format!("new control files in the workspace, look at them: {names}"));
}

/// Watches for the end of a session's sandbox.
pub(crate) struct Watch {
    since_ms: u64,
}

impl Watch {
    /// From now on.
    pub(crate) fn begin() -> Self {
        Self { since_ms: now_ms() }
    }

    /// Says which ones appeared, where the session is one of this machine. That they cannot be asked for is no
    /// reason to fail what was done.
    pub(crate) async fn tell(self, sessions: Option<&Sessions>, id: &SessionId) {
        let Some(sessions) = sessions else { return };
        if let Ok(Some(names)) = self.names(sessions, id).await {
            tell(&names);
        }
    }

    async fn names(self, sessions: &Sessions, id: &SessionId) -> Result<Option<String>> {
        let (mut after, mut found) = (0, None);
        loop {
            let events = sessions.written_events(Some(id), after).await?;
            let is_one = |event: &&EventReport| {
                event.kind == "new_control_files" && event.at_ms >= self.since_ms
            };
            found = events.iter().rfind(is_one).map(names).or(found);
            match events.last() {
                Some(last) if events.len() >= MAX_EVENTS as usize => after = last.seq,
                Some(_) | None => return Ok(found),
            }
        }
    }
}

fn names(event: &EventReport) -> String {
    let paths = event.data.get("paths").and_then(|paths| paths.as_array());
    let paths = paths.into_iter().flatten().filter_map(|path| path.as_str());
    paths.collect::<Vec<_>>().join(", ")
}
