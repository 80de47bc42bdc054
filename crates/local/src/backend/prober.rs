//! The battery of attacks, on a sandbox from the launcher.

use super::Inner;
use super::living::First;
use crate::probe::{Target, probe_by};
use cofferdam_core::{Enforced, Result, Spec};

impl Inner {
    /// Attacks a throw-away sandbox. Takes a few seconds.
    pub(super) fn probe(&self, spec: &Spec) -> Result<Enforced> {
        let report = probe_by(spec, &self.state()?, |assembly| {
            let (_, launched) = self.launch(assembly)?;
            let held = First { pid: launched.pid, pidfd: launched.pidfd };
            Ok(Target { pid: held.pid, line: launched.line, held })
        })?;
        Ok(report.enforced)
    }
}
