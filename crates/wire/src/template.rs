//! A plan in two parts: what many sandboxes have in common, and what is one sandbox's own.

use crate::plan::{IdRange, Step};
use serde::{Deserialize, Serialize};

/// What a template is made from. Equal values make templates that stand for each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// Steps that build the tree, once.
    pub tree: Vec<Step>,
    /// Steps that each sandbox does by itself, the same in all.
    pub common: Vec<Step>,
    /// What is made before it is asked for.
    pub ahead: Ahead,
}

/// What a template makes while nothing is asked of it. Each is given to one sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ahead {
    /// Nothing.
    #[default]
    Nothing,
    /// A network namespace.
    Network,
    /// A process in all its namespaces, which waits to hear whose it is.
    Process,
}

/// What one sandbox does besides. It hears of it by itself, over its line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// Its steps, in order.
    pub steps: Vec<RestStep>,
    /// Positions of the steps whose mounts come with the message, in order.
    pub mounts: Vec<usize>,
    /// How many control groups to join come behind them.
    pub joins: usize,
}

/// One step of a sandbox that was cloned from a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestStep {
    /// That of [`Shared::common`] at this position.
    Common(usize),
    /// One of its own.
    Own(Step),
}

/// What a template's process hears, one value a message. It never hears of paths, variables or
/// arguments of a sandbox, because later sandboxes are copies of it.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToTemplate {
    /// Become a template. The end of the opener's line comes with the message.
    Become(Shared),
    /// Clone a sandbox. The directory of a control group to be born in comes with the message, if
    /// there is one. A process made ahead is in none, so it does not serve then.
    Clone {
        /// How its ids stand for those of the template's namespace.
        uid_map: Vec<IdRange>,
        /// The same for groups.
        gid_map: Vec<IdRange>,
        /// Whether a descriptor comes.
        born_in: bool,
    },
}
