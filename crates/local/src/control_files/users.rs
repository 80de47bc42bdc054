//! What the user's own configuration of git says of every repository.
//!
//! LIMIT: variables of the environment that name other configuration are those of whoever runs git
//! later, and are not known here.

use super::configuration::{CONFIG_BYTES, INCLUSIONS};
use super::git_config::{Target, targets};
use super::{Nature, Search};
use cofferdam_core::Result;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where users are listed.
const USERS: &str = "/etc/passwd";
/// The configuration of the whole host.
const OF_THE_HOST: &str = "/etc/gitconfig";

impl Search<'_> {
    /// Protects the hooks of the work tree at `tree` that the user's own configuration names.
    pub(super) fn of_the_user(&mut self, tree: &str) -> Result<()> {
        let hooks = self.users().hooks;
        hooks.iter().try_for_each(|(who, path)| self.hooks_path(who, tree, path))
    }

    /// Protects what of the user's own configuration is in the workspace itself, and hooks in it that are named
    /// for every repository, whether it is one or not.
    pub(super) fn users_own(&mut self) -> Result<()> {
        let Users { hooks, files, unread } = self.users();
        for (file, errno) in unread {
            self.unread(&file, errno);
        }
        for (who, path) in hooks.iter().filter(|(_, path)| path.starts_with('/')) {
            self.hooks_path(who, "", path)?;
        }
        for file in files {
            if let Some(path) = self.inside(&file, "", &file)
                && !self.is_fixed(&path)
            {
                self.fix_at(&file, &path, Nature::File)?;
            }
        }
        Ok(())
    }

    fn users(&mut self) -> Users {
        self.users.get_or_insert_with(Users::read).clone()
    }
}

/// What the user's own configuration says.
#[derive(Debug, Clone, Default)]
pub(super) struct Users {
    /// Where hooks are, by which file.
    hooks: Vec<(String, String)>,
    /// The files that were read.
    files: Vec<String>,
    /// Those that are there and could not be read.
    unread: Vec<(String, Errno)>,
}

impl Users {
    fn read() -> Self {
        let mut found = Self::default();
        files().iter().for_each(|file| found.add(file, 0));
        found
    }

    fn add(&mut self, file: &Path, depth: usize) {
        let who = file.to_string_lossy().into_owned();
        // HOSTILE: before it is read. One may include itself many times over.
        if self.files.contains(&who) {
            return;
        }
        let text = match text(file) {
            Ok(text) => text,
            Err(errno) if is_nothing(errno) || errno == Errno::ACCESS => return,
            Err(errno) => return self.unread.push((who, errno)),
        };
        self.files.push(who.clone());
        for target in targets(&text) {
            match target {
                Target::Hooks(path) => {
                    self.hooks.push((who.clone(), at_home(&String::from_utf8_lossy(&path))));
                }
                Target::Include(path) if depth < INCLUSIONS => {
                    let path = at_home(&String::from_utf8_lossy(&path));
                    let directory = file.parent().unwrap_or(Path::new("/"));
                    self.add(&directory.join(path), depth + 1);
                }
                Target::Include(_) | Target::WorkTree(_) => {}
            }
        }
    }
}

/// The files of the user's own, and of the host.
fn files() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let settings = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let settings = settings.filter(|path| path.is_absolute());
    let settings = settings.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let files = [
        Some(PathBuf::from(OF_THE_HOST)),
        settings.map(|settings| settings.join("git/config")),
        home.map(|home| home.join(".gitconfig")),
    ];
    files.into_iter().flatten().collect()
}

/// The text of a regular file of the host.
pub(super) fn text(file: &Path) -> Result<Vec<u8>, Errno> {
    // HOSTILE: a pipe would be waited for, and so would a lease.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, file, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&opened)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    let mut text = Vec::new();
    let read = File::from(opened).take(CONFIG_BYTES as u64 + 1).read_to_end(&mut text);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if text.len() > CONFIG_BYTES { Err(Errno::FBIG) } else { Ok(text) }
}

/// Whether an error says that nothing is there which git would read: any other one says nothing of what git
/// will find.
pub(super) fn is_nothing(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL | Errno::ISDIR | Errno::NXIO
    )
}

/// As git reads a path that is meant from the home of the user, or of another one.
pub(super) fn at_home(text: &str) -> String {
    let Some(rest) = text.strip_prefix('~') else { return text.to_owned() };
    let (user, below) = rest.split_once('/').unwrap_or((rest, ""));
    let home = match user.is_empty() {
        true => std::env::var("HOME").ok(),
        false => home_of(user),
    };
    home.map_or_else(|| text.to_owned(), |home| format!("{home}/{below}"))
}

fn home_of(user: &str) -> Option<String> {
    let users = std::fs::read_to_string(USERS).ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == user).then(|| fields.nth(4).map(str::to_owned))?
    })
}
