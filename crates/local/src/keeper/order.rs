//! What a keeper is started with, and what it answers. Both sides are of one program and version.

use cofferdam_core::{
    Caller, Deadlines, Error, ErrorBody, ErrorKind, Limit, Limits, OnUnavailable, Result,
    SandboxId, SandboxOrder, SandboxRecord, SensitiveWrites, Spec, User, Workspace,
};
use cofferdam_wire::ByteString;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A sandbox to make and to keep.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) id: SandboxId,
    pub(super) state: ByteString,
    pub(super) home: Option<ByteString>,
    pub(super) deadlines: Deadlines,
    spec: Wish,
}

/// What became of an order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Made(Box<SandboxRecord>),
    NotMade(ErrorBody),
}

/// A [`Spec`] as data.
#[derive(Debug, Serialize, Deserialize)]
struct Wish {
    profile: String,
    egress: Vec<String>,
    workspace: Option<ByteString>,
    read: Vec<ByteString>,
    write: Vec<ByteString>,
    hide: Vec<ByteString>,
    env: Vec<(ByteString, ByteString)>,
    memory_bytes: Number<u64>,
    pids: Number<u32>,
    cpu_millis: Number<u32>,
    disk_bytes: Number<u64>,
    root: bool,
    sensitive_writes: bool,
    degrade: bool,
    caller_env: Vec<(ByteString, ByteString)>,
    caller_home: Option<ByteString>,
}

/// A [`Limit`] as data.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Number<T> {
    Default(T),
    Asked(T),
}

impl Order {
    pub(super) fn new(id: &SandboxId, order: &SandboxOrder, state: &Path) -> Self {
        Self {
            id: id.clone(),
            state: bytes(state),
            home: order.home.as_deref().map(bytes),
            deadlines: order.deadlines,
            spec: Wish::of(&order.spec),
        }
    }

    pub(super) fn spec(&self) -> Result<Spec> {
        self.spec.spec()
    }

    pub(super) fn home(&self) -> Option<PathBuf> {
        self.home.as_ref().map(path)
    }

    pub(super) fn state(&self) -> PathBuf {
        path(&self.state)
    }
}

impl Wish {
    fn of(spec: &Spec) -> Self {
        let workspace = match &spec.workspace {
            Workspace::Directory(path) => Some(bytes(path)),
            Workspace::Private => None,
        };
        let Limits { memory_bytes, pids, cpu_millis, disk_bytes } = spec.limits;
        Self {
            profile: spec.profile.name().to_owned(),
            egress: spec.egress.iter().map(ToString::to_string).collect(),
            workspace,
            read: spec.read.iter().map(|path| bytes(path)).collect(),
            write: spec.write.iter().map(|path| bytes(path)).collect(),
            hide: spec.hide.iter().map(|path| bytes(path)).collect(),
            env: pairs(&spec.env),
            memory_bytes: memory_bytes.into(),
            pids: pids.into(),
            cpu_millis: cpu_millis.into(),
            disk_bytes: disk_bytes.into(),
            root: spec.user == User::Root,
            sensitive_writes: spec.sensitive_writes == SensitiveWrites::Allowed,
            degrade: spec.on_unavailable == OnUnavailable::Degrade,
            caller_env: pairs(&spec.caller.env),
            caller_home: spec.caller.home.as_deref().map(bytes),
        }
    }

    fn spec(&self) -> Result<Spec> {
        let egress: Result<Vec<_>> = self.egress.iter().map(|rule| rule.parse()).collect();
        let caller =
            Caller { env: map(&self.caller_env), home: self.caller_home.as_ref().map(path) };
        let workspace = match &self.workspace {
            Some(directory) => Workspace::Directory(path(directory)),
            None => Workspace::Private,
        };
        Ok(Spec {
            profile: self.profile.parse()?,
            egress: egress?,
            read: self.read.iter().map(path).collect(),
            write: self.write.iter().map(path).collect(),
            hide: self.hide.iter().map(path).collect(),
            env: map(&self.env),
            limits: Limits {
                memory_bytes: self.memory_bytes.into(),
                pids: self.pids.into(),
                cpu_millis: self.cpu_millis.into(),
                disk_bytes: self.disk_bytes.into(),
            },
            user: if self.root { User::Root } else { User::Ordinary },
            sensitive_writes: match self.sensitive_writes {
                true => SensitiveWrites::Allowed,
                false => SensitiveWrites::Protected,
            },
            on_unavailable: match self.degrade {
                true => OnUnavailable::Degrade,
                false => OnUnavailable::Refuse,
            },
            ..Spec::new(workspace, caller)
        })
    }
}

impl<T> From<Limit<T>> for Number<T> {
    fn from(limit: Limit<T>) -> Self {
        match limit {
            Limit::Default(value) => Self::Default(value),
            Limit::Asked(value) => Self::Asked(value),
        }
    }
}

impl<T> From<Number<T>> for Limit<T> {
    fn from(number: Number<T>) -> Self {
        match number {
            Number::Default(value) => Self::Default(value),
            Number::Asked(value) => Self::Asked(value),
        }
    }
}

fn bytes(path: &Path) -> ByteString {
    ByteString::from(path.as_os_str())
}

fn path(bytes: &ByteString) -> PathBuf {
    PathBuf::from(bytes.as_os_str())
}

fn pairs(env: &BTreeMap<OsString, OsString>) -> Vec<(ByteString, ByteString)> {
    env.iter().map(|(name, value)| (name.as_os_str().into(), value.as_os_str().into())).collect()
}

fn map(pairs: &[(ByteString, ByteString)]) -> BTreeMap<OsString, OsString> {
    pairs.iter().map(|(n, v)| (n.as_os_str().to_owned(), v.as_os_str().to_owned())).collect()
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
    use cofferdam_core::Profile;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn a_wish_survives_the_way_whatever_bytes_it_holds() {
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
            deadlines: Deadlines { idle_pause_ms: Some(1), ..Deadlines::default() },
            home: Some("/home".into()),
        };
        let id = SandboxId::new("a").unwrap();
        let sent = serde_json::to_vec(&Order::new(&id, &order, Path::new("/state"))).unwrap();
        let come: Order = serde_json::from_slice(&sent).unwrap();
        assert_eq!(come.spec().unwrap(), spec);
        assert_eq!((come.home(), come.state()), (order.home, "/state".into()));
        let private = Spec::new(Workspace::Private, Caller::default());
        assert_eq!(Wish::of(&private).spec().unwrap(), private);
    }
}
