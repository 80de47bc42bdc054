//! The tables, the object, and the page they are put into.

use super::Outcome;
use super::measure::{Results, Row, Value};
use super::targets::{TARGETS, Target};
use serde_json::{Value as Json, json};

/// Everything that one run found.
pub(super) struct Report {
    machine: Vec<(&'static str, String)>,
    notes: Vec<String>,
    results: Results,
    quick: bool,
}

/// The page, and the lines between which the tables stand.
const PAGE: &str = "BENCHMARKS.md";
const BEGIN: &str = "<!-- bench:begin -->";
const END: &str = "<!-- bench:end -->";

impl Report {
    pub(super) fn new(
        machine: Vec<(&'static str, String)>,
        mut notes: Vec<String>,
        results: Results,
        quick: bool,
    ) -> Self {
        if quick {
            notes.push("A quick run: too few rounds to prove anything.".to_owned());
        }
        Self { machine, notes, results, quick }
    }

    /// Whether a target that was measured is missed.
    pub(super) fn missed(&self) -> bool {
        self.verdicts().iter().any(|verdict| verdict.holds == Some(false))
    }

    pub(super) fn markdown(&self) -> String {
        let mut lines = vec!["| Machine | |".to_owned(), "|---|---|".to_owned()];
        lines.extend(self.machine.iter().map(|(name, value)| format!("| {name} | {value} |")));
        lines.push(String::new());
        lines.push("| Row | What | As | p50 | p99 | × base | added |".to_owned());
        lines.push("|---|---|---|---:|---:|---:|---:|".to_owned());
        lines.extend(self.results.rows().iter().map(|row| self.row_line(row)));
        lines.push(String::new());
        lines.push("| Target | As | Limit | Measured | |".to_owned());
        lines.push("|---|---|---:|---:|---|".to_owned());
        lines.extend(self.verdicts().iter().map(Verdict::line));
        if !self.notes.is_empty() {
            lines.push(String::new());
            lines.extend(self.notes.iter().map(|note| format!("- {note}")));
        }
        lines.push(String::new());
        lines.join("\n")
    }

    fn row_line(&self, row: &Row) -> String {
        let Row { id, who, what, .. } = row;
        let ratio = self.results.ratio(row).map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        let (middle, high) = match row.value {
            Value::Time { p50_us, p99_us, .. } => (time(p50_us), time(p99_us)),
            Value::Throughput { mb_per_s } => (format!("{mb_per_s:.0} MB/s"), "–".to_owned()),
            Value::Rate { per_s } => (format!("{per_s:.0} /s"), "–".to_owned()),
            Value::Bytes { bytes } => (format!("{} KB", bytes / 1000), "–".to_owned()),
        };
        let added = match (row.value, self.results.base(row)) {
            (Value::Time { p50_us, .. }, Some(base)) if base < p50_us => time(p50_us - base),
            (
                Value::Time { .. }
                | Value::Throughput { .. }
                | Value::Rate { .. }
                | Value::Bytes { .. },
                _,
            ) => "–".to_owned(),
        };
        format!("| {id} | {what} | {who} | {middle} | {high} | {ratio} | {added} |")
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let mut people: Vec<&str> =
            self.results.rows().iter().map(|row| row.who.as_str()).collect();
        people.retain(|who| *who != "host");
        people.sort_unstable();
        people.dedup();
        let mut verdicts = Vec::new();
        for target in &TARGETS {
            for who in &people {
                let number = target.measured(&self.results, who);
                let holds = number.map(|number| target.limit.holds(number));
                verdicts.push(Verdict { target, who: (*who).to_owned(), number, holds });
            }
        }
        verdicts
    }

    pub(super) fn json(&self) -> Outcome<String> {
        let machine: serde_json::Map<String, Json> = self
            .machine
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Json::String(value.clone())))
            .collect();
        let targets: Vec<Json> = self.verdicts().iter().map(Verdict::json).collect();
        let whole = json!({
            "machine": machine,
            "quick": self.quick,
            "rows": self.results.rows(),
            "targets": targets,
            "notes": self.notes,
        });
        serde_json::to_string_pretty(&whole).map_err(|error| error.to_string())
    }

    /// Puts the tables into the page, in place of those that are there.
    pub(super) fn write(&self) -> Outcome<()> {
        let path = crate::tidy::root().join(PAGE);
        let page =
            std::fs::read_to_string(&path).map_err(|error| format!("read {PAGE}: {error}"))?;
        let page = replace(&page, &self.markdown())?;
        std::fs::write(&path, page).map_err(|error| format!("write {PAGE}: {error}"))
    }
}

fn replace(page: &str, tables: &str) -> Outcome<String> {
    let (before, rest) = page.split_once(BEGIN).ok_or(format!("{PAGE} has no {BEGIN}"))?;
    let (_, after) = rest.split_once(END).ok_or(format!("{PAGE} has no {END}"))?;
    Ok(format!("{before}{BEGIN}\n\n{tables}\n{END}{after}"))
}

fn time(us: f64) -> String {
    if us < 10_000.0 { format!("{us:.0} µs") } else { format!("{:.1} ms", us / 1000.0) }
}

/// A target and how it went.
struct Verdict {
    target: &'static Target,
    who: String,
    number: Option<f64>,
    holds: Option<bool>,
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "**missed**",
            None => "not measured",
        }
    }

    fn line(&self) -> String {
        let number = self.number.map_or("–".to_owned(), |number| format!("{number:.2}"));
        let Self { target, who, .. } = self;
        let limit = target.limit.shown();
        format!("| {} | {who} | {limit} | {number} | {} |", target.what, self.word())
    }

    fn json(&self) -> Json {
        json!({
            "what": self.target.what,
            "as": self.who,
            "limit": self.target.limit.shown(),
            "measured": self.number,
            "holds": self.holds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_replace_the_old_ones() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(replace(&page, "new\n").unwrap(), format!("a\n{BEGIN}\n\nnew\n\n{END}\nb\n"));
        assert!(replace("no place", "new").is_err());
    }
}
