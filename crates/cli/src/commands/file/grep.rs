//! `cofferdam file grep`.

use super::AnswerOptions;
use super::glob::ScopeOptions;
use super::search_report::note;
use crate::door::Session;
use crate::render;
use clap::Args;
use cofferdam_core::{Error, ErrorKind, Files, Result};
use cofferdam_search::{
    Case, FileHits, Grep, LineKind, MAX_CONTEXT_LINES, MAX_FILE_BYTES, Search, Want,
};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::ops::ControlFlow;

/// Finds lines by a regular expression.
///
/// Prints each as path, number and text. Of a file with zero bytes only the name is printed. On a
/// terminal control characters are made visible. Links are not followed, unless they are named. That
/// nothing is found is no error.
///
/// Example: cofferdam file grep agent-1 'fn main' src
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct GrepArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The regular expression, unless there are some with --regexp.
    #[arg(value_name = "PATTERN", required_unless_present = "regexp")]
    pub(crate) pattern: Option<OsString>,

    /// The files and directories. Default: the workspace.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,

    #[command(flatten)]
    pub(crate) matching: MatchOptions,

    #[command(flatten)]
    pub(crate) telling: TellOptions,

    #[command(flatten)]
    pub(crate) scope: ScopeOptions,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// What matches.
#[derive(Debug, Args)]
pub(crate) struct MatchOptions {
    /// Finds this, and takes all words behind the session for paths. Can be repeated.
    ///
    /// Example: --regexp -x
    #[arg(short = 'e', long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) regexp: Vec<String>,

    /// Takes the pattern for text as it stands.
    ///
    /// Example: --fixed-strings
    #[arg(short = 'F', long)]
    pub(crate) fixed_strings: bool,

    /// Finds whole words alone.
    ///
    /// Example: --word-regexp
    #[arg(short = 'w', long)]
    pub(crate) word_regexp: bool,

    /// Takes capital letters and small ones for the same.
    ///
    /// Example: --ignore-case
    #[arg(short = 'i', long, conflicts_with = "smart_case")]
    pub(crate) ignore_case: bool,

    /// Does that unless the pattern holds a capital letter.
    ///
    /// Example: --smart-case
    #[arg(short = 'S', long)]
    pub(crate) smart_case: bool,

    /// Searches files with zero bytes as if they were text.
    ///
    /// Example: --text
    #[arg(short = 'a', long)]
    pub(crate) text: bool,

    /// Leaves out a file of more bytes, at most 67108864. Default: that.
    ///
    /// Example: --max-file-bytes 1000000
    #[arg(long, value_name = "N", default_value_t = MAX_FILE_BYTES, hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(..=MAX_FILE_BYTES))]
    pub(crate) max_file_bytes: u64,
}

/// What is told of it.
#[derive(Debug, Args)]
pub(crate) struct TellOptions {
    /// Prints so many lines behind each match, at most 1000. Default: 0.
    ///
    /// Example: --after-context 3
    #[arg(short = 'A', long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_CONTEXT_LINES)))]
    pub(crate) after_context: Option<u32>,

    /// Prints so many lines before each match, at most 1000. Default: 0.
    ///
    /// Example: --before-context 3
    #[arg(short = 'B', long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_CONTEXT_LINES)))]
    pub(crate) before_context: Option<u32>,

    /// Prints so many lines before and behind each match, at most 1000. Default: 0.
    ///
    /// Example: --context 3
    #[arg(short = 'C', long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_CONTEXT_LINES)))]
    pub(crate) context: Option<u32>,

    /// Prints only the names of files that match.
    ///
    /// Example: --files-with-matches
    #[arg(short = 'l', long, conflicts_with = "count")]
    pub(crate) files_with_matches: bool,

    /// Prints only how many lines of each file match.
    ///
    /// Example: --count
    #[arg(short = 'c', long)]
    pub(crate) count: bool,

    /// Prints at most so many matches of one file. Default: all.
    ///
    /// Example: --max-count 10
    #[arg(short = 'm', long, value_name = "N")]
    pub(crate) max_count: Option<u64>,

    /// Prints at most so many matches. Default: all; with --json 10000.
    ///
    /// Example: --limit 100
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
}

impl GrepArgs {
    fn order(&self) -> Result<Grep> {
        let (matching, telling) = (&self.matching, &self.telling);
        let around = telling.context.unwrap_or(0);
        let (patterns, paths) = self.words()?;
        Ok(Grep {
            patterns,
            fixed: matching.fixed_strings,
            word: matching.word_regexp,
            case: match (matching.ignore_case, matching.smart_case) {
                (true, _) => Case::Insensitive,
                (false, true) => Case::Smart,
                (false, false) => Case::Sensitive,
            },
            before: telling.before_context.unwrap_or(around),
            after: telling.after_context.unwrap_or(around),
            want: match (telling.files_with_matches, telling.count) {
                (true, _) => Want::Name,
                (false, true) => Want::Count,
                (false, false) => Want::Lines,
            },
            binary_as_text: matching.text,
            max_matches_of_one: telling.max_count,
            max_matches: telling.limit,
            max_file_bytes: matching.max_file_bytes,
            scope: self.scope.scope(&paths),
        })
    }

    /// What the words behind the session are.
    fn words(&self) -> Result<(Vec<String>, Vec<OsString>)> {
        let mut paths = self.paths.clone();
        let Some(first) = &self.pattern else { return Ok((self.matching.regexp.clone(), paths)) };
        if !self.matching.regexp.is_empty() {
            paths.insert(0, first.clone());
            return Ok((self.matching.regexp.clone(), paths));
        }
        let pattern = first.to_str().ok_or_else(|| {
            Error::new(ErrorKind::Usage, "the pattern is not UTF-8")
                .hint("Write bytes as in '(?-u)\\xff'.")
        })?;
        Ok((vec![pattern.to_owned()], paths))
    }
}

/// Prints the lines that match.
pub(super) async fn perform(args: &GrepArgs, session: &Session, files: Files) -> Result<()> {
    if args.answer.json {
        return render::print_json(&session.grep(&args.order()?).await?);
    }
    let order = args.order()?;
    let (raw, has_context) = (!std::io::stdout().is_terminal(), order.before + order.after > 0);
    let (mut printed, mut is_first) = (Ok(()), true);
    let mut each = |hits: FileHits| {
        let mut out = Vec::new();
        if has_context && !std::mem::take(&mut is_first) && order.want == Want::Lines {
            out.extend_from_slice(b"--\n");
        }
        lines(&hits, order.want, raw, &mut out);
        printed = render::print_bytes(&out);
        if printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let searched = Search::new(files).grep(&order, &mut each).await?;
    printed?;
    note(&searched.left_out);
    Ok(())
}

/// What is printed of one file.
fn lines(hits: &FileHits, want: Want, raw: bool, out: &mut Vec<u8>) {
    let path = hits.path.to_string();
    let path = render::plain(&path);
    match want {
        Want::Name => out.extend_from_slice(format!("{path}\n").as_bytes()),
        Want::Count if hits.is_binary => {
            out.extend_from_slice(format!("{path}: binary file matches\n").as_bytes());
        }
        Want::Count => out.extend_from_slice(format!("{path}:{}\n", hits.matches).as_bytes()),
        Want::Lines if hits.is_binary => {
            out.extend_from_slice(format!("{path}: binary file matches\n").as_bytes());
        }
        Want::Lines => {
            let mut next = None;
            for line in &hits.lines {
                if next.is_some_and(|next| next != line.number) && has_gap_marks(hits) {
                    out.extend_from_slice(b"--\n");
                }
                next = Some(line.number + 1);
                let sign = if line.kind == LineKind::Context { '-' } else { ':' };
                out.extend_from_slice(format!("{path}{sign}{}{sign}", line.number).as_bytes());
                // HOSTILE: the text comes from inside, and a terminal obeys it.
                match raw {
                    true => out.extend_from_slice(&line.bytes),
                    false => {
                        let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes);
                        let text = String::from_utf8_lossy(bytes).replace('\t', "    ");
                        out.extend_from_slice(render::plain(&text).as_bytes());
                    }
                }
                if line.left_out_bytes > 0 {
                    let more = format!(" [{} more bytes]", line.left_out_bytes);
                    out.extend_from_slice(more.as_bytes());
                }
                out.push(b'\n');
            }
        }
    }
}

/// Whether groups of lines are set apart, as they are where lines of context are told.
fn has_gap_marks(hits: &FileHits) -> bool {
    hits.lines.iter().any(|line| line.kind == LineKind::Context)
}
