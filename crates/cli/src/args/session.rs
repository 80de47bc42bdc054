//! The options that verbs of sessions share.

use super::options::{ConfigOptions, PolicyOptions, VariableOptions, choice, split_assignment};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use cofferdam_core::{Error, ErrorKind, ProcessId, Result, parse_duration};
use cofferdam_session::OnFailure;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// Options that say what a session is.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionOptions {
    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    #[command(flatten)]
    pub(crate) variables: VariableOptions,
    #[command(flatten)]
    pub(crate) keeping: KeepingOptions,
    #[command(flatten)]
    pub(crate) config: ConfigOptions,
}

/// Options that say how a session is prepared and how long it is kept.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Session")]
pub(crate) struct KeepingOptions {
    /// Prepares the session with a line of shell. Repeatable; the lines run once, in order.
    ///
    /// A line that fails is recorded, the session is kept, and the next `ensure` goes on at that line.
    /// A list that has changed runs again from its beginning; so does any list after the sandbox was
    /// lost.
    ///
    /// Example: --init 'npm ci'
    #[arg(long, value_name = "LINE")]
    pub(crate) init: Vec<OsString>,

    /// Pauses the session after it was not in use for so long. Default: 180s; none for never.
    ///
    /// A running `exec`, an attached terminal and a detached command with --keep-awake are use. A
    /// paused session keeps its memory and goes on at the next `exec`.
    ///
    /// Example: --idle-pause 10m
    #[arg(long, value_name = "TIME|none", value_parser = parse_idle_pause)]
    pub(crate) idle_pause: Option<IdlePause>,

    /// Ends the session and all that runs in it after so long, at least 1s. Default: never.
    ///
    /// `extend` moves the end.
    ///
    /// Example: --ttl 24h
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) ttl: Option<Duration>,

    /// Keeps no point of the history after each command of a copy-on-write session: `undo` has nothing to
    /// go to but snapshots.
    ///
    /// Example: --no-checkpoints
    #[arg(long)]
    pub(crate) no_checkpoints: bool,

    /// Marks the session, for `ls --label`. Repeatable.
    ///
    /// Example: --label agent=reviewer
    #[arg(long, value_name = "K=V", value_parser = label())]
    pub(crate) label: Vec<(String, String)>,
}

/// Options that say what comes before the command, and what becomes of the sandbox after it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Session")]
pub(crate) struct ScopeOptions {
    /// Runs a line of shell before the command. Repeatable; the lines run in order.
    ///
    /// One that fails ends the run with code 125, and the command is not started. --timeout counts
    /// from the making of the sandbox then.
    ///
    /// Example: --preflight 'test -f package.json'
    #[arg(long, value_name = "LINE")]
    pub(crate) preflight: Vec<OsString>,

    /// Says what becomes of the sandbox when the run fails: destroy, stop or preserve. Default:
    /// destroy.
    ///
    /// destroy leaves nothing; stop keeps the home directory and the output as a session that is
    /// stopped; preserve keeps the sandbox too, paused. Both are kept for a day, and both say the id
    /// of the session and write what happened into a directory beside it.
    ///
    /// Example: --on-failure preserve
    #[arg(long, value_name = "WHAT", value_parser = choice::<OnFailure>())]
    pub(crate) on_failure: Option<OnFailure>,
}

impl ScopeOptions {
    /// Whether any of it was asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.preflight.is_empty() || self.on_failure.is_some()
    }
}

/// When an idle session is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdlePause {
    /// After so long.
    After(Duration),
    /// Never.
    Never,
}

/// Reads a duration or `none`.
pub(crate) fn parse_idle_pause(text: &str) -> Result<IdlePause> {
    match text {
        "none" => Ok(IdlePause::Never),
        _ => parse_duration(text).map(IdlePause::After).map_err(|error| {
            error.hint("Write a number above 0 with its unit, as in 180s, or none for never.")
        }),
    }
}

/// Reads `K=V`, both texts.
pub(crate) fn label() -> impl TypedValueParser<Value = (String, String)> {
    OsStringValueParser::new().try_map(|text| parse_label(&text))
}

fn parse_label(text: &OsStr) -> Result<(String, String)> {
    let wrong = || {
        Error::new(ErrorKind::Usage, format!("{text:?} is not a label"))
            .hint("Write KEY=VALUE, as in agent=reviewer.")
    };
    let (key, value) = split_assignment(text).map_err(|_| wrong())?;
    match (key.into_string(), value.into_string()) {
        (Ok(key), Ok(value)) => Ok((key, value)),
        _ => Err(wrong()),
    }
}

/// An id of an exec that somebody chooses.
pub(crate) fn parse_exec_id(text: &str) -> Result<ProcessId> {
    ProcessId::new(text)
}

/// Keys that leave a terminal without ending what runs at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetachKeys(Vec<u8>);

impl Default for DetachKeys {
    fn default() -> Self {
        const CTRL_P: u8 = 0x10;
        const CTRL_Q: u8 = 0x11;
        Self(vec![CTRL_P, CTRL_Q])
    }
}

impl DetachKeys {
    /// The bytes that a terminal sends for them; none where nothing detaches.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads keys separated by commas: `ctrl-a` to `ctrl-z`, `ctrl-@[\]^_`, or a letter or digit.
    /// `none` is no key at all.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if text == "none" {
            return Ok(Self(Vec::new()));
        }
        text.split(',').map(key).collect::<Option<Vec<u8>>>().map(Self).ok_or_else(|| {
            Error::new(ErrorKind::Usage, format!("{text:?} names no keys"))
                .hint("Write keys separated by commas, as in ctrl-p,ctrl-q or ctrl-], or none.")
        })
    }
}

fn key(text: &str) -> Option<u8> {
    let single = |text: &str| match text.as_bytes() {
        [byte] => Some(*byte),
        _ => None,
    };
    match text.strip_prefix("ctrl-") {
        Some(name) => {
            let byte = single(name)?.to_ascii_uppercase();
            // A terminal sends the five low bits.
            (0x40..=0x5f).contains(&byte).then_some(byte & 0x1f)
        }
        None => single(text).filter(u8::is_ascii_alphanumeric),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_a_terminal_sends() {
        assert_eq!(DetachKeys::parse("ctrl-p,ctrl-q").unwrap(), DetachKeys::default());
        assert_eq!(DetachKeys::parse("ctrl-],x").unwrap().bytes(), [0x1d, b'x']);
        assert_eq!(DetachKeys::parse("none").unwrap().bytes(), b"");
        for bad in ["", "ctrl-", "ctrl-1", "ctrl-pq", "ab", "ctrl-p,,q", "é"] {
            assert!(DetachKeys::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_label_is_two_texts() {
        let label = parse_label(OsStr::new("a=b=c")).unwrap();
        assert_eq!(label, ("a".to_owned(), "b=c".to_owned()));
        assert!(parse_label(OsStr::new("a")).is_err());
    }

    #[test]
    fn nothing_is_a_time_to_wait_for_leave() {
        for text in ["0", "0s", "0ms", "0m"] {
            assert_eq!(crate::args::parse_ask(text).unwrap(), Duration::ZERO, "{text}");
        }
        assert_eq!(crate::args::parse_ask("2s").unwrap(), Duration::from_secs(2));
        for bad in ["", "0x", "00s", "-0s", "1", "s"] {
            assert!(crate::args::parse_ask(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn never_is_a_way_to_pause() {
        assert_eq!(parse_idle_pause("none").unwrap(), IdlePause::Never);
        let three_minutes = IdlePause::After(Duration::from_secs(180));
        assert_eq!(parse_idle_pause("180s").unwrap(), three_minutes);
        assert!(parse_idle_pause("180").is_err());
    }
}
