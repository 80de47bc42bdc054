//! Settings from `COFFERDAM_*` variables.

use super::key::Shape;
use super::{Key, Layer, Origin};
use crate::choice::nearest;
use cofferdam_core::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const PREFIX: &str = "COFFERDAM_";

/// Variables that are not settings: the state directory, and what the suites expect of a host.
const OTHERS: [&str; 5] = [
    "COFFERDAM_BIN",
    "COFFERDAM_ESCAPE_ONLY",
    "COFFERDAM_EXPECT",
    "COFFERDAM_HOME",
    "COFFERDAM_LOG",
];

/// Reads the settings among these variables. Paths begin at `base`; a list of paths is separated by
/// colons, another list by commas. A variable that looks like a
/// setting of ours and is none is an error.
pub(super) fn read(variables: &BTreeMap<OsString, OsString>, base: &Path) -> Result<Layer> {
    let mut layer = Layer::default();
    let from = (Bound::Included(OsStr::new(PREFIX)), Bound::Unbounded);
    let ours = variables.range::<OsStr, _>(from);
    for (name, value) in ours.take_while(|(name, _)| name.as_bytes().starts_with(PREFIX.as_bytes()))
    {
        if OTHERS.iter().any(|other| name == OsStr::new(other)) {
            continue;
        }
        let Some((key, variable)) = setting(name) else {
            misspelled(name)?;
            continue;
        };
        let origin = Origin::Variable(variable);
        for text in elements(key, value) {
            layer.set(key, OsStr::from_bytes(text), base, &origin).map_err(|error| Error {
                kind: ErrorKind::Config,
                message: format!("{variable}: {}", error.message),
                ..error
            })?;
        }
    }
    Ok(layer)
}

fn setting(name: &OsStr) -> Option<(Key, &'static str)> {
    Key::ALL
        .into_iter()
        .filter_map(|key| Some((key, key.variable()?)))
        .find(|(_, variable)| OsStr::new(variable) == name)
}

fn elements(key: Key, value: &OsStr) -> Vec<&[u8]> {
    let separator = match (key.shape(), key) {
        (Shape::List, Key::Read | Key::Write | Key::Hide) => b':',
        (Shape::List, _) => b',',
        _ => return vec![value.as_bytes()],
    };
    value.as_bytes().split(|byte| *byte == separator).filter(|text| !text.is_empty()).collect()
}

/// Refuses a name that looks like a setting and is none. One that resembles none is somebody
/// else's, such as a script's own.
fn misspelled(name: &OsStr) -> Result<()> {
    let name = name.to_string_lossy();
    let known: Vec<&str> = Key::ALL.into_iter().filter_map(Key::variable).collect();
    // The prefix is alike in all of them, so it would make any two look alike.
    let bare: Vec<&str> = known.iter().filter_map(|known| known.strip_prefix(PREFIX)).collect();
    let hint = match nearest(name.strip_prefix(PREFIX).unwrap_or_default(), &bare) {
        _ if name == "COFFERDAM_ENV" => "Use --env K=V, or COFFERDAM_ENV_FROM=NAME.".to_owned(),
        Some(near) => format!("Did you mean {PREFIX}{near}? Else unset it, or use --no-config."),
        None => return Ok(()),
    };
    Err(Error::new(ErrorKind::Config, format!("there is no setting {name}")).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(name: &str, value: &str) -> Result<Layer> {
        let variables = BTreeMap::from([
            ("AAA".into(), "x".into()),
            (name.into(), value.into()),
            ("COFFERDAM_HOME".into(), "/state".into()),
            ("COFFERDAN".into(), "x".into()),
        ]);
        read(&variables, Path::new("/base"))
    }

    #[test]
    fn variables_are_settings() {
        let layer = read_one("COFFERDAM_READ", "a:/b").unwrap();
        assert_eq!(layer.read.len(), 2);
        let layer = read_one("COFFERDAM_EGRESS", "a.b:1,c.d:2").unwrap();
        assert_eq!(layer.egress.len(), 2);
        let layer = read_one("COFFERDAM_ALLOW_SENSITIVE_WRITES", "true").unwrap();
        assert!(layer.sensitive_writes.is_some());
    }

    #[test]
    fn an_unknown_variable_is_an_error_with_the_nearest() {
        let error = read_one("COFFERDAM_MEMROY", "1G").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config);
        assert!(error.hint.unwrap().starts_with("Did you mean COFFERDAM_MEMORY?"));
        let error = read_one("COFFERDAM_TIMEOUT", "5").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config);
        assert_eq!(error.message, "COFFERDAM_TIMEOUT: \"5\" is not a duration");
    }
}
