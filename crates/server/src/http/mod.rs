//! Requests and answers. A file a resource: what is asked, what is called, what is said.
//!
//! To add a resource: a file with its handlers and a `routes` function, and its line in
//! [`resources`](resources::resources). Handlers take a [`Door`](door::Door), which says what its
//! caller must be allowed to do and gives the sessions of that caller alone; parts of the request by
//! [`extract`]; and answer `Result<_, Problem>`. Objects of answers are named in [`objects`].

mod allow;
mod approvals;
mod auth;
mod closing;
mod conditions;
mod digest;
mod document;
mod door;
mod error;
mod events;
mod examine;
mod execs;
mod extract;
mod files;
mod guard;
mod head;
mod health;
mod keyed;
mod layers;
mod lookout;
#[cfg(feature = "mcp")]
mod mcp;
mod metrics;
mod network;
mod news;
mod objects;
mod once;
mod origin;
mod pipe;
mod place;
mod ports;
mod range;
mod receipts;
mod refusal;
mod resources;
mod run;
mod sandboxes;
mod secret_body;
mod secrets;
mod shells;
#[cfg(test)]
mod socket_stage;
mod sse;
mod start;
mod states;
mod stream;
mod tools;
mod unasked;
mod untaken;
mod wish;
mod words;

pub(crate) use auth::Rates;
pub use document::document;
pub(crate) use guard::Counts;
pub(crate) use lookout::Lookout;
#[cfg(feature = "mcp")]
pub(crate) use mcp::Mounted;
pub(crate) use metrics::method as known_method;
pub(crate) use once::Answers;
pub(crate) use ports::Ports;
pub(crate) use receipts::Receipts;
pub use resources::router;
pub(crate) use stream::MAX_STALL;
pub(crate) use untaken::Untaken;
