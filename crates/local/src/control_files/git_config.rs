//! What a git configuration makes git run or read: a small tolerant reader.
//!
//! HOSTILE: the text may have been written from inside. Whatever git would refuse is passed over,
//! and reading it costs no more than its length.

/// A path that a configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// Where hooks are.
    Hooks(String),
    /// More configuration.
    Include(String),
}

/// Every path that decides what git runs, in the order of the text.
pub(super) fn targets(text: &str) -> Vec<Target> {
    let joined = text.replace("\r\n", "\n").replace("\\\n", "");
    let mut section = String::new();
    let mut found = Vec::new();
    for line in joined.lines() {
        let mut line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let Some((name, rest)) = split_header(header) else { continue };
            section = name;
            line = rest.trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().to_ascii_lowercase();
        match (section.as_str(), key.as_str()) {
            ("core", "hookspath") => found.push(Target::Hooks(unquote(value))),
            ("include" | "includeif", "path") => found.push(Target::Include(unquote(value))),
            _ => {}
        }
    }
    found
}

/// The first word of a section's header in lower case, and what follows the header.
fn split_header(header: &str) -> Option<(String, &str)> {
    let (mut quoted, mut escaped) = (false, false);
    let end = header.find(|letter| {
        let ends = letter == ']' && !quoted;
        if letter == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = letter == '\\' && !escaped;
        ends
    })?;
    let (inside, rest) = header.split_at_checked(end)?;
    let name = inside.split_whitespace().next().unwrap_or_default();
    // `[core"x"]` and `[core.x]` name other sections.
    Some((name.to_ascii_lowercase(), rest.strip_prefix(']')?))
}

/// A value without its quotes, its escapes and the comment behind it.
fn unquote(value: &str) -> String {
    let mut plain = String::new();
    let mut kept = 0;
    let mut quoted = false;
    let mut letters = value.trim().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => plain.extend(letters.next().map(|next| match next {
                'n' => '\n',
                't' => '\t',
                'b' => '\u{8}',
                other => other,
            })),
            other => plain.push(other),
        }
        if quoted || !letter.is_whitespace() {
            kept = plain.len();
        }
    }
    plain.truncate(kept);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_however_they_are_written() {
        let check = |text: &str, expected: &[Target]| assert_eq!(targets(text), expected, "{text}");
        let hooks = |path: &str| Target::Hooks(path.to_owned());
        let include = |path: &str| Target::Include(path.to_owned());
        check("[core]\n\thooksPath = .githooks\n", &[hooks(".githooks")]);
        check("[CORE]\nHOOKSPATH=a b ; no\n", &[hooks("a b")]);
        check("[core] hooksPath = \"a;b\" # no\r\n", &[hooks("a;b")]);
        check("[core]\n hooksPath = a\\\nb\n", &[hooks("ab")]);
        check("[core]\n hooksPath = \"a\\\\b\\\"\"\n", &[hooks("a\\b\"")]);
        check("[include]\npath=x\npath = \"y \"\n", &[include("x"), include("y ")]);
        check("[includeIf \"gitdir:a]\\\"b\"]\npath = z\n", &[include("z")]);
        check("[other]\nhooksPath = x\npath = y\n[core]\nbare\n= x\n", &[]);
        check("[core \"x\n[\n]=\n\\", &[]);
        check("", &[]);
    }
}
