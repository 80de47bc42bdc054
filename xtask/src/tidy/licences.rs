//! Which licences a dependency may have.

use super::Finding;
use super::tree::{Package, Tree};

/// Licences that ask for no more than a notice.
const PERMISSIVE: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages that are not used, whatever their licence: a second way to meet the kernel, a second TLS
/// library, a C library that costs milliseconds for each sandbox.
const BANNED: [&str; 5] = ["aws-lc-sys", "nix", "openssl-sys", "libseccomp", "libseccomp-sys"];

/// Every locked package can be had under permissive terms, from a registry.
pub(super) fn all(tree: &Tree) -> Vec<Finding> {
    tree.packages
        .iter()
        .filter_map(objection)
        .map(|what| Finding::new("Cargo.lock", 0, what))
        .collect()
}

fn objection(package: &Package) -> Option<String> {
    let name = format!("{} {}", package.name, package.version);
    if BANNED.contains(&package.name.as_str()) {
        return Some(format!("{name} is not used here"));
    }
    if package.source.as_deref().is_some_and(|source| !source.starts_with("registry+")) {
        return Some(format!("{name} does not come from a registry"));
    }
    match package.license.as_deref() {
        None => Some(format!("{name} names no licence")),
        Some(text) if is_permissive(text) => None,
        Some(text) => Some(format!("{name} is under {text}")),
    }
}

/// Whether an SPDX expression leaves a choice that is permissive. What is not understood is not.
fn is_permissive(text: &str) -> bool {
    let text = text.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut rest = words.as_slice();
    let permissive = any_of(&mut rest);
    permissive && rest.is_empty()
}

fn any_of(words: &mut &[&str]) -> bool {
    let mut permissive = all_of(words);
    while let [word, rest @ ..] = *words
        && word.eq_ignore_ascii_case("OR")
    {
        *words = rest;
        permissive |= all_of(words);
    }
    permissive
}

fn all_of(words: &mut &[&str]) -> bool {
    let mut permissive = one(words);
    while let [word, rest @ ..] = *words
        && word.eq_ignore_ascii_case("AND")
    {
        *words = rest;
        permissive &= one(words);
    }
    permissive
}

fn one(words: &mut &[&str]) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let permissive = any_of(words);
            let [")", rest @ ..] = *words else { return false };
            *words = rest;
            permissive
        }
        [licence, with, exception, rest @ ..] if with.eq_ignore_ascii_case("WITH") => {
            *words = rest;
            PERMISSIVE.contains(&format!("{licence} WITH {exception}").as_str())
        }
        [licence, rest @ ..] => {
            *words = rest;
            PERMISSIVE.contains(licence)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: bool) {
        assert_eq!(is_permissive(text), expected, "{text}");
    }

    #[test]
    fn a_choice_that_is_permissive_suffices() {
        check("MIT", true);
        check("MIT/Apache-2.0", true);
        check("GPL-3.0-only OR MIT", true);
        check("(MIT OR Apache-2.0) AND Unicode-3.0", true);
        check("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true);
    }

    #[test]
    fn what_leaves_no_such_choice_is_found() {
        check("GPL-3.0-only", false);
        check("AGPL-3.0-or-later", false);
        check("MIT AND LGPL-2.1-only", false);
        check("(GPL-2.0-only OR MPL-2.0) AND MIT", false);
        check("MIT)", false);
        check("(MIT", false);
        check("", false);
        check("OR MIT OR", false);
    }

    #[test]
    fn a_package_without_a_licence_or_registry_is_found() {
        let package = |license: Option<&str>, source: Option<&str>| Package {
            name: "x".to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
        };
        assert_eq!(objection(&package(Some("MIT"), Some("registry+https://a.test/"))), None);
        assert!(objection(&package(None, None)).is_some());
        assert!(objection(&package(Some("MIT"), Some("git+https://a.test/"))).is_some());
    }
}
