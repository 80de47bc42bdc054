//! What `cofferdam file glob` and `grep` say of what they left out.

use crate::report;
use cofferdam_search::{LeftOut, Reason};

/// Tells people what was left out.
pub(super) fn note(left_out: &[LeftOut]) {
    for left in left_out {
        report::note(&sentence(left));
    }
}

fn sentence(left: &LeftOut) -> String {
    let (count, first) = (left.count, &left.first);
    let (one, several, why) = match left.reason {
        Reason::TooLarge => ("file was", "files were", "not searched, being too large"),
        Reason::Unreadable => ("name was", "names were", "not searched, being unreadable"),
        Reason::TooDeep => ("directory was", "directories were", "not searched, lying too deep"),
        Reason::TooManyNames => {
            return format!("so many names are there that the search ended before {first:?}");
        }
        Reason::TooManyMatches => {
            // The search may have ended there, and a file that was not searched may hold nothing.
            let number = if count == 1 { "name or file was" } else { "names or files were" };
            return format!(
                "so much was found that at least {count} more {number} not told or not searched; \
                 the first is {first:?}"
            );
        }
        Reason::MatchesOfOneFile => ("file has", "files have", "more matches than are told"),
        Reason::Rules => {
            ("directory has", "directories have", "a .gitignore that was not followed as a whole")
        }
    };
    let number = if count == 1 { one } else { several };
    format!("{count} {number} {why}; the first is {first:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_a_sentence() {
        let check = |reason, count, expected: &str| {
            assert_eq!(sentence(&LeftOut { reason, count, first: "a".into() }), expected);
        };
        check(Reason::TooLarge, 1, "1 file was not searched, being too large; the first is \"a\"");
        check(
            Reason::Unreadable,
            2,
            "2 names were not searched, being unreadable; the first is \"a\"",
        );
        let ended = "so many names are there that the search ended before \"a\"";
        check(Reason::TooManyNames, 1, ended);
        let more = "so much was found that at least 1 more name or file was not told or not \
                    searched; the first is \"a\"";
        check(Reason::TooManyMatches, 1, more);
        let more = "so much was found that at least 3 more names or files were not told or not \
                    searched; the first is \"a\"";
        check(Reason::TooManyMatches, 3, more);
    }
}
