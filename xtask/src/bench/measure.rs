//! Rounds, percentiles, and where results are kept.

use serde::{Deserialize, Serialize};

/// How often things are done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Rounds that are thrown away.
    pub(super) warm_up: usize,
    /// Rounds of the short rows.
    pub(super) rounds: usize,
    /// Rounds of a whole build.
    pub(super) builds: usize,
    /// Rounds of a transfer.
    pub(super) transfers: usize,
    /// Sandboxes in one count of a rate.
    pub(super) rates: usize,
}

impl Plan {
    /// Enough for a 99th percentile.
    pub(super) fn full() -> Self {
        Self { warm_up: 20, rounds: 1000, builds: 7, transfers: 9, rates: 800 }
    }

    /// Enough to see that everything runs.
    pub(super) fn quick() -> Self {
        Self { warm_up: 3, rounds: 40, builds: 1, transfers: 2, rates: 64 }
    }
}

/// What was measured, in the order in which it was.
#[derive(Debug, Default, Serialize)]
pub(super) struct Results {
    rows: Vec<Row>,
}

/// One row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Row {
    /// Its stable name, as in SPECIFICATION.md.
    pub(super) id: String,
    /// `root`, `user`, or `host` where it does not matter.
    pub(super) who: String,
    /// What it is, for people.
    pub(super) what: String,
    /// The row that it is compared with.
    pub(super) base: Option<String>,
    /// The number.
    pub(super) value: Value,
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Value {
    /// Microseconds.
    Time { p50_us: f64, p90_us: f64, p99_us: f64, samples: usize },
    /// Millions of bytes a second.
    Throughput { mb_per_s: f64 },
    /// Things a second.
    Rate { per_s: f64 },
    /// Bytes.
    Bytes { bytes: u64 },
}

impl Value {
    /// The percentiles of these times in nanoseconds.
    pub(super) fn times(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        let at = |share: f64| percentile(&samples, share);
        let (p50_us, p90_us, p99_us) = (at(0.50), at(0.90), at(0.99));
        Self::Time { p50_us, p90_us, p99_us, samples: samples.len() }
    }

    /// The one number that comparisons are made with.
    pub(super) fn number(self) -> f64 {
        match self {
            Self::Time { p50_us, .. } => p50_us,
            Self::Throughput { mb_per_s } => mb_per_s,
            Self::Rate { per_s } => per_s,
            Self::Bytes { bytes } => as_f64(bytes),
        }
    }
}

/// The smallest sample that this share of all samples does not exceed, in microseconds.
fn percentile(sorted: &[u64], share: f64) -> f64 {
    let rank = (share * as_f64(sorted.len() as u64)).ceil();
    let below = sorted.iter().enumerate().find(|(index, _)| as_f64(*index as u64 + 1) >= rank);
    below.map_or(0.0, |(_, ns)| as_f64(*ns) / 1000.0)
}

/// Exact below 2^53, which is 104 days in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "a benchmark does not run for 104 days")]
pub(super) fn as_f64(number: u64) -> f64 {
    number as f64
}

impl Results {
    pub(super) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(super) fn add_bytes(&mut self, id: &str, what: &str, bytes: u64) {
        self.add(Row {
            id: id.to_owned(),
            who: "host".to_owned(),
            what: what.to_owned(),
            base: None,
            value: Value::Bytes { bytes },
        });
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The number of a row, as this person or as nobody in particular.
    pub(super) fn number(&self, id: &str, who: &str) -> Option<f64> {
        let row =
            self.rows.iter().find(|row| row.id == id && (row.who == who || row.who == "host"));
        row.map(|row| row.value.number())
    }

    /// The number of the row that this one is compared with.
    pub(super) fn base(&self, row: &Row) -> Option<f64> {
        self.number(row.base.as_deref()?, &row.who)
    }

    /// How many times its base a row is.
    pub(super) fn ratio(&self, row: &Row) -> Option<f64> {
        let base = self.base(row)?;
        (base > 0.0).then(|| row.value.number() / base)
    }

    /// A remark where the bare rows spread so much that the machine was busy.
    pub(super) fn noise(&self) -> Option<String> {
        let spread =
            self.rows.iter().filter(|row| row.id == super::rows::BARE).find_map(|row| match row
                .value
            {
                Value::Time { p50_us, p90_us, .. } if p90_us > 1.3 * p50_us => {
                    Some(p90_us / p50_us)
                }
                Value::Time { .. }
                | Value::Throughput { .. }
                | Value::Rate { .. }
                | Value::Bytes { .. } => None,
            })?;
        Some(format!(
            "The bare spawn's 90th percentile is {spread:.1} times its median: the machine was busy, and the 99th percentiles say little."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let samples: Vec<u64> = (1..=100).rev().map(|n| n * 1000).collect();
        let Value::Time { p50_us, p90_us, p99_us, samples } = Value::times(samples) else {
            panic!("not a time")
        };
        assert_eq!((p50_us, p90_us, p99_us, samples), (50.0, 90.0, 99.0, 100));
    }

    #[test]
    fn a_ratio_is_taken_within_one_person() {
        let mut results = Results::default();
        for (id, who, us) in
            [("bare", "root", 10), ("bare", "user", 20), ("run", "user", 40), ("run", "root", 40)]
        {
            results.add(Row {
                id: id.to_owned(),
                who: who.to_owned(),
                what: String::new(),
                base: Some("bare".to_owned()),
                value: Value::times(vec![us * 1000]),
            });
        }
        let ratios: Vec<Option<f64>> =
            results.rows().iter().map(|row| results.ratio(row)).collect();
        assert_eq!(ratios, [Some(1.0), Some(1.0), Some(2.0), Some(4.0)]);
    }
}
