//! Profiles, and the rules of the way out.

mod address;
mod decide;
mod host;
mod registry;
mod rule;

use crate::{Error, ErrorKind, Result};
pub use address::{AddressClass, AddressRange, address_class};
pub use decide::{Decision, decide, decide_name, decide_resolved, is_listed};
pub use host::{Asked, Host, HostName, MAX_HOST_BYTES, MAX_LABEL_BYTES};
pub use rule::{EgressRule, HostPattern, PortRange, intersect_rules};
use std::fmt;
use std::str::FromStr;

/// What a sandbox may do, by one of five names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Reads the workspace. No way out.
    ReadOnly,
    /// Writes the workspace. A way out to the listed hosts only.
    RepoWrite,
    /// Writes the workspace. No way out; a rule that asks for one is an error.
    #[default]
    NoNetwork,
    /// Writes the workspace. A way out to all public addresses, still confined to its processes.
    FullDev,
    /// Hermetic: writes the workspace, has no toolchain but the system's, no variable of the host,
    /// and must have limits. A way out to the listed hosts only.
    CiOnly,
}

impl Profile {
    /// All profiles, in the order of the documents.
    pub const ALL: [Self; 5] =
        [Self::ReadOnly, Self::RepoWrite, Self::NoNetwork, Self::FullDev, Self::CiOnly];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::RepoWrite => "repo-write",
            Self::NoNetwork => "no-network",
            Self::FullDev => "full-dev",
            Self::CiOnly => "ci-only",
        }
    }

    /// Whether the workspace can be written.
    pub fn writes_workspace(self) -> bool {
        match self {
            Self::ReadOnly => false,
            Self::RepoWrite | Self::NoNetwork | Self::FullDev | Self::CiOnly => true,
        }
    }

    /// Whether toolchains of the caller's `PATH` outside the system directories are shown.
    pub fn shows_toolchains(self) -> bool {
        self != Self::CiOnly
    }

    /// Whether variables of the caller such as `TERM` and `LANG` are passed on.
    pub fn passes_variables(self) -> bool {
        self != Self::CiOnly
    }

    /// Whether the limits axis counts toward the verdict though nobody asked for a limit.
    pub fn requires_limits(self) -> bool {
        self == Self::CiOnly
    }

    /// Whether processes of the sandbox may trace each other.
    pub fn traces_processes(self) -> bool {
        self == Self::FullDev
    }

    /// Whether a sandbox under this profile may do nothing that one under the other may not, ways out aside:
    /// those are a matter of rules.
    pub fn is_within(self, other: Self) -> bool {
        let freedoms = [
            Self::writes_workspace,
            Self::shows_toolchains,
            Self::passes_variables,
            Self::traces_processes,
            |profile: Self| !profile.requires_limits(),
        ];
        freedoms.into_iter().all(|has: fn(Self) -> bool| has(other) || !has(self))
    }

    /// Whether there can be a way out.
    pub fn has_way_out(self) -> bool {
        match self {
            Self::ReadOnly | Self::NoNetwork => false,
            Self::RepoWrite | Self::FullDev | Self::CiOnly => true,
        }
    }

    /// The rules in force: those listed, and what the profile opens by itself.
    ///
    /// Fails where the profile has no way out and a rule asks for one.
    pub fn egress(self, listed: &[EgressRule]) -> Result<Vec<EgressRule>> {
        match self {
            Self::ReadOnly | Self::NoNetwork => match listed.first() {
                None => Ok(Vec::new()),
                Some(rule) => Err(Error::new(
                    ErrorKind::Usage,
                    format!("profile {self} has no way out, so the rule {rule} cannot hold"),
                )
                .hint("Leave --egress out, or use --profile repo-write.")),
            },
            Self::RepoWrite | Self::CiOnly => Ok(listed.to_vec()),
            Self::FullDev if listed.is_empty() => Ok(vec![EgressRule::anywhere()]),
            Self::FullDev => Ok(listed.to_vec()),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::new(ErrorKind::Usage, format!("there is no profile {text:?}"))
                .hint(format!("Use one of {names}."))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_within_another_where_it_allows_nothing_more() {
        use Profile::{CiOnly, FullDev, NoNetwork, ReadOnly, RepoWrite};
        let within = |other: Profile| {
            Profile::ALL.into_iter().filter(|one| one.is_within(other)).collect::<Vec<_>>()
        };
        assert_eq!(within(FullDev), Profile::ALL);
        assert_eq!(within(RepoWrite), [ReadOnly, RepoWrite, NoNetwork, CiOnly]);
        assert_eq!(within(NoNetwork), [ReadOnly, RepoWrite, NoNetwork, CiOnly]);
        assert_eq!(within(ReadOnly), [ReadOnly]);
        assert_eq!(within(CiOnly), [CiOnly]);
    }

    #[test]
    fn a_profile_without_a_way_out_refuses_rules() {
        let rules = ["a.b:1".parse().unwrap()];
        assert!(Profile::NoNetwork.egress(&rules).is_err());
        assert!(Profile::ReadOnly.egress(&rules).is_err());
        assert_eq!(Profile::NoNetwork.egress(&[]).unwrap(), []);
        assert_eq!(Profile::RepoWrite.egress(&rules).unwrap(), rules);
        assert_eq!(Profile::RepoWrite.egress(&[]).unwrap(), []);
        assert_eq!(Profile::FullDev.egress(&[]).unwrap(), [EgressRule::anywhere()]);
    }
}
