//! Configuration files from any bytes, through the program itself: `TEST_COFFERDAM_BIN` names it.
//!
//! The parser lies in the command's package, which is no library, so this target sees exit codes and
//! not branches: 0 or an error of ours, never a signal and never the code of a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// What Rust exits with after a panic.
const PANIC: i32 = 101;

fn place() -> &'static (PathBuf, PathBuf) {
    static PLACE: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    PLACE.get_or_init(|| {
        let program =
            std::env::var_os("TEST_COFFERDAM_BIN").expect("TEST_COFFERDAM_BIN names the program");
        let name = format!("cofferdam-fuzz.{}.toml", std::process::id());
        (program.into(), std::env::temp_dir().join(name))
    })
}

fuzz_target!(|bytes: &[u8]| {
    let (program, file) = place();
    std::fs::write(file, bytes).expect("the file can be written");
    let status = Command::new(program)
        .args(["config", "check"])
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the program can be started");
    let code = status.code().expect("no signal ends the program");
    assert_ne!(code, PANIC, "the program panicked");
});
