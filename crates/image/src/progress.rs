//! What is told of work that takes its time.

use serde::Serialize;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A registry said what a name means there.
    Resolved {
        /// The name.
        reference: String,
        /// What it means now.
        digest: String,
    },
    /// Layers are being downloaded.
    Downloading {
        /// How many were missing.
        layers: usize,
        /// Packed bytes that are there.
        read_bytes: u64,
        /// Packed bytes in all.
        total_bytes: u64,
    },
    /// A packed layer is there, whole and verified.
    Downloaded {
        /// Its digest.
        layer: String,
        /// How long it is.
        bytes: u64,
        /// How much of it an earlier pull had left.
        resumed_bytes: u64,
    },
    /// Another process downloads or unpacks this layer already.
    Waiting {
        /// Its digest.
        layer: String,
    },
    /// A layer is being unpacked.
    Unpacking {
        /// Its digest.
        layer: String,
        /// Its place, from 1 on.
        number: usize,
        /// How many the image has.
        of: usize,
        /// Packed bytes that have been read.
        read_bytes: u64,
        /// Packed bytes in all.
        total_bytes: u64,
    },
    /// A layer is there.
    Unpacked {
        /// Its digest.
        layer: String,
        /// Its place, from 1 on.
        number: usize,
        /// How many the image has.
        of: usize,
        /// How many entries were not made, because a sandbox could not use them.
        left_out: u64,
    },
}

/// Who is told.
pub trait Progress {
    /// Tells it.
    fn tell(&mut self, event: Event);
}

/// Nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn tell(&mut self, _event: Event) {}
}
