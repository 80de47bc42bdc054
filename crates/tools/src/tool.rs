//! What a model is told of a tool.

use crate::param::{self, Param};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// A tool, as a model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name, unique in its pack.
    pub name: &'static str,
    /// A few words for people.
    pub title: &'static str,
    /// What it does, for a model.
    pub description: String,
    /// What it takes, as a JSON Schema. Anything else is refused.
    pub input: Value,
    /// What it answers where it does not fail, as a JSON Schema.
    pub output: Option<Value>,
    /// What a client may want to know before it lets a model call it.
    pub hints: Hints,
}

/// What a client may want to know before it lets a model call a tool. The tools keep to these; they
/// are hints to whoever does not know the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may remove or overwrite what cannot be brought back.
    pub destructive: bool,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It may reach what is outside the sandbox.
    pub open_world: bool,
}

impl Hints {
    /// It only looks.
    pub(crate) const LOOKS: Self =
        Self { read_only: true, destructive: false, idempotent: true, open_world: false };
    /// It adds, and removes nothing.
    pub(crate) const ADDS: Self =
        Self { read_only: false, destructive: false, idempotent: false, open_world: false };
    /// It brings something to a state, and may be repeated.
    pub(crate) const SETTLES: Self =
        Self { read_only: false, destructive: false, idempotent: true, open_world: false };
    /// It may overwrite or remove.
    pub(crate) const CHANGES: Self =
        Self { read_only: false, destructive: true, idempotent: false, open_world: false };
    /// It overwrites or removes, and may be repeated.
    pub(crate) const REMOVES: Self =
        Self { read_only: false, destructive: true, idempotent: true, open_world: false };
    /// It runs what somebody wrote, and nobody knows what that does.
    pub(crate) const RUNS: Self =
        Self { read_only: false, destructive: true, idempotent: false, open_world: true };
}

/// How a tool behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// As these say, whatever its sandbox is.
    Of(Hints),
    /// It looks at what is in a sandbox, which is made or woken for it where it has to be.
    Reads,
}

impl Conduct {
    /// Whether it is called to look, and changes nothing by what it is called with.
    pub(crate) fn looks(self) -> bool {
        match self {
            Self::Of(hints) => hints.read_only,
            Self::Reads => true,
        }
    }

    /// What a client is told. To make a sandbox changes nothing of anybody's; what prepares it may.
    fn hints(self, is_prepared: bool) -> Hints {
        match self {
            Self::Of(hints) => hints,
            Self::Reads if is_prepared => Hints::SETTLES,
            Self::Reads => Hints::LOOKS,
        }
    }
}

/// A row in the table of a pack.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    pub(crate) params: &'static [Param],
    pub(crate) output: fn() -> Value,
    pub(crate) conduct: Conduct,
}

impl Row {
    /// The tool, with the parameter by which calls name their sandbox, if there is one, and whether commands
    /// or files prepare one that is made.
    pub(crate) fn tool(&self, sandbox: Option<Param>, is_prepared: bool) -> Tool {
        let params: Vec<Param> = sandbox.into_iter().chain(self.params.iter().copied()).collect();
        Tool {
            name: self.name,
            title: self.title,
            description: self.about.to_owned(),
            input: param::schema(&params),
            output: Some((self.output)()),
            hints: self.conduct.hints(is_prepared),
        }
    }
}

/// The schema of what a tool answers, in one piece: not every client follows references.
pub(crate) fn output_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema: Schema = settings.into_generator().into_root_schema_for::<T>();
    schema.to_value()
}
