//! What a sandbox may reach, and what became of its connections.

use super::door::{Approves, Deed, Door, Looks, Manages};
use super::error::Answer;
use super::extract::{Body, Path, Query};
use super::objects;
use crate::Server;
use axum::Json;
use cofferdam_core::policy::{AddressClass, HostPattern, address_class, intersect_rules};
use cofferdam_core::{EgressRule, Error, ErrorKind, Result};
use cofferdam_session::{ConnectionList, NetworkChange, NetworkReport};
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::IpAddr;
use std::time::Duration;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(show, set))
        .routes(routes!(allow))
        .routes(routes!(deny))
        .routes(routes!(connections))
}

/// All rules of a sandbox, as they are to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NetworkWish {
    /// What is allowed, as in `crates.io:443`; all of it within what the operator allows.
    pub(crate) allow: Vec<String>,
    /// What is not, even though it is allowed. What the operator denies is denied besides.
    pub(crate) deny: Vec<String>,
    /// How long a connection that is not allowed waits to become so, in milliseconds. Left out: as it is.
    pub(crate) ask_ms: Option<u64>,
}

/// Rules.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RulesWish {
    /// As in `crates.io:443`.
    pub(crate) rules: Vec<String>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ConnectionsQuery {
    /// Those behind this place, as an earlier answer told it. Left out: all that are kept.
    #[param(minimum = 0, maximum = 4611686018427387903_i64)]
    after: Option<u64>,
}

/// What a sandbox may reach.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/network", tag = "network",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "The rules in force.", body = objects::Network),
))]
async fn show(door: Door<Looks>, Path(sandbox): Path<String>) -> Answer<Json<NetworkReport>> {
    Ok(Json(door.session(&sandbox).await?.network().await?))
}

/// Makes these rules all there are, from the next connection on. What a caller allows is within what the
/// operator of the server allows.
#[utoipa::path(put, path = "/v1/sandboxes/{sandbox}/network", tag = "network",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::NetworkOrder, responses(
    (status = 200, description = "The rules in force now.", body = objects::Network),
))]
async fn set(
    door: Door<Approves>,
    Path(sandbox): Path<String>,
    Body(wish): Body<NetworkWish>,
) -> Answer<Json<NetworkReport>> {
    let allow = within_ground(&door, opening(&wish.allow)?)?;
    let mut deny = rules(&wish.deny)?;
    let operators = door.ground()?.spec().deny;
    deny.extend(operators.into_iter().filter(|rule| !wish.deny.contains(&rule.to_string())));
    let ask = wish.ask_ms.map(Duration::from_millis);
    let change = NetworkChange::Set { allow, deny, host_ports: None, ask };
    Ok(Json(door.session(&sandbox).await?.set_network(&change).await?))
}

/// Allows destinations within what the operator allows. Connections that wait for one of them go on.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/network/allow", tag = "network",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::NetworkRules, responses(
    (status = 200, description = "The rules in force now.", body = objects::Network),
))]
async fn allow(
    door: Door<Approves>,
    Path(sandbox): Path<String>,
    Body(wish): Body<RulesWish>,
) -> Answer<Json<NetworkReport>> {
    let rules = may_open(&door, opening(&wish.rules)?)?;
    let session = door.session(&sandbox).await?;
    Ok(Json(session.set_network(&NetworkChange::Allow(rules)).await?))
}

/// Denies destinations, whatever allows them.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/network/deny", tag = "network",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::NetworkRules, responses(
    (status = 200, description = "The rules in force now.", body = objects::Network),
))]
async fn deny(
    door: Door<Manages>,
    Path(sandbox): Path<String>,
    Body(wish): Body<RulesWish>,
) -> Answer<Json<NetworkReport>> {
    let rules = rules(&wish.rules)?;
    let session = door.session(&sandbox).await?;
    Ok(Json(session.set_network(&NetworkChange::Deny(rules)).await?))
}

/// What became of the connections of a sandbox, as much as one answer takes; `next` goes on from there.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/audit", tag = "network",
    params(("sandbox" = String, Path, description = "Its name or id."), ConnectionsQuery), responses(
    (status = 200, description = "In the order in which they were decided.", body = objects::Connections),
))]
async fn connections(
    door: Door<Looks>,
    Path(sandbox): Path<String>,
    Query(query): Query<ConnectionsQuery>,
) -> Answer<Json<ConnectionList>> {
    let session = door.session(&sandbox).await?;
    Ok(Json(session.connections(query.after.unwrap_or(0)).await?))
}

pub(super) fn rules(all: &[String]) -> Result<Vec<EgressRule>> {
    all.iter().map(|rule| rule.parse()).collect()
}

/// Rules that are to open something, and can.
pub(super) fn opening(all: &[String]) -> Result<Vec<EgressRule>> {
    let rules = rules(all)?;
    rules.iter().try_for_each(EgressRule::check_allowing).map(|()| rules)
}

/// These rules, if the operator lets somebody open each of them: it lies within one of theirs, and they do
/// not deny it.
pub(super) fn may_open<D: Deed>(door: &Door<D>, rules: Vec<EgressRule>) -> Result<Vec<EgressRule>> {
    match door.ground()?.spec().deny.iter().find(|rule| rules.contains(rule)) {
        Some(rule) => Err(beyond(rule)),
        None => within_ground(door, rules),
    }
}

/// These rules, if each of them lies within one of the operator's.
fn within_ground<D: Deed>(door: &Door<D>, rules: Vec<EgressRule>) -> Result<Vec<EgressRule>> {
    let spec = door.ground()?.spec();
    let operators = spec.profile.egress(&spec.egress)?;
    match first_beyond(&rules, &operators) {
        Some(rule) => Err(beyond(rule)),
        None => Ok(rules),
    }
}

/// The first of these rules that lies within none of the operator's.
pub(super) fn first_beyond<'a>(
    rules: &'a [EgressRule],
    operators: &[EgressRule],
) -> Option<&'a EgressRule> {
    let is_own = |address| std::net::UdpSocket::bind((address, 0)).is_ok();
    rules
        .iter()
        .find(|rule| !lies_within(rule, operators) || is_unlisted_own(rule, operators, is_own))
}

fn lies_within(rule: &EgressRule, operators: &[EgressRule]) -> bool {
    intersect_rules(std::slice::from_ref(rule), operators).contains(rule)
}

/// Whether a rule is about a public address that is this machine's own, and that none of the operator's is about: what
/// opens addresses of others opens none of these (gates ask that, too, and take a listed one for meant).
fn is_unlisted_own(
    rule: &EgressRule,
    operators: &[EgressRule],
    is_own: impl Fn(IpAddr) -> bool,
) -> bool {
    let one = |rule: &EgressRule| match &rule.host {
        HostPattern::Addresses(range) => range.as_one(),
        HostPattern::Anywhere | HostPattern::Exactly(_) | HostPattern::Below(_) => None,
    };
    let Some(address) = one(rule).filter(|at| address_class(*at) == AddressClass::Public) else {
        return false;
    };
    let about_it = operators.iter().filter(|known| one(known) == Some(address));
    let about_it: Vec<EgressRule> = about_it.cloned().collect();
    !lies_within(rule, &about_it) && is_own(address)
}

fn beyond(rule: &EgressRule) -> Error {
    Error::new(ErrorKind::Denied, format!("the operator of this server does not allow {rule}"))
        .hint("Ask for what the operator allows, or have the server started with --egress.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_opened_by_the_operators_own_rule_alone() {
        let check = |rule: &str, operators: &[&str], is_beyond: bool| {
            let rule: EgressRule = rule.parse().unwrap();
            let known: Vec<EgressRule> = operators.iter().map(|one| one.parse().unwrap()).collect();
            assert!(lies_within(&rule, &known), "{rule} {operators:?}");
            let is_own = |address: IpAddr| address == IpAddr::from([8, 8, 4, 2]);
            assert_eq!(is_unlisted_own(&rule, &known, is_own), is_beyond, "{rule} {operators:?}");
        };
        for operators in [&["*"][..], &["8.8.0.0/16"], &["0.0.0.0/0", "8.8.4.3"]] {
            check("8.8.4.2:80", operators, true);
            check("8.8.4.1:80", operators, false);
        }
        check("8.8.4.2:80", &["*", "8.8.4.2"], false);
        check("8.8.4.2:80", &["*", "8.8.4.2:80"], false);
        check("8.8.4.2:80", &["*", "8.8.4.2:81"], true);
        check("a.test", &["*"], false);
        // What is not public is open where the operator lists it, in whatever way.
        check("10.0.0.1:80", &["10.0.0.0/8"], false);
    }
}
