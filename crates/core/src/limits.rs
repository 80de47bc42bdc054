//! How much a sandbox may use.

/// A limit that somebody asked for, or the default.
///
/// A limit that was asked for and cannot be held is refused; a default one is applied as far as the
/// host can, and reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit<T> {
    /// Nobody named one.
    Default(T),
    /// The caller named this one.
    Asked(T),
}

impl<T: Copy> Limit<T> {
    /// The number.
    pub fn value(self) -> T {
        match self {
            Self::Default(value) | Self::Asked(value) => value,
        }
    }

    /// Whether the caller named it.
    pub fn is_asked(self) -> bool {
        matches!(self, Self::Asked(_))
    }
}

/// The limits of one sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all processes together, files in memory included, in bytes.
    pub memory_bytes: Limit<u64>,
    /// Processes and threads.
    pub pids: Limit<u32>,
    /// Thousandths of a processor. 0 means no limit.
    pub cpu_millis: Limit<u32>,
    /// The private writable space (`/tmp`, `$HOME`, `/dev/shm`), in bytes.
    pub disk_bytes: Limit<u64>,
}

impl Limits {
    /// The default of [`Limits::memory_bytes`]: 8 GiB, enough for a large build.
    pub const MEMORY_BYTES: u64 = 8 << 30;
    /// The default of [`Limits::pids`]: 4096, enough for parallel builds, too few for a fork bomb.
    pub const PIDS: u32 = 4096;
    /// The default of [`Limits::disk_bytes`]: 2 GiB.
    pub const DISK_BYTES: u64 = 2 << 30;
    /// How many files the private writable space may hold.
    pub const DISK_FILES: u64 = 200_000;
    /// Open descriptors of one process.
    pub const OPEN_FILES: u64 = 65_536;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: Limit::Default(Self::MEMORY_BYTES),
            pids: Limit::Default(Self::PIDS),
            cpu_millis: Limit::Default(0),
            disk_bytes: Limit::Default(Self::DISK_BYTES),
        }
    }
}
