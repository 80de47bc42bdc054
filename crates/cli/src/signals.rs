//! Names of signals, and the nearest to a misspelled one.

use crate::choice::suggestion;
use cofferdam_core::{Result, Signal};

/// Reads a name, with or without SIG, in letters of any size, or a number.
pub(crate) fn parse(text: &str) -> Result<Signal> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let is_name = !name.starts_with(|first: char| first.is_ascii_digit());
    Signal::parse(text).map_err(|error| match is_name {
        true => error.hint(suggestion(name, Signal::NAMES)),
        false => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_signal_is_told_with_the_nearest() {
        assert_eq!(parse("SIGTERM").unwrap().number(), 15);
        let hint = |bad| parse(bad).unwrap_err().hint.unwrap();
        assert_eq!(hint("TREM"), "Did you mean TERM?");
        assert!(hint("65").contains("a number from 1 to 64"));
    }
}
