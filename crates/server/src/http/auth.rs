//! Who asks.

/// Who asks, and what that caller may do.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// Whose sessions are seen; empty is the local user.
    pub(crate) owner: String,
}
