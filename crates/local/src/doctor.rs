//! Facts about this host for `cofferdam doctor`: slower than [`crate::host`], tried out where only
//! trying tells, each with its consequence and its remedy.

mod cgroups;
mod isolation;
mod services;

use crate::host::HostFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// The facts, most important first.
    pub facts: Vec<Fact>,
}

/// One fact about this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// Its stable name, as in `user_namespaces`.
    pub name: String,
    /// Whether it is as Cofferdam would have it.
    pub state: State,
    /// What was found, as somebody would look it up.
    pub found: String,
    /// What follows from it for Cofferdam.
    pub consequence: String,
    /// What makes it good, as a command where there is one.
    pub remedy: Option<String>,
}

/// How a fact stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Not there.
    Missing,
    /// There, and not allowed.
    Forbidden,
    /// Could not be found out.
    Unknown,
}

impl Fact {
    fn new(name: &str, state: State, found: impl Into<String>, consequence: &str) -> Self {
        Self {
            name: name.to_owned(),
            state,
            found: found.into(),
            consequence: consequence.to_owned(),
            remedy: None,
        }
    }

    fn remedy(mut self, remedy: &str) -> Self {
        self.remedy = Some(remedy.to_owned());
        self
    }
}

/// Examines this host. Takes some milliseconds: it starts programs and opens devices.
pub fn examine(facts: &HostFacts) -> Diagnosis {
    Diagnosis {
        facts: vec![
            isolation::kernel(),
            isolation::user_namespaces(facts),
            isolation::proc_file_system(facts),
            isolation::landlock(facts.landlock_abi),
            isolation::seccomp(),
            cgroups::version(),
            cgroups::delegation(facts),
            isolation::overlay(facts),
            services::tun(),
            services::nftables(),
            services::gate(facts),
            services::kvm(),
            services::docker(),
        ],
    }
}

impl Diagnosis {
    /// The diagnosis as text.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for fact in &self.facts {
            let mark = match fact.state {
                State::Ok => "ok",
                State::Missing => "missing",
                State::Forbidden => "forbidden",
                State::Unknown => "unknown",
            };
            lines.push(format!("{:<18} {mark:<10} {}", fact.name, fact.found));
            lines.push(format!("{:<18} {}.", "", fact.consequence));
            if let Some(remedy) = &fact.remedy {
                lines.push(format!("{:<18} Remedy: {remedy}", ""));
            }
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_that_is_not_good_has_a_remedy_or_needs_none() {
        let diagnosis = examine(&HostFacts::gather());
        let names: Vec<&str> = diagnosis.facts.iter().map(|fact| fact.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "kernel",
                "user_namespaces",
                "proc",
                "landlock",
                "seccomp",
                "cgroups",
                "cgroup_delegation",
                "overlayfs",
                "tun",
                "nftables",
                "gate",
                "kvm",
                "docker"
            ]
        );
        for fact in &diagnosis.facts {
            assert!(!fact.found.is_empty() && !fact.consequence.is_empty(), "{fact:?}");
            assert!(!fact.consequence.ends_with('.'), "{fact:?}");
            if matches!(fact.state, State::Missing | State::Forbidden) {
                assert!(fact.remedy.is_some(), "{fact:?}");
            }
        }
        println!("{}", diagnosis.text());
        assert!(diagnosis.text().contains("user_namespaces"));
    }
}
