//! `glob` and `grep`: names and lines.

use super::confined;
use crate::Outcome;
use crate::found::{Find, Finds, Window};
use crate::param::{Kind, Param};
use crate::scope::Missing;
use crate::tool::{Conduct, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{Error, ErrorKind, Result, made_visible};
use cofferdam_search::{Glob, Grep, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How many names are told.
const MAX_NAMES: usize = 1000;
/// How many lines are told.
const MAX_MATCHES: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GlobArguments {
    pattern: String,
}

/// Names that match.
#[derive(Serialize, JsonSchema)]
struct Names {
    /// The first 1000 of them, in order.
    paths: Vec<String>,
    /// How many there are.
    total: usize,
    /// Whether not all are in here, or the search was ended before it was through.
    truncated: bool,
}

pub(super) const GLOB: Row = Row {
    name: "glob",
    title: "Find files",
    about: "Finds files of the workspace by a pattern: * within a directory, ** through any number, {a,b}. At \
            most 1000 names are told, and how many there are.",
    params: &[Param::required("pattern", Kind::Word, "The pattern, relative to the workspace.")],
    output: output_of::<Names>,
    conduct: Conduct::Reads,
};

pub(super) async fn glob(call: Call<'_>) -> Result<Outcome> {
    let GlobArguments { pattern } = call.arguments()?;
    refuse_escape(&pattern)?;
    let files = call.sandboxes.needed(call.name(), Missing::Make).await?.files();
    let scope = Scope { hidden: true, ignored: true, ..Scope::default() };
    let kinds = vec![EntryKind::File];
    let order = Glob { patterns: vec![pattern], kinds, scope, ..Glob::default() };
    let window = Window { skip: 0, limit: MAX_NAMES };
    let found = Finds::names(&files, &order, window, call.context).await?;
    Ok(Outcome::fitting(found.finds.len(), |budget| {
        let paths: Vec<String> =
            found.finds.iter().take(budget).map(|find| find.path.clone()).collect();
        // HOSTILE: a name may hold line ends, and would be several.
        let lines: Vec<_> = paths.iter().map(|path| made_visible(path)).collect();
        let mut text = lines.join("\n");
        let truncated = paths.len() < found.total || !found.complete;
        text.push_str(&rest(paths.len(), &found, "names; use a narrower pattern"));
        Outcome::said(text, json!(Names { paths, total: found.total, truncated }))
    }))
}

/// Patterns are no paths, but none is needed that leads out.
fn refuse_escape(pattern: &str) -> Result<()> {
    if !pattern.starts_with('/') && pattern.split('/').all(|name| name != "..") {
        return Ok(());
    }
    let shown: String = pattern.chars().take(80).collect();
    let what = format!("the pattern {shown:?} leads out of the workspace");
    Err(Error::new(ErrorKind::PathEscape, what).hint("Use one relative to the workspace."))
}

/// What is to be said of what is not shown.
fn rest(shown: usize, found: &Finds, what: &str) -> String {
    match (shown < found.total, found.why_not_complete()) {
        (true, None) => format!("\n[{shown} of {} {what}]", found.total),
        (true, Some(_)) => format!("\n[{shown} of at least {} {what}]", found.total),
        (false, Some(why)) => format!("\n[{why}]"),
        (false, None) if shown == 0 => "(nothing)".to_owned(),
        (false, None) => String::new(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrepArguments {
    pattern: String,
    #[serde(default)]
    paths: Vec<String>,
}

/// Lines that match.
#[derive(Serialize, JsonSchema)]
struct Lines {
    /// The first 100 of them as `path:line:text`, each text at most 500 bytes.
    matches: Vec<String>,
    /// How many there are.
    total: usize,
    /// Whether not all are in here, or the search was ended before it was through.
    truncated: bool,
}

pub(super) const GREP: Row = Row {
    name: "grep",
    title: "Search files",
    about: "Searches files of the workspace for lines by a regular expression. At most 100 lines are told, \
            and how many there are.",
    params: &[
        Param::required("pattern", Kind::Word, "The regular expression."),
        Param::optional("paths", Kind::Words(100), "Files and directories. Left out: everywhere."),
    ],
    output: output_of::<Lines>,
    conduct: Conduct::Reads,
};

pub(super) async fn grep(call: Call<'_>) -> Result<Outcome> {
    let GrepArguments { pattern, paths } = call.arguments()?;
    let files = call.sandboxes.needed(call.name(), Missing::Make).await?.files();
    let mut scope = Scope { hidden: true, ignored: true, ..Scope::default() };
    for path in paths.iter().filter(|path| *path != ".") {
        scope.paths.push(confined(&files, path).await?.as_bytes().to_vec().into());
    }
    let order = Grep { patterns: vec![pattern], scope, ..Grep::default() };
    let window = Window { skip: 0, limit: MAX_MATCHES };
    let found = Finds::lines(&files, &order, window, call.context).await?;
    Ok(Outcome::fitting(found.finds.len(), |budget| {
        let told = found.finds.get(..budget.min(found.finds.len())).unwrap_or_default();
        let matches: Vec<String> = told.iter().map(|find| line(find, &find.path)).collect();
        let lines: Vec<String> =
            told.iter().map(|find| line(find, &made_visible(&find.path))).collect();
        let mut text = lines.join("\n");
        let truncated = matches.len() < found.total || !found.complete;
        text.push_str(&rest(matches.len(), &found, "lines; use a narrower pattern or paths"));
        Outcome::said(text, json!(Lines { matches, total: found.total, truncated }))
    }))
}

/// A match by the path of its file, as that is told.
fn line(find: &Find, path: &str) -> String {
    match (find.line, &find.text) {
        (Some(number), Some(text)) => format!("{path}:{number}:{text}"),
        _ => format!("{path}: matches, and is no text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_leads_out_is_refused() {
        for bad in ["/etc/*", "../*", "a/../../*"] {
            assert_eq!(refuse_escape(bad).unwrap_err().kind, ErrorKind::PathEscape, "{bad}");
        }
        refuse_escape("**/a..b/*").unwrap();
    }
}
