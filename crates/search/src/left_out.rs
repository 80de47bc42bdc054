//! What a search did not look at or did not tell, and why.

use cofferdam_core::files::ByteString;

/// Why something was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A file is larger than is searched.
    TooLarge,
    /// A file or directory could not be read.
    Unreadable,
    /// A directory lies deeper than a path may lead.
    TooDeep,
    /// More names were there than are looked at.
    TooManyNames,
    /// So much was found that the search ended.
    TooManyMatches,
    /// A file holds more matches than are told of one.
    MatchesOfOneFile,
    /// Rules of a `.gitignore` do not hold, for they are too many or make no sense.
    Rules,
}

/// Something that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Why.
    pub reason: Reason,
    /// How often.
    pub count: u64,
    /// What it was the first time.
    pub first: ByteString,
}

impl Reason {
    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::TooDeep => "too_deep",
            Self::TooManyNames => "too_many_names",
            Self::TooManyMatches => "too_many_matches",
            Self::MatchesOfOneFile => "matches_of_one_file",
            Self::Rules => "rules",
        }
    }
}

/// Adds one to what was left out.
pub(crate) fn leave_out(all: &mut Vec<LeftOut>, reason: Reason, path: &[u8]) {
    match all.iter_mut().find(|known| known.reason == reason) {
        Some(known) => known.count += 1,
        None => all.push(LeftOut { reason, count: 1, first: path.to_vec().into() }),
    }
}
