//! Shells that stay, and commands that somebody is attached to: by requests, and over WebSockets.

mod attach;
mod rest;
mod shell;
mod socket;
#[cfg(test)]
mod socket_tests;

pub(crate) use rest::{ShellCheckWish, ShellRunWish};
pub(super) use socket::needs_upgrade;
pub(crate) use socket::{Asked, Told};

use crate::Server;
use utoipa_axum::router::OpenApiRouter;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().merge(rest::routes()).merge(shell::routes()).merge(attach::routes())
}
