//! What a keeper is started with, and what it answers. Both sides are of one program and version.

use cofferdam_core::secret::{GateGrant, Trusted};
use cofferdam_core::{
    Deadlines, Error, ErrorBody, ErrorKind, Result, SandboxId, SandboxOrder, SandboxRecord, Spec,
    StoredSpec,
};
use cofferdam_wire::ByteString;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A sandbox to make and to keep.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) id: SandboxId,
    pub(super) state: ByteString,
    pub(super) home: Option<ByteString>,
    pub(super) kept: Option<ByteString>,
    pub(super) deadlines: Deadlines,
    /// The program of the gate comes as standard error.
    pub(super) brings_gate: bool,
    /// The secrets that are put in, whose values come as a file over the answer's socket.
    pub(super) secrets: Option<(Vec<GateGrant>, Trusted)>,
    spec: StoredSpec,
}

/// What became of an order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Made(Box<SandboxRecord>),
    NotMade(ErrorBody),
}

impl Order {
    pub(super) fn new(id: &SandboxId, order: &SandboxOrder, state: &Path) -> Self {
        Self {
            id: id.clone(),
            state: bytes(state),
            home: order.home.as_deref().map(bytes),
            kept: order.kept.as_deref().map(bytes),
            deadlines: order.deadlines,
            brings_gate: false,
            secrets: None,
            spec: StoredSpec::new(&order.spec),
        }
    }

    pub(super) fn spec(&self) -> Result<Spec> {
        self.spec.spec()
    }

    pub(super) fn home(&self) -> Option<PathBuf> {
        self.home.as_ref().map(path)
    }

    pub(super) fn kept(&self) -> Option<PathBuf> {
        self.kept.as_ref().map(path)
    }

    pub(super) fn state(&self) -> PathBuf {
        path(&self.state)
    }
}

fn bytes(path: &Path) -> ByteString {
    ByteString::from(path.as_os_str())
}

fn path(bytes: &ByteString) -> PathBuf {
    PathBuf::from(bytes.as_os_str())
}

/// An error that came from the keeper.
pub(super) fn error(body: ErrorBody) -> Error {
    let kind = ErrorKind::ALL.into_iter().find(|kind| kind.name() == body.kind);
    let mut error = Error::new(kind.unwrap_or(ErrorKind::Protocol), body.message);
    error.hint = body.hint;
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{
        Caller, Limit, Limits, OnUnavailable, Profile, SensitiveWrites, User, Workspace,
    };
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn an_order_survives_the_way_whatever_bytes_it_holds() {
        let odd = || OsString::from_vec(b"a\xff=\nb".to_vec());
        let env: BTreeMap<_, _> = [(OsString::from("A"), odd())].into();
        let caller = Caller { env: env.clone(), home: Some(odd().into()) };
        let spec = Spec {
            profile: Profile::RepoWrite,
            egress: vec!["*.example.com:443".parse().unwrap(), "*".parse().unwrap()],
            read: vec![odd().into()],
            write: vec!["/w".into()],
            hide: vec!["/h".into()],
            env,
            limits: Limits { pids: Limit::Asked(7), ..Limits::default() },
            user: User::Root,
            sensitive_writes: SensitiveWrites::Allowed,
            on_unavailable: OnUnavailable::Degrade,
            ..Spec::new(Workspace::Directory(odd().into()), caller)
        };
        let order = SandboxOrder {
            spec: spec.clone(),
            owner: String::new(),
            deadlines: Deadlines { idle_pause_ms: Some(1), ..Deadlines::default() },
            home: Some("/home".into()),
            kept: Some(odd().into()),
        };
        let id = SandboxId::new("a").unwrap();
        let sent = serde_json::to_vec(&Order::new(&id, &order, Path::new("/state"))).unwrap();
        let come: Order = serde_json::from_slice(&sent).unwrap();
        assert_eq!(come.spec().unwrap(), spec);
        assert_eq!((come.home(), come.state()), (order.home, "/state".into()));
        assert_eq!(come.kept(), order.kept);
    }
}
