//! What a path means before anything is looked up.

use super::MAX_PATH_BYTES;

/// One step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// Into what has this name.
    Name(&'a [u8]),
    /// One up.
    Up,
}

/// Why a path means nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathError {
    /// It is longer than [`MAX_PATH_BYTES`].
    TooLong,
    /// It holds a NUL byte.
    HasNul,
    /// It is absolute, and does not begin with a name of the root.
    Outside,
}

/// The steps of a path from the root, which also has these absolute names.
///
/// Nothing is looked up and no `..` is taken back: what is before it may be a link.
pub fn parts<'a>(path: &'a [u8], names: &[&[u8]]) -> Result<Vec<Part<'a>>, PathError> {
    if path.len() > MAX_PATH_BYTES {
        return Err(PathError::TooLong);
    }
    if path.contains(&0) {
        return Err(PathError::HasNul);
    }
    let relative = match path.first() {
        Some(b'/') => names.iter().find_map(|name| below(path, name)).ok_or(PathError::Outside)?,
        Some(_) | None => path,
    };
    Ok(relative.split(|byte| *byte == b'/').filter_map(part).collect())
}

fn part(name: &[u8]) -> Option<Part<'_>> {
    match name {
        b"" | b"." => None,
        b".." => Some(Part::Up),
        name => Some(Part::Name(name)),
    }
}

/// What follows the name of a directory in a path.
fn below<'a>(path: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let name = name.strip_suffix(b"/").unwrap_or(name);
    let rest = path.strip_prefix(name)?;
    matches!(rest.first(), Some(b'/') | None).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &[&[u8]] = &[b"/workspace", b"/home/a/project"];

    fn check(path: &str, expected: Result<&str, PathError>) {
        let said = parts(path.as_bytes(), ROOT).map(|parts| {
            let words = parts.into_iter().map(|part| match part {
                Part::Name(name) => String::from_utf8_lossy(name).into_owned(),
                Part::Up => "UP".to_owned(),
            });
            words.collect::<Vec<_>>().join(" ")
        });
        assert_eq!(said.as_deref(), expected.as_ref().map(|text| *text), "{path:?}");
    }

    #[test]
    fn a_path_is_relative_or_begins_with_a_name_of_the_root() {
        check("a/b", Ok("a b"));
        check("./a//b/", Ok("a b"));
        check("", Ok(""));
        check(".", Ok(""));
        check("a/../b", Ok("a UP b"));
        check("/workspace", Ok(""));
        check("/workspace/a", Ok("a"));
        check("/home/a/project/x", Ok("x"));
        check("/workspaces/a", Err(PathError::Outside));
        check("/etc/passwd", Err(PathError::Outside));
        check("/", Err(PathError::Outside));
    }

    #[test]
    fn a_path_that_no_kernel_takes_is_refused() {
        check("a\0b", Err(PathError::HasNul));
        check(&"a".repeat(MAX_PATH_BYTES), Ok(&"a".repeat(MAX_PATH_BYTES)));
        check(&"a".repeat(MAX_PATH_BYTES + 1), Err(PathError::TooLong));
    }
}
