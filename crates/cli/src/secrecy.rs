//! What of this process other programs of its user may look at.

use cofferdam_core::{Error, ErrorKind, Result};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

/// Closes memory and environment of this process to other programs of its user, and writes neither to a
/// file when it crashes: keys of callers pass through both. Programs that it starts are not concerned,
/// but for the limit, which they may raise again.
pub(crate) fn close() -> Result<()> {
    let failed = |what: &str, errno: Errno| {
        Error::new(ErrorKind::SetupFailed, what.to_owned()).source(std::io::Error::from(errno))
    };
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|errno| failed("close the memory of this process to others", errno))?;
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    setrlimit(Resource::Core, limit).map_err(|errno| failed("write no core file", errno))
}
