//! The packs, by their names.

use cofferdam_core::{Error, ErrorKind, Result};
use std::fmt;
use std::str::FromStr;

/// A set of tools that belong together, by one of five names. Two packs may have tools of one name
/// that mean different things, so they are never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PackName {
    /// Cofferdam's own: everything that a session can do.
    #[default]
    Cofferdam,
    /// The five `sandbox_*` of everruns.
    Everruns,
    /// Those of adk workspaces, and `sandbox_exec` for code.
    Adk,
    /// Those of fluers.
    Fluers,
    /// Shell and files of OpenManus.
    Openmanus,
}

impl PackName {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Cofferdam, Self::Everruns, Self::Adk, Self::Fluers, Self::Openmanus];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cofferdam => "cofferdam",
            Self::Everruns => "everruns",
            Self::Adk => "adk",
            Self::Fluers => "fluers",
            Self::Openmanus => "openmanus",
        }
    }
}

impl fmt::Display for PackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PackName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|pack| pack.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::new(ErrorKind::Usage, format!("there is no pack of tools {text:?}"))
                .hint(format!("Use one of {names}."))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pack_is_found_by_its_name_and_nothing_else_is() {
        for pack in PackName::ALL {
            assert_eq!(pack.name().parse::<PackName>().unwrap(), pack);
        }
        let error = "Everruns".parse::<PackName>().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.hint.unwrap().contains("everruns"));
    }
}
