//! The words of events. Data is one JSON object each; values of variables are in none.
//!
//! | kind | data |
//! |---|---|
//! | `provisioned` | `id`, `incarnation`, `backend`, `workspace`, `label` of a run |
//! | `not_provisioned` | `incarnation`, `error` |
//! | `destroyed` | `id`, `incarnation`, `reason`, `label` of a run; the last word about an incarnation |
//! | `paused` | `incarnation`, `idle`, `how` |
//! | `secret_alarm` | `incarnation`, `secret`, `host`, `port`; it is frozen until somebody resumes it, also over a stop or a loss |
//! | `resumed` | `incarnation` |
//! | `exec_started` | `incarnation`, `exec`, `argv`, `detached` |
//! | `exec_ended` | `incarnation`, `exec`, `ending`, `exit_code`, `left` |
//! | `exec_emptied` | `incarnation`, `exec`; the last process that it left is gone |
//! | `instance_lost` | `incarnation`, `process_state_lost` |
//! | `recovered` | `incarnation`, `previous_incarnation`, `process_state_lost` |
//! | `init_failed` | `incarnation`, `command`, `exit_code`, `ending` |
//! | `init_completed` | `incarnation`, `commands` |
//! | `files_provided` | `incarnation`, `entries` of the manifest, `steps` that they took |
//! | `extended` | `lease_until_ms` |
//! | `updated` | `fields` |
//! | `network_changed` | `allow`, `deny`, `host_ports`, `ask_ms`, all of them as they are now |
//! | `permission_requested` | `id`, `host`, `address`, `port`, `how`, `reason`, `allow` what would allow it, `notice` where that is no public address, `until_ms` |
//! | `permission_settled` | `id`, `settled` |
//! | `permission_dropped` | `incarnation`, `why`; the gate told something that cannot be |
//! | `connection_denied` | `incarnation`, `execs` that ran then, `host`, `address`, `port`, `how`, `rule`, `reason`, `remedy` that would allow it; each destination once for each reason and edition of the rules |
//! | `preserved` | `incarnation`, `lease_until_ms` |
//! | `undone` | `from` and `to`, points; `added`, `changed`, `removed`, how many paths |
//! | `snapshot_made` | `snapshot`, `label`, `files`, `bytes` |
//! | `snapshot_restored` | `snapshot`; all processes were ended before |
//! | `snapshot_removed` | `snapshot` |
//! | `snapshot_exported` | `snapshot`; somebody was to write it to a file |
//! | `snapshot_imported` | `snapshot`, `label`, `files`, `bytes` |
//! | `forked` | `into`, `point` |
//! | `cleanup_failed` | `incarnation`, `error` |
//! | `leftover` | `incarnation`, `what` |
//! | `new_control_files` | `incarnation`, `paths` |
//! | `applied` | `incarnation`, `paths` as many as fit, `applied` and `kept`, how many |
//! | `discarded` | `incarnation`, `paths` as many as fit, `discarded`, how many |

use crate::{PermissionId, SessionId};
use cofferdam_core::{
    ApplyReport, Change, Denial, DestroyReason, Ending, ErrorBody, ExecStatus, PausedBy, ProcessId,
    SandboxRecord, SecretAlarm, Settlement, WaitingConnection,
};
use serde_json::{Value, json};

/// The longest argument list in an event, in bytes.
const ARGV_BYTES: usize = 200;
/// The most bytes of all paths in an event.
const PATHS_BYTES: usize = 4096;

/// Kind and data.
pub(crate) type Word = (&'static str, Value);

pub(crate) fn provisioned(incarnation: u32, record: &SandboxRecord, label: Option<&str>) -> Word {
    let id = SessionId::of(&record.id).map(|(id, _)| id);
    let data = json!({
        "id": id,
        "incarnation": incarnation,
        "backend": record.backend,
        "workspace": record.workspace,
        "label": label,
    });
    ("provisioned", data)
}

pub(crate) fn not_provisioned(incarnation: u32, error: &ErrorBody) -> Word {
    ("not_provisioned", json!({ "incarnation": incarnation, "error": error }))
}

pub(crate) fn destroyed(
    id: &SessionId,
    incarnation: u32,
    reason: DestroyReason,
    label: Option<&str>,
) -> Word {
    let data = json!({ "id": id, "incarnation": incarnation, "reason": reason, "label": label });
    ("destroyed", data)
}

pub(crate) fn paused(incarnation: u32, idle: bool, how: PausedBy) -> Word {
    ("paused", json!({ "incarnation": incarnation, "idle": idle, "how": how }))
}

pub(crate) fn secret_alarm(incarnation: u32, alarm: &SecretAlarm) -> Word {
    let SecretAlarm { secret, host, port } = alarm;
    let data = json!({ "incarnation": incarnation, "secret": secret, "host": host, "port": port });
    ("secret_alarm", data)
}

pub(crate) fn resumed(incarnation: u32) -> Word {
    ("resumed", json!({ "incarnation": incarnation }))
}

pub(crate) fn exec_started(incarnation: u32, status: &ExecStatus) -> Word {
    let data = json!({
        "incarnation": incarnation,
        "exec": status.id,
        "argv": shortened(&status.argv, ARGV_BYTES),
        "detached": status.detached,
    });
    ("exec_started", data)
}

pub(crate) fn exec_ended(incarnation: u32, status: &ExecStatus) -> Word {
    let ending = status.ended.as_ref().map(|ended| &ended.ending);
    let data = json!({
        "incarnation": incarnation,
        "exec": status.id,
        "ending": ending.map(Ending::kind),
        "exit_code": ending.map(Ending::exit_code),
        "left": status.left.unwrap_or(0),
    });
    ("exec_ended", data)
}

pub(crate) fn exec_emptied(incarnation: u32, status: &ExecStatus) -> Word {
    ("exec_emptied", json!({ "incarnation": incarnation, "exec": status.id }))
}

pub(crate) fn instance_lost(incarnation: u32) -> Word {
    ("instance_lost", json!({ "incarnation": incarnation, "process_state_lost": true }))
}

pub(crate) fn recovered(incarnation: u32) -> Word {
    let data = json!({
        "incarnation": incarnation,
        "previous_incarnation": incarnation.saturating_sub(1),
        "process_state_lost": true,
    });
    ("recovered", data)
}

pub(crate) fn leftover(incarnation: u32, what: &str) -> Word {
    ("leftover", json!({ "incarnation": incarnation, "what": what }))
}

pub(crate) fn permission_requested(
    session: &SessionId,
    incarnation: u32,
    waiting: &WaitingConnection,
) -> Word {
    let data = json!({
        "id": PermissionId::of_connection(session, incarnation, waiting.number),
        "host": waiting.host,
        "address": waiting.address,
        "port": waiting.port,
        "how": waiting.how,
        "reason": waiting.reason,
        "allow": waiting.remedy,
        "notice": waiting.notice(),
        "until_ms": waiting.until_ms,
    });
    ("permission_requested", data)
}

pub(crate) fn permission_dropped(incarnation: u32, why: &str) -> Word {
    ("permission_dropped", json!({ "incarnation": incarnation, "why": why }))
}

pub(crate) fn connection_denied(incarnation: u32, denial: &Denial, execs: &[ProcessId]) -> Word {
    let Denial { host, address, port, how, rule, reason, remedy, count: _, request } = denial;
    let data = json!({
        "incarnation": incarnation,
        "execs": execs,
        "host": host,
        "address": address,
        "port": port,
        "how": how,
        "rule": rule,
        "reason": reason,
        "remedy": remedy,
        "request": request,
    });
    ("connection_denied", data)
}

pub(crate) fn permission_settled(
    session: &SessionId,
    incarnation: u32,
    number: u64,
    settled: Settlement,
) -> Word {
    let id = PermissionId::of_connection(session, incarnation, number);
    ("permission_settled", json!({ "id": id, "settled": settled }))
}

pub(crate) fn new_control_files(incarnation: u32, paths: &[String]) -> Word {
    ("new_control_files", json!({ "incarnation": incarnation, "paths": paths }))
}

pub(crate) fn applied(incarnation: u32, report: &ApplyReport) -> Word {
    let data = json!({
        "incarnation": incarnation,
        "paths": first_paths(&report.applied),
        "applied": report.applied.len(),
        "kept": report.kept.len(),
    });
    ("applied", data)
}

pub(crate) fn discarded(incarnation: u32, changes: &[Change]) -> Word {
    let data = json!({
        "incarnation": incarnation,
        "paths": first_paths(changes),
        "discarded": changes.len(),
    });
    ("discarded", data)
}

/// The first of the paths of changes, as far as they fit. Bytes that are not text are replaced.
fn first_paths(changes: &[Change]) -> Vec<String> {
    let mut room = PATHS_BYTES;
    let paths = changes.iter().map(|change| change.path.to_string());
    let fits = |path: &String| {
        let fits = path.len() <= room;
        room = room.saturating_sub(path.len());
        fits
    };
    paths.take_while(fits).collect()
}

/// The first words of a command, as far as they fit in so many bytes.
pub(crate) fn shortened(argv: &[String], bytes: usize) -> Vec<String> {
    let mut left = bytes;
    let mut shown = Vec::new();
    for word in argv {
        if word.len() > left {
            let cut = (0..=left).rev().find(|at| word.is_char_boundary(*at)).unwrap_or(0);
            shown.push(format!("{}…", word.get(..cut).unwrap_or_default()));
            break;
        }
        left -= word.len();
        shown.push(word.clone());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_arguments_are_cut_between_characters() {
        let long = shortened(&["x".repeat(199), "éé".to_owned(), "never".to_owned()], ARGV_BYTES);
        assert_eq!(long, ["x".repeat(199), "…".to_owned()]);
        assert_eq!(shortened(&["a".to_owned(), "b".to_owned()], ARGV_BYTES), ["a", "b"]);
    }
}
