//! Chores: benchmarks, the soak, tidiness.

mod bench;
mod soak;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <chore>

  bench     measure; `cargo xtask bench --help` says how
  soak      kill at random moments, and look what is left; `cargo xtask soak --help` says how
  tidy      check what the compiler does not: directions, licences, names, documents
";

/// The word under which the benchmarks start this program as their small process.
const SPAWNER: &str = "bench-spawner";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("bench") => bench::run(words.get(1..).unwrap_or_default()),
        Some("soak") => soak::run(words.get(1..).unwrap_or_default()),
        Some(SPAWNER) => bench::serve(),
        Some(bench::LIBRARY) => bench::serve_library(words.get(1..).unwrap_or_default()),
        Some(bench::WEIGHTS) => bench::serve_weights(words.get(1..).unwrap_or_default()),
        Some(bench::FILES) => bench::serve_files(words.get(1..).unwrap_or_default()),
        Some(bench::GATE) => bench::serve_gate(words.get(1..).unwrap_or_default()),
        Some(bench::VISIT) => bench::visit(words.get(1..).unwrap_or_default()),
        Some(bench::SERVER) => bench::serve_server(words.get(1..).unwrap_or_default()),
        Some(bench::SESSIONS) => bench::serve_sessions(words.get(1..).unwrap_or_default()),
        Some(bench::TREES) => bench::serve_trees(words.get(1..).unwrap_or_default()),
        Some("tidy") if words.len() == 1 => tidy::run(),
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
