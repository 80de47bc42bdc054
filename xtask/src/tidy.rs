//! What the compiler does not check. Each check is an ordinary test, and `cargo xtask tidy` runs
//! them all.

mod documents;
mod licences;
mod packages;
mod sources;
mod tree;

use std::fmt;
use std::process::ExitCode;
use tree::Tree;

pub(crate) use tree::root;

/// A place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    path: String,
    /// From 1; 0 where the whole file is meant.
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// A rule: its name, and what finds the places that break it.
struct Check {
    name: &'static str,
    find: fn(&Tree) -> Vec<Finding>,
}

/// The rules that hold without exception.
const CHECKS: [Check; 12] = [
    Check { name: "packages depend in one direction", find: packages::directions },
    Check { name: "the guest stays small", find: packages::guest_stays_small },
    Check { name: "licences are permissive", find: licences::all },
    Check { name: "unsafe code is in sys.rs", find: sources::unsafe_only_in_sys },
    Check { name: "no test is ignored", find: sources::ignored_tests },
    Check { name: "imports are one block", find: sources::import_groups },
    Check { name: "files have names", find: sources::forbidden_names },
    Check { name: "an open task names its issue", find: sources::tasks_without_issue },
    Check { name: "no path of one machine", find: sources::machine_paths },
    Check { name: "promises name what holds them", find: documents::promises_are_held },
    Check { name: "numbers stand in tables", find: documents::numbers_stand_in_tables },
    Check { name: "error kinds and endings are documented", find: documents::kinds_have_rows },
];

/// Runs every check on the checkout, and prints what it finds.
pub(crate) fn run() -> ExitCode {
    let tree = match Tree::read() {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut count = 0;
    for check in &CHECKS {
        let found = (check.find)(&tree);
        println!("{}: {}", check.name, if found.is_empty() { "yes" } else { "NO" });
        for finding in &found {
            println!("  {finding}");
        }
        count += found.len();
    }
    for finding in sources::long_files(&tree) {
        println!("warning: {finding}");
    }
    if count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(name: &str) {
        let tree = Tree::read().unwrap();
        let check = CHECKS.iter().find(|check| check.name == name).unwrap();
        let found: Vec<String> = (check.find)(&tree).iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "{name}: no\n{}", found.join("\n"));
    }

    #[test]
    fn packages_depend_in_one_direction() {
        hold("packages depend in one direction");
    }

    #[test]
    fn the_guest_stays_small() {
        hold("the guest stays small");
    }

    #[test]
    fn licences_are_permissive() {
        hold("licences are permissive");
    }

    #[test]
    fn unsafe_code_is_in_sys() {
        hold("unsafe code is in sys.rs");
    }

    #[test]
    fn no_test_is_ignored() {
        hold("no test is ignored");
    }

    #[test]
    fn imports_are_one_block() {
        hold("imports are one block");
    }

    #[test]
    fn files_have_names() {
        hold("files have names");
    }

    #[test]
    fn an_open_task_names_its_issue() {
        hold("an open task names its issue");
    }

    #[test]
    fn no_path_of_one_machine() {
        hold("no path of one machine");
    }

    #[test]
    fn promises_name_what_holds_them() {
        hold("promises name what holds them");
    }

    #[test]
    fn numbers_stand_in_tables() {
        hold("numbers stand in tables");
    }

    #[test]
    fn error_kinds_and_endings_are_documented() {
        hold("error kinds and endings are documented");
    }

    #[test]
    fn a_long_file_is_a_warning() {
        let tree = Tree::read().unwrap();
        for finding in sources::long_files(&tree) {
            eprintln!("warning: {finding}");
        }
    }
}
