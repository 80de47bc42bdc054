//! The one error that crosses crates.

use std::fmt;

/// What came of it, or why nothing did.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error that names the thing and, where there is one, the remedy.
#[derive(Debug)]
pub struct Error {
    /// What sort of failure it is.
    pub kind: ErrorKind,
    /// A lowercase fragment that could follow "failed to …: "; names the thing.
    pub message: String,
    /// What to do about it, as one imperative sentence.
    pub hint: Option<String>,
    /// What caused it.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The closed set of failures. A caller decides by these, never by a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A flag, argument or request makes no sense.
    Usage,
    /// A configuration file, or a variable that stands for a part of it, makes no sense.
    Config,
    /// The named thing is not there.
    NotFound,
    /// The thing is there already, or in a state that forbids this.
    Conflict,
    /// A path leaves the place that it has to stay in.
    PathEscape,
    /// The thing is no regular file, or of another type than is needed.
    NotAFile,
    /// It is larger than was allowed, or than fits.
    TooLarge,
    /// This backend can never do that.
    Unsupported,
    /// Policy forbids it.
    Denied,
    /// It was asked to be enforced and cannot be enforced here.
    Unenforceable,
    /// It works in principle and not now.
    Unavailable,
    /// The sandbox could not be set up. Nothing was run.
    SetupFailed,
    /// The time was over.
    TimedOut,
    /// The caller gave up.
    Canceled,
    /// The other side of a line broke the protocol.
    Protocol,
    /// The operating system refused an operation on the host.
    Io,
}

impl ErrorKind {
    /// All kinds, for tables and tests.
    pub const ALL: [Self; 16] = [
        Self::Usage,
        Self::Config,
        Self::NotFound,
        Self::Conflict,
        Self::PathEscape,
        Self::NotAFile,
        Self::TooLarge,
        Self::Unsupported,
        Self::Denied,
        Self::Unenforceable,
        Self::Unavailable,
        Self::SetupFailed,
        Self::TimedOut,
        Self::Canceled,
        Self::Protocol,
        Self::Io,
    ];

    /// Its stable name, as in the `kind` of an error object.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Config => "config",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::PathEscape => "path_escape",
            Self::NotAFile => "not_a_file",
            Self::TooLarge => "too_large",
            Self::Unsupported => "unsupported",
            Self::Denied => "denied",
            Self::Unenforceable => "unenforceable",
            Self::Unavailable => "unavailable",
            Self::SetupFailed => "setup_failed",
            Self::TimedOut => "timed_out",
            Self::Canceled => "canceled",
            Self::Protocol => "protocol",
            Self::Io => "io",
        }
    }

    /// The status of HTTP that stands for it.
    pub fn http_status(self) -> u16 {
        match self {
            Self::Usage | Self::Config => 400,
            Self::Denied => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::PathEscape
            | Self::NotAFile
            | Self::Unsupported
            | Self::Unenforceable
            | Self::SetupFailed => 422,
            Self::Canceled => 499,
            Self::Protocol | Self::Io => 500,
            Self::Unavailable => 503,
            Self::TimedOut => 504,
        }
    }

    /// Whether the same request may succeed later without any change.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Unavailable | Self::TimedOut)
    }
}

impl Error {
    /// An error of this kind. `message` is a lowercase fragment without a period.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, source: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what caused it. The message must not repeat the cause's text.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The message with those of all its causes, joined by colons.
    pub fn chain(&self) -> String {
        let mut text = self.message.clone();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
