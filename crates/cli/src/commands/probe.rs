//! `cofferdam probe`.

use crate::args::ProbeArgs;
use crate::context::Context;
use crate::engine::{self, CheckReport, ProbeReport, Verdict};
use crate::{exit, render};
use cofferdam_core::{Axis, Degree, Enforcement, LimitsCount, Result};

/// Attacks a throw-away sandbox, and returns 0 only if all that counts held.
pub(super) fn perform(args: &ProbeArgs) -> Result<u8> {
    let context = Context::new(&args.policy, None, &args.config)?;
    let report = engine::probe(&context.spec, &context.state_directory)?;
    let counts = LimitsCount::by_wish(context.spec.profile, &context.spec.limits);
    tell(&report, counts, args.json)
}

/// Shows what attacks on a session's kind of sandbox came to.
pub(super) fn show(report: &ProbeReport, is_json: bool) -> Result<u8> {
    let falls_short = report.enforced.degree(Axis::Limits) != Degree::Full;
    let counts = match falls_short && report.overall == Enforcement::FullyEnforced {
        true => LimitsCount::No,
        false => LimitsCount::Yes,
    };
    tell(report, counts, is_json)
}

fn tell(report: &ProbeReport, counts: LimitsCount, is_json: bool) -> Result<u8> {
    match is_json {
        true => render::print_json(report)?,
        false => render::print_text(&text(report, counts))?,
    }
    Ok(match report.overall {
        Enforcement::FullyEnforced => exit::DONE,
        Enforcement::Partial | Enforcement::Unavailable => exit::FAILED,
    })
}

fn text(report: &ProbeReport, limits_count: LimitsCount) -> String {
    let mut rows =
        vec![["PROMISE", "CHECK", "RESULT", "STOPPED BY", "LAYER"].map(str::to_owned).to_vec()];
    rows.extend(report.checks.iter().map(row));
    let mut text = render::table(&rows);
    for check in report.checks.iter().filter(|check| is_worth_a_word(check.verdict)) {
        let (attack, control) = (render::plain(&check.attack), render::plain(&check.control));
        text.extend(["  ", &check.name, ": attack: ", &attack, "; control: ", &control, "\n"]);
    }
    text.push('\n');
    text.push_str(&render::axes(&report.enforced, limits_count));
    text.extend(["\n", &report.profile, ": ", render::verdict(report.overall), "\n"]);
    text
}

fn row(check: &CheckReport) -> Vec<String> {
    let stopped_by = check.stopped_by.as_ref();
    let errno = stopped_by.and_then(|stopped| stopped.errno.as_deref()).unwrap_or("-");
    let layer = stopped_by.map_or("-", |stopped| stopped.layer.as_str());
    [&check.promise, &check.name, verdict(check.verdict), errno, layer]
        .map(|cell| render::plain(cell).into_owned())
        .to_vec()
}

fn is_worth_a_word(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Held | Verdict::NotApplicable => false,
        Verdict::Broken | Verdict::ControlFailed | Verdict::NotTried => true,
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Held => "held",
        Verdict::Broken => "BROKEN",
        Verdict::ControlFailed => "CONTROL FAILED",
        Verdict::NotTried => "not tried",
        Verdict::NotApplicable => "not applicable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{Basis, Enforced};
    use cofferdam_local::verdict::StoppedBy;

    fn check(name: &str, verdict: Verdict, errno: Option<&str>) -> CheckReport {
        let layer = "view".to_owned();
        CheckReport {
            name: name.into(),
            promise: "P1".into(),
            axis: "files".into(),
            held: verdict == Verdict::Held,
            verdict,
            stopped_by: errno.map(|errno| StoppedBy { errno: Some(errno.into()), layer }),
            attack: "it connected".into(),
            control: "it connected".into(),
        }
    }

    #[test]
    fn a_probe_is_a_table_and_a_verdict() {
        let mut enforced = Enforced::full(Basis::Probed);
        enforced.lower(Axis::Network, Degree::None, "a connection went out");
        let report = ProbeReport {
            profile: "no-network".into(),
            overall: Enforcement::Partial,
            enforced,
            checks: vec![
                check("files.read_outside", Verdict::Held, Some("ENOENT")),
                check("network.connect", Verdict::Broken, None),
            ],
        };
        let expected = "\
PROMISE  CHECK               RESULT  STOPPED BY  LAYER
P1       files.read_outside  held    ENOENT      view
P1       network.connect     BROKEN  -           -
  network.connect: attack: it connected; control: it connected

files        full
network      none
processes    full
limits       full
environment  full
  network: a connection went out

no-network: Partial
";
        assert_eq!(text(&report, LimitsCount::Yes), expected);
    }

    #[test]
    fn limits_that_nobody_asked_for_are_said_to_judge_nothing() {
        let mut enforced = Enforced::full(Basis::Probed);
        enforced.lower(Axis::Limits, Degree::Partial, "no control group");
        let report = ProbeReport {
            profile: "no-network".into(),
            overall: enforced.overall(LimitsCount::No),
            enforced,
            checks: Vec::new(),
        };
        let said = text(&report, LimitsCount::No);
        assert!(said.contains("limits       partial, not asked for by this profile\n"), "{said}");
        assert!(said.ends_with("no-network: FullyEnforced\n"), "{said}");
        let counted = text(&report, LimitsCount::Yes);
        assert!(counted.contains("limits       partial\n"), "{counted}");
    }
}
