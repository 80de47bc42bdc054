//! The objects of the document: those that every door shows, by the schemas that they publish.

use super::words::told_as_enums;
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
            // What streams carry is no body of an answer.
            generator.subschema_for::<cofferdam_session::objects::FileEventReport>();
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
    /// A command, for one who follows it.
    ExecNews = cofferdam_session::objects::ExecNews,
    /// What a command did.
    Receipt = cofferdam_core::Receipt,
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
    /// A pack of tools.
    Tools = super::tools::ToolList,
    /// The arguments of a tool.
    ToolArguments = super::tools::ToolArguments,
    /// What a call of a tool came to.
    ToolResult = super::tools::ToolOutcome,
    /// What was done with a file.
    FileDone = cofferdam_session::objects::FileDone,
    /// What was read of a file.
    FileContent = cofferdam_session::objects::FileContent,
    /// Several files.
    FileContents = cofferdam_session::objects::FileContents,
    /// Files that are read at once.
    ReadManyWish = super::files::ReadManyWish,
    /// Lines of a text.
    FileWindow = cofferdam_session::objects::FileWindow,
    /// One thing in a workspace.
    FileEntry = cofferdam_session::objects::FileEntry,
    /// A page of a directory.
    FileList = cofferdam_session::objects::FileList,
    /// A directory that is to be there.
    MkdirWish = super::files::MkdirWish,
    /// Something that is to have another name.
    MoveWish = super::files::MoveWish,
    /// Something that is to be copied.
    CopyWish = super::files::CopyWish,
    /// Permissions that something is to have.
    ChmodWish = super::files::ChmodWish,
    /// What was copied.
    FileCopied = cofferdam_session::objects::FileCopied,
    /// Names that are looked for.
    GlobWish = super::files::GlobWish,
    /// Names that were found.
    FileNames = cofferdam_session::objects::FileNames,
    /// Lines that are looked for.
    GrepWish = super::files::GrepWish,
    /// Lines that were found.
    FileMatches = cofferdam_session::objects::FileMatches,
    /// Texts that are to be replaced.
    EditsWish = super::files::EditsWish,
    /// Texts that were replaced.
    FileEdit = cofferdam_session::objects::FileEdit,
    /// Edits that do not apply.
    EditRefused = super::refusal::ProblemWith<cofferdam_session::objects::FileEdit>,
    /// A patch that was applied.
    FilePatch = cofferdam_session::objects::FilePatch,
    /// A patch that does not fit.
    PatchRefused = super::refusal::ProblemWith<cofferdam_session::objects::FilePatch>,
    /// What was unpacked.
    FileImported = cofferdam_session::objects::FileImported,
    /// What a sandbox changed.
    Changes = cofferdam_session::objects::ChangeList,
    /// The same with its parts.
    Hunks = cofferdam_session::objects::HunkList,
    /// What is to land.
    ApplyWish = super::layers::ApplyWish,
    /// What landed.
    AppliedChanges = cofferdam_session::objects::AppliedChanges,
    /// What did not land.
    ApplyConflict = super::refusal::ProblemWith<cofferdam_session::objects::AppliedChanges>,
    /// What is to be dropped.
    DiscardWish = super::layers::DiscardWish,
    /// What was dropped.
    DiscardedChanges = cofferdam_session::objects::DiscardedChanges,
    /// Points of a history.
    History = cofferdam_session::HistoryReport,
    /// Where a sandbox goes back to.
    UndoWish = super::layers::UndoWish,
    /// What was taken back.
    Undone = cofferdam_session::UndoReport,
    /// A sandbox that is to begin as another one.
    ForkWish = super::layers::ForkWish,
    /// A snapshot that is to be taken.
    SnapshotWish = super::layers::SnapshotWish,
    /// A snapshot.
    Snapshot = cofferdam_session::SnapshotReport,
    /// Snapshots.
    SnapshotList = cofferdam_session::objects::SnapshotList,
    /// A snapshot that came in.
    SnapshotImported = cofferdam_session::SnapshotImported,
    /// A shell.
    Shell = cofferdam_session::ShellReport,
    /// Shells.
    ShellList = cofferdam_session::objects::ShellList,
    /// A command for a shell.
    ShellRunWish = super::shells::ShellRunWish,
    /// A command of a shell that is asked for again.
    ShellCheckWish = super::shells::ShellCheckWish,
    /// What came of a command of a shell.
    ShellRan = cofferdam_session::objects::ShellRan,
    /// What a caller says over a WebSocket.
    ShellMessage = super::shells::Asked,
    /// What a caller is told over a WebSocket.
    ShellTold = super::shells::Told,
    /// A port that is to have an address.
    PortOrder = super::ports::PortWish,
    /// A port with its address.
    Port = super::ports::PortReport,
    /// The ports that have one.
    Ports = super::ports::PortList,
    /// What a sandbox uses.
    SandboxMetrics = cofferdam_session::MetricsReport,
    /// What attacks from inside a sandbox came to.
    Proof = cofferdam_core::ProbeReport,
    /// What a sandbox may reach.
    Network = cofferdam_session::NetworkReport,
    /// All rules of a sandbox, as they are to be.
    NetworkOrder = super::network::NetworkWish,
    /// Rules.
    NetworkRules = super::network::RulesWish,
    /// What became of connections.
    Connections = cofferdam_session::ConnectionList,
    /// What waits to be allowed.
    Approvals = cofferdam_session::PermissionList,
    /// Something that waits to be allowed, or did so lately.
    Approval = cofferdam_session::PermissionReport,
    /// An answer to what waits.
    ApprovalAnswer = super::approvals::AnswerWish,
    /// A secret, without its value.
    Secret = cofferdam_session::SecretReport,
    /// Secrets.
    Secrets = cofferdam_session::SecretList,
    /// An error.
    ProblemDocument = super::error::ProblemReport,
    /// How the server is.
    Health = super::health::HealthReport,
}

/// Bytes as they are.
pub(crate) struct Bytes;

impl utoipa::PartialSchema for Bytes {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .format(Some(utoipa::openapi::SchemaFormat::KnownFormat(
                utoipa::openapi::KnownFormat::Binary,
            )))
            .into()
    }
}

impl utoipa::ToSchema for Bytes {}

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
    let mut schema = Schema::try_from(schema).map(Value::from).unwrap_or_default();
    told_as_enums(&mut schema);
    schema
}
