//! The manifest that a session is made with.

use super::file_input::{named, read_input};
use crate::config::{self, OpenedFile};
use crate::surroundings::Surroundings;
use crate::{places, report};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::manifest::{Checked, MAX_MANIFEST_BYTES, Manifest, Provisions};
use std::path::Path;
use std::sync::Arc;

/// Reads and checks a manifest, and looks at what it names on the host, relative to where it lies. One in
/// this workspace that reaches out of it must have been approved.
pub(crate) fn provisions(
    file: Option<&Path>,
    workspace: Option<&Path>,
) -> Result<Option<Arc<Provisions>>> {
    let Some(file) = file else { return Ok(None) };
    let text = read_input(file, MAX_MANIFEST_BYTES)?;
    let checked = checked(file, &text)?;
    if let Some(workspace) = workspace {
        refuse_unapproved((file, text), &checked, workspace, &Surroundings::of_this_process())?;
    }
    let loaded = checked.load(base(file)).map_err(|e| of_manifest(file, e))?;
    Ok(Some(Arc::new(loaded)))
}

/// The same as a manifest that says all by itself, for a server: what it brings of this machine is in it.
#[cfg(feature = "remote")]
pub(crate) fn inlined(file: Option<&Path>, here: &Surroundings) -> Result<Option<Manifest>> {
    let Some(file) = file else { return Ok(None) };
    let text = read_input(file, MAX_MANIFEST_BYTES)?;
    let checked = checked(file, &text)?;
    refuse_unapproved((file, text), &checked, here.directory()?, here)?;
    let inlined = checked.inlined(base(file), &here.state_directory()?);
    inlined.map(Some).map_err(|e| of_manifest(file, e))
}

/// HOSTILE: a command in a sandbox may have written one that lies in its workspace. What that would take from
/// elsewhere, or with the caller's rights, widens the next sandbox, as a configuration does.
fn refuse_unapproved(
    (file, text): (&Path, Vec<u8>),
    checked: &Checked,
    workspace: &Path,
    here: &Surroundings,
) -> Result<()> {
    let path = here.located(file)?;
    let within = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    let named = places::of_file(&path)?;
    let lies_in = |path: &Path| path.starts_with(&within);
    if !lies_in(&named) && !path.canonicalize().is_ok_and(|real| lies_in(&real)) {
        return Ok(());
    }
    let Some(what) = checked.reaches_out(base(&path), &within) else { return Ok(()) };
    // One that is no text was refused before.
    let text = String::from_utf8(text).unwrap_or_default();
    let opened = OpenedFile { path: named, text };
    if config::is_approved(&here.state_directory()?, &opened)? {
        return Ok(());
    }
    let shown = file.display();
    let what = format!(
        "{shown} lies in the workspace, where commands in a sandbox may have written it, and reaches out of \
         that: {what}"
    );
    Err(Error::new(ErrorKind::Denied, what).hint(format!(
        "Look at it, then approve it as it is now with `cofferdam config trust {shown}`, or keep it outside of \
         the workspace."
    )))
}

/// Whether a text is that of a manifest.
pub(super) fn is_manifest(file: &Path, text: &str) -> bool {
    checked(file, text.as_bytes()).is_ok()
}

fn base(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("."))
}

fn checked(file: &Path, text: &[u8]) -> Result<Checked> {
    let checked = parsed(file, text).and_then(|manifest| manifest.check());
    checked.map_err(|e| of_manifest(file, e))
}

fn parsed(file: &Path, text: &[u8]) -> Result<Manifest> {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("json") => serde_json::from_slice(text).map_err(|e| wrong(&e.to_string())),
        Some("toml") => {
            let text = std::str::from_utf8(text).map_err(|e| wrong(&e.to_string()))?;
            toml::from_str(text).map_err(|e| wrong(&place_and_reason(text, &e)))
        }
        Some(_) | None => Err(Error::new(ErrorKind::Usage, "its name says no format")
            .hint("Give it a name that ends in .toml or .json.")),
    }
}

fn of_manifest(file: &Path, error: Error) -> Error {
    report::of_file(&named(file, "the manifest"), error)
}

fn wrong(why: &str) -> Error {
    Error::new(ErrorKind::Usage, why).hint(
        "An entry is a table `[[entries]]` with a type (file, directory, link, …), a path and more; see \
         `cofferdam config schema manifest`.",
    )
}

/// On one line what the parser says in several.
fn place_and_reason(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", error.message().replace('\n', ", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_manifest_is_told_by_its_line() {
        let text = "version = 1\n[[entry]]\npath = \"a\"\n";
        let error = toml::from_str::<Manifest>(text).unwrap_err();
        let told = place_and_reason(text, &error);
        assert!(told.starts_with("line 2: unknown field `entry`"), "{told}");
        assert!(!told.contains('\n'));
    }
}
