//! What a battery of attacks found, as every door shows it.

pub use cofferdam_wire::message::{Attempt, Check, Proof, Prove, Targets};

use crate::{Enforced, Enforcement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The attack failed, and the same action succeeded where it must.
    Held,
    /// The attack succeeded.
    Broken,
    /// The action failed where it must succeed, so the attack's failure says nothing.
    ControlFailed,
    /// It was not tried.
    NotTried,
    /// It was not tried, and need not be.
    NotApplicable,
}

/// What attacks from inside a sandbox came to. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeReport {
    /// The profile that was attacked.
    pub profile: String,
    /// The verdict over the axes that count.
    pub overall: Enforcement,
    /// How far each axis holds.
    pub enforced: Enforced,
    /// Each promise that was attacked.
    pub checks: Vec<CheckReport>,
}

/// One promise, attacked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// Its stable name, as in `files.read_outside`.
    pub name: String,
    /// The promise of SECURITY.md that it belongs to.
    pub promise: String,
    /// The axis it counts for.
    pub axis: String,
    /// Whether the promise held.
    pub held: bool,
    /// What it came to.
    pub verdict: Verdict,
    /// What stopped the attack.
    pub stopped_by: Option<StoppedBy>,
    /// What the attack met, for people.
    pub attack: String,
    /// What the same action met where it must succeed, for people.
    pub control: String,
}

/// What stopped an attack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoppedBy {
    /// The kernel's answer by name, as in `EPERM`; none where the process was killed, or where
    /// there was nothing to find.
    pub errno: Option<String>,
    /// The layer, as far as it can be told: `view`, `namespace`, `seccomp`, `landlock`,
    /// `capability`, `permission`, `limit`, `mount` or `unknown`.
    pub layer: String,
}
