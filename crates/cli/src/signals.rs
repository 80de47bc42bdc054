//! Names of signals.

use crate::choice::suggestion;
use cofferdam_core::{Error, ErrorKind, Result};

/// A signal that can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signal(i32);

/// The name of each signal of Linux, by its number; the same on all processors that are built for.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];
/// The greatest number there is.
const LAST: i32 = 64;

impl Signal {
    /// Reads a name, with or without SIG, in letters of any size, or a number.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let named = NAMES.iter().position(|known| *known == name);
        let number = named
            .and_then(|position| i32::try_from(position + 1).ok())
            .or_else(|| text.parse().ok().filter(|number| (1..=LAST).contains(number)));
        number.map(Self).ok_or_else(|| {
            let hint = match name.starts_with(|first: char| first.is_ascii_digit()) {
                true => format!("Use a number from 1 to {LAST}, or a name as in TERM."),
                false => suggestion(name, &NAMES),
            };
            Error::new(ErrorKind::Usage, format!("there is no signal {text:?}")).hint(hint)
        })
    }

    /// All names.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter()
    }

    /// Its number.
    pub(crate) fn number(self) -> i32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, number: i32) {
        assert_eq!(Signal::parse(text).unwrap().number(), number, "{text}");
    }

    #[test]
    fn a_signal_is_a_name_with_or_without_sig_or_a_number() {
        check("TERM", 15);
        check("SIGTERM", 15);
        check("sigkill", 9);
        check("sys", 31);
        check("9", 9);
        check("64", 64);
        for bad in ["", "SIG", "0", "65", "-1", "TREM", "SIGSIGTERM"] {
            assert!(Signal::parse(bad).is_err(), "{bad:?}");
        }
        let hint = Signal::parse("TREM").unwrap_err().hint.unwrap();
        assert_eq!(hint, "Did you mean TERM?");
    }
}
