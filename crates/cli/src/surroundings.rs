//! What the caller's process brings along. The only place that reads it.

use crate::config::refuse_misspelled_home;
use cofferdam_core::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What the caller's process brings along.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// Its environment.
    pub(crate) variables: BTreeMap<OsString, OsString>,
    /// Its current directory, as far as somebody asked for it.
    pub(crate) directory: OnceLock<PathBuf>,
    /// Its user's home directory, if there is one.
    pub(crate) home: Option<PathBuf>,
}

impl Surroundings {
    /// Reads them from this process.
    pub(crate) fn of_this_process() -> Self {
        let variables: BTreeMap<_, _> = std::env::vars_os().collect();
        let home = absolute(&variables, "HOME").or_else(home_of_record);
        Self { variables, directory: OnceLock::new(), home }
    }

    /// Its current directory, without symbolic links. Fails where it was removed.
    pub(crate) fn directory(&self) -> Result<&Path> {
        if let Some(known) = self.directory.get() {
            return Ok(known);
        }
        // Only now: most verbs need none, and somebody in a removed one has sessions to end.
        let found = std::env::current_dir().map_err(|cause| {
            Error::new(ErrorKind::NotFound, "the current directory cannot be found")
                .source(cause)
                .hint("Change to a directory that exists.")
        })?;
        Ok(self.directory.get_or_init(|| found))
    }

    /// Where a path leads that somebody gave: a relative one begins in the current directory.
    pub(crate) fn located(&self, path: &Path) -> Result<PathBuf> {
        match path.is_absolute() {
            true => Ok(path.to_owned()),
            false => Ok(self.directory()?.join(path)),
        }
    }

    /// Where the user's own configuration is, if the user can have one.
    pub(crate) fn own_config(&self) -> Option<PathBuf> {
        let below = absolute(&self.variables, "XDG_CONFIG_HOME")
            .or_else(|| Some(self.home.as_ref()?.join(".config")))?;
        Some(below.join("cofferdam").join("config.toml"))
    }

    /// Where Cofferdam keeps its records.
    pub(crate) fn state_directory(&self) -> Result<PathBuf> {
        let path = self.named_state_directory()?;
        // What is not there yet is made by whoever needs it.
        let is_file = match std::fs::metadata(&path) {
            Ok(found) => !found.is_dir(),
            Err(cause) => cause.kind() == std::io::ErrorKind::NotADirectory,
        };
        if is_file {
            let what = format!("the state directory {} is, or lies below, a file", path.display());
            return Err(Error::new(ErrorKind::Config, what)
                .hint("Set COFFERDAM_HOME to a directory of yours."));
        }
        Ok(path)
    }

    fn named_state_directory(&self) -> Result<PathBuf> {
        refuse_misspelled_home(&self.variables)?;
        if let Some(named) = self.variables.get(OsStr::new("COFFERDAM_HOME")) {
            return match absolute(&self.variables, "COFFERDAM_HOME") {
                Some(path) => Ok(path),
                None => Err(Error::new(
                    ErrorKind::Config,
                    format!("COFFERDAM_HOME: {named:?} is not an absolute path"),
                )
                .hint("Set COFFERDAM_HOME to an absolute path, or unset it.")),
            };
        }
        let below = absolute(&self.variables, "XDG_STATE_HOME")
            .or_else(|| Some(self.home.as_ref()?.join(".local/state")));
        below.map(|below| below.join("cofferdam")).ok_or_else(|| {
            Error::new(ErrorKind::Config, "there is no home directory to keep records in")
                .hint("Set COFFERDAM_HOME to a directory of yours.")
        })
    }
}

fn absolute(variables: &BTreeMap<OsString, OsString>, name: &str) -> Option<PathBuf> {
    variables.get(OsStr::new(name)).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The home directory that the system has on record, for callers without the variable.
fn home_of_record() -> Option<PathBuf> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let home = home_in(&users, rustix::process::geteuid().as_raw())?;
    Path::new(home).is_absolute().then(|| PathBuf::from(home))
}

fn home_in(users: &str, uid: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_user = fields.nth(2)?.parse() == Ok(uid);
        if is_user { fields.nth(2) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(variables: &[(&str, &str)]) -> Surroundings {
        let variables = variables.iter().map(|(k, v)| (k.into(), v.into())).collect();
        Surroundings { variables, home: Some("/home/u".into()), ..Surroundings::default() }
    }

    #[test]
    fn records_are_kept_where_the_caller_says() {
        let check = |variables: &[(&str, &str)], expected: &str| {
            let state = surroundings(variables).state_directory().unwrap();
            assert_eq!(state, PathBuf::from(expected));
        };
        check(&[], "/home/u/.local/state/cofferdam");
        check(&[("XDG_STATE_HOME", "/s")], "/s/cofferdam");
        check(&[("XDG_STATE_HOME", "relative")], "/home/u/.local/state/cofferdam");
        check(&[("XDG_STATE_HOME", "/s"), ("COFFERDAM_HOME", "/c")], "/c");
        assert!(surroundings(&[("COFFERDAM_HOME", "c")]).state_directory().is_err());
        for file in ["/dev/null", "/dev/null/below"] {
            let error = surroundings(&[("COFFERDAM_HOME", file)]).state_directory().unwrap_err();
            assert!(error.kind == ErrorKind::Config && error.hint.is_some(), "{error:?}");
        }
    }

    #[test]
    fn the_home_on_record_is_the_sixth_field() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbroken\nu:x:1000:1000::/home/u:/bin/sh\n";
        assert_eq!(home_in(users, 0), Some("/root"));
        assert_eq!(home_in(users, 1000), Some("/home/u"));
        assert_eq!(home_in(users, 5), None);
    }
}
