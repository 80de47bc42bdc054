//! Signals, as people and requests name them.

use crate::{Error, ErrorKind, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A signal that can be sent. Serialised as its number, read from that or from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Signal(i32);

/// The name of each signal of Linux, by its number; the same on all processors that are built for.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

impl Signal {
    /// The greatest number there is.
    pub const LAST: i32 = 64;
    /// All names, by number, without SIG.
    pub const NAMES: &[&str] = &NAMES;

    /// Reads a name, with or without SIG, in letters of any size, or a number.
    pub fn parse(text: &str) -> Result<Self> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let named = NAMES.iter().position(|known| *known == name);
        let number = named.and_then(|position| i32::try_from(position + 1).ok());
        match number.or_else(|| text.parse().ok()) {
            Some(number) => Self::numbered(number),
            None => Err(unknown(&format!("{text:?}"))),
        }
    }

    /// The signal of this number.
    pub fn numbered(number: i32) -> Result<Self> {
        match number {
            1..=Self::LAST => Ok(Self(number)),
            _ => Err(unknown(&number.to_string())),
        }
    }

    /// Its number.
    pub fn number(self) -> i32 {
        self.0
    }
}

fn unknown(shown: &str) -> Error {
    let what = format!("there is no signal {shown}");
    Error::new(ErrorKind::Usage, what)
        .hint("Use a name as in TERM, KILL, INT, HUP, USR1 or SIGTERM, or a number from 1 to 64.")
}

impl<'de> Deserialize<'de> for Signal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrNumber)
    }
}

struct NameOrNumber;

/// The error with its remedy, for a parser tells one text alone.
fn told<E: serde::de::Error>(read: Result<Signal>) -> std::result::Result<Signal, E> {
    read.map_err(|error| E::custom(format!("{error}: {}", error.hint.as_deref().unwrap_or(""))))
}

impl Visitor<'_> for NameOrNumber {
    type Value = Signal;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("the name or the number of a signal")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> std::result::Result<Signal, E> {
        told(Signal::parse(name))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> std::result::Result<Signal, E> {
        let number = i32::try_from(number);
        told(number.map_err(|_| unknown("of that number")).and_then(Signal::numbered))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> std::result::Result<Signal, E> {
        let number = i32::try_from(number);
        told(number.map_err(|_| unknown("of that number")).and_then(Signal::numbered))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> std::result::Result<Signal, E> {
        Err(E::invalid_type(Unexpected::Float(number), &self))
    }
}

impl JsonSchema for Signal {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Signal".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "integer", "minimum": 1, "maximum": Self::LAST },
            { "type": "string", "pattern": format!("^(SIG)?({})$", NAMES.join("|")) },
        ] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_a_name_with_or_without_sig_or_a_number() {
        let named = [("TERM", 15), ("SIGTERM", 15), ("sigkill", 9), ("sys", 31), ("9", 9)];
        for (text, number) in named {
            assert_eq!(Signal::parse(text).unwrap().number(), number, "{text}");
            let quoted = format!("{text:?}");
            assert_eq!(serde_json::from_str::<Signal>(&quoted).unwrap().number(), number);
        }
        for number in [1, 64] {
            let read: Signal = serde_json::from_str(&number.to_string()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), number);
        }
        for bad in ["", "SIG", "0", "65", "-1", "TREM", "SIGSIGTERM"] {
            assert!(Signal::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_no_signal_is_an_error_that_names_some() {
        for bad in ["\"TREM\"", "0", "65", "-1", "4294967297", "\"\""] {
            let error = serde_json::from_str::<Signal>(bad).unwrap_err().to_string();
            assert!(error.contains("there is no signal") && error.contains("KILL"), "{error}");
        }
        for bad in ["1.5", "null", "[15]", "true", "{}"] {
            assert!(serde_json::from_str::<Signal>(bad).is_err(), "{bad}");
        }
    }
}
