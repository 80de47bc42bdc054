//! Hints as a model can follow them.
//!
//! Errors come from below, where nobody knows who asked, and many name what a person would type. A model
//! gets the tool of its pack that does that, or is told whose it is to do. Pure.

use crate::PackName;
use cofferdam_core::Error;

/// What a person would do, and what a model with Cofferdam's own tools does.
const OWN: &[(&str, &str)] = &[
    (
        "`cofferdam history`",
        "Use steps, or the point that an earlier sandbox_undo named as the way back.",
    ),
    ("`cofferdam ps`", "Read how it stands with shell_poll."),
    ("`cofferdam wait`", "Wait for it with shell_poll and wait_ms."),
    ("`cofferdam diff", "See what it changed with sandbox_diff."),
    ("`cofferdam network allow`", "Ask the user for it with permission_request."),
    ("`cofferdam undo", "Go back to a point with sandbox_undo."),
    ("sandbox_ensure", "Make it with sandbox_ensure, or use another name."),
];
/// What leads a hint that a person alone can follow.
pub(crate) const FOR_THE_USER: &str = "For the user, on the command line: ";

/// The error with a hint for a model that has this pack.
pub(crate) fn advised(pack: PackName, mut error: Error) -> Error {
    error.hint = error.hint.and_then(|hint| advice(pack, hint));
    error
}

fn advice(pack: PackName, hint: String) -> Option<String> {
    let is_own = pack == PackName::Cofferdam;
    if let Some((_, does)) = OWN.iter().find(|(sign, _)| hint.contains(sign)) {
        if is_own {
            return Some((*does).to_owned());
        }
        // The only one of these tools that other packs are told of from below.
        if hint.contains("sandbox_ensure") {
            return Some("Use the name of a sandbox that is there.".to_owned());
        }
    }
    let is_typed = names_a_verb(&hint) || names_a_flag(&hint);
    Some(if is_typed { format!("{FOR_THE_USER}{hint}") } else { hint })
}

fn names_a_verb(hint: &str) -> bool {
    hint.contains("`cofferdam ") || hint.contains("`file ")
}

/// Whether a word is a flag, as `--cow` is.
fn names_a_flag(hint: &str) -> bool {
    hint.split_whitespace().any(|word| {
        let flag = word.trim_start_matches(['\'', '`', '(']).strip_prefix("--");
        flag.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_lowercase()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::ErrorKind;

    fn told(pack: PackName, hint: &str) -> String {
        let error = Error::new(ErrorKind::Conflict, "it").hint(hint.to_owned());
        advised(pack, error).hint.unwrap()
    }

    #[test]
    fn a_hint_names_a_tool_of_its_pack_or_says_whose_it_is() {
        let own = |hint| told(PackName::Cofferdam, hint);
        let ps = "See with `cofferdam ps` how it ended.";
        assert_eq!(own(ps), "Read how it stands with shell_poll.");
        assert_eq!(told(PackName::Adk, ps), format!("{FOR_THE_USER}{ps}"));
        for typed in ["Make sessions with --cow for this.", "Run `cofferdam doctor`."] {
            assert_eq!(own(typed), format!("{FOR_THE_USER}{typed}"));
        }
        for plain in ["Use a smaller offset.", "Leave it out -- or not.", "Call again with path."] {
            assert_eq!(own(plain), plain);
        }
        let ensure = "Make it with sandbox_ensure, or use another name.";
        assert_eq!(own(ensure), ensure);
        assert!(!told(PackName::Openmanus, ensure).contains("sandbox_ensure"));
    }
}
