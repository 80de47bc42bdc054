//! The manifest that a session is made with.

use super::file_input::read_input;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::manifest::{MAX_MANIFEST_BYTES, Manifest, Provisions};
use std::path::Path;
use std::sync::Arc;

/// Reads and checks a manifest, and looks at what it names on the host, relative to where it lies.
pub(super) fn provisions(file: Option<&Path>) -> Result<Option<Arc<Provisions>>> {
    let Some(file) = file else { return Ok(None) };
    let text = read_input(file, MAX_MANIFEST_BYTES)?;
    let manifest: Manifest = match file.extension().and_then(|ending| ending.to_str()) {
        Some("json") => serde_json::from_slice(&text).map_err(|e| wrong(file).source(e))?,
        Some("toml") => {
            let text = std::str::from_utf8(&text).map_err(|e| wrong(file).source(e))?;
            toml::from_str(text).map_err(|e| wrong(file).source(e))?
        }
        Some(_) | None => {
            let what = format!("{} is no manifest", file.display());
            return Err(Error::new(ErrorKind::Usage, what)
                .hint("Give it a name that ends in .toml or .json."));
        }
    };
    let base = file.parent().unwrap_or(Path::new("."));
    Ok(Some(Arc::new(manifest.check()?.load(base)?)))
}

fn wrong(file: &Path) -> Error {
    Error::new(ErrorKind::Usage, format!("{} holds no manifest", file.display()))
        .hint("Look at `cofferdam config schema manifest`.")
}
