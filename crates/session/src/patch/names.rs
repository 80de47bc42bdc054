//! Names of files, as diffs write them.

use cofferdam_core::{Error, ErrorKind, GuestPath, Result};

/// The most names in a path of a patch, the file's own among them.
pub const MAX_PATCH_DEPTH: usize = 256;

/// What a file that is not there is called.
const NOTHING: &[u8] = b"/dev/null";

/// Endings of a file that was kept before another was changed.
const KEPT: [&[u8]; 4] = [b".orig", b".old", b".bak", b"~"];

/// A name behind `---` or `+++`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// None for `/dev/null`.
    pub(super) name: Option<Vec<u8>>,
    pub(super) time: Time,
}

/// The time behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    Unsaid,
    /// The beginning of time, which `diff -N` writes for a file that is not there.
    Zero,
    Some,
}

/// Reads what stands behind `--- ` or `+++ `.
pub(super) fn said(text: &[u8]) -> Result<Said, &'static str> {
    let (name, rest) = if text.starts_with(b"\"") {
        unquoted(text)
            .ok_or("a quoted name is not closed, or has an escape that git does not write")?
    } else {
        // A name with a space has a tab behind it, so a space at the end of a line is no part of one.
        let tab = text.iter().position(|byte| *byte == b'\t');
        let (name, rest) =
            tab.and_then(|tab| text.split_at_checked(tab)).unwrap_or((text.trim_ascii_end(), b""));
        (name.to_vec(), rest)
    };
    if name.is_empty() {
        return Err("the name of a file is missing");
    }
    let time = match rest.trim_ascii() {
        b"" => Time::Unsaid,
        time if time.starts_with(b"1970-01-01") || time.starts_with(b"1969-12-31") => Time::Zero,
        _ => Time::Some,
    };
    Ok(Said { name: (name != NOTHING).then_some(name), time })
}

/// A whole name, quoted or not, as behind `rename from `.
pub(super) fn whole(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    if !text.starts_with(b"\"") {
        return Ok(text.to_vec());
    }
    match unquoted(text) {
        Some((name, b"")) => Ok(name),
        _ => Err("a quoted name is not closed, or has an escape that git does not write"),
    }
}

/// The name between quotes as git writes it, and what follows it.
fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut name = Vec::new();
    let mut rest = text.strip_prefix(b"\"")?;
    loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        if *first == b'"' {
            return Some((name, rest));
        }
        if *first != b'\\' {
            name.push(*first);
            continue;
        }
        let (escaped, after) = rest.split_first()?;
        rest = after;
        name.push(match escaped {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            b'"' | b'\\' => *escaped,
            b'0'..=b'3' => {
                let (low, after) = rest.split_at_checked(2)?;
                rest = after;
                let digits = [*escaped, *low.first()?, *low.last()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?
            }
            _ => return None,
        });
    }
}

/// The file that both names of `diff --git A B` mean, if that is clear. Names with spaces are not
/// quoted, so that every space may be the one between them.
pub(super) fn of_git_head(text: &[u8]) -> Option<Common> {
    if text.starts_with(b"\"") {
        let (old, rest) = unquoted(text)?;
        return common(&old, &whole(rest.strip_prefix(b" ")?).ok()?);
    }
    let mut found: Option<Common> = None;
    for (at, _) in text.iter().enumerate().filter(|(_, byte)| **byte == b' ') {
        let (old, new) = (text.get(..at)?, text.get(at + 1..)?);
        let Some(both) = whole(new).ok().and_then(|new| common(old, &new)) else { continue };
        if found.as_ref().is_some_and(|other| other.name != both.name) {
            return None;
        }
        found = Some(both);
    }
    found
}

/// A file that two names mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Common {
    pub(super) name: Vec<u8>,
    pub(super) prefix: Prefix,
}

/// Whether names have a first part that belongs to the diff and not to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    /// As in `src/x src/x`.
    None,
    /// As in `a/src/x b/src/x`.
    OnePart,
}

/// The file that two names mean: the same name, or the same but for the first part.
pub(super) fn common(old: &[u8], new: &[u8]) -> Option<Common> {
    if old == new {
        return (!old.is_empty()).then(|| Common { name: old.to_vec(), prefix: Prefix::None });
    }
    let (old, new) = (without_first_part(old)?, without_first_part(new)?);
    let same = old == new && !old.is_empty();
    same.then(|| Common { name: old.to_vec(), prefix: Prefix::OnePart })
}

/// As [`common`], also for a file and what was kept of it under another name.
pub(super) fn common_or_kept(old: &[u8], new: &[u8]) -> Option<Common> {
    let kept = |suffix: &&[u8]| old.strip_suffix(*suffix) == Some(new);
    common(old, new).or_else(|| {
        KEPT.iter().any(kept).then(|| Common { name: new.to_vec(), prefix: Prefix::None })
    })
}

fn without_first_part(name: &[u8]) -> Option<&[u8]> {
    let slash = name.iter().position(|byte| *byte == b'/')?;
    // An absolute name has no first part that a diff has put there.
    if slash == 0 { None } else { name.get(slash + 1..) }
}

/// A name whose other side is `/dev/null`: without `a/` or `b/`, unless the patch uses no prefixes.
pub(super) fn lone(name: &[u8], usual: &[u8], prefix: Prefix) -> Vec<u8> {
    let stripped = match prefix {
        Prefix::None => None,
        Prefix::OnePart => name.strip_prefix(usual),
    };
    stripped.unwrap_or(name).to_vec()
}

/// Whether a name behind `---` or `+++` is that of this file, whatever prefix stands before it.
pub(super) fn is_of(said: &[u8], file: &[u8]) -> bool {
    let prefix = said.strip_suffix(file).filter(|prefix| !prefix.starts_with(b"/"));
    prefix.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with(b"/"))
}

/// The path, if a patch may touch it.
pub(super) fn path(name: &[u8]) -> Result<GuestPath> {
    if name.ends_with(b"/") {
        let what = format!("{:?} names a directory", String::from_utf8_lossy(name));
        return Err(Error::new(ErrorKind::Usage, what).hint("Name files; directories follow."));
    }
    let path = GuestPath::new(name)?;
    if path.names().count() > MAX_PATCH_DEPTH {
        let what = format!("a path goes through more than {MAX_PATCH_DEPTH} directories");
        return Err(Error::new(ErrorKind::Usage, what).hint("Name a shorter path."));
    }
    if path.names().any(is_git_directory) {
        let what = format!("{path:?} lies in a repository's own directory");
        return Err(Error::new(ErrorKind::Denied, what)
            .hint("Leave .git out of the patch; git's commands change what is in it."));
    }
    Ok(path)
}

/// `.git`, also as file systems spell it that ignore case, or dots and spaces at the end.
pub(crate) fn is_git_directory(name: &[u8]) -> bool {
    let end = name.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |at| at + 1);
    let name = name.get(..end).unwrap_or(name);
    name.eq_ignore_ascii_case(b".git") || name.eq_ignore_ascii_case(b"git~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_git_and_diff_write_it() {
        let check = |text: &str, name: Option<&[u8]>, time: Time| {
            let expected = Said { name: name.map(<[u8]>::to_vec), time };
            assert_eq!(said(text.as_bytes()), Ok(expected), "{text}");
        };
        check("a/x", Some(b"a/x"), Time::Unsaid);
        check("a/x y\t", Some(b"a/x y"), Time::Unsaid);
        check("a/x \t", Some(b"a/x "), Time::Unsaid);
        check("a/x ", Some(b"a/x"), Time::Unsaid);
        check("x\t2024-02-03 04:05:06.7 +0100", Some(b"x"), Time::Some);
        check("x\t1970-01-01 01:00:00.0 +0100", Some(b"x"), Time::Zero);
        check("/dev/null", None, Time::Unsaid);
        check("/dev/null\t1970-01-01 00:00:00.0 +0000", None, Time::Zero);
        check(r#""a/caf\303\251\t\"\\\a\001""#, Some(b"a/caf\xc3\xa9\t\"\\\x07\x01"), Time::Unsaid);
        for bad in ["", "\t2024", r#""a"#, r#""a\q""#, r#""a\48""#, r#""\3""#, r#""\400""#] {
            assert!(said(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn two_names_in_one_line_are_told_apart_where_that_is_clear() {
        let check = |text: &str, name: Option<&str>| {
            let found = of_git_head(text.as_bytes()).map(|both| both.name);
            assert_eq!(found.as_deref(), name.map(str::as_bytes), "{text}");
        };
        check("a/x b/x", Some("x"));
        check("a/x y b/x y", Some("x y"));
        check("x y x y", Some("x y"));
        check("i/x w/x", Some("x"));
        check(r#""a/\303\251" "b/\303\251""#, Some("é"));
        check(r#"a/x "b/x""#, Some("x"));
        check("a/x b/x b/x b/x", Some("x b/x"));
        check("a/x b/y", None);
        check("x", None);
    }

    #[test]
    fn what_belongs_to_the_diff_is_stripped_and_what_belongs_to_the_file_is_not() {
        let check = |old: &str, new: &str, name: Option<&str>| {
            let found = common_or_kept(old.as_bytes(), new.as_bytes()).map(|both| both.name);
            assert_eq!(found.as_deref(), name.map(str::as_bytes), "{old} {new}");
        };
        check("a/src/x", "b/src/x", Some("src/x"));
        check("src/x", "src/x", Some("src/x"));
        check("a/x", "a/x", Some("a/x"));
        check("old/x", "new/x", Some("x"));
        check("x.orig", "x", Some("x"));
        check("x~", "x", Some("x"));
        check("x", "y", None);
        check("/a/x", "/b/x", None);
        check("/etc/x", "/etc/x", Some("/etc/x"));
    }

    #[test]
    fn the_inside_of_a_repository_is_not_for_patches() {
        let check = |name: &str, expected: Option<ErrorKind>| {
            assert_eq!(path(name.as_bytes()).err().map(|error| error.kind), expected, "{name}");
        };
        let inside = [".git/config", "sub/.git/hooks/x", ".GIT/x", ".git./x", ".git /x", "Git~1/x"];
        for name in inside.iter().chain(&[".git", "sub/.git"]) {
            check(name, Some(ErrorKind::Denied));
        }
        for name in [".gitignore", ".github/x", "git/x", "x.git/config", "...", "a.git"] {
            check(name, None);
        }
        check("x/", Some(ErrorKind::Usage));
        check("../x", Some(ErrorKind::PathEscape));
        check("/etc/passwd", Some(ErrorKind::PathEscape));
    }
}
