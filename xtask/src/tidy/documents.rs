//! What the documents say about the code.

use super::Finding;
use super::tree::{File, Tree};

/// Where every promise and number stands.
const SPECIFICATION: &str = "SPECIFICATION.md";

/// The head of the column that names what holds a row.
const HELD_BY: &str = "Held by";

/// Marks a name in that column as a row of the benchmarks.
const BENCHMARK: &str = "bench:";

/// A line of a table, cut into its cells.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn is_rule(cells: &[&str]) -> bool {
    cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| c == '-' || c == ':'))
}

/// Each row of a table whose last column is "Held by" names a test, a check or a benchmark there,
/// and each of those exists.
pub(super) fn promises_are_held(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(SPECIFICATION) else {
        return vec![Finding::new(SPECIFICATION, 0, "is missing")];
    };
    let mut found = Vec::new();
    let mut held = false;
    let mut rows = 0;
    for (line, text) in file.lines() {
        let Some(cells) = cells(text) else {
            held = false;
            continue;
        };
        let last = cells.last().copied().unwrap_or_default();
        if last == HELD_BY {
            held = true;
            continue;
        }
        if !held || is_rule(&cells) {
            continue;
        }
        rows += 1;
        let names = backticked(last);
        if names.is_empty() {
            found.push(Finding::new(&file.path, line, "names nothing that holds it"));
        }
        for name in names.into_iter().filter(|name| !exists(tree, name)) {
            found.push(Finding::new(&file.path, line, format!("{name} does not exist")));
        }
    }
    if rows == 0 {
        found.push(Finding::new(&file.path, 0, format!("has no table with a column {HELD_BY:?}")));
    }
    found
}

/// What stands between backticks.
fn backticked(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Whether a test function, a check of a suite, or a row of the benchmarks has this name.
fn exists(tree: &Tree, name: &str) -> bool {
    if let Some(row) = name.strip_prefix(BENCHMARK) {
        let quoted = format!("\"{}\"", row.trim());
        return tree
            .rust()
            .filter(|file| file.path.starts_with("xtask/src/bench"))
            .any(|file| file.text.contains(&quoted));
    }
    let function = format!("fn {}(", name.rsplit("::").next().unwrap_or(name));
    let quoted = format!("\"{name}\"");
    let is_check = name.contains('.');
    tree.rust().filter(|file| !file.path.starts_with("xtask/src/bench")).any(|file| {
        if is_check { file.text.contains(&quoted) } else { file.text.contains(&function) }
    })
}

/// A number outside a table has nothing that holds it, unless it is code.
pub(super) fn numbers_stand_in_tables(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(SPECIFICATION) else { return Vec::new() };
    let mut found = Vec::new();
    let mut in_code = false;
    for (line, text) in file.lines() {
        if text.starts_with("```") {
            in_code = !in_code;
        }
        if in_code || cells(text).is_some() || text.starts_with('#') {
            continue;
        }
        let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        let words = prose.split_whitespace().map(|word| word.trim_start_matches(['(', '"']));
        for word in words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
            found.push(Finding::new(&file.path, line, format!("the number {word} has no row")));
        }
    }
    found
}

/// Each kind of error and of ending has a row with its exit code.
pub(super) fn kinds_have_rows(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(SPECIFICATION) else { return Vec::new() };
    let mut found = Vec::new();
    let sources = [
        ("crates/core/src/error.rs", error_kinds as fn(&File) -> Vec<String>),
        ("crates/core/src/ending.rs", ending_kinds),
    ];
    for (path, kinds) in sources {
        let names = tree.file(path).map(kinds).unwrap_or_default();
        if names.is_empty() {
            found.push(Finding::new(path, 0, "names no kind"));
        }
        for name in names.iter().filter(|name| !has_row(file, name)) {
            let what = format!("no table has a row for {name} with its exit code");
            found.push(Finding::new(&file.path, 0, what));
        }
    }
    found
}

/// A row that begins with the name in backticks and has an exit code, or whose it is, in the next.
fn has_row(file: &File, name: &str) -> bool {
    let head = format!("`{name}`");
    file.lines().filter_map(|(_, text)| cells(text)).any(|cells| {
        let code = cells.get(1).copied().unwrap_or_default();
        cells.first() == Some(&head.as_str())
            && (code.contains(|c: char| c.is_ascii_digit()) || code.contains("own"))
    })
}

/// The stable names in `ErrorKind::name`.
fn error_kinds(file: &File) -> Vec<String> {
    let lines = file.lines().filter_map(|(_, text)| {
        let (_, name) = text.trim().strip_prefix("Self::")?.split_once(" => \"")?;
        Some(name.strip_suffix("\",")?.to_owned())
    });
    lines.collect()
}

/// The variants of `EndingKind`, as they are serialised.
fn ending_kinds(file: &File) -> Vec<String> {
    let body = file.text.split("pub enum EndingKind {").nth(1).unwrap_or_default();
    let body = body.split('}').next().unwrap_or_default();
    let variants = body.lines().filter_map(|line| line.trim().strip_suffix(','));
    variants.filter(|name| name.starts_with(char::is_uppercase)).map(snake_case).collect()
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(c.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(find: fn(&Tree) -> Vec<Finding>, text: &str, broken: &[&str]) {
        let tree = Tree::of(&[
            (SPECIFICATION, text),
            ("crates/x/src/a.rs", "#[test]\nfn a_true_sentence() {}\nconst C: &str = \"exec.a\";"),
            ("xtask/src/bench/rows.rs", "const R: &str = \"bare\";"),
            ("crates/core/src/error.rs", "            Self::Usage => \"usage\",\n"),
            ("crates/core/src/ending.rs", "pub enum EndingKind {\n    /// X.\n    TimedOut,\n}"),
        ]);
        let found = find(&tree);
        let what: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(what, broken);
    }

    #[test]
    fn a_promise_that_nothing_holds_is_found() {
        let table = |cell: &str| format!("| Promise | Held by |\n|---|---|\n| x | {cell} |\n");
        let find = promises_are_held;
        check(find, &table("`a_true_sentence`"), &[]);
        check(find, &table("`x::tests::a_true_sentence`, `exec.a`, `bench:bare`"), &[]);
        check(find, &table("nothing"), &["names nothing that holds it"]);
        check(find, &table("`a_false_sentence`"), &["a_false_sentence does not exist"]);
        check(find, &table("`bench:other`"), &["bench:other does not exist"]);
        check(find, &table("`exec.b`"), &["exec.b does not exist"]);
        check(find, "no table", &["has no table with a column \"Held by\""]);
    }

    #[test]
    fn a_number_outside_a_table_is_found() {
        let find = numbers_stand_in_tables;
        check(find, "It takes 5 ms.", &["the number 5 has no row"]);
        check(find, "P1 and `5` in UTF-8.\n| 5 |\n# 5\n```\n5\n```", &[]);
    }

    #[test]
    fn a_kind_without_a_row_is_found() {
        let find = kinds_have_rows;
        check(find, "| `usage` | 125 |\n| `timed_out` | 124 |", &[]);
        check(
            find,
            "| `usage` | 125 |\n| `timed_out` | |",
            &["no table has a row for timed_out with its exit code"],
        );
    }
}
