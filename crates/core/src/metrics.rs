//! What a sandbox uses.

use serde::{Deserialize, Serialize};

/// What a living sandbox uses now, as the host sees it: nothing inside is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SandboxMetrics {
    /// Its processes, the first one and those that watch over commands included.
    pub processes: u32,
    /// Processor time that it used so far, in milliseconds.
    pub cpu_ms: Option<f64>,
    /// The memory that it holds, in bytes: as its control group counts, what it has in memory of files
    /// included; without a group the sum over its processes, in which what they share counts for each.
    pub memory_bytes: Option<u64>,
    /// The most that it held at once, in bytes; known of a control group alone.
    pub peak_memory_bytes: Option<u64>,
}
