//! Chores: benchmarks, tidiness.

mod tidy;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <chore>

  tidy      check what the compiler does not: directions, licences, names, documents
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("tidy") if words.len() == 1 => tidy::run(),
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
