//! `cofferdam apply`.

mod hunks;

use self::hunks::Picked;
use super::layer::{print_changes, print_kept};
use crate::meter::Meter;
use crate::{exit, render, report, screen, sessions};
use clap::Args;
use cofferdam_core::{
    ApplyOrder, Change, Conflict, Error, ErrorKind, GuestPath, Held, Result, Standing,
};
use cofferdam_session::objects::{AppliedChanges, LayerChange};
use std::ffi::OsString;
use std::io::IsTerminal;

/// Lands what a copy-on-write session changed in the real workspace.
///
/// All that can land does, or nothing: a file is replaced in one moment, and where a step fails those
/// before it are undone. What lands belongs to the workspace's owner and is of now. A path that
/// changed in the workspace since the session began is a conflict and stays as it is there. Git hooks
/// and configuration, shell start files, and configuration of editors and agents land only if they
/// are named by their own path. Pipes, sockets and devices do not land.
///
/// The session stands still meanwhile, and goes on. What landed is no change of it any more.
///
/// Example: cofferdam apply agent-1 src --dry-run
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ApplyArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Only these paths of the workspace and what is below them.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,

    /// Asks at the terminal for each part of a file, as `git add -p` does.
    ///
    /// What the session changes meanwhile does not land.
    ///
    /// Example: --hunks
    #[arg(long, conflicts_with = "json")]
    pub(crate) hunks: bool,

    /// Lands these files over what the workspace changed there since, which is lost.
    ///
    /// Of conflicts where the workspace changed there since, and only of files and links below the named
    /// paths. Look at `diff` first: it shows what the workspace has now beside what lands.
    ///
    /// Example: --overwrite src/main.rs
    #[arg(long, requires = "paths", conflicts_with = "hunks")]
    pub(crate) overwrite: bool,

    /// Says what would land, and does nothing.
    ///
    /// Example: --dry-run
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Exit code:
  0 all of it landed; 1 some of it did not, and the workspace keeps what it has there; 2 usage

Examples:
  cofferdam apply agent-1 --dry-run
  cofferdam apply agent-1 src Cargo.toml
  cofferdam apply agent-1 .git/hooks
  cofferdam apply agent-1 --hunks";

/// Lands the changes.
pub(super) fn perform(args: &ApplyArgs) -> Result<u8> {
    if args.hunks && !(screen::reads_keys() && std::io::stdout().is_terminal()) {
        let what = "--hunks asks at a terminal, and there is none";
        return Err(Error::new(ErrorKind::Usage, what).hint("Name the paths that are to land."));
    }
    sessions::with(async |sessions| {
        let session = sessions::find_to_change(sessions, &args.session).await?;
        let mut picked = Picked { chosen: None, kept: Vec::new() };
        if args.hunks {
            picked = hunks::chosen(&session, &args.paths).await?;
            if picked.chosen.is_none() {
                report::note("nothing was chosen");
                return Ok(ended(&args.session, &picked.kept));
            }
        }
        let meter = Meter::start("apply", args.json);
        let (dry_run, progress) = (args.dry_run, meter.progress());
        let overwrite = args.overwrite;
        let order = ApplyOrder { dry_run, overwrite, progress, ..ApplyOrder::default() };
        let done = match picked.chosen {
            Some(chosen) => session.apply_chosen(chosen, order).await?,
            None => session.apply(&args.paths, order).await?,
        };
        drop(meter);
        let kept = done.kept.iter().map(|change| change.standing);
        let kept: Vec<Standing> = kept.chain(picked.kept).collect();
        if args.json {
            render::print_json(&AppliedChanges {
                session: session.id().to_string(),
                dry_run: args.dry_run,
                applied: done.applied.iter().map(LayerChange::new).collect(),
                kept: done.kept.iter().map(LayerChange::new).collect(),
            })?;
        } else {
            print_changes(&done.applied)?;
            print_kept(&done.kept)?;
            if done.applied.is_empty() && done.kept.is_empty() {
                report::note("the session changed nothing");
            }
            for index in indexes_left(&done.applied, &done.kept) {
                let landed = if args.dry_run { "would land" } else { "landed" };
                report::note(&format!(
                    "history {landed} without {index}, so git takes what was committed for undone: `git reset` there makes \
                     the index anew and changes no file"
                ));
            }
            return Ok(ended(&args.session, &kept));
        }
        Ok(if kept.is_empty() { exit::DONE } else { exit::FAILED })
    })
}

/// Indexes of git that stay while what a branch is lands. The next commit on the host would take it back.
fn indexes_left<'k>(applied: &[Change], kept: &'k [Change]) -> Vec<&'k GuestPath> {
    let is_history =
        |path: &[u8]| path == b"HEAD" || path == b"packed-refs" || path.starts_with(b"refs/heads/");
    let is_left = |path: &&GuestPath| {
        let repository = path.as_bytes().strip_suffix(b"index");
        let repository = repository.filter(|above| above.ends_with(b".git/"));
        let within =
            |change: &Change| change.path.as_bytes().strip_prefix(repository?).map(is_history);
        applied.iter().any(|change| within(change) == Some(true))
    };
    kept.iter().map(|change| &change.path).filter(is_left).collect()
}

/// Says what to do about what did not land, and how it ended.
fn ended(session: &str, kept: &[Standing]) -> u8 {
    remedies(session, kept).iter().for_each(|remedy| report::note(remedy));
    if kept.is_empty() { exit::DONE } else { exit::FAILED }
}

fn remedies(session: &str, kept: &[Standing]) -> Vec<String> {
    let mut all = Vec::new();
    if kept.iter().any(|standing| matches!(standing, Standing::Conflict(_))) {
        all.push(format!(
            "of a conflict, `cofferdam diff {session} PATH` shows both sides, `cofferdam file download \
             {session} PATH FILE` brings out the session's, and `cofferdam discard {session} PATH` lets the \
             workspace's be"
        ));
    }
    if kept.contains(&Standing::Conflict(Conflict::Changed)) {
        all.push(format!(
            "where a file or link changed there, `cofferdam apply {session} --overwrite PATH` puts the session's in \
             its place"
        ));
    }
    if kept.contains(&Standing::Held(Held::Protected)) {
        all.push(format!("what is protected lands by name: `cofferdam apply {session} PATH`"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_told_where_it_helps() {
        let overwrites = |standing| remedies("s", &[standing]).concat().contains("--overwrite");
        assert!(overwrites(Standing::Conflict(Conflict::Changed)));
        assert!(!overwrites(Standing::Conflict(Conflict::Gone)), "nothing is there to be replaced");
        assert!(!overwrites(Standing::Held(Held::Protected)));
    }
}
