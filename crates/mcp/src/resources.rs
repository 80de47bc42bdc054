//! Files, receipts and logs, to be read by address.

use crate::uri::{self, ResourceUri, Subject, TEMPLATES};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cofferdam_core::files::{EntryKind, List};
use cofferdam_core::{Error, ErrorKind, Part, ProcessId, Result, Standard};
use cofferdam_session::{ExecReport, HistoryReport, PointReport, Session};
use cofferdam_tools::{Scope, Toolbox};
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde::Serialize;
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The most bytes of a resource, before they become JSON.
pub const MAX_RESOURCE_BYTES: u64 = 1 << 20;
/// The most resources of one page of a list.
pub const MAX_RESOURCES_OF_PAGE: u32 = 200;
/// The most bytes that are asked for at once.
const PIECE_BYTES: u32 = 256 << 10;
/// How many points of a history are looked through for that of a command.
const POINTS: usize = 1000;

const JSON: &str = "application/json";
/// What begins the cursor of a page of commands, with how many came before.
const EXECS: &str = "execs:";
/// The same of a page of files, with the address of the last.
const FILES: &str = "files:";

/// The receipt of a command, as a resource. Format 1.
#[derive(Debug, Serialize)]
struct ExecResource {
    /// How it stands, as `cofferdam ps --json` says it.
    exec: ExecReport,
    /// The point of the history that its end is, as `cofferdam history --json` says it.
    point: Option<PointReport>,
}

/// The templates of addresses.
pub(crate) fn templates(scope: Scope) -> ListResourceTemplatesResult {
    let own = (scope == Scope::Implicit).then_some(false);
    let all = own.into_iter().chain([true]).flat_map(|is_named| {
        TEMPLATES.iter().map(move |template| {
            let address = uri::template(template.rest, is_named);
            let name = match is_named {
                false => template.name.to_owned(),
                true => format!("{} of a named sandbox", template.name),
            };
            ResourceTemplate::new(address, name).with_description(template.about)
        })
    });
    ListResourceTemplatesResult { resource_templates: all.collect(), ..Default::default() }
}

/// A page of what there is: of the connection's own sandbox its commands and the files of its
/// workspace's first level; without one, the sandboxes. Makes and wakes nothing before files are asked
/// for.
pub(crate) async fn list(toolbox: &Toolbox, cursor: Option<&str>) -> Result<ListResourcesResult> {
    if toolbox.scope() == Scope::Named {
        return sandboxes(toolbox, cursor).await;
    }
    let session = match toolbox.sandbox(None).await {
        Ok(session) => session,
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Ok(ListResourcesResult::default());
        }
        Err(error) => return Err(error),
    };
    match cursor {
        None => execs(&session, 0).await,
        Some(cursor) => match (cursor.strip_prefix(EXECS), cursor.strip_prefix(FILES)) {
            (Some(skipped), _) => {
                execs(&session, skipped.parse().map_err(|_| no_cursor(cursor))?).await
            }
            (_, Some("")) => files(&session, None).await,
            (_, Some(address)) => match ResourceUri::parse(address).map(|uri| uri.subject) {
                Some(Subject::File(after)) => files(&session, Some(&after)).await,
                _ => Err(no_cursor(cursor)),
            },
            (None, None) => Err(no_cursor(cursor)),
        },
    }
}

fn no_cursor(cursor: &str) -> Error {
    let short: String = cursor.chars().take(64).collect();
    Error::new(ErrorKind::Usage, format!("{short:?} is no cursor of this list"))
        .hint("Begin again without a cursor.")
}

/// A page of the sandboxes that there are.
async fn sandboxes(toolbox: &Toolbox, cursor: Option<&str>) -> Result<ListResourcesResult> {
    let skipped: usize = match cursor {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| no_cursor(cursor))?,
    };
    let all = toolbox.nameable().await?;
    let most = MAX_RESOURCES_OF_PAGE as usize;
    let resources = all.iter().skip(skipped).take(most).map(|session| {
        let name = session.name.as_deref().unwrap_or(&session.id);
        let uri = ResourceUri { sandbox: Some(name.to_owned()), subject: Subject::Session };
        Resource::new(uri.to_string(), name).with_mime_type(JSON)
    });
    let next = skipped.saturating_add(most);
    Ok(ListResourcesResult {
        resources: resources.collect(),
        next_cursor: (next < all.len()).then(|| next.to_string()),
        ..Default::default()
    })
}

/// A page of the commands of a sandbox, the newest first; the sandbox itself leads the first.
async fn execs(session: &Session, skipped: usize) -> Result<ListResourcesResult> {
    /// A command is its receipt and two streams.
    const EACH: usize = 3;
    let own = |subject| ResourceUri { sandbox: None, subject }.to_string();
    let mut resources = Vec::new();
    if skipped == 0 {
        let session = Resource::new(own(Subject::Session), "sandbox").with_mime_type(JSON);
        resources.push(session.with_description("How the sandbox stands."));
    }
    let most = (MAX_RESOURCES_OF_PAGE as usize - 1) / EACH;
    let all = session.execs().await?;
    for exec in all.iter().rev().skip(skipped).take(most) {
        let (id, line) = (&exec.id, shown(&exec.argv));
        let receipt = Resource::new(own(Subject::Exec(id.clone())), format!("{id}: receipt"));
        resources.push(receipt.with_description(line.clone()).with_mime_type(JSON));
        let streams =
            [("stdout", Standard::Output, exec.stdout), ("stderr", Standard::Error, exec.stderr)];
        for (name, stream, report) in streams {
            let uri = own(Subject::Log(id.clone(), stream));
            let log = Resource::new(uri, format!("{id}: {name}")).with_description(line.clone());
            resources.push(log.with_size(report.written.saturating_sub(report.dropped)));
        }
    }
    let next = skipped.saturating_add(most);
    let next = if next < all.len() { format!("{EXECS}{next}") } else { FILES.to_owned() };
    Ok(ListResourcesResult { resources, next_cursor: Some(next), ..Default::default() })
}

/// The words of a command on one short line.
fn shown(argv: &[String]) -> String {
    const MOST: usize = 200;
    let line: String =
        argv.join(" ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// A page of the files of the workspace's first level.
async fn files(session: &Session, after: Option<&OsStr>) -> Result<ListResourcesResult> {
    let order = List {
        path: "".into(),
        depth: 1,
        after: after.map(Into::into),
        limit: MAX_RESOURCES_OF_PAGE,
    };
    let page = session.files().list(&order).await?;
    let is_file = |kind| kind == EntryKind::File;
    let resources = page.entries.iter().filter(|entry| is_file(entry.kind)).map(|entry| {
        let uri = uri::of_file(None, entry.path.as_os_str()).to_string();
        let resource = Resource::new(uri, entry.path.to_string()).with_size(entry.size);
        match mime_by_name(entry.path.as_os_str()) {
            Some(mime) => resource.with_mime_type(mime),
            None => resource,
        }
    });
    let next = page.next.as_ref().map(|next| uri::of_file(None, next.as_os_str()));
    Ok(ListResourcesResult {
        resources: resources.collect(),
        next_cursor: next.map(|next| format!("{FILES}{next}")),
        ..Default::default()
    })
}

/// Reads what an address names.
pub(crate) async fn read(toolbox: &Toolbox, address: &str) -> Result<ReadResourceResult> {
    let short = || address.chars().take(256).collect::<String>();
    let uri = ResourceUri::parse(address).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("{:?} is no address of a resource", short()))
            .hint("See the templates of resources.")
    })?;
    if uri.sandbox.is_none() && toolbox.scope() == Scope::Named {
        let what = format!("{:?} names no sandbox, and there is none of this connection", short());
        return Err(Error::new(ErrorKind::NotFound, what)
            .hint("Begin the address with cofferdam://sandboxes/NAME."));
    }
    let session = toolbox.sandbox(uri.sandbox.as_deref()).await?;
    let contents = match &uri.subject {
        Subject::Session => {
            let report = session.sessions().status(session.id()).await?;
            json_text(&report, address)?
        }
        Subject::File(path) => file(&session, path, address).await?,
        Subject::Exec(exec) => json_text(&receipt(&session, exec).await?, address)?,
        Subject::Log(exec, stream) => log(&session, (exec, *stream), address).await?,
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn json_text(value: &impl Serialize, address: &str) -> Result<ResourceContents> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|cause| Error::new(ErrorKind::Io, "write a resource as JSON").source(cause))?;
    Ok(ResourceContents::text(text, address).with_mime_type(JSON))
}

async fn file(session: &Session, path: &OsStr, address: &str) -> Result<ResourceContents> {
    let bytes = session.files().read(path, MAX_RESOURCE_BYTES).await.map_err(|error| {
        if error.kind != ErrorKind::TooLarge {
            return error;
        }
        let what =
            format!("{path:?} has more than {MAX_RESOURCE_BYTES} bytes, the most of a resource");
        Error::new(ErrorKind::TooLarge, what).hint("Read a part of it with a tool.")
    })?;
    let mime = mime_by_name(path);
    Ok(match String::from_utf8(bytes) {
        Ok(text) => {
            ResourceContents::text(text, address).with_mime_type(mime.unwrap_or("text/plain"))
        }
        Err(error) => {
            let blob = BASE64_STANDARD.encode(error.as_bytes());
            let mime = mime.unwrap_or("application/octet-stream");
            ResourceContents::blob(blob, address).with_mime_type(mime)
        }
    })
}

/// What a name says of a content. Few: what clients show as it is.
fn mime_by_name(path: &OsStr) -> Option<&'static str> {
    let name = path.as_bytes();
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    Some(match name.get(dot..)? {
        b".png" => "image/png",
        b".jpg" | b".jpeg" => "image/jpeg",
        b".gif" => "image/gif",
        b".webp" => "image/webp",
        b".svg" => "image/svg+xml",
        b".pdf" => "application/pdf",
        b".json" => JSON,
        b".md" => "text/markdown",
        b".html" => "text/html",
        _ => return None,
    })
}

async fn receipt(session: &Session, exec: &str) -> Result<ExecResource> {
    let exec = session.status(&exec_id(exec)?).await?;
    let point = match session.history(POINTS).await {
        Ok(HistoryReport { points, .. }) => points
            .into_iter()
            .rfind(|point| point.command.as_ref().is_some_and(|command| command.id == exec.id)),
        // It is not copy-on-write: nobody looked.
        Err(error) if error.kind == ErrorKind::Conflict => None,
        Err(error) => return Err(error),
    };
    Ok(ExecResource { exec, point })
}

fn exec_id(text: &str) -> Result<ProcessId> {
    ProcessId::new(text).map_err(|_| {
        let short: String = text.chars().take(64).collect();
        Error::new(ErrorKind::NotFound, format!("there is no command {short:?}"))
    })
}

/// The last of what a command wrote.
async fn log(
    session: &Session,
    (exec, stream): (&str, Standard),
    address: &str,
) -> Result<ResourceContents> {
    let id = exec_id(exec)?;
    let report = session.status(&id).await?;
    let written = match stream {
        Standard::Output => report.stdout.written,
        Standard::Error => report.stderr.written,
    };
    let begin = written.saturating_sub(MAX_RESOURCE_BYTES);
    let (mut from, mut bytes) = (begin, Vec::new());
    while from < written {
        let len = u32::try_from(written - from).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let chunk = session.read(&id, Part { stream, offset: from, len }).await?;
        if chunk.bytes.is_empty() {
            break;
        }
        if chunk.offset != from {
            // What came before was dropped.
            bytes.clear();
        }
        from = chunk.offset.saturating_add(chunk.bytes.len() as u64);
        bytes.extend(chunk.bytes);
    }
    let mut meta = MetaObject::new();
    let offset = from.saturating_sub(bytes.len() as u64);
    meta.insert("cofferdam/part".to_owned(), json!({ "offset": offset, "written": written }));
    Ok(text_or_blob(bytes, address).with_meta(meta))
}

/// Output, which is text unless it is not; its beginning may be the middle of a character.
fn text_or_blob(bytes: Vec<u8>, address: &str) -> ResourceContents {
    const CONTINUED: std::ops::Range<u8> = 0x80..0xc0;
    let begin = bytes.iter().take(3).take_while(|byte| CONTINUED.contains(byte)).count();
    match std::str::from_utf8(bytes.get(begin..).unwrap_or_default()) {
        Ok(text) => ResourceContents::text(text, address),
        // A character whose end is still to be written is no reason.
        Err(error) if error.error_len().is_none() => {
            let end = begin.saturating_add(error.valid_up_to());
            let text = String::from_utf8_lossy(bytes.get(begin..end).unwrap_or_default());
            ResourceContents::text(text, address)
        }
        Err(_) => ResourceContents::blob(BASE64_STANDARD.encode(&bytes), address)
            .with_mime_type("application/octet-stream"),
    }
}
