//! A sandbox as a request wants it, and what it means on this ground.

use crate::Ground;
use cofferdam_core::{Error, ErrorKind, Limit, Limits, Profile, Result, Spec, Workspace};
use cofferdam_session::{InitCommand, SessionOrder};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

/// The most variables of a request.
pub(crate) const MAX_VARIABLES: usize = 256;
/// The most init lines of a request.
pub(crate) const MAX_INIT_LINES: usize = 64;

/// A sandbox as a request wants it. What is not said is as the operator decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SandboxWish {
    /// Its name, unique among yours: 1 to 64 letters, digits, `-`, `_` or `.`.
    pub(crate) name: Option<String>,
    /// What it may do.
    pub(crate) profile: Option<ProfileName>,
    /// The directory of the host that it works in, one of those that the operator allows. Without one
    /// it has an empty directory of its own.
    pub(crate) workspace: Option<String>,
    /// Whether what is written to that directory lands in a layer beside it.
    pub(crate) copy_on_write: bool,
    /// Variables for every command.
    pub(crate) env: BTreeMap<String, String>,
    /// How much it may use.
    pub(crate) limits: LimitsWish,
    /// What it is found by.
    pub(crate) labels: BTreeMap<String, String>,
    /// Lines of shell that prepare it, each list once.
    pub(crate) init: Vec<String>,
    /// It is paused after it was not in use for so long, in milliseconds.
    pub(crate) idle_pause_ms: Option<u64>,
    /// It is never paused by itself.
    pub(crate) stay_awake: bool,
    /// It is removed after this long, in milliseconds.
    pub(crate) ttl_ms: Option<u64>,
    /// Keeps no point of the history after each command of a copy-on-write sandbox.
    pub(crate) no_checkpoints: bool,
}

/// What a sandbox may do, as a request wants it. What is not said is as the operator decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SpecWish {
    /// What it may do.
    pub(crate) profile: Option<ProfileName>,
    /// The directory of the host that it works in, one of those that the operator allows. Without one
    /// it has an empty directory of its own.
    pub(crate) workspace: Option<String>,
    /// Whether what is written to that directory lands in a layer beside it.
    pub(crate) copy_on_write: bool,
    /// Variables for every command.
    pub(crate) env: BTreeMap<String, String>,
    /// How much it may use.
    pub(crate) limits: LimitsWish,
}

/// How much a sandbox may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsWish {
    /// Memory of all processes together, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// Processes and threads.
    pub(crate) pids: Option<u32>,
    /// Thousandths of a processor.
    pub(crate) cpu_millis: Option<u32>,
    /// The private writable space, in bytes.
    pub(crate) disk_bytes: Option<u64>,
}

/// What a sandbox may do, by the name of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProfileName {
    /// The workspace is read-only, and there is no way out.
    ReadOnly,
    /// The workspace can be written; a way out only to what is listed.
    RepoWrite,
    /// The workspace can be written, and there is no way out.
    NoNetwork,
    /// The workspace can be written, with a way out to all public addresses.
    FullDev,
    /// Hermetic: nothing of the host but its system directories.
    CiOnly,
}

impl ProfileName {
    fn profile(self) -> Profile {
        match self {
            Self::ReadOnly => Profile::ReadOnly,
            Self::RepoWrite => Profile::RepoWrite,
            Self::NoNetwork => Profile::NoNetwork,
            Self::FullDev => Profile::FullDev,
            Self::CiOnly => Profile::CiOnly,
        }
    }
}

impl SandboxWish {
    /// What it means on this ground.
    pub(crate) fn order(&self, ground: &Ground) -> Result<SessionOrder> {
        if self.init.len() > MAX_INIT_LINES {
            return Err(too_many("init lines", self.init.len(), MAX_INIT_LINES));
        }
        if self.stay_awake && self.idle_pause_ms.is_some() {
            return Err(Error::new(
                ErrorKind::Usage,
                "both stay_awake and idle_pause_ms are given",
            )
            .hint("Give one of them."));
        }
        let spec = SpecWish {
            profile: self.profile,
            workspace: self.workspace.clone(),
            copy_on_write: self.copy_on_write,
            env: self.env.clone(),
            limits: self.limits,
        };
        let mut order = SessionOrder::new(spec.spec(ground)?);
        order.name.clone_from(&self.name);
        order.labels.clone_from(&self.labels);
        order.init = self.init.iter().map(InitCommand::shell).collect();
        if let Some(idle_ms) = self.idle_pause_ms {
            order.idle_pause = Some(Duration::from_millis(idle_ms));
        }
        if self.stay_awake {
            order.idle_pause = None;
        }
        order.ttl = self.ttl_ms.map(Duration::from_millis);
        order.checkpoints = !self.no_checkpoints;
        Ok(order)
    }
}

impl SpecWish {
    /// What it means on this ground.
    pub(crate) fn spec(&self, ground: &Ground) -> Result<Spec> {
        let mut spec = ground.spec();
        if let Some(profile) = self.profile {
            spec.profile = profile.profile();
        }
        spec.workspace = match (&self.workspace, self.copy_on_write) {
            (Some(named), true) => Workspace::CopyOnWrite(ground.workspace(named)?),
            (Some(named), false) => Workspace::Directory(ground.workspace(named)?),
            (None, false) => Workspace::Private,
            (None, true) => {
                return Err(Error::new(ErrorKind::Usage, "copy_on_write needs a workspace")
                    .hint("Name the directory that the layer is to lie on."));
            }
        };
        spec.env.extend(variables(&self.env)?);
        self.limits.narrow(&mut spec.limits)?;
        refuse_way_out(&spec)?;
        Ok(spec)
    }
}

impl LimitsWish {
    /// Takes over what is asked for, as far as the operator allows it.
    fn narrow(&self, limits: &mut Limits) -> Result<()> {
        take("memory_bytes", self.memory_bytes, &mut limits.memory_bytes)?;
        take("pids", self.pids, &mut limits.pids)?;
        take("cpu_millis", self.cpu_millis, &mut limits.cpu_millis)?;
        take("disk_bytes", self.disk_bytes, &mut limits.disk_bytes)?;
        limits.check()
    }
}

/// Takes one limit over. One that the operator asked for is the most.
fn take<T: Copy + PartialOrd + Default + std::fmt::Display>(
    name: &str,
    wanted: Option<T>,
    limit: &mut Limit<T>,
) -> Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    let most = limit.value();
    // 0 is no limit where that is possible at all.
    let is_more = most != T::default() && (wanted > most || wanted == T::default());
    if limit.is_asked() && is_more {
        let what = format!("{name} {wanted} is more than the {most} that the operator allows");
        return Err(Error::new(ErrorKind::Denied, what).hint("Ask for less."));
    }
    *limit = Limit::Asked(wanted);
    Ok(())
}

/// Variables of a request, checked.
pub(super) fn variables(env: &BTreeMap<String, String>) -> Result<BTreeMap<OsString, OsString>> {
    if env.len() > MAX_VARIABLES {
        return Err(too_many("variables", env.len(), MAX_VARIABLES));
    }
    let is_bad = |name: &str| name.is_empty() || name.contains(['=', '\0']);
    if let Some((name, _)) = env.iter().find(|(name, value)| is_bad(name) || value.contains('\0')) {
        let what = format!("the variable {name:?} cannot be set");
        return Err(Error::new(ErrorKind::Usage, what)
            .hint("A name has no '=', and neither name nor value has a NUL."));
    }
    Ok(env.iter().map(|(name, value)| (name.into(), value.into())).collect())
}

pub(super) fn too_many(what: &str, are: usize, most: usize) -> Error {
    Error::new(ErrorKind::TooLarge, format!("{are} {what} are more than {most}"))
}

/// Refuses what needs a way out, as long as nothing serves one.
fn refuse_way_out(spec: &Spec) -> Result<()> {
    if spec.profile.egress(&spec.egress)?.is_empty() {
        return Ok(());
    }
    let what = format!("profile {} asks for a way out, which nothing serves here", spec.profile);
    Err(Error::new(ErrorKind::Unsupported, what).hint("Use the profile no-network."))
}
