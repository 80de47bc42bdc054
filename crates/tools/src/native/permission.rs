//! The tool that asks the user for a destination.

use crate::Outcome;
use crate::param::{Kind, Param};
use crate::scope::Missing;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::policy::Asked;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::{PermissionReport, PermissionState, Requested};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// The longest wait for an answer, in seconds.
const MAX_WAIT_S: u64 = 600;
/// How long is waited where nobody says.
const WAIT_S: u64 = 60;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    host: String,
    port: u16,
    reason: String,
    wait_s: u64,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Answered {
    /// It can be reached now.
    Granted,
    /// The user said no.
    Denied,
    /// Nobody answered yet.
    Pending,
}

/// What came of asking.
#[derive(Serialize, JsonSchema)]
struct Permission {
    /// Whether it can be reached.
    state: Answered,
    /// What the user answers by; null where nobody had to be asked.
    id: Option<String>,
    /// The host.
    host: String,
    /// The port.
    port: u16,
}

pub(super) const REQUEST: Row = Row {
    name: "permission_request",
    title: "Ask to reach a host",
    about: "Asks the user to let the sandbox reach a host and port that its rules do not allow, and waits \
            for the answer. Ask before you need it, once, and say why. It grants nothing by itself: while \
            it is pending, go on with something else, and ask again later with the same host and port.",
    params: &[
        Param::required("host", Kind::Word, "The host name or address, as in crates.io."),
        Param::required("port", Kind::Whole(1, 65_535), "The port, as in 443."),
        Param::required("reason", Kind::Word, "Why it is needed, for the user to read."),
        Param::whole("wait_s", (0, MAX_WAIT_S), WAIT_S, "How many seconds to wait for an answer."),
    ],
    output: output_of::<Permission>,
    conduct: Conduct::Of(Hints::SETTLES),
};

pub(super) async fn request(call: Call<'_>) -> Result<Outcome> {
    let Arguments { host, port, reason, wait_s } = call.arguments()?;
    let asked = Asked {
        host: host.parse().map_err(|error: Error| error.hint("Write a host, without a port."))?,
        port,
    };
    let session = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?;
    let patience = Duration::from_secs(wait_s.min(MAX_WAIT_S));
    let permission = |state, id| Permission { state, id, host: host.clone(), port };
    let told = match session.request_permission(&asked, &reason, patience).await {
        Ok(Requested::Open) => {
            let text = format!("{asked} can be reached already: nobody had to be asked.");
            Outcome::done(text, json!(permission(Answered::Granted, None)))
        }
        Ok(Requested::Asked(report)) => {
            let (state, text) = told(&asked, &report);
            Outcome::done(text, json!(permission(state, Some(report.id))))
        }
        Err(error) if error.kind == ErrorKind::Conflict && error.hint.is_some() => {
            let hint = "Do without it, and tell the user that it is out of reach here.";
            return Err(error.hint(hint));
        }
        Err(error) => return Err(error),
    };
    Ok(told)
}

fn told(asked: &Asked, report: &PermissionReport) -> (Answered, String) {
    let id = &report.id;
    match report.state {
        PermissionState::Allowed | PermissionState::Approved => {
            (Answered::Granted, format!("The user allowed {asked}: it can be reached now."))
        }
        PermissionState::Denied => {
            (Answered::Denied, format!("The user refused {asked}. Do without it."))
        }
        PermissionState::Waiting | PermissionState::TimedOut | PermissionState::Gone => {
            let text = format!(
                "Nobody answered yet whether {asked} may be reached. The user can do so with \
                 `cofferdam approve {id} --session`. Go on with something else, and ask again later."
            );
            (Answered::Pending, text)
        }
    }
}
