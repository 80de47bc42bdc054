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
            Ok(Target { pid: launched.pid, line: launched.line, held: First(launched.pidfd) })
        })?;
        Ok(report.enforced)
    }
}
