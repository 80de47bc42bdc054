//! The tool that reads what commands write.

use super::output::is_zero;
use super::shell::known;
use crate::Outcome;
use crate::param::{Kind, Param};
use crate::run;
use crate::text::counted;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_core::{EndingKind, Error, ErrorKind, ProcessId, Result, Seen, Standard};
use cofferdam_session::{ExecReport, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// The most bytes of one answer.
const MAX_BYTES: u64 = 16 << 10;
/// The most bytes that a character has beside its first.
const CHARACTER_BYTES: u64 = 3;
/// The longest wait for news.
const MAX_WAIT_MS: u64 = 60_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    exec: String,
    stream: String,
    #[serde(default)]
    offset: Option<u64>,
    max_bytes: u64,
    wait_ms: u64,
    encoding: String,
}

/// A part of what a command wrote.
#[derive(Serialize, JsonSchema)]
struct Part {
    /// The command.
    exec: String,
    /// Whether it runs.
    running: bool,
    /// How it ended; null while it runs.
    ending: Option<EndingKind>,
    /// The exit code that stands for its ending; null while it runs.
    exit_code: Option<i32>,
    /// Why it never ran; absent where it did, or does.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// `stdout` or `stderr`.
    stream: String,
    /// Where in the stream this part begins, in bytes. More than was asked for where older bytes were
    /// dropped for want of room.
    offset: u64,
    /// How many bytes these are.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    dropped_bytes: u64,
    /// The offset for what follows.
    next_offset: u64,
    /// How many bytes were written so far.
    bytes: u64,
    /// Whether there is more behind this part already.
    more: bool,
    /// How `content` is written: `text`, or `base64`.
    encoding: String,
    /// The part.
    content: String,
}

pub(super) const ROW: Row = Row {
    name: "shell_poll",
    title: "Read the output of a command",
    about: "Reads what a command has written, from an offset, and says whether it runs. Works for every \
            command of the sandbox, while it runs and afterwards. Without an offset it is the end that is \
            read. Bytes are as they were written, with the escape sequences of terminals.",
    params: &[
        Param::required("exec", Kind::Word, "The id of the command."),
        Param::word("stream", Kind::Choice(&["stdout", "stderr"]), "stdout", "Which stream."),
        Param::optional(
            "offset",
            Kind::Whole(0, u64::MAX),
            "Where to begin, in bytes. The answer says where to go on.",
        ),
        Param::whole("max_bytes", (1, MAX_BYTES), MAX_BYTES, "How many bytes are read at most."),
        Param::whole(
            "wait_ms",
            (0, MAX_WAIT_MS),
            0,
            "How long to wait for news where there is nothing behind the offset.",
        ),
        Param::word(
            "encoding",
            Kind::Choice(&["text", "base64"]),
            "text",
            "How bytes are answered. As text, what is no UTF-8 is U+FFFD.",
        ),
    ],
    output: output_of::<Part>,
    conduct: Conduct::Of(Hints::LOOKS),
};

pub(super) async fn poll(call: Call<'_>) -> Result<Outcome> {
    let asked: Arguments = call.arguments()?;
    let session = call.sandboxes.there(call.name()).await?;
    let (id, mut status) = known(&session, &asked.exec).await?;
    let stream = if asked.stream == "stderr" { Standard::Error } else { Standard::Output };
    let end = written(&status, stream).saturating_sub(asked.max_bytes);
    let offset = asked.offset.unwrap_or(end);
    refuse_beyond(&asked, written(&status, stream))?;
    if status.ending.is_none() && written(&status, stream) <= offset && asked.wait_ms > 0 {
        session.wake_for(&id).await?;
        tokio::select! {
            news = news(&session, &id, (stream, offset), asked.wait_ms) => news?,
            () = call.context.canceled() => {}
        }
        status = session.status(&id).await?;
    }
    // A character may be longer than what was asked for.
    let most = asked.max_bytes + CHARACTER_BYTES;
    let (from, bytes) = read(&session, &id, (stream, offset), most).await?;
    let most = usize::try_from(asked.max_bytes).unwrap_or(usize::MAX);
    Ok(Outcome::fitting(most, |budget| {
        told(&asked, &status, (offset, from, &bytes), (stream, budget))
    }))
}

/// Refuses an offset behind the end of what was written, where nothing can be said to follow.
fn refuse_beyond(asked: &Arguments, written: u64) -> Result<()> {
    match asked.offset.filter(|offset| *offset > written) {
        None => Ok(()),
        Some(offset) => {
            let stream = &asked.stream;
            let bytes = counted(written, "byte", "bytes");
            let what = format!("offset {offset} is behind the end: {stream} has {bytes} so far");
            Err(Error::new(ErrorKind::Usage, what)
                .hint(format!("Use offset {written} for what is written next, or leave it out.")))
        }
    }
}

fn written(status: &ExecReport, stream: Standard) -> u64 {
    match stream {
        Standard::Output => status.stdout.written,
        Standard::Error => status.stderr.written,
    }
}

async fn news(
    session: &Session,
    id: &ProcessId,
    (stream, offset): (Standard, u64),
    wait_ms: u64,
) -> Result<()> {
    let mut seen = Seen { stdout: u64::MAX, stderr: u64::MAX, ..Seen::default() };
    match stream {
        Standard::Output => seen.stdout = offset,
        Standard::Error => seen.stderr = offset,
    }
    session.follow(id, seen, Duration::from_millis(wait_ms)).await.map(drop)
}

/// What is there from the offset on, and where that begins.
async fn read(
    session: &Session,
    id: &ProcessId,
    (stream, offset): (Standard, u64),
    most: u64,
) -> Result<(u64, Vec<u8>)> {
    let len = u32::try_from(most).unwrap_or(u32::MAX);
    let first = session.read(id, cofferdam_core::Part { stream, offset, len }).await?;
    let from = first.offset.max(offset);
    let bytes = run::piece(session, id, stream, (from, most)).await?;
    Ok((from, bytes))
}

fn told(
    asked: &Arguments,
    status: &ExecReport,
    (mut wanted, mut from, mut bytes): (u64, u64, &[u8]),
    (stream, budget): (Standard, usize),
) -> Outcome {
    let is_text = asked.encoding != "base64";
    if is_text && from > 0 && asked.offset != Some(from) {
        // Nobody asked for the rest of a character.
        let rest = bytes.iter().take(3).take_while(|byte| is_rest(**byte)).count();
        bytes = bytes.get(rest..).unwrap_or_default();
        from += rest as u64;
        wanted = if asked.offset.is_none() { wanted.max(from) } else { wanted };
    }
    let is_over = status.ending.is_some() && from + bytes.len() as u64 >= written(status, stream);
    let end = if is_text { whole(bytes, budget, is_over) } else { budget.min(bytes.len()) };
    let shown = bytes.get(..end).unwrap_or_default();
    let content = match is_text {
        true => String::from_utf8_lossy(shown).into_owned(),
        false => BASE64.encode(shown),
    };
    let next_offset = from + shown.len() as u64;
    let part = Part {
        exec: asked.exec.clone(),
        running: status.ending.is_none(),
        ending: status.ending,
        exit_code: status.exit_code,
        detail: status.detail.clone(),
        stream: asked.stream.clone(),
        offset: from,
        dropped_bytes: from.saturating_sub(wanted),
        next_offset,
        bytes: written(status, stream).max(next_offset),
        more: written(status, stream) > next_offset,
        encoding: asked.encoding.clone(),
        content,
    };
    Outcome::done(part.text(), json!(part))
}

/// Whether a byte is not the first one of a character.
fn is_rest(byte: u8) -> bool {
    (0x80..0xc0).contains(&byte)
}

/// How many bytes of these are shown, where so many may be and no character is cut: one that is longer than that
/// is shown whole, and one whose rest is still to come waits for it.
fn whole(bytes: &[u8], most: usize, is_over: bool) -> usize {
    let most = most.min(bytes.len());
    let cut = |end: usize| unfinished(bytes.get(..end).unwrap_or_default());
    match cut(most) {
        0 => most,
        _ if is_over && most == bytes.len() => most,
        left if left < most => most - left,
        _ => {
            let longer = (most + 1..=bytes.len().min(4)).find(|end| cut(*end) == 0);
            longer.unwrap_or(if is_over { bytes.len() } else { 0 })
        }
    }
}

/// How many of the last bytes are a character that lacks more.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3);
    let last = bytes.get(last..).unwrap_or_default();
    let Some(first) = last.iter().rposition(|byte| !is_rest(*byte)) else { return 0 };
    let character = last.get(first..).unwrap_or_default();
    match std::str::from_utf8(character) {
        Err(error) if error.error_len().is_none() => character.len(),
        Ok(_) | Err(_) => 0,
    }
}

impl Part {
    fn text(&self) -> String {
        let state = match (self.exit_code, &self.detail) {
            (Some(code), Some(why)) => format!("never ran, exit code {code} ({why})"),
            (Some(code), None) => format!("ended, exit code {code}"),
            (None, _) => "running".to_owned(),
        };
        let rest = if self.more { "; more follows" } else { "" };
        let dropped = match self.dropped_bytes {
            0 => String::new(),
            count => {
                let from = self.offset - count;
                format!("; bytes {from} to {} were dropped for want of room", self.offset)
            }
        };
        format!(
            "{state}{dropped}; {} bytes {} to {} of {}{rest}; go on with offset {}\n{}",
            self.stream, self.offset, self.next_offset, self.bytes, self.next_offset, self.content
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_falls_within_a_character() {
        let text = "aä€🦀";
        for most in 1..=text.len() {
            let (mut rest, mut shown) = (text.as_bytes(), String::new());
            while !rest.is_empty() {
                let end = whole(rest, most, true);
                assert!(end > 0 && end <= most.max(4), "{most}");
                shown.push_str(std::str::from_utf8(&rest[..end]).unwrap());
                rest = &rest[end..];
            }
            assert_eq!(shown, text, "{most}");
        }
    }

    #[test]
    fn what_is_no_character_is_shown_and_what_is_not_whole_yet_waits() {
        let check = |bytes: &[u8], most, is_over, expected: usize| {
            assert_eq!(whole(bytes, most, is_over), expected, "{bytes:?} {most}");
        };
        check(b"\xff\xe2\x82", 9, false, 1);
        check(b"\xff\xe2\x82", 9, true, 3);
        check(b"\xe2\x82", 9, false, 0);
        check(b"\xe2\x82", 9, true, 2);
        check(b"\xe2\x82", 1, true, 2);
        check(b"\xe2a", 1, false, 2);
        check(b"\x82\x82\x82\x82", 2, false, 2);
        check(b"", 9, true, 0);
        check(b"a", 0, true, 0);
    }
}
