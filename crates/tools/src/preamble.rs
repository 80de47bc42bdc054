//! What a model should know of the place that it works in.

use crate::scope::Sandboxes;

/// See [`Toolbox::preamble`](crate::Toolbox::preamble).
pub(crate) async fn of(sandboxes: &Sandboxes) -> String {
    let spec = &sandboxes.order().spec;
    format!("You work in a sandbox of profile {}.", spec.profile)
}
