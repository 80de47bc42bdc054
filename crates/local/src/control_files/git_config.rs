//! What a git configuration makes git run or read: read as git reads it.
//!
//! HOSTILE: the text may have been written from inside. Reading it costs no more than its length. Git
//! refuses a file with a fault in it; here its lines behind the fault still count.
//!
//! Source: `config.c` of git 2.47 and git-config(1), "Syntax".

/// A path that a configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// Where hooks are.
    Hooks(Vec<u8>),
    /// More configuration.
    Include(Vec<u8>),
    /// Where the work tree is.
    WorkTree(Vec<u8>),
}

/// Every path that decides what git runs, in the order of the text.
pub(super) fn targets(text: &[u8]) -> Vec<Target> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = Reader { left: text, section: Vec::new(), found: Vec::new() };
    while let Some(byte) = reader.next() {
        match byte {
            b'#' | b';' => reader.skip_line(),
            b'[' => reader.header(),
            byte if byte.is_ascii_alphabetic() => reader.variable(byte),
            _ => {}
        }
    }
    reader.found
}

struct Reader<'t> {
    left: &'t [u8],
    /// In lower case; what stands in quotes behind it follows after a dot.
    section: Vec<u8>,
    found: Vec<Target>,
}

impl Reader<'_> {
    /// The next byte, with the end of a line as one.
    fn next(&mut self) -> Option<u8> {
        if let Some(rest) = self.left.strip_prefix(b"\r\n") {
            self.left = rest;
            return Some(b'\n');
        }
        let (byte, rest) = self.left.split_first()?;
        self.left = rest;
        Some(*byte)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// `[name]` or `[name "more"]`, behind its bracket.
    fn header(&mut self) {
        self.section.clear();
        while let Some(byte) = self.next() {
            match byte {
                b']' | b'\n' => return,
                byte if byte.is_ascii_whitespace() => return self.subsection(),
                byte => self.section.push(byte.to_ascii_lowercase()),
            }
        }
    }

    fn subsection(&mut self) {
        let (mut quoted, mut named) = (false, false);
        while let Some(byte) = self.next() {
            match byte {
                b'\n' => return,
                b']' if !quoted => return,
                b'"' => {
                    quoted = !quoted;
                    if !named {
                        self.section.push(b'.');
                    }
                    named = true;
                }
                b'\\' if quoted => self.section.extend(self.left.split_off_first().copied()),
                byte if quoted => self.section.push(byte),
                _ => {}
            }
        }
    }

    /// A variable that begins with this letter, and its value.
    fn variable(&mut self, first: u8) {
        let mut key = vec![first.to_ascii_lowercase()];
        let mut next = self.next();
        while let Some(byte) = next.filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            key.push(byte.to_ascii_lowercase());
            next = self.next();
        }
        while matches!(next, Some(b' ' | b'\t')) {
            next = self.next();
        }
        match next {
            Some(b'=') => {}
            // It has no value.
            Some(b'\n') | None => return,
            Some(_) => return self.skip_line(),
        }
        let value = self.value();
        let has = |wanted: &[u8]| self.section.starts_with(wanted);
        match key.as_slice() {
            b"hookspath" if self.section == b"core" => self.found.push(Target::Hooks(value)),
            b"worktree" if self.section == b"core" => self.found.push(Target::WorkTree(value)),
            b"path" if self.section == b"include" || has(b"includeif.") => {
                self.found.push(Target::Include(value));
            }
            _ => {}
        }
    }

    /// What stands behind the sign, without its quotes, its escapes and the comment behind it.
    fn value(&mut self) -> Vec<u8> {
        let mut plain = Vec::new();
        let mut kept = 0;
        let mut quoted = false;
        while let Some(byte) = self.next() {
            match byte {
                b'\n' => break,
                b'#' | b';' if !quoted => {
                    self.skip_line();
                    break;
                }
                b'"' => quoted = !quoted,
                b'\\' => match self.next() {
                    // The line goes on.
                    Some(b'\n') | None => {}
                    Some(b'n') => plain.push(b'\n'),
                    Some(b't') => plain.push(b'\t'),
                    Some(b'b') => plain.push(8),
                    Some(other) => plain.push(other),
                },
                byte if byte.is_ascii_whitespace() && !quoted => {
                    if !plain.is_empty() {
                        plain.push(byte);
                    }
                    continue;
                }
                byte => plain.push(byte),
            }
            kept = plain.len();
        }
        plain.truncate(kept);
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(path: &str) -> Target {
        Target::Hooks(path.into())
    }

    fn include(path: &str) -> Target {
        Target::Include(path.into())
    }

    fn check(text: &str, expected: &[Target]) {
        assert_eq!(targets(text.as_bytes()), expected, "{text:?}");
    }

    #[test]
    fn paths_are_found_however_they_are_written() {
        check("[core]\n\thooksPath = .githooks\n", &[hooks(".githooks")]);
        check("[CORE]\nHOOKSPATH=a b ; no\n", &[hooks("a b")]);
        check("[core] hooksPath = \"a;b\" # no\r\n", &[hooks("a;b")]);
        check("[core]\n hooksPath = a\\\nb\n", &[hooks("ab")]);
        check("[core]\n hooksPath = a\\\r\nb\n", &[hooks("ab")]);
        check("[core]\n hooksPath = \"a\\\\b\\\"\"\n", &[hooks("a\\b\"")]);
        check("[include]\npath=x\npath = \"y \"\n", &[include("x"), include("y ")]);
        check("[includeIf \"gitdir:a]\\\"b\"]\npath = z\n", &[include("z")]);
        check("[other]\nhooksPath = x\npath = y\n[core]\nbare\n= x\n", &[]);
        check("[core \"x\n[\n]=\n\\", &[]);
        check("", &[]);
    }

    #[test]
    fn a_comment_ends_with_its_line_whatever_it_ends_in() {
        check("[core]\n\t# C:\\tools\\\n\thooksPath = h\n", &[hooks("h")]);
        check("[core]\n\teditor = vi ; x\\\n\thooksPath = h\n", &[hooks("h")]);
        check("[core]\n\teditor = \"a\\\nhooksPath = x\"\n\thooksPath = h\n", &[hooks("h")]);
    }

    #[test]
    fn a_mark_of_byte_order_and_headers_on_one_line_are_no_hindrance() {
        check("\u{feff}[core]\n hooksPath=h\n", &[hooks("h")]);
        check("[user] [core] hooksPath=h\n", &[hooks("h")]);
        check("[core] ; [user]\n hooksPath=h\n", &[hooks("h")]);
        check("[core]hooksPath=h\n[x]y=z", &[hooks("h")]);
    }

    #[test]
    fn a_name_in_quotes_makes_another_section() {
        check("[core \"x\"]\nhooksPath = y\n", &[]);
        check("[core.x]\nhooksPath = y\n", &[]);
        check("[include \"x\"]\npath = y\n", &[]);
        check("[includeIf]\npath = y\n", &[]);
    }

    #[test]
    fn what_is_no_text_is_found_as_it_is() {
        let found = targets(b"[core]\nhooksPath = h\xff\n");
        assert_eq!(found, [Target::Hooks(b"h\xff".to_vec())]);
    }

    #[test]
    fn what_stands_behind_a_fault_still_counts() {
        check("[core]\n!\n a b c\n hooksPath = h\n", &[hooks("h")]);
        check("= x\n[core\n[core]\nhooksPath = h", &[hooks("h")]);
    }
}
