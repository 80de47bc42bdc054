//! Hints as a program that asks over HTTP can follow them.
//!
//! Errors come from below, where nobody knows who asked, and many name what a person would type. Over HTTP
//! that has other words, which are put behind these. Whoever asks by `cofferdam --server` types, and is told
//! the hint as it was. Pure.

/// What a hint tells to type or to do, and how that is asked for here. A sandbox's paths begin with `…`, as
/// in `docs/http.md`. The first of them that is in a hint counts.
pub const ADVICE: &[(&str, &str)] = &[
    ("`cofferdam history`", "GET …/history"),
    ("`cofferdam undo", "POST …/undo"),
    ("`cofferdam snapshot ls`", "GET …/snapshots"),
    ("`cofferdam snapshot rm`", "DELETE …/snapshots/{snapshot}"),
    ("`cofferdam snapshot export`", "GET …/snapshots/{snapshot}/export"),
    ("`cofferdam diff", "GET …/diff"),
    ("`cofferdam ps`", "GET …/execs"),
    ("`cofferdam wait`", "GET …/execs/{exec}/wait"),
    ("`cofferdam network allow`", "POST …/network/allow"),
    ("`cofferdam approve --list`", "GET …/approvals"),
    ("`cofferdam ls`", "GET /v1/sandboxes"),
    ("`cofferdam rm`", "DELETE …"),
    ("`cofferdam resume`", "POST …/resume"),
    ("`cofferdam secret add", "PUT /v1/secrets/{secret}"),
    ("`cofferdam secret ls`", "GET /v1/secrets"),
    ("`cofferdam secret rm`", "DELETE /v1/secrets/{secret}"),
    ("Allow it with --session", "`session`"),
    ("with --cow", "`copy_on_write`"),
    ("leave --cow out", "`copy_on_write`"),
    ("with --force", "`force`"),
    ("with --recursive", "`recursive`"),
    ("with --replace", "`replace`"),
    ("Use --secret-fd", "`secret_descriptors`"),
    ("Ensure the session first", "PUT …"),
    ("or ensure the session", "PUT …"),
    ("Resume it first", "POST …/resume"),
    ("Open it first", "PUT …/shells/{shell}"),
    ("Open it again", "PUT …/shells/{shell}"),
    ("Interrupt the shell", "POST …/shells/{shell}/interrupt"),
    ("Wait for it", "POST …/shells/{shell}/check"),
    ("Run a command in it first", "POST …/execs"),
];

/// The hint, with the words of HTTP behind those that it has.
pub fn over_http(hint: &str) -> String {
    let known = ADVICE.iter().find_map(|(sign, here)| Some((hint.find(sign)?, sign, here)));
    let Some((at, sign, here)) = known else { return hint.to_owned() };
    let end = at + sign.len();
    // What is typed ends with its quote, which stands behind further words.
    let is_open = sign.starts_with('`') && !sign.ends_with('`');
    let quote = hint.get(end..).filter(|_| is_open).and_then(|rest| rest.find('`'));
    let end = quote.map_or(end, |more| end + more + 1);
    let (before, after) = hint.split_at(end);
    format!("{before} ({here}){after}")
}

/// The hint as it was before.
pub fn typed(hint: &str) -> String {
    let is_of =
        |(sign, here): &&(&str, &str)| hint.contains(sign) && hint.contains(&format!(" ({here})"));
    match ADVICE.iter().find(is_of) {
        Some((_, here)) => hint.replacen(&format!(" ({here})"), "", 1),
        None => hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_says_how_it_is_followed_over_http() {
        let cases = [
            ("List the points with `cofferdam history`.", "`cofferdam history` (GET …/history)."),
            (
                "See what it changed with `cofferdam diff SESSION --stat`.",
                "`cofferdam diff SESSION --stat` (GET …/diff).",
            ),
            ("Make sessions with --cow for this.", "with --cow (`copy_on_write`) for this."),
            ("Open it first.", "Open it first (PUT …/shells/{shell})."),
            ("Give one of them.", "Give one of them."),
        ];
        for (hint, end) in cases {
            assert!(over_http(hint).ends_with(end), "{hint}: {}", over_http(hint));
        }
    }

    #[test]
    fn who_types_is_told_the_hint_as_it_was() {
        for (sign, _) in ADVICE {
            let quote = if sign.starts_with('`') && !sign.ends_with('`') { " -x`" } else { "" };
            let hint = format!("Do this: {sign}{quote} (or that).");
            assert_ne!(over_http(&hint), hint);
            assert_eq!(typed(&over_http(&hint)), hint);
            assert_eq!(typed(&hint), hint);
        }
    }
}
