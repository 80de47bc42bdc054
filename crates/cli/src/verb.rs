//! Which verb is at work, known even where the command line makes no sense.

use std::ffi::{OsStr, OsString};

/// Which verb is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerbName {
    /// `run`
    Run,
    /// `probe`
    Probe,
    /// `explain`
    Explain,
    /// `doctor`
    Doctor,
    /// `wrap`
    Wrap,
    /// `config`
    Config,
    /// `completions`
    Completions,
    /// `man`
    Man,
    /// None that is known.
    None,
}

impl VerbName {
    /// All verbs.
    pub(crate) const ALL: [Self; 9] = [
        Self::Run,
        Self::Probe,
        Self::Explain,
        Self::Doctor,
        Self::Wrap,
        Self::Config,
        Self::Completions,
        Self::Man,
        Self::None,
    ];

    /// Its name, if it is a verb.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Run => Some("run"),
            Self::Probe => Some("probe"),
            Self::Explain => Some("explain"),
            Self::Doctor => Some("doctor"),
            Self::Wrap => Some("wrap"),
            Self::Config => Some("config"),
            Self::Completions => Some("completions"),
            Self::Man => Some("man"),
            Self::None => None,
        }
    }

    /// What the verb does, to follow "failed to".
    pub(crate) fn doing(self) -> &'static str {
        match self {
            Self::Run => "run the command",
            Self::Probe => "probe the sandbox",
            Self::Explain => "explain the sandbox",
            Self::Doctor => "look at this host",
            Self::Wrap => "wrap the command",
            Self::Config => "read the configuration",
            Self::Completions => "print completions",
            Self::Man => "print the manual",
            Self::None => "start",
        }
    }
}

/// What can be told of a command line at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Glance {
    /// Its verb.
    pub(crate) verb: VerbName,
    /// Whether errors are to be objects: whether `--json` stands before any `--`.
    pub(crate) json: bool,
}

/// Glances at the words of a command line, the program's name first.
pub(crate) fn glance(words: &[OsString]) -> Glance {
    let first = words.get(1).and_then(|word| word.to_str());
    let named = |verb: &VerbName| first.is_some() && verb.name() == first;
    let verb = VerbName::ALL.into_iter().find(named).unwrap_or(VerbName::None);
    let json =
        words.iter().take_while(|word| *word != OsStr::new("--")).any(|word| word == "--json");
    Glance { verb, json }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, verb: VerbName, json: bool) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert_eq!(glance(&words), Glance { verb, json }, "{line}");
    }

    #[test]
    fn json_counts_only_before_two_hyphens() {
        check("cofferdam run --json --nonsense", VerbName::Run, true);
        check("cofferdam run -- cargo metadata --json", VerbName::Run, false);
        check("cofferdam", VerbName::None, false);
        check("cofferdam rum --json", VerbName::None, true);
    }
}
