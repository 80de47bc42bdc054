//! Copy-on-write workspaces: what a sandbox writes lies beside the real tree.

pub mod base;
pub(crate) mod layer;
