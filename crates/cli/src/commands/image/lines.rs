//! What `image pull` and `image import` tell with `--json`, a line each.

use crate::render;
use cofferdam_image::{Event, Progress};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that happened while an image was pulled or imported, as a line on standard output tells it
/// with `--json`. Format 1. The line after the last of them is the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum ImageEvent {
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

impl From<Event> for ImageEvent {
    fn from(event: Event) -> Self {
        match event {
            Event::Resolved { reference, digest } => Self::Resolved { reference, digest },
            Event::Downloading { layers, read_bytes, total_bytes } => {
                Self::Downloading { layers, read_bytes, total_bytes }
            }
            Event::Downloaded { layer, bytes, resumed_bytes } => {
                Self::Downloaded { layer, bytes, resumed_bytes }
            }
            Event::Waiting { layer } => Self::Waiting { layer },
            Event::Unpacking { layer, number, of, read_bytes, total_bytes } => {
                Self::Unpacking { layer, number, of, read_bytes, total_bytes }
            }
            Event::Unpacked { layer, number, of, left_out } => {
                Self::Unpacked { layer, number, of, left_out }
            }
        }
    }
}

/// Each event as a line.
pub(super) struct Lines;

impl Progress for Lines {
    fn tell(&mut self, event: Event) {
        // Who does not read them any more gets the image all the same.
        let _ = render::print_json(&ImageEvent::from(event));
    }
}
