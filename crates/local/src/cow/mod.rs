//! Copy-on-write workspaces: what a sandbox writes lies beside the real tree.

pub mod base;
pub(crate) mod layer;

use cofferdam_wire::message::SetupFailure;

/// What helps where a sandbox could not be set up because of its layers.
pub(crate) fn remedy(failure: &SetupFailure) -> Option<&'static str> {
    (failure.step == "overlay").then_some(
        "Run `cofferdam doctor`; put workspace and state directory (COFFERDAM_HOME) on a file system \
         that the kernel takes as a layer, as ext4, xfs, btrfs or tmpfs; or leave --cow out.",
    )
}
