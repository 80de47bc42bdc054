//! Settings of the kernel that a sandbox has for itself.

use super::mounts::Tree;
use super::{CallFailed, During};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

impl Tree {
    pub(super) fn no_user_namespaces(&self) -> Result<(), CallFailed> {
        self.set("proc/sys/user/max_user_namespaces", "0")
    }

    /// The kernel counts both on the host's user too, who has few, and may need some.
    pub(super) fn few_watches(&self, instances: u32, files: u64) -> Result<(), CallFailed> {
        self.set("proc/sys/user/max_inotify_instances", &instances.to_string())?;
        self.set("proc/sys/user/max_inotify_watches", &files.to_string())
    }

    /// Writes a setting of the caller's user namespace.
    fn set(&self, path: &str, value: &str) -> Result<(), CallFailed> {
        let file =
            rustix::fs::openat(self.root()?, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
                .during(|| format!("open({path:?})"))?;
        // HOSTILE: an old runtime was once tricked into writing elsewhere. It must be /proc.
        let kind = rustix::fs::fstatfs(&file).during(|| format!("fstatfs({path:?})"))?;
        if kind.f_type != rustix::fs::PROC_SUPER_MAGIC {
            return Err(CallFailed::new(format!("fstatfs({path:?})"), Errno::NODEV));
        }
        rustix::io::write(&file, value.as_bytes())
            .map(drop)
            .during(|| format!("write({path:?}, {value:?})"))
    }
}
