//! Puts the layers over each other.

use super::open::{OpenedFile, open_own, or_left_out};
use super::{Layer, file, open_checked, search_upward, trust, variables};
use crate::args::ConfigOptions;
use crate::surroundings::Surroundings;
use cofferdam_core::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// All layers over each other, and the files among them.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// What they say together.
    pub(crate) layer: Layer,
    /// The files that were read, a later one winning.
    pub(crate) files: Vec<ConsultedFile>,
}

/// A configuration file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ConsultedFile {
    /// Where it is.
    pub(crate) path: String,
    /// Why it counts, or that it does not.
    pub(crate) standing: Standing,
}

/// Why a configuration file counts, or that it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// It is the user's own.
    Own,
    /// The user named it on the command line.
    Named,
    /// The user approved it as it is.
    Approved,
    /// The user did not approve it, or it has changed since. A run refuses it.
    Unapproved,
}

/// What to do about a file that is not approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unapproved {
    /// Fail, without reading what it says.
    Refuse,
    /// Read it as if it were approved, and say that it is not.
    Show,
}

/// Reads every source of settings and lays them over each other, the command line on top.
pub(crate) fn load(
    surroundings: &Surroundings,
    options: &ConfigOptions,
    flags: Layer,
    unapproved: Unapproved,
) -> Result<Loaded> {
    if options.no_config {
        return Ok(Loaded { layer: flags, files: Vec::new() });
    }
    let mut layer = Layer::default();
    let mut files = Vec::new();
    let home = surroundings.home.as_deref();
    let own = surroundings.own_config().map_or(Ok(None), |path| open_own(&path));
    let own = own.map_err(or_left_out)?;
    let own = own.map(|opened| (opened, Standing::Own));
    let project = project(surroundings, options.config.as_deref(), unapproved)?;
    for (opened, standing) in own.into_iter().chain(project) {
        layer = layer.under(file::read(&opened.text, &opened.path, home)?);
        files.push(ConsultedFile { path: opened.path.display().to_string(), standing });
    }
    let environment = variables::read(&surroundings.variables, surroundings.directory()?)?;
    Ok(Loaded { layer: layer.under(environment).under(flags), files })
}

fn project(
    surroundings: &Surroundings,
    named: Option<&Path>,
    unapproved: Unapproved,
) -> Result<Option<(OpenedFile, Standing)>> {
    if let Some(path) = named {
        let opened = open_checked(&surroundings.located(path)?)?;
        return Ok(Some((opened, Standing::Named)));
    }
    let Some(found) = search_upward(surroundings)? else { return Ok(None) };
    if trust::is_approved(&surroundings.state_directory()?, &found)? {
        return Ok(Some((found, Standing::Approved)));
    }
    match unapproved {
        Unapproved::Show => Ok(Some((found, Standing::Unapproved))),
        Unapproved::Refuse => Err(not_approved(&found.path)),
    }
}

fn not_approved(path: &Path) -> Error {
    let shown = path.display();
    let message = format!("{shown} is not approved, and a sandboxed program may have written it");
    Error::new(ErrorKind::Config, message).hint(format!(
        "Read it, then run `cofferdam config trust {shown}`, or leave it out with --no-config."
    ))
}
