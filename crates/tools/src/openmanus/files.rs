//! `sandbox_files`: files are created, edited, rewritten and deleted.

use super::needed;
use crate::Outcome;
use crate::native::change::refusal;
use crate::param::{Kind, Param};
use crate::scope::Missing;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::files::{Only, Remove, Write};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use cofferdam_session::Doing;
use cofferdam_session::edit::{Edit, Places};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write as _;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: String,
    #[serde(default)]
    file_path: Option<String>,
    #[serde(default)]
    file_contents: Option<String>,
    #[serde(default)]
    old_str: Option<String>,
    #[serde(default)]
    new_str: Option<String>,
    #[serde(default)]
    permissions: Option<String>,
}

/// What was done.
#[derive(Serialize, JsonSchema)]
struct Answer {
    /// Always true: what was not done is an error.
    success: bool,
    /// What was done, in words.
    output: String,
    /// The file, relative to the workspace.
    file_path: String,
    /// Where port 8080 of the sandbox is reached, of an index.html that was created: start a server there.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview_url: Option<String>,
}

/// The port that a page is previewed on.
const PREVIEW_PORT: u16 = 8080;

pub(super) const ROW: Row = Row {
    name: "sandbox_files",
    title: "Change files",
    about: "Creates, edits, rewrites and deletes files of the workspace. create_file refuses one that is \
            there, full_file_rewrite one that is not, and str_replace a text that does not stand there \
            exactly once. Of an index.html that is created it is told where port 8080 is reached.",
    params: &[
        Param::required(
            "action",
            Kind::Choice(&["create_file", "str_replace", "full_file_rewrite", "delete_file"]),
            "What to do.",
        ),
        Param::optional("file_path", Kind::Word, "The file, relative to /workspace."),
        Param::optional("file_contents", Kind::Text, "What it is to hold; may be empty."),
        Param::optional("old_str", Kind::Word, "What stands there, for str_replace."),
        Param::optional("new_str", Kind::Text, "What is to stand there; may be empty."),
        Param::optional(
            "permissions",
            Kind::Word,
            "In octal. 644 for a new file; those that it has for one that is rewritten.",
        ),
    ],
    output: output_of::<Answer>,
    conduct: Conduct::Of(Hints::CHANGES),
};

/// The parameters of an action.
fn takes(action: &str) -> &'static [&'static str] {
    match action {
        "create_file" | "full_file_rewrite" => &["file_path", "file_contents", "permissions"],
        "str_replace" => &["file_path", "old_str", "new_str"],
        _ => &["file_path"],
    }
}

pub(super) async fn call(call: Call<'_>) -> Result<Outcome> {
    let asked: Arguments = call.arguments()?;
    let action = asked.action.as_str();
    call.refuse_others(ROW.params, action, takes(action))?;
    let path = plain(&needed(asked.file_path, "file_path", action)?)?;
    let mut output = match action {
        "create_file" | "full_file_rewrite" => {
            let contents = needed(asked.file_contents, "file_contents", action)?;
            let mode = asked.permissions.as_deref().map(mode).transpose()?;
            let is_new = action == "create_file";
            let only = if is_new { Only::IfMissing } else { Only::IfExists };
            let mode = mode.or(is_new.then_some(0o644));
            let order = Write { path: path.as_str().into(), only, mode };
            write(&files(&call).await?, &order, &contents).await?
        }
        "str_replace" => {
            let old = needed(asked.old_str, "old_str", action)?;
            let new = needed(asked.new_str, "new_str", action)?;
            replace(&call, &path, old, new).await?
        }
        _ => {
            let order = Remove { path: path.as_str().into(), recursive: false };
            files(&call).await?.remove(&order).await?;
            format!("File '{path}' deleted")
        }
    };
    let is_page = action == "create_file" && path.rsplit('/').next() == Some("index.html");
    let preview_url = if is_page { preview(&call).await? } else { None };
    if let Some(url) = &preview_url {
        write!(
            output,
            ". Port {PREVIEW_PORT} is reached at {url}: start a server there to show it"
        )
        .ok();
    }
    Ok(Outcome::json(json!(Answer { success: true, output, file_path: path, preview_url })))
}

/// Where a page is reached, if ports have addresses here. The page was written whatever comes of it.
async fn preview(call: &Call<'_>) -> Result<Option<String>> {
    let Some(ports) = call.ports else { return Ok(None) };
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    Ok(ports.expose(&session, PREVIEW_PORT).await.ok())
}

async fn files(call: &Call<'_>) -> Result<Files> {
    Ok(call.sandboxes.needed(call.name(), Missing::Make).await?.files())
}

async fn write(files: &Files, order: &Write, contents: &str) -> Result<String> {
    let path = &order.path;
    let is_new = order.only == Only::IfMissing;
    match files.write_from(order, &mut contents.as_bytes()).await {
        Ok(_) if is_new => Ok(format!("File '{path}' created")),
        Ok(_) => Ok(format!("File '{path}' rewritten")),
        Err(error) if is_new && error.kind == ErrorKind::Conflict => {
            Err(error.hint("Use full_file_rewrite, or another name."))
        }
        Err(error) if error.kind == ErrorKind::NotFound => Err(error.hint("Use create_file.")),
        Err(error) => Err(error),
    }
}

async fn replace(call: &Call<'_>, path: &str, old: String, new: String) -> Result<String> {
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let one = Edit { old: old.into(), new: new.into(), places: Places::Only };
    let edited = session.edit_file(path, &[one], Doing::Real).await?;
    match edited.report.edits.last().filter(|_| !edited.report.applies) {
        Some(refused) => Err(refusal(path, 1, refused).hint("Write more of the lines around it.")),
        None => Ok(format!("Replacement in '{path}' done")),
    }
}

/// The path relative to the workspace.
fn plain(path: &str) -> Result<String> {
    let below = path.strip_prefix("/workspace/").unwrap_or(path).trim_start_matches('/');
    let guest = cofferdam_core::GuestPath::new(below)?;
    Ok(String::from_utf8_lossy(guest.as_bytes()).into_owned())
}

/// Permissions in octal.
fn mode(text: &str) -> Result<u32> {
    u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777).ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{text:?} are no permissions"))
            .hint("Write three octal digits, as 644.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_workspace() {
        for path in ["a/b", "/a/b", "/workspace/a/b", "a//b/"] {
            assert_eq!(plain(path).unwrap(), "a/b", "{path}");
        }
        assert_eq!(plain("../a").unwrap_err().kind, ErrorKind::PathEscape);
        assert_eq!(
            (mode("755").unwrap(), mode("1777").is_err(), mode("9").is_err()),
            (0o755, true, true)
        );
    }
}
