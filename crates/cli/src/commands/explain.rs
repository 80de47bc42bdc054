//! `cofferdam explain`.

use crate::args::ExplainArgs;
use crate::context::Context;
use crate::engine::{self, ExplainedItem, ExplainedSection, Explanation};
use crate::{exit, render};
use cofferdam_core::{Command, ProcessId, Result};

/// Prints what a sandbox would be made of.
pub(super) fn perform(args: &ExplainArgs) -> Result<u8> {
    let context = Context::new(&args.policy, Some(&args.command), &args.config)?;
    let is_named = args.command.shell.is_some() || !args.command.argv.is_empty();
    let command = match is_named {
        true => context.command(&args.command)?,
        false => {
            Command { timeout: context.timeout, ..Command::new(ProcessId::new("run")?, NOTHING) }
        }
    };
    let mut explanation = engine::explain(&context.spec, &command)?;
    add_way_out(&mut explanation, &context)?;
    match args.json {
        true => render::print_json(&explanation)?,
        false => render::print_text(&text(&explanation))?,
    }
    Ok(exit::DONE)
}

/// The argv of a command that nobody named.
const NOTHING: [&str; 0] = [];

/// Shows the rules of the way out, which the engine does not serve yet.
fn add_way_out(explanation: &mut Explanation, context: &Context) -> Result<()> {
    let rules = context.spec.profile.egress(&context.spec.egress)?;
    if rules.is_empty() {
        return Ok(());
    }
    let item = |rule: &cofferdam_core::EgressRule| ExplainedItem {
        what: format!("allow {rule}"),
        why: match context.spec.egress.contains(rule) {
            true => "a rule asks for it".to_owned(),
            false => format!("profile {} opens it", context.spec.profile),
        },
    };
    let items = rules.iter().map(item).collect();
    explanation.sections.push(ExplainedSection { title: "way out".to_owned(), items });
    explanation.missing.push(
        "the gate that serves a way out is not in this version, so a run is refused".to_owned(),
    );
    Ok(())
}

fn text(explanation: &Explanation) -> String {
    let mut text = format!("profile {}\n", explanation.profile);
    for section in &explanation.sections {
        text.extend(["\n", &*render::plain(&section.title), "\n"]);
        for item in &section.items {
            text.extend(["  ", &*render::plain(&item.what)]);
            match item.why.is_empty() {
                true => text.push('\n'),
                false => text.extend([": ", &*render::plain(&item.why), "\n"]),
            }
        }
    }
    if !explanation.missing.is_empty() {
        text.push_str("\nnot possible here\n");
        for sentence in &explanation.missing {
            text.extend(["  ", &*render::plain(sentence), "\n"]);
        }
    }
    text.push_str("\nenforced\n");
    for line in render::axes(&explanation.enforced).lines() {
        text.extend(["  ", line, "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{Basis, Enforced};

    #[test]
    fn a_plan_is_sentences_in_groups() {
        let item = ExplainedItem { what: "/usr read-only".into(), why: "programs".into() };
        let explanation = Explanation {
            profile: "no-network".into(),
            enforced: Enforced::full(Basis::Planned),
            sections: vec![ExplainedSection { title: "mounts".into(), items: vec![item] }],
            missing: vec!["no control group can be written".into()],
        };
        let expected = "\
profile no-network

mounts
  /usr read-only: programs

not possible here
  no control group can be written

enforced
  files        full
  network      full
  processes    full
  limits       full
  environment  full
";
        assert_eq!(text(&explanation), expected);
    }
}
