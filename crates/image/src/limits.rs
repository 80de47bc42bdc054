//! How much of an image is believed.

/// The largest index, manifest or configuration. Real ones have a few KiB.
pub const MAX_DOCUMENT_BYTES: u64 = 4 << 20;

/// The most layers: as many as a plan can stack.
pub const MAX_LAYERS: usize = 64;

/// The longest packed layer that is downloaded.
pub const MAX_PACKED_BYTES: u64 = 16 << 30;

/// The longest packed layers of one image together that are downloaded.
pub const MAX_IMAGE_PACKED_BYTES: u64 = 64 << 30;

/// The most names that an index may list.
pub(crate) const MAX_MANIFESTS: usize = 1024;

/// The most members of an archive that holds an image.
pub(crate) const MAX_MEMBERS: usize = 16_384;

/// The most that one layer may unpack to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all its files.
    pub bytes: u64,
    /// Entries, of all sorts.
    pub entries: u64,
    /// Bytes of all names: those of directories are held in memory.
    pub name_bytes: u64,
    /// Names of one path.
    pub depth: usize,
    /// Unpacked bytes for each packed one, beyond [`Bounds::RATIO_FREE`].
    pub ratio: u64,
}

impl Bounds {
    /// What is unpacked before the ratio counts: small layers of zeros are harmless.
    pub const RATIO_FREE: u64 = 64 << 20;
}

impl Default for Bounds {
    fn default() -> Self {
        Self { bytes: 32 << 30, entries: 2_000_000, name_bytes: 256 << 20, depth: 128, ratio: 200 }
    }
}
