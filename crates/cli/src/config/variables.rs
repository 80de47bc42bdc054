//! Settings from `COFFERDAM_*` variables.

use super::key::Shape;
use super::{Key, Layer, Origin};
use crate::args::whole;
use crate::choice::nearest;
use cofferdam_core::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const PREFIX: &str = "COFFERDAM_";

/// Variables that are not settings: the state directory, a server and its key, and what the suites expect of a host.
const OTHERS: [&str; 7] = [
    "COFFERDAM_BIN",
    "COFFERDAM_ESCAPE_ONLY",
    "COFFERDAM_EXPECT",
    "COFFERDAM_HOME",
    "COFFERDAM_KEY",
    "COFFERDAM_LOG",
    "COFFERDAM_SERVER",
];

/// The one of them that every verb needs, without the prefix.
const HOME: &str = "HOME";

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

/// Refuses a variable that nobody knows and that looks like the one which names the state directory:
/// with another directory than was meant, sessions are not found and records are lost.
pub(crate) fn refuse_misspelled_home(variables: &BTreeMap<OsString, OsString>) -> Result<()> {
    let from = (Bound::Included(OsStr::new(PREFIX)), Bound::Unbounded);
    let ours = variables.range::<OsStr, _>(from).map(|(name, _)| name);
    let ours = ours.take_while(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    let unknown =
        |name: &&OsString| !OTHERS.iter().any(|other| *name == other) && setting(name).is_none();
    match ours.filter(unknown).find(|name| nearest_to(&name.to_string_lossy()) == Some(HOME)) {
        Some(name) => misspelled(name),
        None => Ok(()),
    }
}

/// The known variable that this one is most likely meant to be, without the prefix.
fn nearest_to(name: &str) -> Option<&'static str> {
    let known = Key::ALL.into_iter().filter_map(Key::variable);
    // The prefix is alike in all of them, so it would make any two look alike.
    let bare = known.filter_map(|known| known.strip_prefix(PREFIX)).chain([HOME]);
    let bare: Vec<&str> = bare.collect();
    nearest(name.strip_prefix(PREFIX).unwrap_or_default(), &bare)
}

/// The option of `run` that a variable of this name seems to stand for.
fn option(name: &str) -> Option<String> {
    let option = name.strip_prefix(PREFIX)?.to_ascii_lowercase().replace('_', "-");
    let whole = whole();
    let run = whole.find_subcommand("run")?;
    run.get_arguments().any(|one| one.get_long() == Some(&option)).then_some(option)
}

/// Refuses a name that looks like a setting or an option and is none. One that resembles none is somebody
/// else's, such as a script's own.
fn misspelled(name: &OsStr) -> Result<()> {
    let name = name.to_string_lossy();
    let hint = match nearest_to(&name) {
        _ if name == "COFFERDAM_ENV" => "Use --env K=V, or COFFERDAM_ENV_FROM=NAME.".to_owned(),
        _ if name == "COFFERDAM_COW" => "Use --cow, or COFFERDAM_COPY_ON_WRITE=true.".to_owned(),
        _ if let Some(option) = option(&name) => {
            format!(
                "Use --{option}, which no variable stands for. Else unset it, or run with --no-config."
            )
        }
        // Whatever is configured, the state directory is needed.
        Some(HOME) => format!("Did you mean {PREFIX}{HOME}? Else unset it."),
        Some(near) => {
            format!("Did you mean {PREFIX}{near}? Else unset it, or run with --no-config.")
        }
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
    fn a_misspelled_state_directory_is_an_error_whatever_is_configured() {
        let check = |name: &str| {
            let variables = BTreeMap::from([(OsString::from(name), OsString::from("/state"))]);
            refuse_misspelled_home(&variables)
        };
        let error = check("COFFERDAM_HOEM").unwrap_err();
        assert_eq!(error.message, "there is no setting COFFERDAM_HOEM");
        assert_eq!(error.hint.unwrap(), "Did you mean COFFERDAM_HOME? Else unset it.");
        for passed in ["COFFERDAM_HOME", "COFFERDAM_MEMORY", "COFFERDAM_TOKEN", "TEST_HOEM"] {
            check(passed).unwrap();
        }
        assert!(read_one("COFFERDAM_HOEM", "/state").is_err());
    }

    #[test]
    fn a_variable_for_an_option_that_has_none_is_an_error() {
        let hint = |name: &str| read_one(name, "1").unwrap_err().hint.unwrap();
        assert_eq!(hint("COFFERDAM_COW"), "Use --cow, or COFFERDAM_COPY_ON_WRITE=true.");
        for (name, option) in [("COFFERDAM_SECRET", "--secret,"), ("COFFERDAM_SHELL", "--shell,")] {
            assert!(hint(name).starts_with(&format!("Use {option}")), "{}", hint(name));
        }
        read_one("COFFERDAM_DEPLOYMENT", "1").unwrap();
    }

    #[test]
    fn an_unknown_variable_is_an_error_with_the_nearest() {
        let error = read_one("COFFERDAM_MEMROY", "1G").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config);
        assert!(error.hint.unwrap().starts_with("Did you mean COFFERDAM_MEMORY?"));
        for (name, message) in [
            ("COFFERDAM_IMAGE", "COFFERDAM_IMAGE: an empty text is no image"),
            ("COFFERDAM_WORKSPACE", "COFFERDAM_WORKSPACE: an empty text is not a path"),
        ] {
            let error = read_one(name, "").unwrap_err();
            assert!(error.message == message && error.hint.is_some(), "{error:?}");
        }
        let error = read_one("COFFERDAM_TIMEOUT", "5").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config);
        assert_eq!(error.message, "COFFERDAM_TIMEOUT: \"5\" is not a duration");
    }
}
