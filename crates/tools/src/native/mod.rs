//! Cofferdam's own pack: everything that a session can do.

pub(crate) mod change;
mod file;
mod layer;
mod list;
mod network;
mod output;
mod permission;
mod poll;
mod port;
mod sandbox;
mod search;
mod secret;
mod shell;

use crate::Outcome;
use crate::tool::Row;
use crate::toolbox::Call;
use cofferdam_core::{Error, ErrorKind, Result};

/// The pack.
pub(crate) const ROWS: &[Row] = &[
    shell::EXEC,
    shell::START,
    poll::ROW,
    shell::WRITE,
    shell::KILL,
    file::READ,
    file::WRITE,
    change::EDIT,
    change::PATCH,
    list::ROW,
    search::ROW,
    sandbox::ENSURE,
    sandbox::STATUS,
    sandbox::PAUSE,
    sandbox::RESUME,
    sandbox::DELETE,
    sandbox::FORK,
    layer::UNDO,
    layer::DIFF,
    layer::APPLY,
    port::EXPOSE,
    network::SHOW,
    permission::REQUEST,
    secret::LIST,
];

/// Whether a tool is for those alone who can show ports.
pub(crate) fn needs_ports(row: &Row) -> bool {
    row.name == port::NAME
}

/// Calls one of them.
pub(crate) async fn call(name: &str, call: Call<'_>) -> Result<Outcome> {
    match name {
        "shell_exec" => shell::exec(call).await,
        "shell_start" => shell::start(call).await,
        "shell_poll" => poll::poll(call).await,
        "shell_write" => shell::write(call).await,
        "shell_kill" => shell::kill(call).await,
        "file_read" => file::read(call).await,
        "file_write" => file::write(call).await,
        "file_edit" => change::edit(call).await,
        "file_patch" => change::patch(call).await,
        "file_list" => list::list(call).await,
        "file_search" => search::search(call).await,
        other => call_of_sandbox(other, call).await,
    }
}

/// Calls one that is about a sandbox as a whole, or what it reaches.
async fn call_of_sandbox(name: &str, call: Call<'_>) -> Result<Outcome> {
    match name {
        "sandbox_ensure" => sandbox::ensure(call).await,
        "sandbox_status" => sandbox::status(call).await,
        "sandbox_pause" => sandbox::pause(call).await,
        "sandbox_resume" => sandbox::resume(call).await,
        "sandbox_delete" => sandbox::delete(call).await,
        "sandbox_fork" => sandbox::fork(call).await,
        "sandbox_undo" => layer::undo(call).await,
        "sandbox_diff" => layer::diff(call).await,
        "sandbox_apply" => layer::apply(call).await,
        port::NAME => port::expose(call).await,
        "network_show" => network::show(call).await,
        "permission_request" => permission::request(call).await,
        "secret_list" => secret::list(call).await,
        other => Err(Error::new(ErrorKind::Unsupported, format!("the tool {other} does nothing"))
            .hint("Use another tool.")),
    }
}
