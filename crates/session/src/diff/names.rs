//! Names of files as git writes them.

use std::fmt::Write;

/// The name between quotes, with escapes, where it has bytes that are not plain text; as it is
/// otherwise.
pub fn quoted(name: &[u8]) -> String {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if name.iter().all(is_plain) {
        return String::from_utf8_lossy(name).into_owned();
    }
    let mut text = String::from("\"");
    for byte in name {
        match byte {
            7 => text.push_str("\\a"),
            8 => text.push_str("\\b"),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            11 => text.push_str("\\v"),
            12 => text.push_str("\\f"),
            b'\r' => text.push_str("\\r"),
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            byte if is_plain(byte) => text.push(char::from(*byte)),
            byte => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}

/// A name behind `---` or `+++`. One with a space has a tab behind it, which tells where it ends.
pub(super) fn behind_dashes(prefix: &str, name: &[u8]) -> String {
    let text = quoted(&[prefix.as_bytes(), name].concat());
    let needs_tab = !text.starts_with('"') && text.contains(' ');
    if needs_tab { text + "\t" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_as_git_does() {
        let check = |name: &[u8], expected: &str| assert_eq!(quoted(name), expected);
        check(b"src/x y.rs", "src/x y.rs");
        check("caf\u{e9}".as_bytes(), "\"caf\\303\\251\"");
        check(b"a\nb\t\"\\\x1b\x7f", "\"a\\nb\\t\\\"\\\\\\033\\177\"");
        assert_eq!(behind_dashes("a/", b"x y"), "a/x y\t");
        assert_eq!(behind_dashes("a/", b"x"), "a/x");
    }
}
