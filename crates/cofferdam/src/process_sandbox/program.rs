//! Where the `cofferdam` command is.

use crate::surroundings::{absolute, search_path};
use cofferdam_core::{Error, ErrorKind, Result};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The name of the command.
const NAME: &str = "cofferdam";
/// The variable that names it.
const VARIABLE: &str = "COFFERDAM_BIN";

/// The command: the one that was named, else that of `COFFERDAM_BIN`, else the one beside this
/// program, else the first on the `PATH`. What is named and not there is not looked for elsewhere.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        return checked(path, "the path that was given");
    }
    if let Some(path) = absolute(VARIABLE) {
        return checked(&path, VARIABLE);
    }
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let mut places = beside.into_iter().chain(search_path()).map(|place| place.join(NAME));
    places.find(|path| is_program(path)).ok_or_else(|| {
        let what = "the cofferdam command is neither beside this program nor on the PATH";
        Error::new(ErrorKind::Unavailable, what).hint(format!("Install it, or set {VARIABLE}."))
    })
}

fn checked(path: &Path, who: &str) -> Result<PathBuf> {
    if is_program(path) {
        return Ok(path.to_path_buf());
    }
    let what = format!("{who} names {}, which is no program", path.display());
    Err(Error::new(ErrorKind::Unavailable, what).hint("Name the cofferdam command."))
}

fn is_program(path: &Path) -> bool {
    let facts = std::fs::metadata(path);
    facts.is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}
