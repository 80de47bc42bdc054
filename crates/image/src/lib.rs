//! Images: from what somebody names to directories that a sandbox can lie on.
//!
//! An image is a list of layers and a few words on how it is run. [`Reference`] says where one is,
//! [`Store::open_image`] reads it, checks every digest of what it uses, and unpacks each layer once
//! into a directory that is named after its content. Whatever is read is hostile: sizes are bounded
//! before anything is allocated, and nothing is ever written through a name that an image chose
//! without looking at what stands there.

mod archive;
mod blobs;
mod described;
mod digest;
mod document;
mod limits;
mod platform;
mod progress;
mod reference;
mod remote;
mod store;
mod tar;
mod unpack;
mod user;

pub use digest::Digest;
pub use limits::{
    Bounds, MAX_DOCUMENT_BYTES, MAX_IMAGE_PACKED_BYTES, MAX_LAYERS, MAX_PACKED_BYTES,
};
pub use platform::Platform;
pub use progress::{Event, Progress, Silent};
pub use reference::Reference;
pub use remote::Remote;
pub use store::{
    Blob, Held, ImageRecord, ImageReport, LayerRecord, PulledFrom, Registry, Removed, Stop, Store,
};
pub use unpack::Tally;
