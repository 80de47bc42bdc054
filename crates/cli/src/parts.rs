//! The list of backends: the only place of the command line that names them all.

use crate::choice::Choice;

/// Where sandboxes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum BackendName {
    /// This machine.
    #[default]
    Local,
}

impl Choice for BackendName {
    const WHAT: &'static str = "backend";
    const ALL: &'static [Self] = &[Self::Local];

    fn named(self) -> &'static str {
        match self {
            Self::Local => "local",
        }
    }
}
