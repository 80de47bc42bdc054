//! A part of a text by lines, within a number of bytes. Pure.

/// A part of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The lines, each led by its number from 1 and a bar.
    pub(crate) content: String,
    /// How many lines the text has.
    pub(crate) total: usize,
    /// The first that is shown and the last; none where there is none.
    pub(crate) shown: Option<(usize, usize)>,
    /// How many bytes of the text are shown, ends of lines among them.
    pub(crate) bytes: usize,
    /// Where in the text the last line is cut, in bytes.
    pub(crate) cut_at: Option<usize>,
}

impl Part {
    /// At most so many lines from this one on, counted from 1, in at most so many bytes. A first line
    /// that is longer is cut.
    pub(crate) fn new(text: &str, first: usize, most: usize, bytes: usize) -> Self {
        let mut part = Self { total: text.split_inclusive('\n').count(), ..Self::default() };
        let mut at = 0;
        for (before, line) in text.split_inclusive('\n').enumerate() {
            let number = before + 1;
            if number >= first.saturating_add(most) {
                break;
            }
            if number >= first && !part.take(number, line, (at, bytes)) {
                break;
            }
            at += line.len();
        }
        part.content.pop();
        part
    }

    /// Adds a line, and says whether there may be room for more.
    fn take(&mut self, number: usize, line: &str, (at, most): (usize, usize)) -> bool {
        let plain = line.trim_end_matches(['\n', '\r']);
        let head = format!("{number}|");
        let room = most.saturating_sub(self.content.len() + head.len() + 1);
        let first = match self.shown {
            Some(_) if plain.len() > room => return false,
            Some((first, _)) => first,
            None => number,
        };
        let told = plain.get(..plain.floor_char_boundary(room)).unwrap_or_default();
        self.content.push_str(&head);
        self.content.push_str(told);
        self.content.push('\n');
        self.shown = Some((first, number));
        let is_whole = told.len() == plain.len();
        self.bytes += if is_whole { line.len() } else { told.len() };
        if !is_whole {
            self.cut_at = Some(at + told.len());
        }
        self.cut_at.is_none()
    }

    /// The next line to ask for, if there is one.
    pub(crate) fn next(&self) -> Option<usize> {
        self.shown.map(|(_, last)| last + 1).filter(|next| *next <= self.total)
    }
}

/// A line for a shell that shows so many bytes of a file of the workspace from this one on, where no
/// reading by lines gets on.
pub(crate) fn show_bytes(path: &str, from: u64, most: usize) -> String {
    let below = path.strip_prefix("/workspace/").unwrap_or(path);
    let below = if below.starts_with('-') { format!("./{below}") } else { below.to_owned() };
    format!("tail -c +{} {} | head -c {most}", from.saturating_add(1), quoted(&below))
}

/// A number with the noun that goes with it: the first for one, the second for all others.
pub(crate) fn counted(number: impl TryInto<u64>, one: &str, many: &str) -> String {
    // What is no number of things is many of them.
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A word that no shell reads otherwise.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// How many of these bytes are at most so many lines in at most so many bytes, with no character split.
pub(crate) fn plain_part(bytes: &[u8], lines: usize, most: usize) -> usize {
    let part = bytes.get(..most.min(bytes.len())).unwrap_or_default();
    let mut ends = part.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    if let Some((last, _)) = ends.nth(lines.saturating_sub(1)) {
        return last + 1;
    }
    match std::str::from_utf8(part) {
        // The last character lacks bytes.
        Err(error) if error.error_len().is_none() && part.len() < bytes.len() => {
            error.valid_up_to()
        }
        _ => part.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers_and_it_is_said_where_to_go_on() {
        let part = Part::new("a\nb\r\nc", 2, 1, 100);
        assert_eq!((part.content.as_str(), part.total, part.next()), ("2|b", 3, Some(3)));
        let rest = Part::new("a\nb\r\nc", 3, 9, 100);
        assert_eq!((rest.content.as_str(), rest.shown, rest.next()), ("3|c", Some((3, 3)), None));
        assert_eq!(Part::new("", 1, 9, 100), Part::default());
    }

    #[test]
    fn a_part_is_within_its_bytes_and_a_long_line_says_where_it_is_cut() {
        let text = "0123456789\n".repeat(100);
        let part = Part::new(&text, 1, 1000, 50);
        assert_eq!((part.shown, part.next(), part.cut_at), (Some((1, 3)), Some(4), None));
        assert!(part.content.len() <= 50);
        let text = format!("short\n{}\nend", "€".repeat(100));
        let part = Part::new(&text, 2, 9, 20);
        assert_eq!(part.content, format!("2|{}", "€".repeat(5)));
        assert_eq!((part.cut_at, part.next()), (Some(6 + 15), Some(3)));
    }

    #[test]
    fn a_quoted_word_is_one_word_and_no_option() {
        assert_eq!(quoted("a'b; $(c)"), r"'a'\''b; $(c)'");
        assert_eq!(show_bytes("/workspace/-x", 9, 5), "tail -c +10 './-x' | head -c 5");
    }

    #[test]
    fn the_bytes_of_a_part_are_those_of_the_text() {
        let check = |text: &str, first, most, bytes, expected: usize| {
            assert_eq!(Part::new(text, first, most, bytes).bytes, expected, "{text:?} {first}");
        };
        check("a\nb\r\nc", 1, 9, 100, 6);
        check("a\nb\r\nc", 2, 1, 100, 3);
        check("aaaaaaaaaa", 1, 9, 6, 3);
    }

    #[test]
    fn the_beginning_of_a_text_has_whole_characters() {
        let check = |text: &str, lines, most, expected: &str| {
            assert_eq!(plain_part(text.as_bytes(), lines, most), expected.len(), "{text:?} {most}");
        };
        check("a\nb\nc", 2, 99, "a\nb\n");
        check("a\nb\nc", 9, 99, "a\nb\nc");
        check("aä", 9, 2, "a");
        check("a\nb", 1, 1, "a");
    }

    #[test]
    fn parts_one_after_the_other_are_the_text() {
        let text: String = (0..500).map(|n| format!("line {n}\n")).collect();
        let (mut next, mut read) = (Some(1), Vec::new());
        while let Some(first) = next {
            let part = Part::new(&text, first, 7, 64);
            read.extend(
                part.content.lines().map(|line| line.split_once('|').unwrap().1.to_owned()),
            );
            next = part.next();
        }
        assert_eq!(read.join("\n") + "\n", text);
    }
}
