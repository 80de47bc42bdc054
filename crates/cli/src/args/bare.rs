//! Command lines without options, which need no parser.

use super::{CommandOptions, ExecArgs, RunArgs, Verb};
use std::ffi::OsString;

/// A `run` or an `exec` without any option.
pub(super) fn bare(words: &[OsString]) -> Option<Verb> {
    match words {
        [_, verb, hyphens, argv @ ..] if verb == "run" && hyphens == "--" => {
            Some(Verb::Run(RunArgs { command: command(argv), ..RunArgs::default() }))
        }
        [_, verb, session, hyphens, argv @ ..] if verb == "exec" && hyphens == "--" => {
            let session = session.to_str().filter(|session| !session.starts_with('-'))?.to_owned();
            Some(Verb::Exec(ExecArgs { session, command: command(argv), ..ExecArgs::default() }))
        }
        _ => None,
    }
}

fn command(argv: &[OsString]) -> CommandOptions {
    CommandOptions { argv: argv.to_vec(), ..CommandOptions::default() }
}

#[cfg(test)]
mod tests {
    use super::super::{alone, tests::words};
    use super::*;
    use clap::{Args, FromArgMatches};

    /// The same as the parser reads it.
    fn parsed<A: Args + FromArgMatches>(line: &[OsString]) -> A {
        let verb = if line[1] == "run" { "run" } else { "exec" };
        let matches = alone::<A>(verb).try_get_matches_from(&line[2..]).unwrap();
        A::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn a_run_without_options_reads_the_same_with_and_without_the_parser() {
        let line = words(&["cofferdam", "run", "--", "ls", "--", "-l"]);
        let Some(Verb::Run(run)) = bare(&line) else { panic!("not run") };
        assert_eq!(format!("{run:?}"), format!("{:?}", parsed::<RunArgs>(&line)));
    }

    #[test]
    fn an_exec_without_options_reads_the_same_with_and_without_the_parser() {
        let line = words(&["cofferdam", "exec", "agent-1", "--", "ls", "--", "-l"]);
        let Some(Verb::Exec(exec)) = bare(&line) else { panic!("not exec") };
        assert_eq!(format!("{exec:?}"), format!("{:?}", parsed::<ExecArgs>(&line)));
        for other in [
            &["cofferdam", "exec", "--help", "--", "ls"][..],
            &["cofferdam", "exec", "agent-1", "-d", "--", "ls"],
            &["cofferdam", "exec", "agent-1"],
            &["cofferdam", "ps", "agent-1", "--"],
        ] {
            assert!(bare(&words(other)).is_none(), "{other:?}");
        }
    }
}
