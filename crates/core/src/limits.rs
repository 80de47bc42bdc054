//! How much a sandbox may use.

use crate::{Error, ErrorKind, Result};

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

impl Limit<u32> {
    /// So many more; who asked stays the same.
    #[must_use]
    pub fn and(self, more: u32) -> Self {
        match self {
            Self::Default(value) => Self::Default(value.saturating_add(more)),
            Self::Asked(value) => Self::Asked(value.saturating_add(more)),
        }
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
    /// The most of [`Limits::pids`]: four million. No Linux has many more, and none takes a greater limit.
    pub const MOST_PIDS: u32 = 4_000_000;
    /// The default of [`Limits::disk_bytes`]: 2 GiB.
    pub const DISK_BYTES: u64 = 2 << 30;
    /// How many files the private writable space may hold.
    pub const DISK_FILES: u64 = 200_000;
    /// Open descriptors of one process.
    pub const OPEN_FILES: u64 = 65_536;
    /// The least of [`Limits::memory_bytes`]: with a fraction of it the first process cannot start.
    pub const LEAST_MEMORY_BYTES: u64 = 1 << 20;
    /// The least of [`Limits::disk_bytes`]: a sandbox's own small files have to fit in.
    pub const LEAST_DISK_BYTES: u64 = 1 << 20;
    /// The least of [`Limits::cpu_millis`], where there is a limit: the kernel gives a group 1 ms in each 100 ms or
    /// nothing.
    pub const LEAST_CPU_MILLIS: u32 = 10;

    /// Fails where no sandbox could stand within these limits.
    pub fn check(&self) -> Result<()> {
        let [memory, disk] = [self.memory_bytes, self.disk_bytes].map(Limit::value);
        for (name, bytes, least) in
            [("memory", memory, Self::LEAST_MEMORY_BYTES), ("disk", disk, Self::LEAST_DISK_BYTES)]
        {
            if bytes < least {
                let message = format!("a {name} limit of {bytes} bytes is too small for a sandbox");
                let hint = format!("Allow at least {least} bytes (1M); check the unit.");
                return Err(Error::new(ErrorKind::Usage, message).hint(hint));
            }
        }
        let pids = self.pids.value();
        if pids > Self::MOST_PIDS {
            let message = format!("a limit of {pids} processes is more than the system can count");
            let hint = format!("Allow at most {}, or leave the limit out.", Self::MOST_PIDS);
            return Err(Error::new(ErrorKind::Usage, message).hint(hint));
        }
        let cpu = self.cpu_millis.value();
        if cpu != 0 && cpu < Self::LEAST_CPU_MILLIS {
            let message = format!(
                "a processor limit of {cpu} thousandths is less than a sandbox can be held to"
            );
            let hint = format!("Allow at least {} thousandths (0.01).", Self::LEAST_CPU_MILLIS);
            return Err(Error::new(ErrorKind::Usage, message).hint(hint));
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_no_sandbox_can_live_with_are_named() {
        Limits::default().check().unwrap();
        let least = Limits {
            memory_bytes: Limit::Asked(Limits::LEAST_MEMORY_BYTES),
            disk_bytes: Limit::Asked(Limits::LEAST_DISK_BYTES),
            ..Limits::default()
        };
        least.check().unwrap();
        for (limits, name) in [
            (
                Limits { memory_bytes: Limit::Asked(Limits::LEAST_MEMORY_BYTES - 1), ..least },
                "memory",
            ),
            (Limits { disk_bytes: Limit::Asked(Limits::LEAST_DISK_BYTES - 1), ..least }, "disk"),
            (
                Limits { cpu_millis: Limit::Asked(Limits::LEAST_CPU_MILLIS - 1), ..least },
                "processor",
            ),
            (Limits { pids: Limit::Asked(Limits::MOST_PIDS + 1), ..least }, "processes is more"),
        ] {
            let error = limits.check().unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage);
            assert!(error.message.contains(name), "{}", error.message);
        }
    }
}
