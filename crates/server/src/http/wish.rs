//! A sandbox as a request wants it, and what it means on this ground.

use super::network::{first_beyond, opening, rules};
use crate::{Ground, HeldImage, Pull};
use cofferdam_core::network::MAX_RULES;
use cofferdam_core::secret::SecretGrant;
use cofferdam_core::{Error, ErrorKind, Limit, Limits, Profile, Result, Spec, User, Workspace};
use cofferdam_session::manifest::{Manifest, Provisions};
pub(crate) use cofferdam_session::objects::{
    LimitsWish, ProfileName, PullName, SandboxWish, SpecWish,
};
use cofferdam_session::{InitCommand, SessionOrder, Unsaid};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The most variables of a request.
pub(crate) const MAX_VARIABLES: usize = 256;
/// The most init lines of a request.
pub(crate) const MAX_INIT_LINES: usize = 64;

fn pull_of(name: PullName) -> Pull {
    match name {
        PullName::Missing => Pull::Missing,
        PullName::Always => Pull::Always,
        PullName::Never => Pull::Never,
    }
}

/// Lets a sandbox lie on the image that a request names, if it names one. What comes back is kept until
/// there is the sandbox.
pub(crate) async fn lie_on(
    ground: &Ground,
    (named, pull): (Option<&str>, Option<PullName>),
    spec: &mut Spec,
) -> Result<Option<HeldImage>> {
    let Some(named) = named else {
        return match pull {
            None => Ok(None),
            Some(_) => Err(Error::new(ErrorKind::Usage, "pull is said of an image, and none is")
                .hint("Name an image, or leave pull out.")),
        };
    };
    let (source, named) = (ground.image(named)?, named.to_owned());
    let opening = move || source.open(&named, pull.map(pull_of));
    let broke_off = |e| Error::new(ErrorKind::Io, "make an image ready").source(e);
    let (image, held) = tokio::task::spawn_blocking(opening).await.map_err(broke_off)??;
    if image.run.is_root() && spec.user == User::default() {
        spec.user = User::Root;
    }
    spec.image = Some(image);
    Ok(Some(held))
}

fn profile_of(name: ProfileName) -> Profile {
    match name {
        ProfileName::ReadOnly => Profile::ReadOnly,
        ProfileName::RepoWrite => Profile::RepoWrite,
        ProfileName::NoNetwork => Profile::NoNetwork,
        ProfileName::FullDev => Profile::FullDev,
        ProfileName::CiOnly => Profile::CiOnly,
    }
}

/// A wish that says what it comes to by itself.
pub(crate) trait Wish {
    /// What it comes to.
    type Order;

    /// What it comes to, checked.
    fn order(self) -> Result<Self::Order>;
}

/// A wish that comes to something on the ground of an operator.
pub(crate) trait OnGround {
    /// What it comes to.
    type Order;

    /// What it comes to on this ground.
    fn on(&self, ground: &Ground) -> Result<Self::Order>;
}

impl OnGround for SandboxWish {
    type Order = SessionOrder;

    fn on(&self, ground: &Ground) -> Result<SessionOrder> {
        let init = self.init.as_deref().unwrap_or_default();
        if init.len() > MAX_INIT_LINES {
            return Err(too_many("init lines", init.len(), MAX_INIT_LINES));
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
            image: None,
            pull: None,
            env: self.env.clone(),
            secrets: self.secrets.clone(),
            egress: self.egress.clone(),
            deny_egress: self.deny_egress.clone(),
            limits: self.limits,
        };
        let mut order = SessionOrder::new(spec.on(ground)?);
        order.name.clone_from(&self.name);
        order.unsaid = unsaid(self);
        order.labels = self.labels.clone().unwrap_or_default();
        order.init = init.iter().map(InitCommand::shell).collect();
        if let Some(idle_ms) = self.idle_pause_ms {
            order.idle_pause = Some(Duration::from_millis(idle_ms));
        }
        if self.stay_awake {
            order.idle_pause = None;
        }
        order.ttl = self.ttl_ms.map(Duration::from_millis);
        order.checkpoints = !self.no_checkpoints.unwrap_or(false);
        order.manifest = self.manifest.as_ref().map(provisions).transpose()?;
        Ok(order)
    }
}

/// What a manifest brings that names nothing of a host.
fn provisions(manifest: &Manifest) -> Result<Arc<Provisions>> {
    let checked = manifest.check()?.of_itself()?;
    // Nothing that it names is looked for there.
    Ok(Arc::new(checked.load(Path::new("/"))?))
}

/// What a sandbox that is there already keeps, because the request does not say it.
fn unsaid(wish: &SandboxWish) -> BTreeSet<Unsaid> {
    let is_said = [
        (Unsaid::Labels, wish.labels.is_some()),
        (Unsaid::Init, wish.init.is_some()),
        (Unsaid::IdlePause, wish.stay_awake || wish.idle_pause_ms.is_some()),
        (Unsaid::Ttl, wish.ttl_ms.is_some()),
        (Unsaid::Checkpoints, wish.no_checkpoints.is_some()),
    ];
    is_said.into_iter().filter(|(_, is_said)| !is_said).map(|(what, _)| what).collect()
}

impl OnGround for SpecWish {
    type Order = Spec;

    fn on(&self, ground: &Ground) -> Result<Spec> {
        let mut spec = ground.spec();
        if let Some(profile) = self.profile {
            spec.profile = profile_of(profile);
        }
        // Less is asked for than the operator's way out.
        if !spec.profile.has_way_out() {
            spec.egress.clear();
            spec.deny.clear();
            spec.host_ports.clear();
            spec.secrets.clear();
            spec.ask = Duration::ZERO;
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
        route(self, &mut spec)?;
        if !self.secrets.is_empty() {
            let wished = self.secrets.iter().map(|grant| grant.parse());
            let operators = std::mem::take(&mut spec.secrets).into_iter().map(Ok);
            spec.grant(operators.chain(wished).collect::<Result<Vec<SecretGrant>>>()?)?;
        }
        narrow(&self.limits, &mut spec.limits)?;
        refuse_more_way_out(&spec, &ground.spec())?;
        refuse_wider(spec.profile, ground.spec().profile)?;
        Ok(spec)
    }
}

/// Puts rules in place of the operator's; whether each lies within one of those is seen later.
fn route(wish: &SpecWish, spec: &mut Spec) -> Result<()> {
    if let Some(wished) = &wish.egress {
        if wished.is_empty() && spec.profile == Profile::FullDev {
            let what = "egress is empty, and profile full-dev reaches all that is public";
            return Err(Error::new(ErrorKind::Usage, what)
                .hint("Name what is to be reached, or use the profile no-network."));
        }
        spec.egress = opening(wished)?;
    }
    spec.deny.extend(rules(&wish.deny_egress)?);
    let count = spec.egress.len().saturating_add(spec.deny.len());
    if count > MAX_RULES {
        return Err(too_many("egress rules", count, MAX_RULES));
    }
    Ok(())
}

/// Takes over what is asked for, as far as the operator allows it.
fn narrow(wish: &LimitsWish, limits: &mut Limits) -> Result<()> {
    take("memory_bytes", wish.memory_bytes, &mut limits.memory_bytes)?;
    take("pids", wish.pids, &mut limits.pids)?;
    take("cpu_millis", wish.cpu_millis, &mut limits.cpu_millis)?;
    take("disk_bytes", wish.disk_bytes, &mut limits.disk_bytes)?;
    limits.check()
}

/// Takes one limit over. That of the operator is the most, be it the usual one.
fn take<T: Copy + PartialOrd + Default + std::fmt::Display>(
    name: &str,
    wanted: Option<T>,
    limit: &mut Limit<T>,
) -> Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    let most = limit.value();
    // 0 is no limit where that is possible at all.
    let is_more = most != T::default() && (wanted > most || wanted == T::default());
    if is_more {
        let what = match wanted == T::default() {
            true => format!("{name} 0 would be no limit, and the operator allows {most} at most"),
            false => format!("{name} {wanted} is more than the {most} that the operator allows"),
        };
        return Err(Error::new(ErrorKind::Denied, what)
            .hint("Ask for less; an operator allows more by options of `cofferdam serve`."));
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

/// Refuses a way out that leads further than that of the operator.
fn refuse_more_way_out(spec: &Spec, operator: &Spec) -> Result<()> {
    let Some(wanted) = spec.network_policy()? else { return Ok(()) };
    let allowed = operator.network_policy()?.map(|policy| policy.allow);
    let further = first_beyond(&wanted.allow, allowed.as_deref().unwrap_or(&[]));
    let what = match (further, &allowed) {
        (Some(rule), Some(known)) if !known.is_empty() => {
            let what = format!("a way out to {rule} is none that the operator allows");
            return Err(Error::new(ErrorKind::Denied, what)
                .hint("Leave it out, or ask the operator to allow it."));
        }
        (Some(rule), _) => format!(
            "profile {} asks for a way out to {rule}, and the operator allows none",
            spec.profile
        ),
        (None, None) => {
            format!("profile {} asks for a way out, and the operator allows none", spec.profile)
        }
        (None, Some(_)) => return Ok(()),
    };
    Err(Error::new(ErrorKind::Denied, what).hint("Use the profile no-network."))
}

/// Refuses a profile that allows what that of the operator does not.
fn refuse_wider(wanted: Profile, operators: Profile) -> Result<()> {
    if wanted.is_within(operators) {
        return Ok(());
    }
    let within = Profile::ALL.into_iter().filter(|one| one.is_within(operators)).map(Profile::name);
    let within: Vec<_> = within.collect();
    let what = format!("profile {wanted} allows more than the operator's, {operators}");
    let hint = format!("Leave it out, or use one of {}.", within.join(", "));
    Err(Error::new(ErrorKind::Denied, what).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::Caller;

    #[test]
    fn a_request_asks_for_less_than_the_operators_way_out_by_a_profile_without_one() {
        let operator = Spec {
            profile: Profile::RepoWrite,
            egress: vec!["a.test:443".parse().unwrap()],
            host_ports: vec![5432],
            ask: Duration::from_secs(1),
            ..Spec::new(Workspace::Private, Caller::default())
        };
        let ground = Ground::new(operator, Vec::new()).unwrap();
        let ask = |profile, egress| {
            SpecWish { profile, egress, ..SpecWish::default() }.on(&ground)?.network_policy()
        };
        assert!(ask(None, None).unwrap().is_some(), "the control");
        for profile in [ProfileName::NoNetwork, ProfileName::ReadOnly] {
            for egress in [None, Some(Vec::new())] {
                assert!(ask(Some(profile), egress).unwrap().is_none(), "{profile:?}");
            }
            let wished = Some(vec!["a.test:443".to_owned()]);
            assert!(
                ask(Some(profile), wished).is_err(),
                "{profile:?}: what is said is not dropped"
            );
        }
    }

    #[test]
    fn a_request_names_no_profile_that_allows_more_than_the_operators() {
        for operators in Profile::ALL {
            let operator =
                Spec { profile: operators, ..Spec::new(Workspace::Private, Caller::default()) };
            let ground = Ground::new(operator, Vec::new()).unwrap();
            for wished in [
                ProfileName::ReadOnly,
                ProfileName::RepoWrite,
                ProfileName::NoNetwork,
                ProfileName::CiOnly,
            ] {
                let wish = SpecWish { profile: Some(wished), ..SpecWish::default() };
                let made = wish.on(&ground).map_err(|error| error.kind);
                match profile_of(wished).is_within(operators) {
                    true => assert_eq!(made.unwrap().profile, profile_of(wished), "{operators}"),
                    false => assert_eq!(made.unwrap_err(), ErrorKind::Denied, "{operators}"),
                }
            }
        }
    }

    #[test]
    fn a_limit_of_nothing_is_called_none() {
        let mut limits = Limits { memory_bytes: Limit::Asked(1 << 30), ..Limits::default() };
        let wish = LimitsWish { memory_bytes: Some(0), ..LimitsWish::default() };
        let refused = narrow(&wish, &mut limits).unwrap_err();
        assert!(refused.message.contains("would be no limit"), "{refused}");
        let wish = LimitsWish { cpu_millis: Some(1), ..LimitsWish::default() };
        assert_eq!(narrow(&wish, &mut limits).unwrap_err().kind, ErrorKind::Usage);
    }
}
