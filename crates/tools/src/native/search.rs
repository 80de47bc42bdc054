//! The tool that searches names and lines.

use crate::Outcome;
use crate::found::{Find, Finds, NotSearched, Window};
use crate::param::{Kind, Param};
use crate::scope::Missing;
use crate::text::counted;
use crate::tool::{Conduct, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::{Error, ErrorKind, Result, made_visible};
use cofferdam_search::{Case, Glob, Grep, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write as _;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    pattern: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    path: String,
    fixed: bool,
    ignore_case: bool,
    context: u32,
    hidden: bool,
    ignored: bool,
    limit: usize,
    skip: usize,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
struct Answer {
    /// The matches that are shown, with the lines beside them.
    matches: Vec<Find>,
    /// How many match in all.
    total: usize,
    /// Whether all was counted; if not, there may be more than `total`.
    complete: bool,
    /// How many were passed over before the first that is shown.
    skipped: usize,
    /// The `skip` to go on with; null where none is left.
    next_skip: Option<usize>,
    /// What was not searched, and why.
    left_out: Vec<NotSearched>,
}

pub(super) const ROW: Row = Row {
    name: "file_search",
    title: "Search files",
    about: "Searches the workspace: with pattern for lines, with glob alone for names, with both for lines \
            of files of such names. What a .gitignore excludes and hidden names are passed over unless \
            asked for. All matches are counted; those that are not shown can be asked for.",
    params: &[
        Param::optional("pattern", Kind::Word, "A regular expression for lines."),
        Param::optional(
            "glob",
            Kind::Word,
            "A pattern for names, from path on: * within a directory, ** through any number.",
        ),
        Param::word("path", Kind::Word, ".", "The file or directory that is searched."),
        Param::flag("fixed", false, "Whether pattern is text as it stands."),
        Param::flag("ignore_case", false, "Whether capital letters and small ones are the same."),
        Param::whole("context", (0, 20), 0, "How many lines beside each match are shown."),
        Param::flag("hidden", false, "Whether names that begin with a dot are searched too."),
        Param::flag("ignored", false, "Whether what a .gitignore excludes is searched too."),
        Param::whole("limit", (1, 1000), 100, "How many matches are shown at most."),
        Param::whole("skip", (0, u64::MAX), 0, "How many matches to pass over, to go on."),
    ],
    output: output_of::<Answer>,
    conduct: Conduct::Reads,
};

pub(super) async fn search(call: Call<'_>) -> Result<Outcome> {
    let asked: Arguments = call.arguments()?;
    let files = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?.files();
    let window = Window { skip: asked.skip, limit: asked.limit };
    let mut scope = Scope { hidden: asked.hidden, ignored: asked.ignored, ..Scope::default() };
    if asked.path != "." {
        scope.paths.push(asked.path.as_str().into());
    }
    let finds = match (asked.pattern, asked.glob) {
        (Some(pattern), glob) => {
            scope.include.extend(glob);
            let order = Grep {
                patterns: vec![pattern],
                fixed: asked.fixed,
                case: if asked.ignore_case { Case::Insensitive } else { Case::Sensitive },
                before: asked.context,
                after: asked.context,
                scope,
                ..Grep::default()
            };
            Finds::lines(&files, &order, window, call.context).await?
        }
        (None, Some(glob)) => {
            let patterns = vec![glob];
            let order = Glob { patterns, ignore_case: asked.ignore_case, scope, ..Glob::default() };
            Finds::names(&files, &order, window, call.context).await?
        }
        (None, None) => {
            return Err(Error::new(ErrorKind::Usage, "neither pattern nor glob was given")
                .hint("Give pattern to search lines, or glob to search names."));
        }
    };
    Ok(Outcome::fitting(finds.finds.len(), |budget| answer(&finds, asked.skip, budget)))
}

fn answer(finds: &Finds, skip: usize, budget: usize) -> Outcome {
    let matches: Vec<Find> = finds.finds.iter().take(budget).cloned().collect();
    let shown = matches.iter().filter(|find| !find.context).count();
    let skipped = skip.min(finds.total);
    let next = skipped + shown;
    let next_skip = (next < finds.total).then_some(next);
    let least = if finds.complete { "" } else { "at least " };
    let mut text = format!("{least}{}", counted(finds.total, "match", "matches"));
    if shown > 0 && (skipped > 0 || next_skip.is_some()) {
        write!(text, "; these are {} to {next}", skipped + 1).ok();
    }
    for find in &matches {
        text.push_str(&line(find));
    }
    if let Some(next) = next_skip {
        write!(text, "\n[{} more; go on with skip {next}]", finds.total - next).ok();
    }
    if let Some(why) = finds.why_not_complete() {
        write!(text, "\n[{why}]").ok();
    }
    for left in &finds.left_out {
        write!(text, "\n[not searched: {left}]").ok();
    }
    let answer = Answer {
        matches,
        total: finds.total,
        complete: finds.complete,
        skipped,
        next_skip,
        left_out: finds.left_out.clone(),
    };
    Outcome::done(text, json!(answer))
}

fn line(find: &Find) -> String {
    // HOSTILE: a name may hold line ends, and would make lines of its own.
    let path = made_visible(&find.path);
    match (find.line, &find.text) {
        (Some(number), Some(text)) => {
            let sign = if find.context { '-' } else { ':' };
            format!("\n{path}{sign}{number}{sign}{}", text.trim_end_matches(['\r', '\n']))
        }
        _ => format!("\n{path}"),
    }
}
