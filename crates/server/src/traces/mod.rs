//! Traces by OpenTelemetry: a span for each request, each sandbox that is made and each command, sent to a
//! collector as the usual environment variables say.
//!
//! What a span tells is a [`Fact`], and there are no others: ids, routes, statuses. So no secret, no words
//! of a command and nothing of a file can be in one. Without a collector nothing of this is done, and the
//! routes are not wrapped.

#[cfg(feature = "otel")]
mod environment;
#[cfg(feature = "otel")]
mod export;
mod layer;
#[cfg(feature = "otel")]
mod send;
#[cfg(not(feature = "otel"))]
mod without;

#[cfg(feature = "otel")]
pub(crate) use export::Span;
#[cfg(feature = "otel")]
pub use export::Traces;
pub(crate) use layer::traced;
#[cfg(not(feature = "otel"))]
pub(crate) use without::Span;
#[cfg(not(feature = "otel"))]
pub use without::Traces;

use cofferdam_core::{EndingKind, ProcessId};
use cofferdam_session::SessionId;

/// What a span may tell.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fact<'a> {
    /// The method of a request, of those that are known.
    Method(&'static str),
    /// The route that it was for, as the document writes it.
    Route(&'a str),
    /// The status of the answer.
    Status(u16),
    /// The sandbox that it concerns.
    Sandbox(&'a SessionId),
    /// The command that it concerns.
    Exec(&'a ProcessId),
    /// How a command ended.
    Ending(EndingKind),
    /// With which code.
    ExitCode(i32),
}
