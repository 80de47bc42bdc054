//! `cofferdam probe`.

use crate::args::ProbeArgs;
use crate::context::Context;
use crate::engine::{self, CheckVerdict, ProbeReport};
use crate::{exit, render};
use cofferdam_core::{Enforcement, Result};

/// Attacks a throw-away sandbox, and returns 0 only if all that counts held.
pub(super) fn perform(args: &ProbeArgs) -> Result<u8> {
    let context = Context::new(&args.policy, None, &args.config)?;
    context.refuse_way_out()?;
    let report = engine::probe(&context.spec, &context.state_directory)?;
    match args.json {
        true => render::print_json(&report)?,
        false => render::print_text(&text(&report))?,
    }
    Ok(match report.verdict {
        Enforcement::FullyEnforced => exit::DONE,
        Enforcement::Partial | Enforcement::Unavailable => exit::FAILED,
    })
}

fn text(report: &ProbeReport) -> String {
    let mut rows =
        vec![["PROMISE", "CHECK", "RESULT", "STOPPED BY", "LAYER"].map(str::to_owned).to_vec()];
    for check in &report.checks {
        let cell = |text: &Option<String>| {
            text.as_deref().map_or_else(|| "-".to_owned(), |text| render::plain(text).into_owned())
        };
        rows.push(vec![
            check.promise.clone(),
            render::plain(&check.name).into_owned(),
            verdict(check.verdict).to_owned(),
            cell(&check.stopped_by),
            cell(&check.layer),
        ]);
    }
    let mut text = render::table(&rows);
    for check in report.checks.iter().filter(|check| check.verdict != CheckVerdict::Held) {
        if let Some(detail) = &check.detail {
            text.extend(["  ", &*render::plain(&check.name), ": ", &render::plain(detail), "\n"]);
        }
    }
    text.push('\n');
    text.push_str(&render::axes(&report.enforced));
    text.extend(["\n", &report.profile, ": ", render::verdict(report.verdict), "\n"]);
    text
}

fn verdict(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Held => "held",
        CheckVerdict::Broken => "BROKEN",
        CheckVerdict::ControlFailed => "control failed",
        CheckVerdict::Skipped => "skipped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ProbeCheck;
    use cofferdam_core::{Axis, Basis, Degree, Enforced};

    #[test]
    fn a_probe_is_a_table_and_a_verdict() {
        let mut enforced = Enforced::full(Basis::Probed);
        enforced.lower(Axis::Network, Degree::None, "a connection went out");
        let check = |name: &str, verdict, stopped: Option<&str>| ProbeCheck {
            name: name.into(),
            promise: "P1".into(),
            axis: Axis::Files,
            verdict,
            stopped_by: stopped.map(str::to_owned),
            layer: stopped.map(|_| "view".to_owned()),
            detail: Some("it connected".into()),
        };
        let report = ProbeReport {
            profile: "no-network".into(),
            verdict: Enforcement::Partial,
            enforced,
            checks: vec![
                check("files.read_outside", CheckVerdict::Held, Some("ENOENT")),
                check("network.connect", CheckVerdict::Broken, None),
            ],
        };
        let expected = "\
PROMISE  CHECK               RESULT  STOPPED BY  LAYER
P1       files.read_outside  held    ENOENT      view
P1       network.connect     BROKEN  -           -
  network.connect: it connected

files        full
network      none
processes    full
limits       full
environment  full
  network: a connection went out

no-network: Partial
";
        assert_eq!(text(&report), expected);
    }
}
