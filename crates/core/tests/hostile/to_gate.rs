//! What must hold for any line that a gate is told. Shared with the fuzz targets.

use cofferdam_core::ToGate;

/// Any line is a message that is written as it was understood, or refused.
pub(crate) fn line(bytes: &[u8]) {
    let Ok(message) = serde_json::from_slice::<ToGate>(bytes) else { return };
    let written = serde_json::to_vec(&message).unwrap_or_default();
    assert!(!written.contains(&b'\n'), "it is one line");
    assert_eq!(serde_json::from_slice::<ToGate>(&written).ok(), Some(message));
}
