//! `cofferdam doctor`.

use crate::args::DoctorArgs;
use crate::engine::{self, DoctorReport, FactState};
use crate::{exit, render};
use cofferdam_core::Result;

/// Prints what this host can do. What is missing is told, and is no failure.
pub(super) fn perform(args: &DoctorArgs) -> Result<u8> {
    let report = engine::doctor()?;
    match args.json {
        true => render::print_json(&report)?,
        false => render::print_text(&text(&report))?,
    }
    Ok(exit::DONE)
}

fn text(report: &DoctorReport) -> String {
    let rows: Vec<Vec<String>> = report
        .facts
        .iter()
        .map(|fact| {
            let cells = [state(fact.state), fact.name.as_str(), fact.found.as_str()];
            cells.map(|cell| render::plain(cell).into_owned()).to_vec()
        })
        .collect();
    let mut text = String::new();
    for (line, fact) in render::table(&rows).lines().zip(&report.facts) {
        text.push_str(line);
        text.push('\n');
        if !fact.consequence.is_empty() {
            text.extend([INDENT, &render::plain(&fact.consequence), "\n"]);
        }
        if let Some(remedy) = &fact.remedy {
            text.extend([INDENT, "remedy: ", &render::plain(remedy), "\n"]);
        }
    }
    text
}

/// As wide as the widest state and the space after it.
const INDENT: &str = "           ";

fn state(state: FactState) -> &'static str {
    match state {
        FactState::Ok => "ok",
        FactState::Missing => "missing",
        FactState::Forbidden => "forbidden",
        FactState::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Fact;

    #[test]
    fn a_fact_is_told_with_its_consequence_and_remedy() {
        let report = DoctorReport {
            facts: vec![
                Fact {
                    name: "kernel".into(),
                    state: FactState::Ok,
                    found: "6.18".into(),
                    consequence: String::new(),
                    remedy: None,
                },
                Fact {
                    name: "user namespaces".into(),
                    state: FactState::Forbidden,
                    found: "max_user_namespaces is 0".into(),
                    consequence: "no sandbox for ordinary users".into(),
                    remedy: Some("sysctl -w user.max_user_namespaces=15000".into()),
                },
            ],
        };
        let expected = "\
ok         kernel           6.18
forbidden  user namespaces  max_user_namespaces is 0
           no sandbox for ordinary users
           remedy: sysctl -w user.max_user_namespaces=15000
";
        assert_eq!(text(&report), expected);
    }
}
