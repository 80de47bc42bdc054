//! What stands in the files.

use super::Finding;
use super::tree::{File, Tree};
use std::path::Path;

/// Names that say nothing about what is in a file.
const FORBIDDEN_NAMES: [&str; 12] = [
    "common", "handler", "handlers", "helper", "helpers", "manager", "managers", "misc", "type",
    "types", "util", "utils",
];

/// Files longer than this are reported; the aim is 500.
const LONG_FILE_LINES: usize = 600;

// The words below are put together from halves, so that this file does not find itself.
const UNSAFE: &str = concat!("un", "safe");
const IGNORE: &str = concat!("#[ig", "nore");
const TASKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const MACHINE_PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// The kernel is met in files called `sys.rs`, and these say why.
pub(super) fn unsafe_only_in_sys(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let expectation = format!("expect({UNSAFE}_code");
    for file in tree.rust() {
        let is_sys = Path::new(&file.path).file_name().is_some_and(|name| name == "sys.rs");
        let packed: String = file.text.split_whitespace().collect();
        let expects = packed.contains(&format!("#![{expectation}"));
        if is_sys && !expects {
            found.push(Finding::new(
                &file.path,
                1,
                format!("begins without #![{expectation}, …)]"),
            ));
        }
        if is_sys {
            continue;
        }
        for (line, text) in file.lines() {
            if text.contains(&expectation) || has_unsafe(code_of(text)) {
                found.push(Finding::new(&file.path, line, format!("{UNSAFE} code outside sys.rs")));
            }
        }
    }
    found
}

/// Whether the keyword stands here, as against a word that contains it.
fn has_unsafe(code: &str) -> bool {
    code.match_indices(UNSAFE).any(|(at, _)| {
        let before = code.get(..at).and_then(|text| text.chars().next_back());
        let after = code.get(at + UNSAFE.len()..).unwrap_or_default();
        let next = after.trim_start();
        let keyword =
            ["{", "fn ", "impl", "extern", "trait"].iter().any(|word| next.starts_with(word));
        let attribute = before == Some('[') && after.starts_with('(');
        !before.is_some_and(is_word) && (keyword && !after.starts_with(is_word) || attribute)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A line without its comment. A string that holds two slashes is cut too, which hides no keyword
/// that is in use on the same line of formatted code.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// A test runs, or says at run time why it cannot.
pub(super) fn ignored_tests(tree: &Tree) -> Vec<Finding> {
    lines_of(tree.rust(), |text| text.trim_start().starts_with(IGNORE))
        .map(|(file, line)| Finding::new(&file.path, line, "an ignored test is run by nobody"))
        .collect()
}

/// The imports of a module are one block that rustfmt sorts. Blocks that re-export stand apart.
pub(super) fn import_groups(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let blocks = import_blocks(file);
        for line in blocks.iter().filter(|block| !block.exports).map(|block| block.line).skip(1) {
            found.push(Finding::new(&file.path, line, "imports are not one block"));
        }
    }
    found
}

/// Imports without an empty line or other code between them.
struct Block {
    line: usize,
    end: usize,
    exports: bool,
}

fn import_blocks(file: &File) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (line, text) in file.lines() {
        let exports = text.starts_with("pub use ") || text.starts_with("pub(crate) use ");
        let begins = !open && (exports || text.starts_with("use "));
        let follows = blocks.last().is_some_and(|block| block.end + 1 == line);
        if begins && !follows {
            blocks.push(Block { line, end: line, exports });
        } else if !(begins || open || follows && text.starts_with("#[")) {
            continue;
        }
        if let Some(block) = blocks.last_mut() {
            block.end = line;
            block.exports |= begins && exports;
        }
        open = (begins || open) && !text.contains(';');
    }
    blocks
}

/// A file that cannot be named is two files.
pub(super) fn forbidden_names(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let parts = Path::new(&file.path).with_extension("");
        for part in parts.components() {
            let name = part.as_os_str().to_string_lossy();
            if FORBIDDEN_NAMES.contains(&name.as_ref()) {
                found.push(Finding::new(&file.path, 0, format!("{name} names nothing")));
            }
        }
    }
    found
}

/// A task is noted with the number of its issue, as in `(#12)`.
pub(super) fn tasks_without_issue(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in &tree.files {
        // In code a task stands in a comment; elsewhere the word may be an argument or an example.
        let mark = if file.is_rust() { "//" } else { "#" };
        for (line, text) in file.lines() {
            if TASKS.iter().any(|task| has_open_task(text, task, mark)) {
                let what = "a task without the number of its issue";
                found.push(Finding::new(&file.path, line, what));
            }
        }
    }
    found
}

fn has_open_task(text: &str, task: &str, mark: &str) -> bool {
    text.match_indices(task).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let after = text.get(at + task.len()..).unwrap_or_default();
        let number = after.strip_prefix("(#");
        let numbered = number.is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()));
        let whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        whole && !numbered && (before.contains(mark) || after.starts_with(':'))
    })
}

/// Nothing says where somebody's checkout or home is. Rust sources may name the home of root, which
/// is a place to hide.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in &tree.files {
        let [checkout, home] = MACHINE_PATHS;
        for (line, text) in file.lines() {
            if has_path(text, checkout) || !file.is_rust() && has_path(text, home) {
                found.push(Finding::new(&file.path, line, "a path of one machine"));
            }
        }
    }
    found
}

/// Whether an absolute path begins with this, as against a longer path that holds it.
fn has_path(text: &str, path: &str) -> bool {
    text.match_indices(path).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        before.is_none_or(|c| c.is_whitespace() || "\"'`(=:,<".contains(c))
    })
}

/// Files that have grown over a sitting.
pub(super) fn long_files(tree: &Tree) -> Vec<Finding> {
    let long = |file: &&File| file.text.lines().count() > LONG_FILE_LINES;
    tree.rust()
        .filter(long)
        .map(|file| {
            let lines = file.text.lines().count();
            Finding::new(&file.path, lines, format!("{lines} lines are over {LONG_FILE_LINES}"))
        })
        .collect()
}

fn lines_of<'a>(
    files: impl Iterator<Item = &'a File>,
    matches: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'a File, usize)> {
    files.flat_map(move |file| {
        let lines: Vec<usize> =
            file.lines().filter(|(_, text)| matches(text)).map(|(line, _)| line).collect();
        lines.into_iter().map(move |line| (file, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(find: fn(&Tree) -> Vec<Finding>, path: &str, text: &str, lines: &[usize]) {
        let found: Vec<usize> =
            find(&Tree::of(&[(path, text)])).iter().map(|finding| finding.line).collect();
        assert_eq!(found, lines, "{path}:\n{text}");
    }

    #[test]
    fn an_unsafe_block_outside_sys_is_found() {
        let block = format!("//! Doc.\nfn f() {{\n    {UNSAFE} {{ g() }}\n}}\n");
        check(unsafe_only_in_sys, "a/b.rs", &block, &[3]);
        check(unsafe_only_in_sys, "a/b.rs", &format!("pub {UNSAFE} fn f() {{}}"), &[1]);
        check(unsafe_only_in_sys, "a/b.rs", &format!("#[{UNSAFE}(no_mangle)]"), &[1]);
        check(
            unsafe_only_in_sys,
            "a/b.rs",
            &format!("// {UNSAFE} {{ }}\nlet {UNSAFE}_code = 1;"),
            &[],
        );
        check(unsafe_only_in_sys, "a/sys.rs", &block, &[1]);
        let expected = format!("#![expect({UNSAFE}_code, reason = \"x\")]\n{block}");
        check(unsafe_only_in_sys, "a/sys.rs", &expected, &[]);
        check(unsafe_only_in_sys, "a/b.rs", &expected, &[1, 4]);
    }

    #[test]
    fn an_ignored_test_is_found() {
        check(ignored_tests, "a.rs", &format!("#[test]\n    {IGNORE}]\nfn f() {{}}"), &[2]);
    }

    #[test]
    fn a_second_block_of_imports_is_found() {
        let find = import_groups;
        check(find, "a.rs", "use a::b;\nuse c::{\n    d,\n};\nuse e::f;\n\nfn g() {}\n", &[]);
        check(find, "a.rs", "use a::b;\n\nuse c::d;\n", &[3]);
        check(find, "a.rs", "use a::b;\n\npub use c::d;\n", &[]);
        check(find, "a.rs", "use a::b;\n#[cfg(test)]\nuse c::d;\n", &[]);
        check(find, "a.rs", "use a::{\n    b,\n};\n\nuse c::d;\n", &[5]);
        check(find, "a.rs", "pub use a::b;\nuse a::c;\n\nuse d::e;\n", &[]);
    }

    #[test]
    fn a_name_that_says_nothing_is_found() {
        check(forbidden_names, "crates/x/src/util.rs", "", &[0]);
        check(forbidden_names, "crates/x/src/helpers/a.rs", "", &[0]);
        check(forbidden_names, "crates/x/src/utility_bill.rs", "", &[]);
    }

    #[test]
    fn a_task_without_an_issue_is_found() {
        let [task, other] = TASKS;
        let text = format!("{task}: x\n{task}(#12): y\n// {other} z\nMAS{task}\ngrep {task} .\n");
        check(tasks_without_issue, "a.rs", &text, &[1, 3]);
        check(tasks_without_issue, "a.toml", &format!("# {task} x\na = '{task}'\n"), &[1]);
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        let [checkout, home] = MACHINE_PATHS;
        check(machine_paths, "a.md", &format!("see {checkout}x\nsee `{home}x`\n"), &[1, 2]);
        check(machine_paths, "a.rs", &format!("\"{checkout}x\"\n\"{home}x\"\n"), &[1]);
        check(machine_paths, "a.md", &format!("upper{checkout}x /proc/1{home}x\n"), &[]);
    }

    #[test]
    fn a_long_file_is_reported() {
        check(long_files, "a.rs", &"\n".repeat(600), &[]);
        check(long_files, "a.rs", &"\n".repeat(601), &[601]);
    }
}
