//! The static program that a library carries. Without an argument it makes sandboxes for the process
//! that started it, asked by standard input, a socket: see `cofferdam_local::launcher`. With the
//! argument `template` it is copied for them: see `cofferdam_local::template`. With the argument
//! `keep` it makes one sandbox and keeps it: see `cofferdam_local::keeper`.

use cofferdam_local::{keeper, launcher, template};

fn main() -> std::process::ExitCode {
    match std::env::args_os().nth(1) {
        Some(role) if role == keeper::ARGUMENT => keeper::serve(),
        Some(role) if role == template::ARGUMENT => template::serve(),
        Some(_) | None => launcher::serve(),
    }
}
