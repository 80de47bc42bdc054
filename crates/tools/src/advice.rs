//! Hints as a model can follow them.
//!
//! Errors come from below, where nobody knows who asked, and many name what a person would type. A model
//! gets the tool of its pack that does that, or is told whose it is to do. Pure.

use crate::PackName;
use cofferdam_core::Error;

/// What whoever has a pack does.
type Told = (PackName, &'static str);

/// Hints by what is in them, and what whoever has a pack does in place of what they say. A pack that is not
/// there gets the hint as it is.
const ADVICE: &[(&str, &[Told])] = &[
    (
        "`cofferdam history`",
        &[(OWN, "Use steps, or the point that an earlier sandbox_undo named as the way back.")],
    ),
    ("`cofferdam ps`", &[(OWN, "Read how it stands with shell_poll.")]),
    ("`cofferdam wait`", &[(OWN, "Wait for it with shell_poll and wait_ms.")]),
    ("`cofferdam diff", &[(OWN, "See what it changed with sandbox_diff.")]),
    ("`cofferdam network allow`", &[(OWN, "Ask the user for it with permission_request.")]),
    ("`cofferdam undo", &[(OWN, "Go back to a point with sandbox_undo.")]),
    (
        "sandbox_ensure",
        &[
            (OWN, "Make it with sandbox_ensure, or use another name."),
            (PackName::Everruns, OF_ANOTHER),
            (PackName::Adk, OF_ANOTHER),
            (PackName::Fluers, OF_ANOTHER),
            (PackName::Openmanus, OF_ANOTHER),
        ],
    ),
    (
        "Run a command or write a file first",
        &[
            (OWN, "Make it with sandbox_ensure; shell_exec and file_write make it, too."),
            (PackName::Everruns, "Call sandbox_exec or sandbox_write_file first; that makes one."),
            (PackName::Adk, "Call exec_command or write_file first; that makes one."),
            (PackName::Fluers, "Call bash or write first; that makes one."),
            (PackName::Openmanus, "Call sandbox_shell with execute_command first; that makes one."),
        ],
    ),
    (
        "with --recursive that all in it goes",
        &[(
            PackName::Openmanus,
            "Delete what is in it first, or all of it with sandbox_shell and execute_command.",
        )],
    ),
    ("Run a command in it first", &[(OWN, "Run a command in it with shell_exec first.")]),
    (
        "Ensure the session first",
        &[
            (OWN, "Bring it back with sandbox_ensure first."),
            (PackName::Everruns, "Bring it back with sandbox_manage and the action resume first."),
            (PackName::Adk, "Bring it back with exec_command first."),
            (PackName::Fluers, "Bring it back with bash first."),
            (PackName::Openmanus, "Bring it back with sandbox_shell and execute_command first."),
        ],
    ),
    (
        "Resume it first",
        &[
            (OWN, "Resume it with sandbox_resume first."),
            (PackName::Everruns, "Resume it with sandbox_manage and the action resume first."),
            (PackName::Adk, "Try again: a call wakes the sandbox."),
            (PackName::Fluers, "Try again: a call wakes the sandbox."),
            (PackName::Openmanus, "Try again: a call wakes the sandbox."),
        ],
    ),
    (
        "or ensure the session",
        &[(OWN, "Use another name, or sandbox_ensure for the one that is there.")],
    ),
    (
        "Open it first",
        &[(
            PackName::Openmanus,
            "Open it with sandbox_shell, execute_command and this session_name, or name one that \
             list_commands shows.",
        )],
    ),
    ("Open it again", &[(PackName::Openmanus, "Use another session_name.")]),
    (
        "or open another shell",
        &[(
            PackName::Openmanus,
            "Wait for it with check_command_output, end it with terminate_command, or use another \
             session_name.",
        )],
    ),
    (
        "Interrupt the shell",
        &[(PackName::Openmanus, "End it with terminate_command, or use another session_name.")],
    ),
];
const OWN: PackName = PackName::Cofferdam;
const OF_ANOTHER: &str = "Use the name of a sandbox that is there.";
/// What leads a hint that a person alone can follow.
pub(crate) const FOR_THE_USER: &str = "For the user, on the command line: ";

/// The error with a hint for a model that has this pack.
pub(crate) fn advised(pack: PackName, mut error: Error) -> Error {
    error.hint = error.hint.and_then(|hint| advice(pack, hint));
    error
}

fn advice(pack: PackName, hint: String) -> Option<String> {
    let known = ADVICE.iter().find(|(sign, _)| hint.contains(sign));
    let told = known.and_then(|(_, told)| told.iter().find(|(who, _)| *who == pack));
    if let Some((_, does)) = told {
        return Some((*does).to_owned());
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

    #[test]
    fn what_a_pack_is_told_is_done_with_its_own_tools() {
        let all = |pack| crate::toolbox::all_rows(pack).iter().map(|row| row.name);
        let tools: Vec<&str> = PackName::ALL.into_iter().flat_map(all).collect();
        for (sign, told) in ADVICE {
            for (pack, does) in *told {
                let words = does.split(|char: char| !char.is_alphanumeric() && char != '_');
                // What other packs call a tool may be a word, as `read` is.
                let mut named = words.filter(|word| word.contains('_') && tools.contains(word));
                let strange = named.find(|word| !all(*pack).any(|own| own == *word));
                assert_eq!(strange, None, "{sign}: {does}");
                assert!(!names_a_verb(does) && !names_a_flag(does), "{does}");
            }
        }
    }
}
