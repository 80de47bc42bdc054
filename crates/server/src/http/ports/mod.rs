//! Servers inside sandboxes: at an address of their own, and as a WebSocket of bytes.

mod divert;
mod rest;
mod table;
mod tunnel;
#[cfg(test)]
mod tunnel_tests;

pub(super) use divert::divert;
pub(in crate::http) use rest::Exposer;
pub(crate) use rest::{PortList, PortReport, PortWish};
pub(crate) use table::Ports;

use crate::Server;
use utoipa_axum::router::OpenApiRouter;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().merge(rest::routes()).merge(tunnel::routes())
}
