//! Nobody adds a system call without somebody here judging it.

use super::{Call, Decision, Rule, Scope, Surface, rules};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn listed(surface: &Surface) -> Vec<(Call, Rule)> {
    let mut all = Vec::new();
    for rule in rules(surface) {
        if let Scope::Calls(calls) = rule.scope {
            all.extend(calls.iter().map(|call| (*call, rule)));
        }
    }
    all
}

/// Where cargo keeps the source of `libc` that this test is built with. `None` where this user may
/// not read it, as when somebody else built the test.
fn libc_source() -> Option<PathBuf> {
    // Packages for other platforms may not be on this machine.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let answer = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--locked", "--format-version", "1"])
        .args(["--filter-platform", &platform])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .output();
    let answer = match answer {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            println!("skipped: cargo cannot be run by this user");
            return None;
        }
        other => other.unwrap(),
    };
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let libc = packages
        .iter()
        .find(|package| package["name"] == "libc" && package["version"].as_str() >= Some("0.2"))
        .unwrap();
    Some(Path::new(libc["manifest_path"].as_str().unwrap()).parent().unwrap().to_path_buf())
}

/// Names and numbers in lines such as `pub const SYS_read: c_long = 0;`.
fn libc_calls(text: &str) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.trim().strip_prefix("pub const SYS_") else { continue };
        let Some((name, rest)) = rest.split_once(": ") else { continue };
        let Some((_, number)) = rest.split_once(" = ") else { continue };
        found.insert(name.to_owned(), number.trim_end_matches(';').parse().unwrap());
    }
    found
}

/// Names and numbers in lines such as `#define __NR_read 0`.
fn header_calls(text: &str) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("#define __NR_") else { continue };
        let mut words = rest.split_whitespace();
        let (Some(name), Some(number)) = (words.next(), words.next()) else { continue };
        if let Ok(number) = number.parse() {
            found.insert(name.to_owned(), number);
        }
    }
    found
}

fn unjudged(known: &BTreeMap<String, i64>) -> Vec<String> {
    let judged: BTreeSet<i64> =
        listed(&Surface::ALL[0]).iter().map(|(call, _)| call.number).collect();
    let missing = known.iter().filter(|(_, number)| !judged.contains(number));
    missing.map(|(name, number)| format!("{name} = {number}")).collect()
}

#[test]
fn every_call_that_libc_knows_has_a_row() {
    let Some(source) = libc_source() else { return };
    let linux = source.join("src/unix/linux_like/linux");
    let file = if cfg!(target_arch = "x86_64") {
        "gnu/b64/x86_64/not_x32.rs"
    } else {
        "gnu/b64/aarch64/mod.rs"
    };
    let known = libc_calls(&std::fs::read_to_string(linux.join(file)).unwrap());
    assert!(known.len() > 250, "only {} calls found in {file}", known.len());
    assert_eq!(unjudged(&known), Vec::<String>::new());
}

#[test]
fn every_call_of_the_kernel_headers_here_has_a_row() {
    let places = [
        "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
        "/usr/include/aarch64-linux-gnu/asm/unistd_64.h",
        "/usr/include/asm/unistd_64.h",
    ];
    let here = places
        .into_iter()
        .find(|place| place.contains(std::env::consts::ARCH) || place.contains("include/asm/"))
        .and_then(|place| std::fs::read_to_string(place).ok());
    let Some(text) = here else {
        eprintln!("skipped: there are no kernel headers here");
        return;
    };
    let known = header_calls(&text);
    assert!(known.len() > 250, "only {} calls found in the header", known.len());
    assert_eq!(unjudged(&known), Vec::<String>::new());
}

#[test]
fn names_and_numbers_agree_with_the_header_here() {
    let Ok(text) = std::fs::read_to_string("/usr/include/x86_64-linux-gnu/asm/unistd_64.h") else {
        eprintln!("skipped: there is no such kernel header here");
        return;
    };
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let known = header_calls(&text);
    for (call, _) in listed(&Surface::ALL[0]) {
        if let Some(number) = known.get(call.name) {
            assert_eq!(call.number, *number, "{}", call.name);
        }
    }
}

#[test]
fn no_call_is_listed_twice_and_every_row_says_why() {
    for surface in Surface::ALL {
        let mut names = BTreeSet::new();
        let mut numbers = BTreeSet::new();
        for (call, rule) in listed(&surface) {
            assert!(names.insert(call.name), "{} twice", call.name);
            assert!(numbers.insert(call.number), "{} twice", call.number);
            assert!(!rule.why.is_empty() && !rule.why.ends_with('.'), "{}", call.name);
        }
        assert!(rules(&surface).any(|rule| rule.scope == Scope::Unlisted));
        assert!(rules(&surface).any(|rule| rule.scope == Scope::ForeignAbi));
    }
}

#[test]
fn a_rule_reads_as_a_sentence() {
    let rule =
        rules(&Surface::ALL[0]).find(|rule| rule.scope.to_string().starts_with("clone")).unwrap();
    let text = format!("{}: {}", rule.scope, rule.decision);
    assert!(matches!(rule.decision, Decision::Always(_)), "{text}");
    assert_eq!(text, "clone3: refused with ENOSYS");

    let rule = rules(&Surface::ALL[0]).find(|rule| rule.scope.to_string() == "unshare").unwrap();
    assert_eq!(
        rule.decision.to_string(),
        "refused with EPERM if it makes a namespace, else allowed"
    );
}
