//! Layers of copy-on-write sandboxes: what they changed, how that lands in the real tree, and how it
//! is dropped.
//!
//! [`Layer::changes`] reads both sides and compares them; [`Layer::apply`] makes the real tree what the
//! sandbox saw, at the paths that are wanted; [`Layer::discard`] forgets.
//!
//! HOSTILE: the upper directory was written from inside, and so may the workspace be, by another
//! sandbox. Everything is reached from an open directory, without any link and without leaving its
//! mount; what is no regular file is never opened; numbers, depths and lengths have limits.
//!
//! # What counts
//!
//! Content, permissions (without set-id bits), type, where a link leads, and which names of the layer
//! are one file. Times, owners and extended attributes do not: what lands is of now, belongs to the
//! workspace's owner and has none.
//!
//! # Copies
//!
//! Where the kernel makes no overlay, the upper directory is a copy of the whole workspace, and a
//! listing beside it says what was copied and what each copy is known by: inode, time of change, size.
//! What is as it was copied was left alone, and is no change whatever became of the workspace; what the
//! workspace has and the copy has not was removed if it is listed. Everything else is the same.
//!
//! # Conflicts
//!
//! A path is in conflict where what the workspace has there was changed later than the sandbox began,
//! by the kernel's own time of change, or later than it landed. Where the sandbox changed what was
//! there and nothing is there any more, it was removed meanwhile. A directory whose time of change is
//! of later and not that of a change of its entries was moved or got other permissions, and all below
//! it is in conflict.
//!
//! What the workspace had when the sandbox's change of a path was discarded is what it goes on from there,
//! and is no conflict any more.
//!
//! What the sandbox gave another name lands under that name and leaves the old one, or neither.
//!
//! LIMIT: where somebody moves a directory to the place of another one, and then makes or removes an
//! entry in it, that is not seen. Nor is it seen that somebody removed what the sandbox removed too and
//! then made anew.

mod changes;
mod clear;
mod content;
mod control;
mod copied;
mod copying;
mod discard;
mod dropped;
mod effect;
mod landed;
mod landing;
mod layer;
mod listing;
mod look;
mod moves;
mod renamed;
mod repositories;
mod revert;
mod walk;
mod workspace;
mod writable;

#[cfg(test)]
mod tests;

pub use content::MAX_LANDED_FILE_BYTES;
pub use copying::{MAX_COPIED_BYTES, MAX_COPIED_ENTRIES, Progress, watch};
pub use layer::Layer;
pub use walk::{MAX_LAYER_DEPTH, MAX_LAYER_ENTRIES};

pub(crate) use clear::remove as remove_tree;
pub(crate) use copying::{Copied, copy_whole};
pub(crate) use landing::pay;
pub(crate) use layer::workspace as open_workspace;
pub(crate) use look::changed_ns;
