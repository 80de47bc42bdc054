//! What this process brings along. The only file of this crate that reads it.

use cofferdam_core::{Caller, Error, ErrorKind, Result};
use std::ffi::OsStr;
use std::path::PathBuf;

/// This process as a caller: its environment and home directory.
///
/// Handing it to [`Builder::caller`](crate::Builder::caller) makes a sandbox as the command line
/// would: the toolchains on the `PATH` are shown, and variables such as `LANG` are passed on. Other
/// variables are not, whatever they are called.
pub fn current_caller() -> Caller {
    let env = std::env::vars_os().collect();
    Caller { env, home: absolute("HOME").or_else(home_of_record) }
}

/// Where this user's records are kept: `COFFERDAM_HOME`, else `cofferdam` in `XDG_STATE_HOME` or in
/// `.local/state` of the home directory. The command line uses the same.
pub fn state_home() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("COFFERDAM_HOME") {
        return absolute("COFFERDAM_HOME").ok_or_else(|| {
            Error::new(
                ErrorKind::Config,
                format!("COFFERDAM_HOME: {named:?} is not an absolute path"),
            )
            .hint("Set COFFERDAM_HOME to an absolute path, or unset it.")
        });
    }
    let home = || absolute("HOME").or_else(home_of_record);
    let below = absolute("XDG_STATE_HOME").or_else(|| Some(home()?.join(".local/state")));
    below.map(|below| below.join("cofferdam")).ok_or_else(|| {
        Error::new(ErrorKind::Config, "there is no home directory to keep records in")
            .hint("Set COFFERDAM_HOME to a directory of yours.")
    })
}

/// The directories of the `PATH`, without those that depend on where one is.
pub(crate) fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect()
}

/// The value of a variable that names a file or directory absolutely.
pub(crate) fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(OsStr::new(name)).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The home directory that the system has on record, for processes without the variable.
fn home_of_record() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}
