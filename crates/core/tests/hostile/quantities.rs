//! What must hold for any text that is handed over as an amount or a name. Shared with the fuzz
//! targets.

use cofferdam_core::{ProcessId, Profile, SandboxId, parse_bytes, parse_cpu, parse_duration};

/// Any text is an amount above nothing, or refused.
pub(crate) fn quantity(text: &str) {
    if let Ok(bytes) = parse_bytes(text) {
        assert!(bytes > 0, "{text:?}");
    }
    if let Ok(duration) = parse_duration(text) {
        assert!(!duration.is_zero(), "{text:?}");
        assert!(text.ends_with(['s', 'm', 'h', 'd']), "{text:?} has no unit");
    }
    if let Ok(millis) = parse_cpu(text) {
        assert!(millis >= 10, "{text:?}");
    }
}

/// Any text is a name that can be neither a path nor an option, or refused.
pub(crate) fn name(text: &str) {
    if let Ok(profile) = text.parse::<Profile>() {
        assert_eq!(profile.name(), text);
    }
    let sandbox = SandboxId::new(text).ok().map(String::from);
    let process = ProcessId::new(text).ok().map(String::from);
    assert_eq!(sandbox, process);
    if let Some(id) = sandbox {
        assert_eq!(id, text);
        assert!(!id.contains(['/', '\0', '\n', ' ']) && !id.starts_with(['.', '-']), "{id:?}");
        assert!((1..=64).contains(&id.len()), "{id:?}");
    }
}
