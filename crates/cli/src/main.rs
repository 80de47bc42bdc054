//! The `cofferdam` command.
//!
//! A command line is read (`args`), given its meaning here (`context`), and carried out
//! (`commands`); the engine is behind `engine`. The process begins in `sys` where the C library lets it.
#![cfg_attr(all(not(test), target_env = "gnu"), no_main)]

mod appeared;
mod args;
mod beside;
mod blocking;
mod choice;
mod commands;
mod config;
mod context;
mod copying;
mod detach_keys;
#[cfg_attr(
    not(feature = "remote"),
    expect(dead_code, unused_imports, unused_variables, reason = "half of it is about servers")
)]
mod door;
mod engine;
mod exit;
mod follow;
mod images;
mod listen;
mod live_completion;
mod meter;
mod moment;
mod parts;
mod places;
mod receipt;
mod render;
mod report;
mod schema;
mod screen;
#[cfg(feature = "serve")]
mod secrecy;
mod secret_key;
mod secrets;
mod sessions;
mod signals;
mod spool;
mod surroundings;
#[cfg(all(not(test), target_env = "gnu"))]
mod sys;
mod usage;
mod verb;

use cofferdam_core::{Error, ErrorKind, Result};
use std::ffi::OsString;

#[cfg(any(test, not(target_env = "gnu")))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(perform())
}

/// Does what the command line says, and returns the exit code.
fn perform() -> u8 {
    have_as_many_descriptors_as_may_be();
    let words = help_asked_as_a_verb(std::env::args_os().collect());
    let (server, words) = match door::split(words.clone()) {
        Ok(split) => split,
        Err(error) => return report::print(verb::glance(&words), error),
    };
    let glance = verb::glance(&words);
    let outcome = match args::parse(&words) {
        Ok(verb) => door::refuse(glance.verb, server.as_ref()).and_then(|()| {
            refuse_mask()?;
            door::choose(server);
            commands::perform(verb)
        }),
        Err(complaint) if !complaint.use_stderr() => show(&complaint),
        Err(complaint) => Err(usage::error(&complaint, &words)),
    };
    outcome.unwrap_or_else(|error| report::print(glance, error))
}

/// What commands inside have on their way is counted on the host's user, and whoever may have fewer of them
/// open can send none.
fn have_as_many_descriptors_as_may_be() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it everything works that others do not take.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Fails where the mask of modes closes what is made to whoever makes it: state would be left that its owner
/// cannot open, then or later.
fn refuse_mask() -> Result<()> {
    use rustix::fs::Mode;
    let mask = rustix::process::umask(Mode::empty());
    rustix::process::umask(mask);
    if !mask.intersects(Mode::RWXU) {
        return Ok(());
    }
    let mask = mask.as_raw_mode();
    let what = format!("the mask of modes (umask {mask:04o}) takes rights from you yourself");
    Err(Error::new(ErrorKind::Denied, what).hint("Set another one first, as in `umask 077`."))
}

/// `help VERB` is `VERB --help`, as with other programs.
fn help_asked_as_a_verb(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// Shows help or the version, which the parser reports like errors.
fn show(help: &clap::Error) -> Result<u8> {
    // Where standard output is gone there is nobody left to show it to.
    let _ = help.print();
    Ok(exit::DONE)
}
