//! The battery of attacks, on a sandbox as this backend makes them.

use super::Inner;
use super::living::First;
use crate::probe::{Target, probe_by};
use crate::template::Template;
use cofferdam_core::{ProbeReport, Result, Spec};
use std::sync::Arc;

/// What ends the sandbox when it is dropped.
struct Held {
    _process: First,
    /// Its end would be the end of the sandbox.
    _template: Option<Arc<Template>>,
}

impl Inner {
    /// Attacks a throw-away sandbox. Takes a few seconds.
    pub(super) fn probe(&self, spec: &Spec) -> Result<ProbeReport> {
        probe_by(spec, &self.state()?, |assembly| {
            let (template, process, line) = match self.launch_copy(assembly) {
                Some((template, process, line)) => (Some(template), process, line),
                None => {
                    let (_, launched) = self.launch(assembly)?;
                    (None, First { pid: launched.pid, pidfd: launched.pidfd }, launched.line)
                }
            };
            let pid = process.pid;
            Ok(Target { pid, line, held: Held { _process: process, _template: template } })
        })
    }
}
