//! `cofferdam mcp install`.

use crate::args::{Verb, choice, parse};
use crate::beside::{Beside, local};
use crate::choice::Choice;
use crate::surroundings::Surroundings;
use crate::{exit, render};
use clap::Args;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{
    Change, ChangeKind, Error, ErrorKind, FileState, GuestPath, Result, Standing,
};
use cofferdam_mcp::install::{Audience, Client, Entry, Places};
use cofferdam_session::diff::{Contents, DiffBody, FileDiff};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io::{IsTerminal, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Writes this server into the configuration of a program that works with models.
///
/// Shows what would change, and asks before it writes; without a terminal, --yes is needed. All else in
/// the file stays as it is, comments too, and the file is replaced whole or not at all. What follows
/// `--` are options of `cofferdam mcp`, which the program will start with.
///
/// The files: claude ~/.claude.json, or .mcp.json of a project; cursor ~/.cursor/mcp.json or
/// .cursor/mcp.json; codex ~/.codex/config.toml or .codex/config.toml; vscode mcp.json in the user's
/// default profile or .vscode/mcp.json. $CLAUDE_CONFIG_DIR, $CODEX_HOME and $XDG_CONFIG_HOME are
/// honoured.
///
/// Example: cofferdam mcp install claude -- --cow
#[derive(Debug, Args)]
#[command(override_usage = "cofferdam mcp install CLIENT [OPTIONS] [-- OPTIONS…]")]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct InstallArgs {
    /// The program: claude, cursor, codex or vscode.
    #[arg(value_name = "CLIENT", value_parser = choice::<Client>())]
    pub(crate) client: Client,

    /// Writes into the file of the project in the current directory, in place of yours.
    ///
    /// Example: --project
    #[arg(long, conflicts_with = "file")]
    pub(crate) project: bool,

    /// Writes into this file, which is to have the form of the client's.
    ///
    /// Example: --file ~/work/.mcp.json
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Names the server in the configuration. Default: cofferdam.
    ///
    /// Example: --name sandbox
    #[arg(long, value_name = "NAME", default_value = "cofferdam", hide_default_value = true)]
    pub(crate) name: String,

    /// Shows what would change, and writes nothing.
    ///
    /// Example: --dry-run
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,

    /// Asks nothing.
    ///
    /// Example: --yes
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Prints one JSON object on standard output; errors are objects too. Asks nothing, so it needs --yes
    /// or --dry-run.
    ///
    /// Example: --json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Options of `cofferdam mcp`, after `--`.
    #[arg(last = true, value_name = "OPTIONS")]
    pub(crate) options: Vec<OsString>,
}

/// What became of a client's configuration. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct McpInstalled {
    /// The client.
    pub(crate) client: String,
    /// Its file.
    pub(crate) file: String,
    /// Whether something was to be changed.
    pub(crate) changes: bool,
    /// Whether it was written.
    pub(crate) written: bool,
    /// What changes, as a unified diff; empty where nothing does.
    pub(crate) diff: String,
}

/// The largest configuration that is edited, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The permissions of a file of the user's own, and of one for all who share a project.
const OWN_MODE: u32 = 0o600;
const SHARED_MODE: u32 = 0o644;

impl Choice for Client {
    const WHAT: &'static str = "client";
    const ALL: &'static [Self] = &Client::ALL;

    fn named(self) -> &'static str {
        self.name()
    }
}

/// A configuration as it is.
struct Present {
    /// Where it is, behind links.
    path: PathBuf,
    /// What it holds, if it is there.
    text: Option<String>,
    mode: u32,
}

/// Shows the change and makes it.
pub(super) fn perform(args: &InstallArgs) -> Result<u8> {
    let surroundings = Surroundings::of_this_process();
    let audience = if args.project { Audience::Project } else { Audience::User };
    let file = match &args.file {
        Some(file) => surroundings.located(file)?,
        None => args.client.file(audience, &places(&surroundings)?),
    };
    if args.project {
        stays_within(surroundings.directory()?, &file)?;
    }
    let entry = entry(args)?;
    let is_shared = args.project || args.file.is_some();
    let present = Present::read(&file, if is_shared { SHARED_MODE } else { OWN_MODE })?;
    let text = args.client.edited(&file, present.text.as_deref(), &entry)?;
    let changes = present.text.as_deref() != Some(text.as_str());
    let diff = match changes {
        true => diff(&file, present.text.as_deref(), &text)?,
        false => String::new(),
    };
    if !args.json {
        // A project's file may be of an agent, which would like to write on this terminal.
        match std::io::stdout().is_terminal() {
            true => render::print_text(&render::visible(diff.as_bytes()))?,
            false => render::print_text(&diff)?,
        }
    }
    let written = changes && !args.dry_run && may_write(args, &file)?;
    if written {
        present.replace(&text)?;
    }
    say(
        args,
        &file,
        McpInstalled {
            client: args.client.name().to_owned(),
            file: file.display().to_string(),
            changes,
            written,
            diff,
        },
    )
}

fn say(args: &InstallArgs, file: &Path, installed: McpInstalled) -> Result<u8> {
    if args.json {
        render::print_json(&installed)?;
        return Ok(exit::DONE);
    }
    let file = render::plain(&file.display().to_string()).into_owned();
    let told = match (installed.changes, installed.written) {
        (false, _) => format!("{file} has it already\n"),
        (true, true) => format!("wrote {file}; start {} anew\n", installed.client),
        (true, false) => format!("nothing was written to {file}\n"),
    };
    render::print_text(&told)?;
    Ok(exit::DONE)
}

fn places(surroundings: &Surroundings) -> Result<Places> {
    let home = surroundings.home.clone().ok_or_else(|| {
        Error::new(ErrorKind::Config, "there is no home directory to find configurations in")
            .hint("Name the file with --file.")
    })?;
    let named = |name: &str| {
        let value = surroundings.variables.get(OsStr::new(name)).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    Ok(Places {
        config: named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
        codex: named("CODEX_HOME"),
        claude: named("CLAUDE_CONFIG_DIR"),
        project: surroundings.directory()?.to_owned(),
        home,
    })
}

/// What is written: this program, with options that it takes.
fn entry(args: &InstallArgs) -> Result<Entry> {
    let words = ["cofferdam", "mcp"].into_iter().map(OsString::from);
    let words: Vec<OsString> = words.chain(args.options.iter().cloned()).collect();
    match parse(&words) {
        Ok(Verb::Mcp(mcp)) if mcp.verb.is_none() =>
        {
            #[cfg(feature = "remote")]
            if crate::door::is_chosen() {
                super::mcp_there::refuse_options(&mcp.serve)?;
            }
        }
        Ok(_) => {
            let what = "what follows -- is no list of options of `cofferdam mcp`";
            return Err(Error::new(ErrorKind::Usage, what).hint("See `cofferdam mcp --help`."));
        }
        Err(complaint) => return Err(crate::usage::error(&complaint, &words)),
    }
    let program = std::env::current_exe()
        .map_err(|cause| Error::new(ErrorKind::Io, "find this program").source(cause))?;
    let text = |word: OsString| {
        word.into_string().map_err(|word| {
            Error::new(ErrorKind::Usage, format!("{word:?} cannot be written into a configuration"))
                .hint("Use words of UTF-8.")
        })
    };
    let args_of_it = server()?.into_iter().chain(words.into_iter().skip(1));
    let args_of_it = args_of_it.map(text).collect::<Result<_>>()?;
    Ok(Entry { name: args.name.clone(), command: text(program.into())?, args: args_of_it })
}

/// The server whose tools are meant, if one is.
#[cfg(feature = "remote")]
fn server() -> Result<Vec<OsString>> {
    let words = crate::door::words()?;
    if !words.is_empty() && !words.iter().any(|word| word == "--server-key-file") {
        crate::report::note(
            "no key is written: name its file with --server-key-file, or set COFFERDAM_KEY where the program starts",
        );
    }
    Ok(words)
}

#[cfg(not(feature = "remote"))]
fn server() -> Result<Vec<OsString>> {
    Ok(Vec::new())
}

/// Fails where a link leads a file of a project out of it: whoever made the link would have another file
/// written.
fn stays_within(project: &Path, file: &Path) -> Result<()> {
    let real = |path: &Path| fs::canonicalize(path).map_err(|cause| local("find", path, cause));
    // What is not there is made where the nearest directory that is there leads to.
    let there = file.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(project);
    if fs::metadata(there).is_err() || real(there)?.starts_with(real(project)?) {
        return Ok(());
    }
    let what = format!("{there:?} is a link that leads out of the project");
    Err(Error::new(ErrorKind::Denied, what)
        .hint("Remove the link, or name the file that you mean with --file."))
}

impl Present {
    /// Reads it. Where it is not there yet it would have this mode.
    fn read(file: &Path, mode: u32) -> Result<Self> {
        let path = match fs::canonicalize(file) {
            Ok(path) => path,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                if fs::symlink_metadata(file).is_ok() {
                    let what = format!("{file:?} is a link to nothing");
                    return Err(Error::new(ErrorKind::Conflict, what)
                        .hint("Remove the link, or make what it leads to."));
                }
                return Ok(Self { path: file.to_owned(), text: None, mode });
            }
            Err(cause) => return Err(local("read", file, cause)),
        };
        let failed = |cause| local("read", file, cause);
        let about = fs::metadata(&path).map_err(failed)?;
        if !about.is_file() {
            return Err(Error::new(ErrorKind::NotAFile, format!("{file:?} is no regular file"))
                .hint("Name another file with --file."));
        }
        if about.uid() != rustix::process::geteuid().as_raw() {
            let what = format!("{file:?} belongs to user {}", about.uid());
            return Err(Error::new(ErrorKind::Denied, what).hint("Do this as that user."));
        }
        let too_large = about.len() > MAX_FILE_BYTES;
        let mut bytes = Vec::new();
        let opened = fs::File::open(&path).map_err(failed)?;
        opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if too_large || bytes.len() as u64 > MAX_FILE_BYTES {
            let what = format!("{file:?} has more than {MAX_FILE_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Name another with --file."));
        }
        let text = String::from_utf8(bytes).map_err(|_| {
            Error::new(ErrorKind::Config, format!("{} is no text of UTF-8", file.display()))
                .hint("Mend the file, or name another with --file; nothing was changed.")
        })?;
        Ok(Self { path, text: Some(text), mode: about.permissions().mode() & 0o777 })
    }

    /// Puts another content in its place, unless somebody else did meanwhile.
    fn replace(&self, text: &str) -> Result<()> {
        let path = &self.path;
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(|cause| local("make", directory, cause))?;
        }
        let failed = |cause| local("write", path, cause);
        let mut fresh = Beside::new(path, OWN_MODE)?;
        fresh.file.write_all(text.as_bytes()).map_err(failed)?;
        fresh.file.set_permissions(Permissions::from_mode(self.mode)).map_err(failed)?;
        let now = match fs::read(path) {
            Ok(now) => Some(now),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => None,
            Err(cause) => return Err(failed(cause)),
        };
        if now.as_deref() != self.text.as_deref().map(str::as_bytes) {
            let what = format!("{path:?} was changed while this was at work");
            return Err(Error::new(ErrorKind::Conflict, what).hint("Try again."));
        }
        fresh.take_place(path, self.text.is_some())
    }
}

/// Whether somebody wants it written.
fn may_write(args: &InstallArgs, file: &Path) -> Result<bool> {
    if args.yes {
        return Ok(true);
    }
    if args.json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Error::new(
            ErrorKind::Usage,
            "nobody is there to ask, and nothing was written",
        )
        .hint("Say --yes to write it, or --dry-run to look."));
    }
    let mut stderr = std::io::stderr().lock();
    let failed = |cause| Error::new(ErrorKind::Io, "ask").source(cause);
    write!(stderr, "Write this to {}? [y/N] ", render::plain(&file.display().to_string()))
        .and_then(|()| stderr.flush())
        .map_err(failed)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// What changes, line by line.
fn diff(file: &Path, before: Option<&str>, after: &str) -> Result<String> {
    let state = |text: &str| FileState {
        kind: EntryKind::File,
        mode: OWN_MODE,
        size: text.len() as u64,
        target: None,
    };
    let change = Change {
        path: GuestPath::new("file")?,
        kind: if before.is_some() { ChangeKind::Modified } else { ChangeKind::Added },
        before: before.map(state),
        after: Some(state(after)),
        moved_from: None,
        linked_to: None,
        leads_out: false,
        set_id: false,
        version: 0,
        standing: Standing::Lands,
    };
    let contents = Contents { before: before.map(str::as_bytes), after: Some(after.as_bytes()) };
    let name = render::plain(&file.display().to_string()).into_owned();
    let old = if before.is_some() { name.as_str() } else { "/dev/null" };
    let mut text = format!("--- {old}\n+++ {name}\n");
    match FileDiff::new(change, contents).body {
        DiffBody::Text(hunks) => {
            for hunk in hunks {
                text.push_str(&String::from_utf8_lossy(&hunk.text()));
            }
        }
        DiffBody::Replaced { .. } | DiffBody::Binary | DiffBody::TooLarge | DiffBody::None => {
            text.push_str("# too large to be shown\n");
        }
    }
    Ok(text)
}
