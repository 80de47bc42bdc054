//! What makes a layer: the kernel, or a copy.

use crate::host::HostFacts;
use cofferdam_core::{Error, ErrorKind, LayerChoice, Result, Spec};
use std::path::Path;

/// What leads the error of a sandbox that could not be set up.
pub(crate) const NOT_SET_UP: &str = "the sandbox could not be set up: ";
/// The step at which the kernel is asked for an overlay.
pub(super) const STEP: &str = "overlay";

/// How a layer is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Making {
    /// By the kernel.
    Overlay,
    /// As a copy of the workspace: because an overlay cannot be had for this reason, or because a copy
    /// was asked for.
    Copy(Option<String>),
}

/// Decides by what was asked for and by where things lie. `state` is where the layer is to be kept, if
/// it is.
pub(crate) fn choose(
    spec: &Spec,
    facts: &HostFacts,
    workspace: &Path,
    state: Option<&Path>,
) -> Result<Making> {
    match spec.layer {
        LayerChoice::Overlay => return Ok(Making::Overlay),
        LayerChoice::Copy => return Ok(Making::Copy(None)),
        LayerChoice::Auto => {}
    }
    let lower = kind_of(workspace)?;
    let upper = state.map(kind_of).transpose()?;
    let unfit = unfit(lower, upper, facts.is_root());
    Ok(unfit.map_or(Making::Overlay, |why| Making::Copy(Some(why))))
}

/// Why the kernel made no overlay of a sandbox that could not be set up; `None` where it was something
/// else.
pub(crate) fn refusal(error: &Error) -> Option<String> {
    if error.kind != ErrorKind::SetupFailed {
        return None;
    }
    let text = error.chain();
    let call = text.strip_prefix(NOT_SET_UP)?.strip_prefix(STEP)?.strip_prefix(": ")?;
    Some(format!("the kernel makes no overlay here: {call}"))
}

/// Kinds of file systems, by the number that the kernel has for each.
const KINDS: &[(u64, &str, Unfit)] = &[
    (0x794c_7630, "overlayfs", Unfit { lower: false, mapped: true, upper: true }),
    (0x6969, "NFS", Unfit { lower: false, mapped: true, upper: true }),
    (0xff53_4d42, "CIFS", Unfit { lower: false, mapped: true, upper: true }),
    (0xfe53_4d42, "SMB", Unfit { lower: false, mapped: true, upper: true }),
    (0x0102_1997, "9P", Unfit { lower: false, mapped: true, upper: true }),
    (0x6573_5546, "FUSE", Unfit { lower: false, mapped: true, upper: false }),
    (0x4d44, "FAT", Unfit { lower: true, mapped: false, upper: true }),
    (0x2011_bab0, "exFAT", Unfit { lower: true, mapped: true, upper: true }),
];

/// What a file system cannot be.
#[derive(Clone, Copy)]
struct Unfit {
    /// What shows through.
    lower: bool,
    /// Shown with its files as somebody else's, as the host's root has to.
    mapped: bool,
    /// Where what is written lands.
    upper: bool,
}

fn kind_of(path: &Path) -> Result<u64> {
    let found = rustix::fs::statfs(path).map_err(|errno| {
        Error::new(ErrorKind::Io, format!("look at the file system of {}", path.display()))
            .source(std::io::Error::from(errno))
    })?;
    // The width and the sign of the number differ between architectures.
    #[expect(clippy::cast_sign_loss, reason = "it is a number of 32 bits")]
    let kind = found.f_type as u64 & 0xffff_ffff;
    Ok(kind)
}

/// Why what lies there cannot be under a private layer, if it is known that it cannot.
pub(crate) fn no_lower(path: &str, is_root: bool) -> Option<String> {
    let kind = kind_of(Path::new(path)).ok()?;
    unfit_below(kind, is_root).map(|why| format!("it lies on {why}"))
}

fn known(kind: u64) -> Option<&'static (u64, &'static str, Unfit)> {
    KINDS.iter().find(|(number, ..)| *number == kind)
}

fn unfit_below(lower: u64, is_root: bool) -> Option<String> {
    let (_, name, unfit) = known(lower)?;
    if unfit.lower {
        return Some(format!("{name}, which cannot be a lower layer"));
    }
    let cannot = is_root && unfit.mapped;
    cannot.then(|| format!("{name}, whose files cannot be shown as the sandbox's own"))
}

fn unfit(lower: u64, upper: Option<u64>, is_root: bool) -> Option<String> {
    if let Some(why) = unfit_below(lower, is_root) {
        return Some(format!("the workspace lies on {why}"));
    }
    let (_, name, _) = upper.and_then(known).filter(|(.., unfit)| unfit.upper)?;
    Some(format!("the state directory lies on {name}, which cannot be an upper layer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{Caller, Workspace};

    #[test]
    fn a_file_system_that_is_no_layer_is_told_by_its_name() {
        const EXT4: u64 = 0xef53;
        const OVERLAY: u64 = 0x794c_7630;
        const FAT: u64 = 0x4d44;
        for is_root in [false, true] {
            assert_eq!(unfit(EXT4, Some(EXT4), is_root), None);
            assert_eq!(unfit(EXT4, None, is_root), None);
            assert!(unfit(FAT, None, is_root).unwrap().contains("FAT, which cannot be a lower"));
            let upper = unfit(EXT4, Some(OVERLAY), is_root).unwrap();
            assert!(upper.contains("state directory lies on overlayfs"), "{upper}");
            // Nobody but root has to show files as somebody else's.
            assert_eq!(unfit(OVERLAY, Some(EXT4), is_root).is_some(), is_root);
        }
    }

    #[test]
    fn what_was_asked_for_is_what_is_made() {
        let facts = HostFacts::gather();
        let mut spec = Spec::new(Workspace::CopyOnWrite("/".into()), Caller::default());
        let mut made = |layer| {
            spec.layer = layer;
            choose(&spec, &facts, Path::new("/"), None).unwrap()
        };
        assert_eq!(made(LayerChoice::Overlay), Making::Overlay);
        assert_eq!(made(LayerChoice::Copy), Making::Copy(None));
    }

    #[test]
    fn a_refusal_of_the_kernel_is_told_from_other_failures() {
        let failed = |what: &str| {
            Error::new(ErrorKind::SetupFailed, format!("{NOT_SET_UP}{what}"))
                .source(std::io::Error::from_raw_os_error(1))
        };
        let why = refusal(&failed("overlay: fsopen(\"overlay\")")).unwrap();
        assert!(why.contains("fsopen(\"overlay\"): ") && why.contains("not permitted"), "{why}");
        assert_eq!(refusal(&failed("bind: mount")), None);
        let other = Error::new(ErrorKind::Io, format!("{NOT_SET_UP}overlay: x"));
        assert_eq!(refusal(&other), None);
    }
}
