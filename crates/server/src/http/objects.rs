//! The objects of the document: those that every door shows, by the schemas that they publish.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Where the document keeps schemas.
const PLACE: &str = "/components/schemas";

macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident = $object:ty,)*) => {
        $(
            $(#[$doc])*
            pub(crate) struct $name;

            impl utoipa::PartialSchema for $name {
                fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                    // What stands for it until the document is put together.
                    utoipa::openapi::ObjectBuilder::new().into()
                }
            }

            impl utoipa::ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    <$object as JsonSchema>::schema_name()
                }
            }
        )*

        /// All of them, so that the generator meets each.
        fn meet_all(generator: &mut SchemaGenerator) {
            $(generator.subschema_for::<$object>();)*
        }
    };
}

// A line an object: the name for `body = …` in the description of a route, and the type.
objects! {
    /// A session.
    Sandbox = cofferdam_session::SessionReport,
    /// A page of sessions.
    SandboxPage = super::sandboxes::SandboxPage,
    /// A session as a request wants it.
    SandboxWish = super::wish::SandboxWish,
    /// How much longer a lease is to be.
    Extend = super::states::ExtendWish,
    /// A command as a request wants it.
    ExecOrder = super::execs::ExecWish,
    /// A command.
    Exec = cofferdam_session::ExecReport,
    /// The commands of a sandbox.
    Execs = cofferdam_session::ExecList,
    /// A part of what a command wrote.
    OutputPart = cofferdam_session::LogPart,
    /// A signal for a command.
    SignalOrder = super::execs::SignalWish,
    /// A size for a terminal.
    SizeOrder = super::execs::SizeWish,
    /// A command in a sandbox of its own, as a request wants it.
    RunOrder = super::run::RunWish,
    /// What came of a command.
    RunResult = cofferdam_core::RunReport,
    /// Events.
    Events = cofferdam_session::EventList,
    /// What callers did.
    Audit = super::events::AuditList,
    /// An error.
    ProblemDocument = super::error::ProblemReport,
    /// How the server is.
    Health = super::health::HealthReport,
}

/// The schemas of all of them, and of what they are made of, by name.
pub(super) fn schemas() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = PLACE.into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    meet_all(&mut generator);
    generator
        .take_definitions(true)
        .into_iter()
        .map(|(name, schema)| (name, plain(schema)))
        .collect()
}

fn plain(schema: Value) -> Value {
    Schema::try_from(schema).map(Value::from).unwrap_or_default()
}
