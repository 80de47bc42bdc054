//! The configuration of programs that start servers like this one: where it is, and how it says that.
//!
//! Pure: from a text to a text, with everything in between as it was. Who reads and writes the files
//! is the command line.

mod json;
mod toml;

use cofferdam_core::{Error, ErrorKind, Result};
use json::Dialect;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The longest name of a server in a configuration.
const MAX_NAME_BYTES: usize = 64;

/// A program that starts servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Claude Code.
    Claude,
    /// Cursor.
    Cursor,
    /// Codex, on the command line and in editors.
    Codex,
    /// Visual Studio Code.
    Vscode,
}

/// For whom a server is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The user, in all projects.
    User,
    /// Everybody who works in one project.
    Project,
}

/// Where files are.
#[derive(Debug, Clone)]
pub struct Places {
    /// The user's home directory.
    pub home: PathBuf,
    /// The directory of the user's configuration: `~/.config`, or what `XDG_CONFIG_HOME` says.
    pub config: PathBuf,
    /// What `CODEX_HOME` says.
    pub codex: Option<PathBuf>,
    /// What `CLAUDE_CONFIG_DIR` says.
    pub claude: Option<PathBuf>,
    /// The project's directory.
    pub project: PathBuf,
}

/// What is written into a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// How the client calls the server.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Cursor, Self::Codex, Self::Vscode];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Cursor => "cursor",
            Self::Codex => "codex",
            Self::Vscode => "vscode",
        }
    }

    /// The file that it reads.
    pub fn file(self, audience: Audience, places: &Places) -> PathBuf {
        let Places { home, config, codex, claude, project } = places;
        match (self, audience) {
            (Self::Claude, Audience::User) => claude.as_ref().unwrap_or(home).join(".claude.json"),
            (Self::Claude, Audience::Project) => project.join(".mcp.json"),
            (Self::Cursor, Audience::User) => home.join(".cursor/mcp.json"),
            (Self::Cursor, Audience::Project) => project.join(".cursor/mcp.json"),
            (Self::Codex, Audience::User) => match codex {
                Some(codex) => codex.join("config.toml"),
                None => home.join(".codex/config.toml"),
            },
            (Self::Codex, Audience::Project) => project.join(".codex/config.toml"),
            (Self::Vscode, Audience::User) => config.join("Code/User/mcp.json"),
            (Self::Vscode, Audience::Project) => project.join(".vscode/mcp.json"),
        }
    }

    /// The content of such a file with this server in it. Where it is there already nothing changes;
    /// where it is there otherwise, its program and arguments do. What cannot be read is an error that
    /// says where.
    pub fn edited(self, file: &Path, text: Option<&str>, entry: &Entry) -> Result<String> {
        entry.check()?;
        let text = text.unwrap_or_default();
        match self {
            Self::Claude => {
                let (text, path) = ((text, Dialect::Plain), ["mcpServers", &entry.name]);
                json::edited(file, text, &path, &entry.json(true))
            }
            Self::Cursor => {
                let (text, path) = ((text, Dialect::WithComments), ["mcpServers", &entry.name]);
                json::edited(file, text, &path, &entry.json(false))
            }
            Self::Vscode => {
                let (text, path) = ((text, Dialect::WithComments), ["servers", &entry.name]);
                json::edited(file, text, &path, &entry.json(true))
            }
            Self::Codex => toml::edited(file, text, entry),
        }
    }
}

impl Entry {
    fn check(&self) -> Result<()> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if !self.name.is_empty() && self.name.len() <= MAX_NAME_BYTES && self.name.bytes().all(fits)
        {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Usage, format!("{:?} cannot name a server", self.name))
            .hint(format!("Use 1 to {MAX_NAME_BYTES} letters, digits, '-' or '_'.")))
    }

    /// The members of its object. Some clients want to be told what sort of server it is.
    fn json(&self, says_type: bool) -> Vec<(&'static str, Value)> {
        let said = says_type.then(|| ("type", json!("stdio")));
        let rest = [("command", json!(self.command)), ("args", json!(self.args))];
        said.into_iter().chain(rest).collect()
    }
}

/// A file that cannot be read as what it should be.
fn malformed(file: &Path, what: &str, text: &str, at: usize) -> Error {
    let before = text.get(..text.floor_char_boundary(at)).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    Error::new(ErrorKind::Config, format!("{}, line {line}: {what}", file.display()))
        .hint("Mend the file, or name another with --file; nothing was changed.")
}

/// A file that can be read and means something else.
fn other(file: &Path, what: &str, hint: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("{}: {what}", file.display())).hint(hint.to_owned())
}

/// A server of that name which is reached in another way: half of each would be neither.
fn is_remote(file: &Path, name: &str) -> Error {
    other(
        file,
        &format!("there is a server {name:?} that is reached by its address"),
        "Choose another name with --name, or remove that one.",
    )
}

#[cfg(test)]
mod tests;
