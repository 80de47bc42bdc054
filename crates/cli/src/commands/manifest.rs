//! The manifest that a session is made with.

use super::file_input::read_input;
#[cfg(feature = "remote")]
use crate::surroundings::Surroundings;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::manifest::{Checked, MAX_MANIFEST_BYTES, Manifest, Provisions};
use std::path::Path;
use std::sync::Arc;

/// Reads and checks a manifest, and looks at what it names on the host, relative to where it lies.
pub(crate) fn provisions(file: Option<&Path>) -> Result<Option<Arc<Provisions>>> {
    let Some(file) = file else { return Ok(None) };
    Ok(Some(Arc::new(checked(file)?.load(base(file))?)))
}

/// The same as a manifest that says all by itself, for a server: what it brings of this machine is in it.
#[cfg(feature = "remote")]
pub(crate) fn inlined(file: Option<&Path>, here: &Surroundings) -> Result<Option<Manifest>> {
    let Some(file) = file else { return Ok(None) };
    checked(file)?.inlined(base(file), &here.state_directory()?).map(Some)
}

fn base(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("."))
}

fn checked(file: &Path) -> Result<Checked> {
    let text = read_input(file, MAX_MANIFEST_BYTES)?;
    let manifest: Manifest = match file.extension().and_then(|ending| ending.to_str()) {
        Some("json") => serde_json::from_slice(&text).map_err(|e| wrong(file, &e.to_string()))?,
        Some("toml") => {
            let text = std::str::from_utf8(&text).map_err(|e| wrong(file, &e.to_string()))?;
            toml::from_str(text).map_err(|e| wrong(file, &place_and_reason(text, &e)))?
        }
        Some(_) | None => {
            let what = format!("{} is no manifest", file.display());
            return Err(Error::new(ErrorKind::Usage, what)
                .hint("Give it a name that ends in .toml or .json."));
        }
    };
    manifest.check()
}

fn wrong(file: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("{} holds no manifest: {why}", file.display())).hint(
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
