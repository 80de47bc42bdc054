//! `cofferdam file glob`.

use super::AnswerOptions;
use super::search_report::note;
use crate::door::Session;
use crate::render;
use clap::{Args, ValueEnum};
use cofferdam_core::files::EntryKind;
use cofferdam_core::{Files, Result};
use cofferdam_search::{Found, Glob, Scope, Search};
use std::ffi::OsString;
use std::ops::ControlFlow;

/// Finds names by patterns.
///
/// A pattern has to match the whole path below the directory that is searched: * and ? stay within a
/// directory, ** goes through any number of them, and there are [ab] and {one,other}. Put it in quotes,
/// or your shell looks for it on the host. Links are not followed.
///
/// Example: cofferdam file glob agent-1 '**/*.rs'
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct GlobArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The patterns, of which one has to match.
    #[arg(value_name = "PATTERN", required = true)]
    pub(crate) patterns: Vec<String>,

    /// Searches this directory. Default: the workspace.
    ///
    /// Example: --in src
    #[arg(long = "in", value_name = "PATH")]
    pub(crate) directory: Option<OsString>,

    /// Takes capital letters and small ones for the same.
    ///
    /// Example: --ignore-case
    #[arg(short = 'i', long)]
    pub(crate) ignore_case: bool,

    /// Finds only what is one of these, separated by commas: file, directory, link, fifo, socket,
    /// device. Default: anything.
    ///
    /// Example: --kind file,link
    #[arg(long, value_name = "KIND", value_delimiter = ',', hide_possible_values = true)]
    pub(crate) kind: Vec<Kind>,

    /// Prints at most so many names. Default: all; with --json 10000.
    ///
    /// Example: --limit 100
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,

    #[command(flatten)]
    pub(crate) scope: ScopeOptions,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// What is passed over in a search.
#[derive(Debug, Args)]
pub(crate) struct ScopeOptions {
    /// Searches names that begin with a dot too. What is called .git is passed over in any case.
    ///
    /// Example: --hidden
    #[arg(long)]
    pub(crate) hidden: bool,

    /// Searches what a .gitignore excludes too.
    ///
    /// Example: --no-ignore
    #[arg(long)]
    pub(crate) no_ignore: bool,

    /// Searches only files that this matches, as a line of a .gitignore would. Can be repeated.
    ///
    /// Example: --include '*.rs'
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,

    /// Passes over files and directories that this matches. Can be repeated.
    ///
    /// Example: --exclude vendor/
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
}

/// What something in the workspace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe with a name.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl ScopeOptions {
    pub(super) fn scope(&self, paths: &[OsString]) -> Scope {
        Scope {
            paths: paths.iter().map(super::path).collect(),
            hidden: self.hidden,
            ignored: self.no_ignore,
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            ..Scope::default()
        }
    }
}

impl GlobArgs {
    fn order(&self) -> Glob {
        Glob {
            patterns: self.patterns.clone(),
            ignore_case: self.ignore_case,
            kinds: self.kind.iter().map(|kind| kind.entry()).collect(),
            max_matches: self.limit,
            scope: self.scope.scope(self.directory.as_slice()),
        }
    }
}

impl Kind {
    fn entry(self) -> EntryKind {
        match self {
            Self::File => EntryKind::File,
            Self::Directory => EntryKind::Directory,
            Self::Link => EntryKind::Link,
            Self::Fifo => EntryKind::Fifo,
            Self::Socket => EntryKind::Socket,
            Self::Device => EntryKind::Device,
        }
    }
}

/// Prints the names that match.
pub(super) async fn perform(args: &GlobArgs, session: &Session, files: Files) -> Result<()> {
    if args.answer.json {
        return render::print_json(&session.glob(&args.order()).await?);
    }
    let mut printed = Ok(());
    let mut each = |found: Found| {
        let path = found.path.to_string();
        printed = render::print_text(&format!("{}\n", render::plain(&path)));
        if printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let searched = Search::new(files).glob(&args.order(), &mut each).await?;
    printed?;
    note(&searched.left_out);
    Ok(())
}
