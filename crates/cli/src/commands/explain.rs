//! `cofferdam explain`.

use super::manifest;
use crate::args::ExplainArgs;
use crate::context::{Context, argv};
use crate::{engine, exit, render, secret_key};
use cofferdam_core::Result;

/// Prints what a sandbox would be made of.
pub(super) fn perform(args: &ExplainArgs) -> Result<u8> {
    let mut context = Context::new(&args.policy, Some(&args.command), &args.config)?;
    if args.command.shell.is_some() && !args.command.argv.is_empty() {
        argv(&args.command, "explain")?;
    }
    if let Some(wanted) = manifest::provisions(args.manifest.as_deref(), None)? {
        context.spec.mounts.extend_from_slice(wanted.mounts());
    }
    let mut explanation = engine::explain(&context.spec)?;
    if !context.spec.secrets.is_empty() {
        explanation.notes.push(secret_key::note());
    }
    match args.json {
        true => render::print_json(&explanation)?,
        false => render::print_lines(&explanation.text())?,
    }
    Ok(exit::DONE)
}
