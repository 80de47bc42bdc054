//! Shells by requests.

use crate::Server;
use crate::http::door::{Door, Looks, Runs};
use crate::http::error::Answer;
use crate::http::extract::{Body, Path};
use crate::http::objects;
use axum::Json;
use axum::http::StatusCode;
use cofferdam_core::{Error, ErrorKind, Result};
pub(crate) use cofferdam_session::objects::{ShellCheckWish, ShellRunWish};
use cofferdam_session::objects::{ShellList, ShellRan};
use cofferdam_session::{Session, Shell, ShellOutput, ShellReport, ShellTicket};
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The longest that a request waits for the end of a command of a shell.
pub(crate) const MAX_SHELL_WAIT: Duration = Duration::from_secs(60);
/// The most output of one answer, in bytes.
pub(crate) const MAX_SHELL_OUTPUT: usize = 4 << 20;
/// How much output there is unless that is said.
const SHELL_OUTPUT: usize = 256 << 10;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(open, show, terminate))
        .routes(routes!(run))
        .routes(routes!(check))
        .routes(routes!(interrupt))
}

fn bounded(wait_ms: u64, max_bytes: Option<usize>) -> Result<(Duration, usize)> {
    let (wait, bytes) = (Duration::from_millis(wait_ms), max_bytes.unwrap_or(SHELL_OUTPUT));
    if wait > MAX_SHELL_WAIT {
        let what = format!("wait_ms is more than {}", MAX_SHELL_WAIT.as_millis());
        return Err(Error::new(ErrorKind::Usage, what).hint("Check again for what takes longer."));
    }
    if bytes > MAX_SHELL_OUTPUT {
        let what = format!("max_bytes is more than {MAX_SHELL_OUTPUT}");
        return Err(Error::new(ErrorKind::Usage, what).hint("Attach to the shell for more."));
    }
    Ok((wait, bytes))
}

/// The latest shell of a name.
pub(super) async fn report(session: &Session, name: &str) -> Result<ShellReport> {
    let found = session.shells().await?.into_iter().find(|shell| shell.name == name);
    found.ok_or_else(|| {
        let what = format!("session {} has no shell {name:?}", session.id());
        Error::new(ErrorKind::NotFound, what).hint("Open it first.")
    })
}

/// The latest shell of each name, dead ones included.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/shells", tag = "shells",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "All of them.", body = objects::ShellList),
))]
async fn list(door: Door<Looks>, Path(sandbox): Path<String>) -> Answer<Json<ShellList>> {
    let shells = door.session(&sandbox).await?.shells().await?;
    Ok(Json(ShellList { shells }))
}

/// Opens a shell that keeps directory, variables and functions from command to command. One that lives is
/// what was asked for.
#[utoipa::path(put, path = "/v1/sandboxes/{sandbox}/shells/{shell}", tag = "shells",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("shell" = String, Path, description = "The name of the shell.")), responses(
    (status = 200, description = "It is open.", body = objects::Shell),
))]
async fn open(
    door: Door<Runs>,
    Path((sandbox, name)): Path<(String, String)>,
) -> Answer<Json<ShellReport>> {
    let session = door.session(&sandbox).await?;
    session.shell(&name).await?;
    Ok(Json(report(&session, &name).await?))
}

/// How a shell stands.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/shells/{shell}", tag = "shells",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("shell" = String, Path, description = "The name of the shell.")), responses(
    (status = 200, description = "As it stands now.", body = objects::Shell),
))]
async fn show(
    door: Door<Looks>,
    Path((sandbox, name)): Path<(String, String)>,
) -> Answer<Json<ShellReport>> {
    let session = door.session(&sandbox).await?;
    Ok(Json(report(&session, &name).await?))
}

/// Kills a shell and all that runs in it, or that it left. Repeating it succeeds.
#[utoipa::path(delete, path = "/v1/sandboxes/{sandbox}/shells/{shell}", tag = "shells",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("shell" = String, Path, description = "The name of the shell.")), responses(
    (status = 204, description = "It is dead."),
))]
async fn terminate(
    door: Door<Runs>,
    Path((sandbox, name)): Path<(String, String)>,
) -> Answer<StatusCode> {
    door.session(&sandbox).await?.find_shell(&name).await?.terminate().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Runs a command in a shell, which is opened if there is none, and waits for its end. One that takes longer
/// goes on, and is asked for again by `check`.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/shells/{shell}/run", tag = "shells",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("shell" = String, Path, description = "The name of the shell.")),
    request_body = objects::ShellRunWish, responses(
    (status = 200, description = "How it stands.", body = objects::ShellRan),
))]
async fn run(
    door: Door<Runs>,
    Path((sandbox, name)): Path<(String, String)>,
    Body(wish): Body<ShellRunWish>,
) -> Answer<Json<ShellRan>> {
    let most = u64::try_from(MAX_SHELL_WAIT.as_millis()).unwrap_or(u64::MAX);
    let (wait, bytes) = bounded(wish.wait_ms.unwrap_or(most), wish.max_bytes)?;
    let shell = door.session(&sandbox).await?.shell(&name).await?;
    let ticket = shell.send(wish.text.as_bytes(), false).await?;
    let output = stands(&door, &shell, ticket, (wait, bytes)).await?;
    Ok(Json(ShellRan::new(ticket, output)))
}

/// How a command of a shell stands, and what it wrote.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/shells/{shell}/check", tag = "shells",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("shell" = String, Path, description = "The name of the shell.")),
    request_body = objects::ShellCheckWish, responses(
    (status = 200, description = "How it stands.", body = objects::ShellRan),
))]
async fn check(
    door: Door<Runs>,
    Path((sandbox, name)): Path<(String, String)>,
    Body(wish): Body<ShellCheckWish>,
) -> Answer<Json<ShellRan>> {
    let (wait, bytes) = bounded(wish.wait_ms.unwrap_or(0), wish.max_bytes)?;
    let shell = door.session(&sandbox).await?.find_shell(&name).await?;
    let ticket = ShellTicket { seq: wish.seq, offset: wish.offset };
    let output = stands(&door, &shell, ticket, (wait, bytes)).await?;
    Ok(Json(ShellRan::new(ticket, output)))
}

/// How a command stands when it has ended, the time is over, or the server ends: the next one may be asked.
async fn stands(
    door: &Door<Runs>,
    shell: &Shell,
    ticket: ShellTicket,
    (wait, bytes): (Duration, usize),
) -> Result<ShellOutput> {
    tokio::select! {
        output = shell.check(ticket, wait, bytes) => output,
        () = door.server.is_to_end() => shell.check(ticket, Duration::ZERO, bytes).await,
    }
}

/// Interrupts the command that runs in a shell, as by Ctrl-C. The shell goes on.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/shells/{shell}/interrupt", tag = "shells",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("shell" = String, Path, description = "The name of the shell.")), responses(
    (status = 204, description = "It is interrupted."),
))]
async fn interrupt(
    door: Door<Runs>,
    Path((sandbox, name)): Path<(String, String)>,
) -> Answer<StatusCode> {
    door.session(&sandbox).await?.find_shell(&name).await?.interrupt().await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_and_output_of_one_request_have_limits() {
        let most = u64::try_from(MAX_SHELL_WAIT.as_millis()).unwrap();
        let all = bounded(most, Some(MAX_SHELL_OUTPUT)).unwrap();
        assert_eq!(all, (MAX_SHELL_WAIT, MAX_SHELL_OUTPUT));
        assert_eq!(bounded(0, None).unwrap(), (Duration::ZERO, SHELL_OUTPUT));
        let check = |wait, bytes, named: &str| {
            let error = bounded(wait, bytes).unwrap_err();
            assert!(error.kind == ErrorKind::Usage && error.message.contains(named), "{error}");
        };
        check(most + 1, None, "wait_ms");
        check(0, Some(MAX_SHELL_OUTPUT + 1), "max_bytes");
    }
}
