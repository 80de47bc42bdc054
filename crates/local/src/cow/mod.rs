//! Copy-on-write workspaces: what a sandbox writes lies beside the real tree.
//!
//! The kernel makes an overlay of it, or, where that cannot be had, the workspace is copied and the
//! sandbox sees the copy in its place.

pub mod base;
pub(crate) mod layer;
pub(crate) mod passing;
pub(crate) mod tier;
mod view;

pub(crate) use tier::no_lower;
pub(crate) use view::{foreseen, note_copy, shown};

use cofferdam_core::{Error, LayerChoice, Spec, Workspace};
use cofferdam_wire::message::SetupFailure;

/// What helps where a sandbox could not be set up because of its layers.
pub(crate) fn remedy(failure: &SetupFailure) -> Option<&'static str> {
    (failure.step == tier::STEP).then_some(
        "Run `cofferdam doctor`; put workspace and state directory (COFFERDAM_HOME) on a file system \
         that the kernel takes as a layer, as ext4, xfs, btrfs or tmpfs; or let the \
         workspace be copied, with --cow=copy.",
    )
}

/// Why the workspace is to be copied, where a sandbox could not be made because the kernel makes no
/// overlay and nobody asked for one alone.
pub(crate) fn copies_instead(spec: &Spec, error: &Error) -> Option<String> {
    let takes_a_copy =
        spec.layer == LayerChoice::Auto && matches!(spec.workspace, Workspace::CopyOnWrite(_));
    tier::refusal(error).filter(|_| takes_a_copy)
}
