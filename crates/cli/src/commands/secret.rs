//! `cofferdam secret`.

use crate::door::is_chosen;
use crate::moment::{now_ms, timestamp};
use crate::secrets::Secrets;
use crate::{exit, render, report, sessions};
use clap::{Args, Subcommand, ValueEnum};
use cofferdam_core::secret::{MAX_SECRET_BYTES, SecretName, SecretValue};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_secrets::{KeyPlace, Listed};
use cofferdam_session::{SecretList, SecretReport};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Keeps secrets for commands: adds, lists and removes them.
///
/// They are encrypted on disk by a key in your session's keyring or in a file, and no verb prints a value. `run` and `exec` give one to a command with
/// --secret-file and --secret-fd.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SecretArgs {
    #[command(subcommand)]
    pub(crate) verb: SecretVerb,
}

const EXAMPLES: &str = "\
Exit code:
  0 done; 1 Cofferdam could not do it; 2 usage

Examples:
  cofferdam secret add GITHUB_TOKEN
  gh auth token | cofferdam secret add GITHUB_TOKEN
  cofferdam secret add DEPLOY_KEY --from-file ~/.ssh/deploy
  cofferdam secret ls
  cofferdam secret rm GITHUB_TOKEN
  cofferdam secret key
  cofferdam run --secret-file DEPLOY_KEY -- ssh-keygen -y -f /run/secrets/DEPLOY_KEY";

/// What is done with secrets.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretVerb {
    Add(SecretAddArgs),
    Ls(SecretLsArgs),
    Rm(SecretRmArgs),
    Key(SecretKeyArgs),
}

/// Adds a secret, or gives one that is there another value.
///
/// Its value is read from standard input unless an option says otherwise; at a terminal it is asked for
/// and not shown. One line end behind it is left out. There is no way to write it on the command line,
/// where every other user could read it.
///
/// Example: gh auth token | cofferdam secret add GITHUB_TOKEN
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct SecretAddArgs {
    /// Its name: 1 to 64 letters, digits, '-', '_' or '.'.
    #[arg(value_name = "SECRET")]
    pub(crate) name: SecretName,

    /// Reads the value from this file, byte for byte.
    ///
    /// Example: --from-file ~/.ssh/deploy
    #[arg(long, value_name = "FILE")]
    pub(crate) from_file: Option<PathBuf>,

    /// Takes the value of this variable of your environment.
    ///
    /// Example: --from-env GITHUB_TOKEN
    #[arg(long, value_name = "NAME", conflicts_with = "from_file")]
    pub(crate) from_env: Option<OsString>,

    /// Prints the secret without its value as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists secrets by name, without their values.
///
/// One that is damaged is told on standard error, and makes the exit code 1.
///
/// Example: cofferdam secret ls
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct SecretLsArgs {
    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Removes a secret. Commands that have it keep it until they end.
///
/// Example: cofferdam secret rm GITHUB_TOKEN
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct SecretRmArgs {
    /// Its name.
    #[arg(value_name = "SECRET")]
    pub(crate) name: SecretName,
}

/// Says where the key is that all secrets are opened with, and moves it.
///
/// It is in the keyring of your desktop's session where there was one when the first secret was added, and
/// else in a file that you alone can read. It stays where it is until you move it.
///
/// Example: cofferdam secret key --move-to keyring
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct SecretKeyArgs {
    /// Keeps it there from now on.
    ///
    /// Example: --move-to file
    #[arg(long, value_name = "PLACE")]
    pub(crate) move_to: Option<KeyTarget>,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a key can be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyTarget {
    /// A file that you alone can read, beside the secrets.
    File,
    /// The keyring of your desktop's session, by the Secret Service.
    Keyring,
}

/// What `secret key --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SecretKey {
    /// Where the key is; null where no secret was added yet.
    pub(crate) key: Option<KeyPlace>,
}

/// Does it.
pub(super) fn perform(args: &SecretArgs) -> Result<u8> {
    match &args.verb {
        SecretVerb::Add(args) => add(args),
        SecretVerb::Ls(args) => list(args),
        SecretVerb::Rm(args) => remove(args),
        SecretVerb::Key(args) => key(args),
    }
}

fn add(args: &SecretAddArgs) -> Result<u8> {
    let value = value_of(args)?;
    let secret = match is_chosen() {
        true => sessions::with(async |sessions| sessions.put_secret(&args.name, value).await)?,
        false => Secrets::open()?.store().put("", &args.name, &value, now_ms())?,
    };
    if args.json {
        render::print_json(&secret)?;
    }
    Ok(exit::DONE)
}

fn list(args: &SecretLsArgs) -> Result<u8> {
    let (secrets, damaged) = match is_chosen() {
        true => (sessions::with(async |sessions| sessions.secrets().await)?, Vec::new()),
        false => {
            let Listed { secrets, damaged } = Secrets::open()?.store().look("")?;
            (secrets, damaged)
        }
    };
    let code = if damaged.is_empty() { exit::DONE } else { exit::FAILED };
    for error in &damaged {
        let remedy = error.hint.as_deref().map_or_else(String::new, |hint| format!(". {hint}"));
        report::note(&format!("{}{remedy}", error.chain()));
    }
    if args.json {
        render::print_json(&SecretList { secrets })?;
        return Ok(code);
    }
    let mut rows = vec![["SECRET", "MADE", "CHANGED"].map(str::to_owned).to_vec()];
    for SecretReport { name, created_ms, changed_ms } in secrets {
        rows.push(vec![name, timestamp(created_ms), timestamp(changed_ms)]);
    }
    render::print_text(&render::table(&rows))?;
    Ok(code)
}

fn remove(args: &SecretRmArgs) -> Result<u8> {
    match is_chosen() {
        true => sessions::with(async |sessions| sessions.remove_secret(&args.name).await)?,
        false => Secrets::open()?.store().remove("", &args.name)?,
    }
    Ok(exit::DONE)
}

fn key(args: &SecretKeyArgs) -> Result<u8> {
    let secrets = Secrets::open()?;
    let store = secrets.store();
    match args.move_to {
        Some(KeyTarget::File) => store.move_key(KeyPlace::File)?,
        Some(KeyTarget::Keyring) => store.move_key(KeyPlace::Keyring)?,
        None => {}
    }
    let key = store.key_place()?;
    match (args.json, key) {
        (true, key) => render::print_json(&SecretKey { key })?,
        (false, Some(KeyPlace::File)) => render::print_text("file\n")?,
        (false, Some(KeyPlace::Keyring)) => render::print_text("keyring\n")?,
        (false, None) => render::print_text("none yet\n")?,
    }
    Ok(exit::DONE)
}

fn value_of(args: &SecretAddArgs) -> Result<SecretValue> {
    if let Some(path) = &args.from_file {
        let failed = |e| {
            Error::new(ErrorKind::Io, format!("read {}", path.display()))
                .hint("Name a file that is there and that you may read.")
                .source(e)
        };
        let file = File::open(path).map_err(failed)?;
        return SecretValue::new(read(file).map_err(failed)?);
    }
    if let Some(name) = &args.from_env {
        let value = std::env::var_os(name).ok_or_else(|| {
            let what = format!("there is no variable {}", name.display());
            Error::new(ErrorKind::Usage, what).hint("Set it, or pipe the value in.")
        })?;
        return SecretValue::new(value.into_vec());
    }
    let _hidden = Hidden::begin();
    let failed = |e| Error::new(ErrorKind::Io, "read standard input").source(e);
    // Not by way of a buffer that is never overwritten.
    let input =
        rustix::io::fcntl_dupfd_cloexec(stdin(), 3).map_err(|errno| failed(errno.into()))?;
    let read = if isatty(stdin()) { read_line } else { read };
    let mut bytes = read(File::from(input)).map_err(failed)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    SecretValue::new(bytes)
}

/// At most one byte more than a value may have, in a place that does not grow: what grows leaves copies.
fn read(from: impl Read) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let most = MAX_SECRET_BYTES + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most + 32));
    from.take(u64::try_from(most).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A line of a terminal, without anything that would keep a copy.
fn read_line(mut from: impl Read) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; MAX_SECRET_BYTES + 1]);
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        let count = from.read(rest)?;
        length += count;
        if count == 0 || bytes.get(length - 1) == Some(&b'\n') {
            break;
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// A terminal that does not show what is typed, until this is dropped.
struct Hidden(Option<Termios>);

impl Hidden {
    fn begin() -> Self {
        let Ok(before) = tcgetattr(stdin()) else { return Self(None) };
        eprint!("Value: ");
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO;
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &hidden);
        Self(Some(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
            eprintln!();
        }
    }
}
