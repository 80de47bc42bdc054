//! Tables, amounts and JSON for people and programs. Data goes to standard output.

use cofferdam_core::{Axis, Degree, Enforced, Enforcement, Error, ErrorKind, LimitsCount, Result};
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

/// Prints one JSON object and a line end on standard output.
pub(crate) fn print_json<T: Serialize>(object: &T) -> Result<()> {
    let mut text = serde_json::to_vec(object).map_err(|cause| {
        Error::new(ErrorKind::Io, "the object cannot be written as JSON").source(cause)
    })?;
    text.push(b'\n');
    print_bytes(&text)
}

/// Prints text on standard output.
pub(crate) fn print_text(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// Prints lines on standard output, each with its control characters made visible.
pub(crate) fn print_lines(text: &str) -> Result<()> {
    let lines: Vec<Cow<'_, str>> = text.lines().map(plain).collect();
    print_text(&(lines.join("\n") + "\n"))
}

/// The same; nothing where there is no line.
pub(crate) fn print_lines_if_any(text: &str) -> Result<()> {
    if text.is_empty() { Ok(()) } else { print_lines(text) }
}

/// Prints each of these on a line of its own, whatever is in it.
pub(crate) fn print_each(lines: &[String]) -> Result<()> {
    let lines: Vec<Cow<'_, str>> = lines.iter().map(|line| plain(line)).collect();
    print_lines_if_any(&lines.join("\n"))
}

/// Prints bytes on standard output.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        // Whoever read it has read enough, as `head` does.
        Err(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(cause) => Err(Error::new(ErrorKind::Io, "write to standard output")
            .hint("Make room where it goes. What was asked for may be done all the same: look before you repeat it.")
            .source(cause)),
        Ok(()) => Ok(()),
    }
}

/// The text with characters made visible that steer a terminal, turn the order of others round or are not
/// seen, so that words from inside a sandbox can neither fake a line nor read otherwise than they are.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    cofferdam_core::made_visible(text)
}

/// Content from inside a sandbox for a terminal: lines and tabs stay, what else steers a terminal, turns the
/// order of others round or is not seen is made visible, and bytes that are not text are replaced.
pub(crate) fn visible(content: &[u8]) -> String {
    let steers = |c: char| cofferdam_core::is_hidden(c) && !matches!(c, '\n' | '\t');
    let text = String::from_utf8_lossy(content);
    if !text.contains(steers) {
        return text.into_owned();
    }
    let shown = |c: char| match steers(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Rows in columns, each as wide as its widest cell; the last column is as long as it is. Each row is a line,
/// whatever is in its cells.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<Cow<'_, str>>> =
        rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count()) + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// How far each axis holds, and why not further. `limits_count` says whether the limits are judged.
pub(crate) fn axes(enforced: &Enforced, limits_count: LimitsCount) -> String {
    let row = |axis: Axis| {
        let degree = degree(enforced.degree(axis));
        let is_idle = axis == Axis::Limits && enforced.limits != Degree::Full;
        let cell = match limits_count {
            LimitsCount::No if is_idle => format!("{degree}, not asked for by this profile"),
            LimitsCount::No | LimitsCount::Yes => degree.to_owned(),
        };
        vec![axis.name().to_owned(), cell]
    };
    let mut text = table(&Axis::ALL.map(row));
    for reason in &enforced.reasons {
        text.push_str("  ");
        text.push_str(&plain(reason));
        text.push('\n');
    }
    text
}

/// The stable name of a degree.
pub(crate) fn degree(degree: Degree) -> &'static str {
    match degree {
        Degree::None => "none",
        Degree::Partial => "partial",
        Degree::Full => "full",
    }
}

/// The stable name of a verdict.
pub(crate) fn verdict(verdict: Enforcement) -> &'static str {
    match verdict {
        Enforcement::FullyEnforced => "FullyEnforced",
        Enforcement::Partial => "Partial",
        Enforcement::Unavailable => "Unavailable",
    }
}

/// Bytes as an option would be written: `512M` where that is exact.
pub(crate) fn bytes(bytes: u64) -> String {
    for (power, letter) in [(40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')] {
        if bytes > 0 && bytes.trailing_zeros() >= power {
            return format!("{}{letter}", bytes >> power);
        }
    }
    bytes.to_string()
}

/// A duration as an option would be written, in the largest unit that is exact.
pub(crate) fn duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    for (unit_ms, unit) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if ms > 0 && ms.is_multiple_of(unit_ms) {
            return format!("{}{unit}", ms / unit_ms);
        }
    }
    format!("{ms}ms")
}

/// Thousandths of a processor as an option would be written.
pub(crate) fn cpu(millis: u32) -> String {
    let text = format!("{}.{:03}", millis / 1000, millis % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{parse_bytes, parse_cpu, parse_duration};

    #[test]
    fn amounts_are_shown_as_they_are_typed() {
        for text in ["512M", "1G", "3K", "1T", "7", "1536M"] {
            assert_eq!(bytes(parse_bytes(text).unwrap()), text);
        }
        for text in ["5m", "30s", "2h", "1d", "250ms", "90s"] {
            assert_eq!(duration(parse_duration(text).unwrap()), text);
        }
        for text in ["1.5", "2", "0.25", "0.01", "10"] {
            assert_eq!(cpu(parse_cpu(text).unwrap()), text);
        }
    }

    #[test]
    fn content_keeps_its_lines_and_steers_no_terminal() {
        assert_eq!(visible(b"a\tb\n"), "a\tb\n");
        assert_eq!(visible(b"\x1b[2J\r\x9b\n"), "\\u{1b}[2J\\r\u{fffd}\n");
        assert_eq!(visible("\u{9b}x".as_bytes()), "\\u{9b}x");
        assert_eq!(visible("\u{202e}x\u{200b}é".as_bytes()), "\\u{202e}x\\u{200b}é");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".into(), "b".into()], vec!["ccc".into(), "d".into()]];
        assert_eq!(table(&rows), "a    b\nccc  d\n");
        let forged = [vec!["a\nb".into(), "c".into()], vec!["d".into(), "e".into()]];
        assert_eq!(table(&forged), "a\\nb  c\nd     e\n");
    }
}
