//! Receipts for people.

use crate::{render, report};
use cofferdam_core::Receipt;
use cofferdam_session::{MAX_RECEIPT_PATHS, text_or_quoted};

/// How many paths are named one by one; `--json` has more.
const NAMED_PATHS: usize = 20;

/// Says on standard error what a command did.
pub(crate) fn tell(receipt: &Receipt) {
    let host = &receipt.seen_by_host;
    let files = &host.files;
    match &files.not_seen {
        Some(why) => report::note(&format!("receipt: changes of files were not looked for: {why}")),
        None => report::note(&format!(
            "receipt: {} added, {} changed, {} removed",
            files.added.len(),
            files.changed.len(),
            files.removed.len()
        )),
    }
    let signed = [("+", &files.added), ("~", &files.changed), ("-", &files.removed)];
    let all = signed.into_iter().flat_map(|(sign, some)| some.iter().map(move |one| (sign, one)));
    for (sign, file) in all.clone().take(NAMED_PATHS) {
        let path = match &file.path {
            Some(path) => format!("{path:?}"),
            None => text_or_quoted(None, file.path_base64.as_deref()),
        };
        let size = file.size.map(|size| format!(", {size} bytes")).unwrap_or_default();
        report::note(&format!("  {sign} {path}{size}"));
    }
    let unnamed = (all.count().saturating_sub(NAMED_PATHS) as u64).saturating_add(files.omitted);
    if unnamed > 0 {
        report::note(&format!("  and {unnamed} more; --json names up to {MAX_RECEIPT_PATHS}"));
    }
    if !files.beside.is_empty() {
        let beside = files.beside.join(", ");
        report::note(&format!("  some of it may be of what ran beside: {beside}"));
    }
    for (name, stream) in [("output", &host.stdout), ("error", &host.stderr)] {
        if stream.dropped > 0 {
            let dropped = stream.dropped;
            report::note(&format!("  {dropped} bytes of standard {name} were dropped"));
        }
    }
    if host.processes_left > 0 {
        report::note(&format!("  {} processes go on", host.processes_left));
    }
    if let Some(killed @ 1..) = receipt.said_by_guest.killed_descendants {
        report::note(&format!("  said inside: {killed} processes that it left were killed"));
    }
    let usage = &receipt.said_by_guest.usage;
    if let (Some(cpu_ms), Some(peak)) = (usage.cpu_ms, usage.peak_memory_bytes) {
        let peak = render::bytes(peak);
        report::note(&format!("  said inside: {cpu_ms} ms of processor time, {peak} at most"));
    }
}
