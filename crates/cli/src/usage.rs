//! What is wrong with a command line, in our own words.
#![expect(clippy::wildcard_enum_match_arm, reason = "the sets are the parser's, and open")]

use crate::args::whole;
use clap::error::{ContextKind, ContextValue, ErrorKind as Wrong};
use cofferdam_core::{Error, ErrorKind};
use std::ffi::OsString;

/// The verb that a line asks for, with the noun before it, as in `file read`.
struct Asked {
    words: Vec<String>,
    described: clap::Command,
}

impl Asked {
    /// Of the words of a command line, the program's name first.
    fn of(line: &[OsString]) -> Self {
        let (mut words, mut described) = (Vec::new(), whole());
        for word in line.iter().skip(1) {
            let Some(inner) = described.find_subcommand(word).cloned() else { break };
            words.push(inner.get_name().to_owned());
            described = inner;
        }
        Self { words, described }
    }

    fn verb(&self) -> Option<&str> {
        self.words.first().map(String::as_str)
    }

    fn help(&self) -> String {
        let words = self.words.iter().map(|word| format!("{word} ")).collect::<String>();
        format!("Run `cofferdam {words}--help` for what there is.")
    }

    /// Whether an option is one that its help tells of, and not one that is only there to be refused.
    fn shows(&self, option: &str) -> bool {
        let hidden = self.described.get_arguments().filter(|known| known.is_hide_set());
        let name = option.trim_start_matches('-');
        !hidden.into_iter().any(|known| known.get_long() == Some(name))
    }
}

/// The parser's complaint as one of ours, with the nearest known word as a hint.
pub(crate) fn error(complaint: &clap::Error, line: &[OsString]) -> Error {
    let asked = Asked::of(line);
    let (verb, help) = (asked.verb(), asked.help());
    let word = |kind| text(complaint, kind).unwrap_or_default();
    let argument = bare(&word(ContextKind::InvalidArg));
    match complaint.kind() {
        Wrong::UnknownArgument => {
            let typed = word(ContextKind::InvalidArg);
            let takes_argv = matches!(verb, Some("run" | "exec" | "explain" | "wrap"));
            match verb.filter(|_| takes_argv && !typed.starts_with('-')) {
                Some(verb) => usage(format!("{typed:?} is no option")).hint(format!(
                    "Put -- before the command, as in `cofferdam {verb}{} -- {typed}`.",
                    if verb == "exec" { " SESSION" } else { "" },
                )),
                None => unknown_argument(complaint, &typed, &asked),
            }
        }
        Wrong::InvalidSubcommand => {
            let verb = word(ContextKind::InvalidSubcommand);
            let near = nearest_verb(complaint, &verb);
            usage(format!("there is no verb {verb:?}")).hint(near.unwrap_or(help))
        }
        Wrong::InvalidValue => invalid_value(complaint, &argument),
        Wrong::ValueValidation => rejected_value(complaint, &argument),
        Wrong::ArgumentConflict => {
            let prior = bare(&word(ContextKind::PriorArg));
            if verb == Some("approve") && [&argument, &prior].contains(&&"--list".to_owned()) {
                return usage("--list answers nothing, and takes no ID and no answer".to_owned())
                    .hint("Name the session behind it, as in `cofferdam approve --list SESSION`.");
            }
            if prior.is_empty() || prior == argument {
                return usage(format!("{argument} is given twice")).hint("Give it once.");
            }
            usage(format!("{argument} and {prior} exclude each other")).hint("Give one of them.")
        }
        Wrong::MissingRequiredArgument if verb == Some("config") => {
            usage(format!("{argument} is missing"))
                .hint("Name it, as in `cofferdam config trust cofferdam.toml`.")
        }
        Wrong::MissingRequiredArgument => usage(format!("{argument} is missing")).hint(help),
        Wrong::MissingSubcommand | Wrong::DisplayHelpOnMissingArgumentOrSubcommand => {
            usage("no verb is given".to_owned()).hint(help)
        }
        Wrong::TooManyValues | Wrong::WrongNumberOfValues => {
            usage(format!("{argument} takes no value")).hint(help)
        }
        Wrong::InvalidUtf8 => usage("a value is not text in UTF-8".to_owned()).hint(help),
        // Shown, not reported (help, version), or never met (the rest); the set is open.
        _ => usage("the command line makes no sense".to_owned()).hint(help),
    }
}

/// The name of an option without the placeholder of its value, or a placeholder without its brackets.
fn bare(argument: &str) -> String {
    match argument.starts_with('-') {
        true => argument.split(' ').next().unwrap_or_default().to_owned(),
        false => {
            let one = argument.trim_end_matches('.');
            let within = |open, close| one.strip_prefix(open)?.strip_suffix(close);
            within('<', '>').or_else(|| within('[', ']')).unwrap_or(one).to_owned()
        }
    }
}

fn unknown_argument(complaint: &clap::Error, argument: &str, asked: &Asked) -> Error {
    let help = asked.help();
    if argument.starts_with('-') {
        let near = text(complaint, ContextKind::SuggestedArg).filter(|near| asked.shows(near));
        let near = near.map(|near| format!("Did you mean {near}?"));
        return usage(format!("there is no option {argument}")).hint(near.unwrap_or(help));
    }
    usage(format!("{argument:?} is one word too many")).hint(help)
}

fn invalid_value(complaint: &clap::Error, argument: &str) -> Error {
    let value = text(complaint, ContextKind::InvalidValue).unwrap_or_default();
    if value.is_empty() {
        return usage(format!("{argument} lacks its value"))
            .hint("Write it after the option, separated by a space.");
    }
    let near = nearest(complaint, ContextKind::SuggestedValue);
    let list = match complaint.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(names)) => Some(match names.as_slice() {
            [only] => format!("Use {only}."),
            _ => format!("Use one of {}.", names.join(", ")),
        }),
        _ => None,
    };
    let error = usage(format!("{value:?} is no value of {argument}"));
    match near.or(list) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// A value that one of our own readers refused: its words are better than the parser's.
fn rejected_value(complaint: &clap::Error, argument: &str) -> Error {
    let cause = std::error::Error::source(complaint);
    match cause.and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(own) => {
            let error = usage(format!("{argument}: {}", own.message));
            Error { hint: own.hint.clone(), ..error }
        }
        None => {
            let value = text(complaint, ContextKind::InvalidValue).unwrap_or_default();
            let bounds = cause.and_then(|cause| bounds(&cause.to_string()));
            let hint = match bounds {
                Some((least, Some(most))) => {
                    format!("Write a whole number from {least} to {most}.")
                }
                Some((least, None)) => format!("Write a whole number, {least} or more."),
                None => "Write a whole number, 0 or more.".to_owned(),
            };
            usage(format!("{argument}: {value:?} cannot be read")).hint(hint)
        }
    }
}

/// The least number that is allowed, and the most if anybody would come near it, of words of the parser as
/// in `0 is not in 1..=64`.
fn bounds(complaint: &str) -> Option<(u64, Option<u64>)> {
    let (_, range) = complaint.split_once(" is not in ")?;
    let (least, most) = range.split_once("..")?;
    let least = least.parse().unwrap_or(0);
    let most = most.trim_start_matches('=').parse().ok();
    Some((least, most.filter(|most| *most < u64::from(u32::MAX))))
}

fn usage(message: String) -> Error {
    Error::new(ErrorKind::Usage, message)
}

fn nearest(complaint: &clap::Error, kind: ContextKind) -> Option<String> {
    text(complaint, kind).map(|near| format!("Did you mean {near}?"))
}

/// The verb with the fewest other letters: short ones are told apart better by that.
fn nearest_verb(complaint: &clap::Error, verb: &str) -> Option<String> {
    match complaint.get(ContextKind::SuggestedSubcommand)? {
        ContextValue::Strings(near) => {
            let near = near.iter().min_by_key(|near| strsim::damerau_levenshtein(near, verb))?;
            Some(format!("Did you mean {near}?"))
        }
        _ => nearest(complaint, ContextKind::SuggestedSubcommand),
    }
}

fn text(complaint: &clap::Error, kind: ContextKind) -> Option<String> {
    match complaint.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        // The parser lists the nearest last.
        ContextValue::Strings(texts) => texts.last().cloned(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::bounds;

    #[test]
    fn bounds_are_read_from_what_the_parser_says() {
        assert_eq!(bounds("0 is not in 1..=64"), Some((1, Some(64))));
        assert_eq!(bounds("0 is not in 1..=18446744073709551615"), Some((1, None)));
        assert_eq!(bounds("0 is not in 1.."), Some((1, None)));
        assert_eq!(bounds("70 is not in 0..=64"), Some((0, Some(64))));
        assert_eq!(bounds("invalid digit found in string"), None);
    }
}
