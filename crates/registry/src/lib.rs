//! Images from registries: who asks, what is answered, and how much of it is believed.
//!
//! [`Repository`] is one repository of a registry as `cofferdam_image` needs it. It speaks HTTP through
//! `reqwest`, in a thread and on a runtime of its own that end with each call and with it, so that who
//! uses it may fork afterwards. A registry is hostile: every body, time and number of steps has a
//! bound in [`Limits`], redirects carry no credentials elsewhere, and what it says in words is never
//! shown, because it may repeat what it was told.

mod challenge;
mod credential_program;
mod credentials;
mod download;
mod failure;

mod http;
mod limits;
mod login;
mod repository;
mod secret;

pub use credentials::Places;
pub use limits::Limits;
pub use repository::{Repository, Trust};
