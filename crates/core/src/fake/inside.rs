//! What is inside one sandbox of the fake backend.

use super::Fault;
use super::files::FakeFiles;
use crate::{Error, ErrorKind, Limits, ProcessId, Result, Spec};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What all commands of one sandbox share.
#[derive(Debug)]
pub(super) struct Inside {
    pub(super) faults: BTreeSet<Fault>,
    pub(super) programs: BTreeMap<String, Vec<String>>,
    pub(super) files: Arc<FakeFiles>,
    pub(super) limits: Limits,
    pub(super) env: BTreeMap<OsString, OsString>,
    /// Taken for each piece of output where one slow reader stops all.
    pub(super) line: tokio::sync::Mutex<()>,
    pub(super) gone: watch::Sender<bool>,
    state: Mutex<State>,
}

/// What changes.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) running: BTreeSet<ProcessId>,
    /// The children that were left behind, by name and command.
    pub(super) children: Vec<(String, ProcessId)>,
    /// The ports at which somebody listens, and who.
    pub(super) ports: BTreeMap<u16, ProcessId>,
}

impl Inside {
    pub(super) fn new(
        faults: BTreeSet<Fault>,
        programs: BTreeMap<String, Vec<String>>,
        files: Arc<FakeFiles>,
        spec: &Spec,
    ) -> Arc<Self> {
        let mut env = spec.env.clone();
        if faults.contains(&Fault::EnvironmentLeaks) {
            env.extend(spec.caller.env.clone());
        }
        Arc::new(Self {
            files,
            faults,
            programs,
            limits: spec.limits,
            env,
            line: tokio::sync::Mutex::new(()),
            gone: watch::Sender::new(false),
            state: Mutex::default(),
        })
    }

    pub(super) fn still_there(&self) -> Result<()> {
        match *self.gone.borrow() {
            true => Err(Error::new(ErrorKind::Unavailable, "the sandbox is gone")),
            false => Ok(()),
        }
    }

    /// How many children of this name were left behind.
    pub(super) fn children_called(&self, name: &str) -> usize {
        self.state().children.iter().filter(|child| child.0 == name).count()
    }

    pub(super) fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
