//! Edits in a file of JSON that keep every other byte: order, blanks, numbers as they are written,
//! and comments, where the client takes them.

use super::{is_remote, malformed, other};
use cofferdam_core::{Error, ErrorKind, Result};
use serde_json::{Map, Value};
use std::ops::Range;
use std::path::Path;

/// How deep values may lie in each other.
const MAX_DEPTH: usize = 128;

/// What the client takes in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// JSON and nothing else.
    Plain,
    /// JSON with comments, and with commas behind the last of a list or object.
    WithComments,
}

/// The text with these members in the object at `path`, which is made where it is missing.
pub(super) fn edited(
    file: &Path,
    (text, dialect): (&str, Dialect),
    path: &[&str],
    members: &[(&str, Value)],
) -> Result<String> {
    let begin = text.strip_prefix('\u{feff}').map_or(0, |rest| text.len() - rest.len());
    let scan = Scan { file, text };
    let is_blank = scan.skip(begin)? == text.len();
    // ORDER: first what is wrong in every dialect, with its place.
    if !is_blank {
        scan.root(begin)?;
    }
    if dialect == Dialect::Plain {
        scan.refuse_more_than_json(begin)?;
    }
    let mut text = if is_blank { format!("{text}{{\n}}\n") } else { text.to_owned() };
    let entry = path.last().copied().unwrap_or_default();
    if let Some(object) = at(file, &text, begin, path)?
        && object.member("url").is_some()
    {
        return Err(is_remote(file, entry));
    }
    for (key, value) in members {
        text = set(file, &text, begin, (path, key, value))?;
    }
    Ok(text)
}

/// Sets one member of the object at `path`.
fn set(
    file: &Path,
    text: &str,
    begin: usize,
    (path, key, value): (&[&str], &str, &Value),
) -> Result<String> {
    let mut object = Scan { file, text }.root(begin)?;
    for (depth, step) in path.iter().enumerate() {
        match object.member(step) {
            Some(member) => object = Scan { file, text }.object(member.value.start, step)?,
            None => {
                let rest = path.get(depth + 1..).unwrap_or_default();
                let inner = Map::from_iter([(key.to_owned(), value.clone())]);
                return Ok(object.with(text, step, &nested(rest, Value::Object(inner))));
            }
        }
    }
    let Some(member) = object.member(key) else { return Ok(object.with(text, key, value)) };
    let present = Scan { file, text }.value(member.value.clone())?;
    if present.as_ref() == Some(value) {
        return Ok(text.to_owned());
    }
    let written = pretty(value, &object.unit(text), &object.inner_indent(text));
    Ok(replaced(text, member.value.clone(), &written))
}

/// The object at `path`, where it is there.
fn at(file: &Path, text: &str, begin: usize, path: &[&str]) -> Result<Option<Object>> {
    let mut object = Scan { file, text }.root(begin)?;
    for step in path {
        match object.member(step) {
            Some(member) => object = Scan { file, text }.object(member.value.start, step)?,
            None => return Ok(None),
        }
    }
    Ok(Some(object))
}

/// A value as the only member of objects in each other.
fn nested(path: &[&str], value: Value) -> Value {
    path.iter()
        .rev()
        .fold(value, |inner, step| Value::Object(Map::from_iter([((*step).to_owned(), inner)])))
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    let (before, after) = (text.get(..range.start), text.get(range.end..));
    [before.unwrap_or_default(), with, after.unwrap_or_default()].concat()
}

/// A value on lines of its own, the first of which stands where it is put. Lists of words stay on one.
fn pretty(value: &Value, unit: &str, indent: &str) -> String {
    let Some(members) = value.as_object().filter(|members| !members.is_empty()) else {
        return value.to_string();
    };
    let inner = format!("{indent}{unit}");
    let members = members.iter().map(|(key, value)| {
        format!("{inner}{}: {}", Value::from(key.as_str()), pretty(value, unit, &inner))
    });
    format!("{{\n{}\n{indent}}}", members.collect::<Vec<_>>().join(",\n"))
}

/// An object as it stands in the text.
struct Object {
    /// From its first brace to behind its last.
    span: Range<usize>,
    members: Vec<Member>,
    /// Behind the comma after its last member, where there is one that JSON would not have.
    last_comma: Option<usize>,
}

struct Member {
    key: String,
    begin: usize,
    value: Range<usize>,
}

impl Object {
    fn member(&self, key: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.key == key)
    }

    /// What leads the line that a place is on, if nothing else does.
    fn indent_at(text: &str, place: usize) -> Option<&str> {
        let before = text.get(..place)?;
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        before.get(line..).filter(|lead| line > 0 && lead.trim().is_empty())
    }

    /// What leads the line of its last brace, or of its first.
    fn indent(&self, text: &str) -> String {
        let closing = Self::indent_at(text, self.span.end - 1);
        let indent = closing.map(str::to_owned).or_else(|| {
            let before = text.get(..self.span.start)?;
            let line = before.get(before.rfind('\n').map_or(0, |end| end + 1)..)?;
            Some(line.chars().take_while(|c| c.is_whitespace()).collect())
        });
        indent.unwrap_or_default()
    }

    /// What leads the lines of its members.
    fn inner_indent(&self, text: &str) -> String {
        let first = self.members.first().and_then(|member| Self::indent_at(text, member.begin));
        first.map_or_else(|| format!("{}{}", self.indent(text), self.unit(text)), str::to_owned)
    }

    /// By how much its members stand further in than it does.
    fn unit(&self, text: &str) -> String {
        let outer = self.indent(text);
        let first = self.members.first().and_then(|member| Self::indent_at(text, member.begin));
        let unit = first.and_then(|first| first.strip_prefix(outer.as_str()));
        match unit {
            Some(unit) if !unit.is_empty() => unit.to_owned(),
            _ if outer.starts_with('\t') => "\t".to_owned(),
            _ => "  ".to_owned(),
        }
    }

    /// The text with one more member behind the others.
    fn with(&self, text: &str, key: &str, value: &Value) -> String {
        let (unit, inner) = (self.unit(text), self.inner_indent(text));
        let member = format!("{}: {}", Value::from(key), pretty(value, &unit, &inner));
        let Some(last) = self.members.last() else {
            let inside = self.span.start + 1..self.span.end - 1;
            let kept = text.get(inside.clone()).unwrap_or_default().trim_end();
            let outer = self.indent(text);
            return replaced(text, inside, &format!("{kept}\n{inner}{member}\n{outer}"));
        };
        let behind = self.last_comma.unwrap_or(last.value.end);
        let place = behind_comment(text, behind);
        let closing = if self.last_comma.is_some() { "," } else { "" };
        let added = replaced(text, place..place, &format!("\n{inner}{member}{closing}"));
        match self.last_comma {
            Some(_) => added,
            None => replaced(&added, behind..behind, ","),
        }
    }
}

/// Behind a comment to the end of the line, which belongs to what stands before it.
fn behind_comment(text: &str, place: usize) -> usize {
    let rest = text.get(place..).unwrap_or_default();
    let line = rest.split('\n').next().unwrap_or_default().trim_end_matches('\r');
    if line.trim_start().starts_with("//") { place + line.len() } else { place }
}

/// Reads a text without changing its mind about it.
#[derive(Clone, Copy)]
struct Scan<'t> {
    file: &'t Path,
    text: &'t str,
}

impl Scan<'_> {
    fn fault(self, what: &str, at: usize) -> Error {
        malformed(self.file, what, self.text, at)
    }

    fn byte(self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Behind blanks and comments.
    fn skip(self, mut at: usize) -> Result<usize> {
        loop {
            let rest = self.text.as_bytes().get(at..).unwrap_or_default();
            match rest {
                [b' ' | b'\t' | b'\n' | b'\r', ..] => at += 1,
                [b'/', b'/', ..] => {
                    at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                [b'/', b'*', inside @ ..] => {
                    let end = inside.windows(2).position(|pair| pair == b"*/");
                    at += 4 + end.ok_or_else(|| self.fault("a comment has no end", at))?;
                }
                _ => return Ok(at),
            }
        }
    }

    /// Refuses what only some clients read: this one would not find its servers any more, or does not
    /// already.
    fn refuse_more_than_json(self, begin: usize) -> Result<()> {
        let text = self.text.get(begin..).unwrap_or_default();
        let read = serde_json::from_str::<serde::de::IgnoredAny>(text);
        let Err(error) = read else { return Ok(()) };
        if text.trim().is_empty() {
            return Ok(());
        }
        let line = error.line();
        let what = format!(
            "{}, line {line}: a comment, or a comma behind the last of a list, is no JSON",
            self.file.display()
        );
        Err(Error::new(ErrorKind::Config, what).hint(
            "This client reads plain JSON alone: take it out of the file, or name another with --file; \
             nothing was changed.",
        ))
    }

    /// The object that the whole text is.
    fn root(self, begin: usize) -> Result<Object> {
        let begin = self.skip(begin)?;
        let root = self.object(begin, "the file")?;
        let end = self.skip(root.span.end)?;
        if end != self.text.len() {
            return Err(self.fault("something follows the object", end));
        }
        Ok(root)
    }

    /// The object that begins here.
    fn object(self, at: usize, name: &str) -> Result<Object> {
        if self.byte(at) != Some(b'{') {
            let hint = "Make it an object, or name another file.";
            return Err(other(self.file, &format!("{name} is no object"), hint));
        }
        self.members(at, 0)
    }

    fn members(self, begin: usize, depth: usize) -> Result<Object> {
        if depth > MAX_DEPTH {
            return Err(self.fault(&format!("values are nested deeper than {MAX_DEPTH}"), begin));
        }
        let (mut at, mut members, mut last_comma) = (begin + 1, Vec::<Member>::new(), None);
        loop {
            at = self.skip(at)?;
            if self.byte(at) == Some(b'}') {
                return Ok(Object { span: begin..at + 1, members, last_comma });
            }
            if !members.is_empty() && last_comma.is_none() {
                return Err(self.fault("a comma or } is missing", at));
            }
            let key = at..self.string_end(at)?;
            let colon = self.skip(key.end)?;
            if self.byte(colon) != Some(b':') {
                return Err(self.fault("a colon is missing", colon));
            }
            let first = self.skip(colon + 1)?;
            let value = first..self.value_end(first, depth)?;
            let name: String = self.parsed(key.clone())?;
            if members.iter().any(|member| member.key == name) {
                return Err(self.fault(&format!("{name:?} is there twice"), key.start));
            }
            at = self.skip(value.end)?;
            last_comma = (self.byte(at) == Some(b',')).then_some(at + 1);
            at = last_comma.unwrap_or(at);
            members.push(Member { key: name, begin: key.start, value });
        }
    }

    /// Behind the value that begins here.
    fn value_end(self, at: usize, depth: usize) -> Result<usize> {
        match self.byte(at) {
            Some(b'{') => Ok(self.members(at, depth + 1)?.span.end),
            Some(b'[') => self.list_end(at, depth + 1),
            Some(b'"') => self.string_end(at),
            _ => {
                let rest = self.text.as_bytes().get(at..).unwrap_or_default();
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let end = at + rest.iter().take_while(|byte| is_word(byte)).count();
                self.parsed::<Value>(at..end)?;
                Ok(end)
            }
        }
    }

    fn list_end(self, begin: usize, depth: usize) -> Result<usize> {
        if depth > MAX_DEPTH {
            return Err(self.fault(&format!("values are nested deeper than {MAX_DEPTH}"), begin));
        }
        let (mut at, mut may_follow) = (begin + 1, true);
        loop {
            at = self.skip(at)?;
            if self.byte(at) == Some(b']') {
                return Ok(at + 1);
            }
            if !may_follow {
                return Err(self.fault("a comma or ] is missing", at));
            }
            at = self.skip(self.value_end(at, depth)?)?;
            may_follow = self.byte(at) == Some(b',');
            at += usize::from(may_follow);
        }
    }

    fn string_end(self, begin: usize) -> Result<usize> {
        if self.byte(begin) != Some(b'"') {
            return Err(self.fault("a string is missing", begin));
        }
        let (mut at, mut escaped) = (begin + 1, false);
        while let Some(byte) = self.byte(at) {
            at += 1;
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    self.parsed::<String>(begin..at)?;
                    return Ok(at);
                }
                _ => {}
            }
        }
        Err(self.fault("a string has no end", begin))
    }

    fn parsed<T: serde::de::DeserializeOwned>(self, range: Range<usize>) -> Result<T> {
        let word = self.text.get(range.clone()).unwrap_or_default();
        serde_json::from_str(word).map_err(|_| {
            let short: String = word.chars().take(40).collect();
            self.fault(&format!("{short:?} is no value of JSON"), range.start)
        })
    }

    /// A value as it is, or nothing where comments are in it.
    fn value(self, range: Range<usize>) -> Result<Option<Value>> {
        let word = self
            .text
            .get(range)
            .ok_or_else(|| Error::new(ErrorKind::Io, "a value lies outside its text"))?;
        Ok(serde_json::from_str(word).ok())
    }
}
