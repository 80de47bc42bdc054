//! Builds the static box program and hands its path to the library, which carries it.
//!
//! The nested build has a target directory of its own: cargo holds a lock on the outer one. It gets
//! none of the outer build's flags, which would win over its own and make the program dynamic.

use std::error::Error;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variables of the outer build that must not reach the nested one.
const OUTER: [&str; 9] = [
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTFLAGS",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../..");
    for watched in ["crates/local", "crates/guestd", "crates/wire", "crates/core", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    let program = build(&root)?;
    let bytes = std::fs::read(&program)?;
    if has_interpreter(&bytes) {
        return Err(format!("{} is not static", program.display()).into());
    }
    println!("cargo::rustc-env=COFFERDAM_BOX={}", program.display());
    println!("cargo::rustc-env=COFFERDAM_BOX_MARK={:016x}", mark(&bytes));
    Ok(())
}

fn build(root: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let directory = PathBuf::from(variable("OUT_DIR")?).join("box");
    let target = variable("TARGET")?;
    let mut cargo = Command::new(variable("CARGO")?);
    cargo
        .current_dir(root)
        .args(["build", "--locked", "--profile", "box", "--package", "cofferdam-local"])
        .args(["--bin", "cofferdam-box", "--target", &target, "--target-dir"])
        .arg(&directory)
        .env("RUSTFLAGS", flags(&target)?);
    for name in OUTER.iter().filter(|name| **name != "RUSTFLAGS") {
        cargo.env_remove(name);
    }
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("the box program could not be built: {status}").into());
    }
    Ok(directory.join(target).join("box/cofferdam-box"))
}

/// How the program is linked: with packed relocations where it is for this machine, and the C library
/// applies them. They take a twenty-fifth of it otherwise.
fn flags(target: &str) -> Result<String, Box<dyn Error>> {
    let mut flags = "-C target-feature=+crt-static".to_owned();
    if variable("HOST")? == target && applies_packed_relocations() {
        flags.push_str(" -C link-arg=-z -C link-arg=pack-relative-relocs");
    }
    Ok(flags)
}

/// Whether the C library that is linked in is glibc 2.36 or later. A static program of an earlier one would
/// crash at its start. `xtask/rustc-static` asks the same for the command.
fn applies_packed_relocations() -> bool {
    let mut ask = Command::new("cc");
    ask.args(["-E", "-P", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut asked) = ask.spawn() else { return false };
    let question = b"#include <features.h>\n__GLIBC_MINOR__\n";
    let is_asked = asked.stdin.take().is_some_and(|mut into| into.write_all(question).is_ok());
    let Ok(answer) = asked.wait_with_output() else { return false };
    let answer = String::from_utf8_lossy(&answer.stdout);
    let minor = answer.lines().last().and_then(|line| line.trim().parse::<u32>().ok());
    is_asked && minor.is_some_and(|minor| minor >= 36)
}

/// What another program is not known by.
fn mark(bytes: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn variable(name: &str) -> Result<String, Box<dyn Error>> {
    std::env::var(name).map_err(|error| format!("{name}: {error}").into())
}

/// Whether a 64-bit little-endian ELF file names a dynamic loader (a segment of type PT_INTERP).
fn has_interpreter(file: &[u8]) -> bool {
    let number = |at: usize, len: usize| -> Option<usize> {
        let bytes = file.get(at..at.checked_add(len)?)?;
        bytes
            .iter()
            .rev()
            .try_fold(0_usize, |sum, byte| sum.checked_mul(256)?.checked_add(usize::from(*byte)))
    };
    let segment = || -> Option<(usize, usize, usize)> {
        Some((number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?))
    };
    let Some((table, size, count)) = segment() else { return true };
    (0..count).any(|index| number(table + index * size, 4) == Some(3))
}
