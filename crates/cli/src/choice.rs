//! Closed sets of names, and the nearest name to a misspelled one.

use cofferdam_core::{
    Error, ErrorKind, LayerChoice, OnUnavailable, Profile, Result, Standard, User,
};
use cofferdam_session::OnFailure;

/// A closed set of which each member has a stable name.
pub(crate) trait Choice: Copy + Send + Sync + 'static {
    /// What a member is called, as in "there is no profile …".
    const WHAT: &'static str;
    /// All members, in the order of the documents.
    const ALL: &'static [Self];

    /// The stable name of a member.
    fn named(self) -> &'static str;

    /// The member of that name, or an error with the nearest.
    fn choose(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|member| member.named() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|member| member.named()).collect();
            let what = Self::WHAT;
            Error::new(ErrorKind::Usage, format!("there is no {what} {name:?}"))
                .hint(suggestion(name, &names))
        })
    }
}

/// "Did you mean …?" where a known name is near, and the list of them where none is.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("Did you mean {near}?"),
        None => match known {
            [only] => format!("Use {only}."),
            _ => format!("Use one of {}.", known.join(", ")),
        },
    }
}

/// The known name that `name` is most likely meant to be, if any is near enough.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    /// Below this likeness a suggestion misleads more often than it helps.
    const NEAR: f64 = 0.75;
    let folded = name.to_lowercase().replace('_', "-");
    known
        .iter()
        .map(|word| (*word, strsim::jaro_winkler(&folded, &word.to_lowercase().replace('_', "-"))))
        .filter(|(_, likeness)| *likeness >= NEAR)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(word, _)| word)
}

impl Choice for Profile {
    const WHAT: &'static str = "profile";
    const ALL: &'static [Self] = &Profile::ALL;

    fn named(self) -> &'static str {
        self.name()
    }
}

impl Choice for OnUnavailable {
    const WHAT: &'static str = "answer";
    const ALL: &'static [Self] = &[Self::Refuse, Self::Degrade];

    fn named(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Degrade => "degrade",
        }
    }
}

impl Choice for OnFailure {
    const WHAT: &'static str = "answer";
    const ALL: &'static [Self] = &[Self::Destroy, Self::Stop, Self::Preserve];

    fn named(self) -> &'static str {
        match self {
            Self::Destroy => "destroy",
            Self::Stop => "stop",
            Self::Preserve => "preserve",
        }
    }
}

impl Choice for User {
    const WHAT: &'static str = "user";
    const ALL: &'static [Self] = &[Self::Ordinary, Self::Root];

    fn named(self) -> &'static str {
        match self {
            Self::Ordinary => "sandbox",
            Self::Root => "root",
        }
    }
}

impl Choice for LayerChoice {
    const WHAT: &'static str = "layer";
    const ALL: &'static [Self] = &Self::ALL;

    fn named(self) -> &'static str {
        self.name()
    }
}

impl Choice for Standard {
    const WHAT: &'static str = "stream";
    const ALL: &'static [Self] = &[Self::Output, Self::Error];

    fn named(self) -> &'static str {
        match self {
            Self::Output => "stdout",
            Self::Error => "stderr",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_finds_its_neighbour() {
        let keys = ["profile", "memory", "max_output", "on_unavailable"];
        assert_eq!(nearest("memroy", &keys), Some("memory"));
        assert_eq!(nearest("max-output", &keys), Some("max_output"));
        assert_eq!(nearest("Profile", &keys), Some("profile"));
        assert_eq!(nearest("colour", &keys), None);
    }

    #[test]
    fn an_unknown_member_is_an_error_with_the_nearest() {
        let error = <Profile as Choice>::choose("readonly").unwrap_err();
        assert_eq!(error.message, "there is no profile \"readonly\"");
        assert_eq!(error.hint.as_deref(), Some("Did you mean read-only?"));
        assert_eq!(<User as Choice>::choose("root").unwrap(), User::Root);
    }
}
