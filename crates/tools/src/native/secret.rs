//! The tool about secrets.

use crate::Outcome;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write as _;

/// The most names that are shown; an owner may have as many.
const MAX_SHOWN: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {}

/// The secrets there are.
#[derive(Serialize, JsonSchema)]
struct Listed {
    /// Their names, in order. There is no way to a value.
    names: Vec<String>,
    /// How many more there are.
    omitted: usize,
}

pub(super) const LIST: Row = Row {
    name: "secret_list",
    title: "List secrets",
    about: "Lists the secrets that the user keeps, by name. Their values cannot be read: the user gives one to \
            a command or a connection by its name.",
    params: &[],
    output: output_of::<Listed>,
    conduct: Conduct::Of(Hints::LOOKS),
};

pub(super) async fn list(call: Call<'_>) -> Result<Outcome> {
    let Arguments {} = call.arguments()?;
    let all = call.sandboxes.sessions.secrets().await?;
    let omitted = all.len().saturating_sub(MAX_SHOWN);
    let names: Vec<String> = all.into_iter().take(MAX_SHOWN).map(|secret| secret.name).collect();
    let mut text = match names.is_empty() {
        true => "There are no secrets.".to_owned(),
        false => names.join("\n"),
    };
    if omitted > 0 {
        let _ = write!(text, "\n… and {omitted} more.");
    }
    Ok(Outcome::done(text, json!(Listed { names, omitted })))
}
