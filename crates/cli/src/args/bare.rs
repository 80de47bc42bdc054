//! Command lines without options, which need no parser.

use super::{CommandOptions, ExecArgs, RunArgs};
use std::ffi::OsString;

/// A `run` without any option.
pub(super) fn bare_run(argv: &[OsString]) -> RunArgs {
    let command = CommandOptions { argv: argv.to_vec(), ..CommandOptions::default() };
    RunArgs { command, ..RunArgs::default() }
}

/// An `exec` without any option.
pub(super) fn bare_exec(words: &[OsString]) -> Option<ExecArgs> {
    let [_, verb, session, hyphens, argv @ ..] = words else { return None };
    let session = session.to_str().filter(|session| !session.starts_with('-'))?;
    let command = CommandOptions { argv: argv.to_vec(), ..CommandOptions::default() };
    let is_bare = verb == "exec" && hyphens == "--";
    is_bare.then(|| ExecArgs { session: session.to_owned(), command, ..ExecArgs::default() })
}

#[cfg(test)]
mod tests {
    use super::super::alone;
    use super::*;
    use clap::FromArgMatches;

    fn words(line: &[&str]) -> Vec<OsString> {
        line.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_run_without_options_reads_the_same_with_and_without_the_parser() {
        let argv = words(&["ls", "--", "-l"]);
        let line = words(&["--", "ls", "--", "-l"]);
        let matches = alone::<RunArgs>("run").try_get_matches_from(line).unwrap();
        let parsed = RunArgs::from_arg_matches(&matches).unwrap();
        assert_eq!(format!("{:?}", bare_run(&argv)), format!("{parsed:?}"));
    }

    #[test]
    fn an_exec_without_options_reads_the_same_with_and_without_the_parser() {
        let line = words(&["cofferdam", "exec", "agent-1", "--", "ls", "--", "-l"]);
        let matches = alone::<ExecArgs>("exec").try_get_matches_from(&line[2..]).unwrap();
        let parsed = ExecArgs::from_arg_matches(&matches).unwrap();
        assert_eq!(format!("{:?}", bare_exec(&line).unwrap()), format!("{parsed:?}"));
        for other in [
            &["cofferdam", "exec", "--help", "--", "ls"][..],
            &["cofferdam", "exec", "agent-1", "-d", "--", "ls"],
            &["cofferdam", "exec", "agent-1"],
            &["cofferdam", "ps", "agent-1", "--"],
        ] {
            assert!(bare_exec(&words(other)).is_none(), "{other:?}");
        }
    }
}
