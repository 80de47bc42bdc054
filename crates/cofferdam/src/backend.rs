//! The backend of this machine, with the program that it needs.

use crate::state_home;
use cofferdam_core::Result;
use cofferdam_local::backend::{LocalBackend, Preparation};
use cofferdam_local::keeper::{CarriedProgram, KeptBackend};
use std::sync::{Arc, Mutex, PoisonError};

/// The static program from which sandboxes are cloned.
const PROGRAM: &[u8] = include_bytes!(env!("COFFERDAM_BOX"));

/// The backend of this machine that this process shares. Made at the first call, and there for as
/// long as the process.
///
/// Fails where there is no place for its records; see [`state_home`].
pub fn local_backend() -> Result<Arc<LocalBackend>> {
    static SHARED: Mutex<Option<Arc<LocalBackend>>> = Mutex::new(None);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(backend) = &*shared {
        return Ok(Arc::clone(backend));
    }
    let backend = Arc::new(own_backend(state_home()?));
    *shared = Some(Arc::clone(&backend));
    Ok(backend)
}

/// A backend of one's own that keeps its records in `state_home`. Dropping it ends its sandboxes,
/// and waits for that.
pub fn own_backend(state_home: std::path::PathBuf) -> LocalBackend {
    LocalBackend::new(PROGRAM, state_home)
}

/// The same, keeping this much ready for sandboxes that come.
pub fn prepared_backend(state_home: std::path::PathBuf, preparation: Preparation) -> LocalBackend {
    LocalBackend::prepared(PROGRAM, state_home, preparation)
}

/// A backend whose sandboxes outlive this process, with its records in `state_home`. Any number of
/// processes may use one such directory at once.
pub fn kept_backend(state_home: std::path::PathBuf) -> KeptBackend {
    let program = CarriedProgram { bytes: PROGRAM, mark: env!("COFFERDAM_BOX_MARK") };
    KeptBackend::new(program, state_home)
}
