//! The published JSON Schemas: one for each object that is read or printed.

use crate::choice::Choice;
use crate::commands::config::CheckedConfig;
use crate::commands::wrap::Wrapped;
use crate::config;
use crate::engine::{Diagnosis, Explanation, ProbeReport};
use cofferdam_core::{Error, ErrorKind, ErrorReport, Result, RunReport};
use schemars::{Schema, schema_for};

/// An object with a published schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    /// A configuration file.
    Config,
    /// What `config check --json` prints.
    Check,
    /// What `run --json` prints.
    Result,
    /// An error with `--json`.
    Error,
    /// What `probe --json` prints.
    Probe,
    /// What `explain --json` prints.
    Explain,
    /// What `doctor --json` prints.
    Doctor,
    /// What `wrap` prints.
    Wrap,
}

impl Choice for Object {
    const WHAT: &'static str = "object";
    const ALL: &'static [Self] = &[
        Self::Config,
        Self::Check,
        Self::Result,
        Self::Error,
        Self::Probe,
        Self::Explain,
        Self::Doctor,
        Self::Wrap,
    ];

    fn named(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Check => "check",
            Self::Result => "result",
            Self::Error => "error",
            Self::Probe => "probe",
            Self::Explain => "explain",
            Self::Doctor => "doctor",
            Self::Wrap => "wrap",
        }
    }
}

impl Object {
    /// Its schema.
    fn schema(self) -> Schema {
        match self {
            Self::Config => config::schema(),
            Self::Check => schema_for!(CheckedConfig),
            Self::Result => schema_for!(RunReport),
            Self::Error => schema_for!(ErrorReport),
            Self::Probe => schema_for!(ProbeReport),
            Self::Explain => schema_for!(Explanation),
            Self::Doctor => schema_for!(Diagnosis),
            Self::Wrap => schema_for!(Wrapped),
        }
    }

    /// Its schema as text, as it is published.
    pub(crate) fn text(self) -> Result<String> {
        let text = serde_json::to_string_pretty(&self.schema()).map_err(|cause| {
            Error::new(ErrorKind::Io, "the schema cannot be written as JSON").source(cause)
        })?;
        Ok(text + "\n")
    }
}
