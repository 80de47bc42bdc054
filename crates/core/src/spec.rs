//! What somebody wants.

use crate::network::HOST_NAME;
use crate::secret::SecretGrant;
use crate::{
    EgressRule, Error, ErrorKind, GuestPath, Image, Limits, NetworkPolicy, OnUnavailable, Profile,
    Result,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The port that a grant of a secret opens.
const HTTPS_PORT: u16 = 443;

/// A sandbox as somebody wants it. Holds wishes only; what the host can do is not in here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// What it may do.
    pub profile: Profile,
    /// Destinations that it may reach, in addition to none.
    pub egress: Vec<EgressRule>,
    /// Destinations that it may not reach, even though they are allowed.
    pub deny: Vec<EgressRule>,
    /// Ports of the host's own loopback that it may reach.
    pub host_ports: Vec<u16>,
    /// How long a connection that is not allowed waits to become so.
    pub ask: Duration,
    /// There is a way out though nothing is reached by it yet: rules were taken away, and others may come.
    pub keeps_way_out: bool,
    /// Secrets that the gate puts in toward their hosts, and that never enter.
    pub secrets: Vec<SecretGrant>,
    /// The root file system that it has instead of the host's.
    pub image: Option<Image>,
    /// The directory that it works in.
    pub workspace: Workspace,
    /// What is to make the layer, where the workspace is copy-on-write.
    pub layer: LayerChoice,
    /// Host paths that are shown read-only, at their own place.
    pub read: Vec<PathBuf>,
    /// Directories of the host that are shown read-only at a place of the workspace.
    pub mounts: Vec<HostMount>,
    /// Host paths that can be written, at their own place.
    pub write: Vec<PathBuf>,
    /// Paths that are hidden whatever shows them.
    pub hide: Vec<PathBuf>,
    /// Where paths that are shown or hidden led when a session was made. One that leads elsewhere by now is a conflict.
    pub leads: BTreeMap<PathBuf, PathBuf>,
    /// Variables for every command, over the defaults.
    pub env: BTreeMap<OsString, OsString>,
    /// How much it may use.
    pub limits: Limits,
    /// Who its commands are.
    pub user: User,
    /// Whether control files in the workspace can be written.
    pub sensitive_writes: SensitiveWrites,
    /// What to do where a promise cannot be kept here.
    pub on_unavailable: OnUnavailable,
    /// Who asks, as far as the view depends on it.
    pub caller: Caller,
}

/// A directory of the host that is shown read-only at a place of the workspace. It has to be a
/// workspace that is a directory of the host too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMount {
    /// Its absolute path on the host.
    pub source: PathBuf,
    /// Where it is shown, relative to the workspace.
    pub path: GuestPath,
    /// Which directory it was when somebody asked for it. Another one in its place is refused.
    pub identity: DirectoryIdentity,
}

/// Tells a directory from another one of the same name, also when its number was used again and
/// after its file system was mounted anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DirectoryIdentity {
    /// The number of its inode.
    pub inode: u64,
    /// When it was made, in seconds since 1970; 0 where the file system does not know.
    pub born_s: i64,
    /// The nanoseconds of that.
    pub born_ns: u32,
}

/// Where a sandbox works. The path of a directory is canonical, made so by whoever took it from a caller:
/// one that leads through a symbolic link is a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workspace {
    /// A directory of the host, shown at `/workspace` and at its own path.
    Directory(PathBuf),
    /// The same, but what is written there lands in a layer beside it and not in the directory. The
    /// layer of a sandbox that is kept is kept with it; any other is gone with the sandbox.
    CopyOnWrite(PathBuf),
    /// An empty directory of its own at `/workspace`, gone with the sandbox.
    Private,
}

impl Workspace {
    /// The directory of the host that is shown, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) | Self::CopyOnWrite(path) => Some(path),
            Self::Private => None,
        }
    }

    /// The directory of the host in which writes of the sandbox land, if there is one.
    pub fn written(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) => Some(path),
            Self::CopyOnWrite(_) | Self::Private => None,
        }
    }
}

/// What is to make the layer of a copy-on-write workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LayerChoice {
    /// The kernel's overlay file system, or a copy where it cannot be had.
    #[default]
    Auto,
    /// The kernel's overlay file system, or an error.
    Overlay,
    /// A copy of the workspace.
    Copy,
}

impl LayerChoice {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Overlay, Self::Copy];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Overlay => "overlay",
            Self::Copy => "copy",
        }
    }
}

/// Who commands are inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum User {
    /// An ordinary user without any capability.
    #[default]
    Ordinary,
    /// User 0 of the sandbox's own user namespace, with the few capabilities there that a package
    /// manager needs. Never user 0 of the host.
    Root,
}

/// Whether control files in the workspace can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SensitiveWrites {
    /// Git hooks and configuration, start files, editor and agent configuration stay as they are.
    #[default]
    Protected,
    /// They are files like others.
    Allowed,
}

/// Facts about the caller that shape the default view. Handed in, because nothing below the doors
/// reads the environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caller {
    /// The caller's environment. Only names of an allowlist pass; others serve to find toolchains.
    pub env: BTreeMap<OsString, OsString>,
    /// The caller's home directory, if any.
    pub home: Option<PathBuf>,
}

impl Spec {
    /// A spec with the defaults: profile `no-network`, refuse what cannot be enforced.
    pub fn new(workspace: Workspace, caller: Caller) -> Self {
        Self {
            profile: Profile::default(),
            egress: Vec::new(),
            deny: Vec::new(),
            host_ports: Vec::new(),
            ask: Duration::ZERO,
            keeps_way_out: false,
            secrets: Vec::new(),
            image: None,
            workspace,
            layer: LayerChoice::default(),
            read: Vec::new(),
            mounts: Vec::new(),
            write: Vec::new(),
            hide: Vec::new(),
            leads: BTreeMap::new(),
            env: BTreeMap::new(),
            limits: Limits::default(),
            user: User::default(),
            sensitive_writes: SensitiveWrites::default(),
            on_unavailable: OnUnavailable::default(),
            caller,
        }
    }

    /// Grants it secrets: each opens port 443 of its host, and takes a variable of its name.
    ///
    /// Fails where there is no way out, or a variable of that name is set.
    pub fn grant(&mut self, grants: Vec<SecretGrant>) -> Result<()> {
        SecretGrant::check(&grants)?;
        for grant in &grants {
            let name = &grant.name;
            if self.env.contains_key(std::ffi::OsStr::new(name.as_str())) {
                let what = format!("variable {name} is set, and stands for secret {name} inside");
                return Err(Error::new(ErrorKind::Usage, what)
                    .hint(format!("Leave --env {name} or --secret {grant} out.")));
            }
            if !self.profile.has_way_out() {
                let what = format!(
                    "profile {} has no way out, so secret {name} cannot be put in toward {}",
                    self.profile, grant.host
                );
                return Err(Error::new(ErrorKind::Usage, what)
                    .hint("Leave --secret out, or use --profile repo-write."));
            }
            let rule: EgressRule = format!("{}:{HTTPS_PORT}", grant.host).parse()?;
            // Where nothing is listed this profile reaches all that is public, and a list would close it.
            let is_open = self.profile == Profile::FullDev && self.egress.is_empty();
            // This host's own loopback is opened port by port, by no rule.
            let is_here = grant.host == HOST_NAME;
            if is_here && self.host_ports.is_empty() {
                let what = format!("secret {name} is for {HOST_NAME}, and no port of it is opened");
                return Err(Error::new(ErrorKind::Usage, what)
                    .hint(format!("Open it with --allow-host-port {HTTPS_PORT}.")));
            }
            if !is_open && !is_here && !self.egress.contains(&rule) {
                self.egress.push(rule);
            }
        }
        self.secrets = grants;
        Ok(())
    }

    /// What may be reached at first. `None` where there is no way out, and never will be.
    ///
    /// A sandbox has a way out where something can be reached, or asked for.
    pub fn network_policy(&self) -> Result<Option<NetworkPolicy>> {
        let allow = self.profile.egress(&self.egress)?;
        let opens = !self.host_ports.is_empty() || !self.ask.is_zero();
        if opens && !self.profile.has_way_out() {
            let what = match self.host_ports.first() {
                Some(port) => format!("the host's port {port} cannot be reached"),
                None => "nothing can be asked for".to_owned(),
            };
            let what = format!("profile {} has no way out, so {what}", self.profile);
            return Err(Error::new(ErrorKind::Usage, what)
                .hint("Leave --allow-host-port and --ask out, or use --profile repo-write."));
        }
        if allow.is_empty() && !opens && !self.keeps_way_out {
            return Ok(None);
        }
        let policy = NetworkPolicy {
            version: 1,
            allow,
            deny: self.deny.clone(),
            host_ports: self.host_ports.clone(),
            ask_ms: u64::try_from(self.ask.as_millis()).unwrap_or(u64::MAX),
        };
        policy.check()?;
        Ok(Some(policy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(profile: Profile) -> Spec {
        Spec { profile, ..Spec::new(Workspace::Private, Caller::default()) }
    }

    #[test]
    fn a_way_out_is_there_where_something_opens_it() {
        let closed = |spec: &Spec| spec.network_policy().unwrap().is_none();
        assert!(closed(&spec(Profile::NoNetwork)) && closed(&spec(Profile::RepoWrite)));
        let denies = vec!["a.test:1".parse().unwrap()];
        assert!(closed(&Spec { deny: denies, ..spec(Profile::RepoWrite) }));
        let everywhere = spec(Profile::FullDev).network_policy().unwrap().unwrap();
        assert_eq!(everywhere.allow, [EgressRule::anywhere()]);
        let kept = Spec { keeps_way_out: true, ..spec(Profile::RepoWrite) };
        assert_eq!(kept.network_policy().unwrap().unwrap().allow, []);
        let asks = Spec { ask: Duration::from_secs(1), ..spec(Profile::CiOnly) };
        let policy = asks.network_policy().unwrap().unwrap();
        assert_eq!((policy.ask_ms, policy.allow.len()), (1000, 0));
        let port = Spec { host_ports: vec![5432], ..spec(Profile::RepoWrite) };
        assert_eq!(port.network_policy().unwrap().unwrap().host_ports, [5432]);
        for profile in [Profile::NoNetwork, Profile::ReadOnly] {
            let port = Spec { profile, ..port.clone() };
            assert_eq!(port.network_policy().unwrap_err().kind, ErrorKind::Usage);
            assert!(Spec { profile, ..asks.clone() }.network_policy().is_err());
        }
        let mut granted = spec(Profile::RepoWrite);
        granted.grant(vec!["T@a.example".parse().unwrap()]).unwrap();
        let mut here = Spec { host_ports: vec![443], ..spec(Profile::RepoWrite) };
        here.grant(vec!["T@host.cofferdam.internal".parse().unwrap()]).unwrap();
        assert_eq!(here.network_policy().unwrap().unwrap().allow, [], "its port opens it");
        here.host_ports.clear();
        let error = here.grant(here.secrets.clone()).unwrap_err();
        assert!(error.hint.unwrap().contains("--allow-host-port 443"));
        let policy = granted.network_policy().unwrap().unwrap();
        assert_eq!(policy.allow, ["a.example:443".parse().unwrap()]);
        let mut open = spec(Profile::FullDev);
        open.grant(granted.secrets.clone()).unwrap();
        assert_eq!(open.network_policy().unwrap().unwrap().allow, [EgressRule::anywhere()]);
        assert!(spec(Profile::NoNetwork).grant(granted.secrets.clone()).is_err());
        open.env.insert("T".into(), "x".into());
        assert!(open.grant(granted.secrets).is_err(), "a variable of its name is set");
        let long = Spec { ask: Duration::from_secs(1 << 20), ..spec(Profile::FullDev) };
        assert!(long.network_policy().is_err());
    }
}
