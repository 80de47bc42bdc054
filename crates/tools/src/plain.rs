//! Output of commands made plain and short. Pure.

use std::collections::BTreeSet;
use std::ops::Range;

/// How many lines on each side of one that tells of an error are kept before others.
const AROUND: usize = 5;
/// What a mark of omitted bytes takes, its line end included.
const MARK_BYTES: usize = 48;
/// What tells of an error, anywhere in a line.
const ERRORS: [&str; 6] = ["error:", "Error:", "ERROR", "FAILED", "panic", "Traceback"];

/// The text without escape sequences of terminals, and of each line what was last written over it.
pub(crate) fn clean(text: &str) -> String {
    let text = without_escapes(text);
    let mut lines = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let line = line.trim_end_matches('\r');
        lines.push_str(line.rsplit('\r').next().unwrap_or(line));
        lines.push_str(end);
    }
    lines
}

fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        if char != '\u{1b}' {
            plain.push(char);
            continue;
        }
        match rest.next() {
            // Up to its final byte.
            Some('[') => while rest.next().is_some_and(|char| !('@'..='~').contains(&char)) {},
            // Up to a bell, or another escape with a backslash.
            Some(']') => {
                while let Some(char) = rest.next() {
                    if char == '\u{7}' || char == '\u{1b}' && rest.next_if_eq(&'\\').is_some() {
                        break;
                    }
                }
            }
            // One byte names a set of characters.
            Some('(' | ')' | '*' | '+' | '#' | '%') => drop(rest.next()),
            _ => {}
        }
    }
    plain
}

/// The mark that stands for bytes that are left out.
pub(crate) fn mark(omitted: u64) -> String {
    format!("[... {omitted} bytes omitted ...]")
}

/// Which bytes are left out of a text that has to do with so many; none where it fits.
pub(crate) fn left_out(text: &str, most: usize) -> Option<Range<usize>> {
    if text.len() <= most {
        return None;
    }
    let room = most.saturating_sub(MARK_BYTES);
    let head = text.floor_char_boundary(room / 5);
    Some(head..text.ceil_char_boundary(text.len() - (room - room / 5)))
}

/// Its beginning and its end, a fifth and four fifths, within so many bytes.
pub(crate) fn middle_cut(text: &str, most: usize) -> String {
    Holed::whole(text.to_owned()).middle_cut(most)
}

/// A text that may lack a part: a mark stands for that. Cut again, it tells of all that is missing.
pub(crate) struct Holed {
    pub(crate) text: String,
    /// Where the mark is, with what sets it off.
    mark: Range<usize>,
    /// How many bytes it stands for.
    missing: u64,
}

impl Holed {
    pub(crate) fn whole(text: String) -> Self {
        Self { text, mark: 0..0, missing: 0 }
    }

    /// A beginning and an end, with so many bytes missing between them.
    pub(crate) fn new(head: &str, missing: u64, tail: &str) -> Self {
        let (set_off, mark) =
            (if head.is_empty() || head.ends_with('\n') { "" } else { "\n" }, mark(missing));
        let text = format!("{head}{set_off}{mark}\n{tail}");
        Self { mark: head.len()..text.len() - tail.len(), text, missing }
    }

    /// How many bytes a part of the text stands for that has the mark whole, or nothing of it.
    fn stands_for(&self, part: &Range<usize>) -> u64 {
        let marked = self.mark.end.min(part.end).saturating_sub(self.mark.start.max(part.start));
        let has_mark = marked > 0 && part.end >= self.mark.end;
        (part.len() - marked) as u64 + if has_mark { self.missing } else { 0 }
    }

    /// Its beginning and its end, a fifth and four fifths, within so many bytes.
    pub(crate) fn middle_cut(&self, most: usize) -> String {
        let Some(mut part) = left_out(&self.text, most) else { return self.text.clone() };
        if part.start < self.mark.end && self.mark.start < part.end {
            part = part.start.min(self.mark.start)..part.end.max(self.mark.end);
        }
        let shown = |from: usize, to: usize| self.text.get(from..to).unwrap_or_default();
        let (head, tail) = (shown(0, part.start), shown(part.end, self.text.len()));
        format!("{head}\n{}\n{tail}", mark(self.stands_for(&part)))
    }

    /// What tells of errors with the lines around it, and then as much of the end and the beginning as
    /// there is room for, within so many bytes.
    pub(crate) fn error_cut(&self, most: usize) -> String {
        if self.text.len() <= most {
            return self.text.clone();
        }
        let mut end = 0;
        let begun = |line| {
            let begin = end;
            end += str::len(line);
            (begin, line)
        };
        let lines: Vec<(usize, &str)> = self.text.split_inclusive('\n').map(begun).collect();
        let all = lines.iter().enumerate();
        let told: Vec<usize> = all.filter(|(_, (_, line))| tells(line)).map(|(at, _)| at).collect();
        if told.is_empty() {
            return self.middle_cut(most);
        }
        // Room for the marks beside the end and the beginning.
        let room = most.saturating_sub(2 * MARK_BYTES);
        let mut kept = Kept { of: self, lines: &lines, shown: BTreeSet::new(), room };
        for distance in 0..=AROUND {
            for at in &told {
                kept.take(at.checked_sub(distance), if distance == 0 { MARK_BYTES } else { 0 });
                kept.take(Some(at + distance), 0);
            }
        }
        let for_head = kept.room / 5;
        for at in (0..lines.len()).rev() {
            if kept.room < for_head || !kept.take(Some(at), 0) {
                break;
            }
        }
        for at in 0..lines.len() {
            if !kept.take(Some(at), 0) {
                break;
            }
        }
        if kept.shown.is_empty() { self.middle_cut(most) } else { kept.text() }
    }
}

fn tells(line: &str) -> bool {
    line.starts_with("E ") || ERRORS.iter().any(|sign| line.contains(sign))
}

/// Lines of a text that are shown.
struct Kept<'t> {
    of: &'t Holed,
    /// Each with where it begins.
    lines: &'t [(usize, &'t str)],
    shown: BTreeSet<usize>,
    room: usize,
}

impl Kept<'_> {
    /// Shows a line if there is room for it. Whether it is shown; one that is not there is.
    fn take(&mut self, at: Option<usize>, beside: usize) -> bool {
        let Some((at, (begin, line))) = at.and_then(|at| Some((at, *self.lines.get(at)?))) else {
            return true;
        };
        if !self.of.mark.is_empty() && begin + line.len() == self.of.mark.end {
            // Another mark comes in its place.
            return false;
        }
        if self.shown.contains(&at) {
            return true;
        }
        let Some(room) = self.room.checked_sub(line.len() + beside) else { return false };
        self.room = room;
        self.shown.insert(at)
    }

    fn text(&self) -> String {
        let (mut text, mut omitted) = (String::new(), 0);
        for (at, (begin, line)) in self.lines.iter().enumerate() {
            if !self.shown.contains(&at) {
                omitted += self.of.stands_for(&(*begin..begin + line.len()));
                continue;
            }
            push_mark(&mut text, &mut omitted);
            text.push_str(line);
        }
        push_mark(&mut text, &mut omitted);
        text
    }
}

fn push_mark(text: &mut String, omitted: &mut u64) {
    if *omitted > 0 {
        text.push_str(&mark(*omitted));
        text.push('\n');
        *omitted = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_lines_that_were_written_over_are_gone() {
        let check = |text: &str, expected: &str| assert_eq!(clean(text), expected, "{text:?}");
        check("\u{1b}[1;31mred\u{1b}[0m", "red");
        check("\u{1b}]0;title\u{7}a\u{1b}]8;;x\u{1b}\\b", "ab");
        check("\u{1b}(Bplain\u{1b}", "plain");
        check("10%\r50%\r100%\ndone\r\n", "100%\ndone\n");
        check("a\rb\r", "b");
        check("", "");
        check("\u{1b}[31", "");
    }

    #[test]
    fn what_was_missing_before_a_cut_is_counted_with_what_it_leaves_out() {
        let lines =
            |from: u32| (from..from + 1000).map(|n| format!("{n:04}\n")).collect::<String>();
        let numbers = |cut: &str| -> u64 {
            let marks = cut.split("[... ").skip(1);
            marks.map(|rest| rest.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
        };
        let shown = |cut: &str| -> u64 {
            cut.lines()
                .filter(|line| !line.is_empty() && !line.starts_with('['))
                .map(|l| l.len() as u64 + 1)
                .sum()
        };
        let (head, tail) = (lines(0), lines(5000).replace("5500\n", "panic\n"));
        let written = 1_000_000 + (head.len() + tail.len()) as u64;
        let holed = Holed::new(&head, 1_000_000, &tail);
        assert_eq!(holed.middle_cut(1 << 20), holed.text);
        for most in [500, 2000, 9000] {
            let cut = holed.error_cut(most);
            assert!(cut.len() <= most && cut.contains("panic\n"), "{most}");
            assert_eq!(shown(&cut) + numbers(&cut), written, "{most}: {cut}");
        }
        for most in [500, 2000, 5000] {
            let cut = holed.middle_cut(most);
            assert_eq!(cut.matches("omitted").count(), 1, "{most}");
            // Lines that are cut count by what is left of them.
            let mark = format!("\n{}\n", mark(numbers(&cut)));
            assert_eq!((cut.len() - mark.len()) as u64 + numbers(&cut), written, "{most}");
        }
    }

    #[test]
    fn a_cut_keeps_a_fifth_of_the_beginning_and_counts_what_is_gone() {
        assert_eq!(middle_cut("short", 5), "short");
        let text: String = (0..1000).map(|n| format!("{n:04}\n")).collect();
        let cut = middle_cut(&text, 1024);
        assert!(cut.len() <= 1024, "{}", cut.len());
        let (head, rest) = cut.split_once("\n[... ").unwrap();
        let (omitted, tail) = rest.split_once(" bytes omitted ...]\n").unwrap();
        assert_eq!(head.len() + tail.len() + omitted.parse::<usize>().unwrap(), text.len());
        assert!(tail.len() > 3 * head.len() && text.ends_with(tail) && text.starts_with(head));
    }

    #[test]
    fn no_character_is_split() {
        let text = "äöü€😀".repeat(500);
        for most in 0..200 {
            assert!(middle_cut(&text, most).contains("bytes omitted"), "{most}");
        }
    }

    #[test]
    fn lines_that_tell_of_errors_are_kept_before_others() {
        let mut lines: Vec<String> = (0..2000).map(|n| format!("line {n}\n")).collect();
        lines[700] = "src/main.rs: error: no such thing\n".to_owned();
        lines[1300] = "E   assert 1 == 2\n".to_owned();
        let text = lines.concat();
        let cut = Holed::whole(text.clone()).error_cut(2048);
        assert!(cut.len() <= 2048, "{}", cut.len());
        for line in [
            "line 695\n",
            "line 705\n",
            "error: no such thing",
            "E   assert",
            "line 1999\n",
            "line 0\n",
        ] {
            assert!(cut.contains(line), "{line:?} in {cut}");
        }
        let marks = cut.lines().filter_map(|line| line.strip_prefix("[... ")?.split(' ').next());
        let omitted: usize = marks.clone().map(|n| n.parse::<usize>().unwrap()).sum();
        let shown: usize =
            cut.split_inclusive('\n').filter(|line| !line.starts_with("[... ")).map(str::len).sum();
        assert_eq!((marks.count(), omitted + shown), (3, text.len()));
    }

    #[test]
    fn nothing_makes_a_cut_longer_than_its_limit() {
        let all_errors = "error: again\n".repeat(5000);
        let one_line = format!("error: {}", "x".repeat(100_000));
        for text in [&all_errors, &one_line] {
            for most in [200, 1024, 8192] {
                assert!(Holed::whole(text.to_owned()).error_cut(most).len() <= most, "{most}");
            }
        }
    }
}
