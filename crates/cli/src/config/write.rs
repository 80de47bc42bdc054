//! Changes of the user's own file: a rule more, and all else as it is.

use super::open::open_own;
use super::{Key, Section, file};
use crate::surroundings::Surroundings;
use cofferdam_core::{Error, ErrorKind, Opening, Result};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

/// The mode of a file that is made here.
const MODE: u32 = 0o600;

/// The user's own file, as it is, or as it would begin.
#[derive(Debug)]
pub(crate) struct OwnFile {
    path: PathBuf,
    /// `None` where there is none yet.
    text: Option<String>,
    home: Option<PathBuf>,
    /// Others who change it wait as long as this lives.
    _lock: Option<OwnedFd>,
}

/// What a change comes to.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// It says so already.
    Known(PathBuf),
    /// It has to be written.
    Changed(Change),
}

/// A change that was found to be sound, and is not written yet.
#[derive(Debug)]
pub(crate) struct Change {
    path: PathBuf,
    text: String,
    is_new: bool,
}

impl OwnFile {
    /// Reads it, if it is there. Nobody else has it until this is dropped.
    pub(crate) fn open(surroundings: &Surroundings) -> Result<Self> {
        let path = surroundings.own_config().ok_or_else(|| {
            Error::new(ErrorKind::Config, "there is no place for your configuration")
                .hint("Set HOME or XDG_CONFIG_HOME.")
        })?;
        let home = surroundings.home.clone();
        // ORDER: before it is read.
        let _lock = locked(path.parent().unwrap_or(Path::new("/")))?;
        match open_own(&path)? {
            Some(opened) => Ok(Self { path: opened.path, text: Some(opened.text), home, _lock }),
            None => Ok(Self { path, text: None, home, _lock }),
        }
    }

    /// The change that opens this for whoever runs with the file. Writes nothing. Fails where the profile
    /// that the file names has no way out: with the rule nothing would run any more.
    pub(crate) fn prepare(&self, opening: &Opening) -> Result<Prepared> {
        let (key, text) = match opening {
            Opening::Rule(rule) => (Key::Egress, rule.to_string()),
            Opening::HostPort(port) => (Key::AllowHostPort, port.to_string()),
        };
        let before = self.text.as_deref().unwrap_or_default();
        let Some(mut after) = with_element(before, &self.path, key, &text)? else {
            return Ok(Prepared::Known(self.path.clone()));
        };
        // The parser has one sort of line end.
        if before.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r')) {
            after = after.replace("\r\n", "\n").replace('\n', "\r\n");
        }
        self.check(&after)?;
        let is_new = self.text.is_none();
        Ok(Prepared::Changed(Change { path: self.path.clone(), text: after, is_new }))
    }

    fn check(&self, text: &str) -> Result<()> {
        let layer = file::read(text, &self.path, self.home.as_deref())?;
        let profile = layer.profile.as_ref().map(|said| said.value).unwrap_or_default();
        if profile.has_way_out() {
            return Ok(());
        }
        let path = self.path.display();
        let what = match self.text.is_some() {
            true => format!("{path} leads to profile {profile}"),
            false => format!("there is no {path} yet, and without it counts profile {profile}"),
        };
        let what = format!("{what}, which has no way out: with a rule in it nothing would run");
        let hint = format!(
            "Write the lines `[run]` and `profile = \"repo-write\"` in {path} first, or use --session."
        );
        Err(Error::new(ErrorKind::Config, what).hint(hint))
    }
}

impl Change {
    /// Writes it, whole or not at all, and says where.
    pub(crate) fn write(&self) -> Result<&Path> {
        let path = &self.path;
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("write {}", path.display())).source(error)
        };
        let directory = path.parent().unwrap_or(Path::new("/"));
        if self.is_new {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(directory).map_err(failed)?;
        }
        let beside = path.with_extension(format!("toml.{}", std::process::id()));
        let written = self.put(&beside).and_then(|()| std::fs::rename(&beside, path));
        if written.is_err() {
            // The error that caused it is the one to tell.
            let _ = std::fs::remove_file(&beside);
        }
        written.map_err(failed)?;
        Ok(path)
    }

    fn put(&self, beside: &Path) -> std::io::Result<()> {
        let mut new = OpenOptions::new().write(true).create_new(true).mode(MODE).open(beside)?;
        new.write_all(self.text.as_bytes())?;
        if !self.is_new {
            let mode = std::fs::symlink_metadata(&self.path)?.permissions().mode() & 0o777;
            new.set_permissions(Permissions::from_mode(mode))?;
        }
        File::sync_all(&new)
    }
}

/// Waits until nobody else changes what is in this directory. Nothing where there is none.
fn locked(directory: &Path) -> Result<Option<OwnedFd>> {
    let failed = |errno: Errno| {
        let what = format!("lock {}", directory.display());
        Error::new(ErrorKind::Io, what).source(std::io::Error::from(errno))
    };
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let lock = match rustix::fs::open(directory, flags, Mode::empty()) {
        Ok(lock) => lock,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(failed(errno)),
    };
    retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive)).map_err(failed)?;
    Ok(Some(lock))
}

/// The text with this element in the list of this key; `None` where it is there.
fn with_element(text: &str, path: &Path, key: Key, element: &str) -> Result<Option<String>> {
    let odd = |what: &str| {
        Error::new(ErrorKind::Config, format!("{}: {what}", path.display()))
            .hint("Write the rule there by hand, below [run], or use --session.")
    };
    let mut document: DocumentMut =
        text.parse().map_err(|error| odd("it is no TOML").source(error))?;
    let (section, name) = (Section::Run.name(), key.name());
    let run = document.entry(section).or_insert_with(|| Item::Table(Table::new()));
    let run: &mut dyn TableLike =
        run.as_table_like_mut().ok_or_else(|| odd("[run] is no table"))?;
    let list = run.entry(name).or_insert_with(|| Item::Value(Value::Array(Array::new())));
    let list = list.as_array_mut().ok_or_else(|| odd(&format!("{name} is no list")))?;
    if list.iter().any(|known| known.as_str() == Some(element)) {
        return Ok(None);
    }
    list.push(element);
    Ok(Some(document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: Option<&str>) -> OwnFile {
        let (path, text) = ("/c/config.toml".into(), text.map(str::to_owned));
        OwnFile { path, text, home: None, _lock: None }
    }

    fn rule() -> Opening {
        Opening::of_remedy("--egress a.test:443").unwrap()
    }

    fn changed(text: &str) -> String {
        match file(Some(text)).prepare(&rule()).unwrap() {
            Prepared::Changed(change) => change.text,
            Prepared::Known(_) => panic!("it is known: {text}"),
        }
    }

    #[test]
    fn a_rule_is_added_and_what_else_stands_there_stays() {
        let before = "# mine\n[run]   # of runs\nprofile = \"repo-write\"\n# reached\negress = [\n  \
                      # crates\n  \"crates.io:443\", # yes\n]\n\n[session]\nttl = \"1h\" # long\n";
        let after = changed(before);
        for comment in ["# mine", "# of runs", "# reached", "# crates", "# yes", "# long"] {
            assert!(after.contains(comment), "{comment}: {after}");
        }
        let rules = file::read(&after, Path::new("/c/config.toml"), None).unwrap().egress;
        let rules: Vec<String> = rules.iter().map(|rule| rule.value.to_string()).collect();
        assert_eq!(rules, ["crates.io:443", "a.test:443"]);
        assert!(matches!(file(Some(&after)).prepare(&rule()).unwrap(), Prepared::Known(_)));
    }

    #[test]
    fn lines_end_as_they_did() {
        let after = changed("# mine\r\n[run]\r\nprofile = \"repo-write\"\r\n");
        assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
        assert!(after.starts_with("# mine\r\n[run]\r\n") && after.contains("a.test:443"));
        assert!(!changed("[run]\nprofile = \"repo-write\"\n").contains('\r'));
    }

    #[test]
    fn who_changes_the_file_waits_for_who_does() {
        let home = std::env::temp_dir().join(format!("cofferdam-own-{}", std::process::id()));
        let path = home.join("cofferdam/config.toml");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "[run]\nprofile = \"repo-write\"\n").unwrap();
        let open = || {
            let _lock = locked(path.parent().unwrap()).unwrap();
            let text = Some(std::fs::read_to_string(&path).unwrap());
            OwnFile { path: path.clone(), text, home: None, _lock }
        };
        let adding = |host: String| {
            move || {
                let file = open();
                let opening = Opening::of_remedy(&format!("--egress {host}:443")).unwrap();
                let Prepared::Changed(change) = file.prepare(&opening).unwrap() else {
                    panic!("it is known");
                };
                // Long enough for all others to read.
                std::thread::sleep(std::time::Duration::from_millis(20));
                change.write().unwrap();
            }
        };
        std::thread::scope(|scope| {
            for number in 0..6 {
                scope.spawn(adding(format!("h{number}.test")));
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_dir_all(&home).unwrap();
        assert_eq!(text.matches(".test:443").count(), 6, "{text}");
    }

    #[test]
    fn the_first_rule_makes_its_list() {
        let after = changed("run = { profile = \"ci-only\" } # short\n");
        assert!(after.starts_with("run = {") && after.ends_with("} # short\n"), "{after}");
        let layer = file::read(&after, Path::new("/c/config.toml"), None).unwrap();
        assert_eq!(layer.egress.first().unwrap().value.to_string(), "a.test:443");
        let port = Opening::of_remedy("--allow-host-port 5432").unwrap();
        let text = "[run]\nprofile = \"repo-write\"\n";
        let Prepared::Changed(change) = file(Some(text)).prepare(&port).unwrap() else {
            panic!("it is known");
        };
        assert_eq!(change.text, "[run]\nprofile = \"repo-write\"\nallow_host_port = [\"5432\"]\n");
    }

    #[test]
    fn what_would_break_every_run_is_refused_before() {
        for text in [None, Some("[run]\nprofile = \"no-network\"\n")] {
            let error = file(text).prepare(&rule()).unwrap_err();
            assert!(error.message.contains("has no way out"), "{}", error.message);
            let lines: Vec<&str> = error.hint.as_deref().unwrap().split('`').collect();
            changed(&format!("{}\n{}\n", lines[1], lines[3]));
        }
        let error = file(None).prepare(&rule()).unwrap_err();
        assert!(error.message.starts_with("there is no /c/config.toml yet"), "{}", error.message);
        assert!(error.hint.unwrap().contains("in /c/config.toml first, or use --session"));
        for text in ["run = 5", "[run]\negress = 5", "[run"] {
            let error = file(Some(text)).prepare(&rule()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Config, "{text}");
        }
    }
}
