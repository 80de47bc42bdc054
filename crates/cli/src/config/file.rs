//! The text of a configuration file, and its schema.

use super::key::Shape;
use super::{Key, Layer, Origin, Section};
use crate::choice::suggestion;
use cofferdam_core::{Error, ErrorKind, Result};
use schemars::{Schema, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::rc::Rc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What to do about a text that is no TOML.
const SYNTAX: &str =
    "Write [SECTION] on a line of its own, KEY = VALUE on the lines below it, and texts in quotes.";

/// Reads the text of the file at `path`. Relative paths in it begin at its directory, and `~` is
/// `home`. What is unknown or misspelled is an error that names the line and the nearest known word.
pub(super) fn read(text: &str, path: &Path, home: Option<&Path>) -> Result<Layer> {
    let file = File { text, path: Rc::from(path), home };
    let table = DeTable::parse(text).map_err(|error| {
        let start = error.span().map_or(text.len(), |span| span.start);
        let wrong = error.message();
        let what = format!("column {}: {}", file.column(start), wrong.replace('\n', ", "));
        file.error(start, &what).hint(match wrong.contains("duplicate") {
            true => "Leave one of the two out.",
            false => SYNTAX,
        })
    })?;
    let mut layer = Layer::default();
    for (name, value) in table.get_ref() {
        let (section, keys) = section(&file, name, value)?;
        for (name, value) in keys {
            let key = keys_of(section)
                .find(|key| key.name() == name.get_ref())
                .ok_or_else(|| unknown_key(&file, section, name))?;
            file.set(&mut layer, key, value)?;
        }
    }
    Ok(layer)
}

fn section<'a, 't>(
    file: &File<'_>,
    name: &Spanned<Cow<'_, str>>,
    value: &'a Spanned<DeValue<'t>>,
) -> Result<(Section, &'a DeTable<'t>)> {
    let word = name.get_ref();
    let Some(section) = Section::ALL.into_iter().find(|section| section.name() == word) else {
        let at = name.span().start;
        return Err(match Key::ALL.into_iter().find(|key| key.name() == word) {
            Some(key) => misplaced(file, at, key),
            None => file
                .error(at, &format!("there is no section {word:?}"))
                .hint(suggestion(word, &Section::ALL.map(Section::name))),
        });
    };
    let table = value.get_ref().as_table();
    let table = table.ok_or_else(|| file.misshaped(value, section.name(), "a table"))?;
    Ok((section, table))
}

fn keys_of(section: Section) -> impl Iterator<Item = Key> {
    Key::ALL.into_iter().filter(move |key| key.section() == section)
}

fn unknown_key(file: &File<'_>, section: Section, name: &Spanned<Cow<'_, str>>) -> Error {
    let (word, at) = (name.get_ref(), name.span().start);
    if let Some(key) = Key::ALL.into_iter().find(|key| key.name() == word) {
        return misplaced(file, at, key);
    }
    let names: Vec<&str> = keys_of(section).map(Key::name).collect();
    file.error(at, &format!("there is no key {word:?} in [{}]", section.name()))
        .hint(suggestion(word, &names))
}

fn misplaced(file: &File<'_>, at: usize, key: Key) -> Error {
    let (key, section) = (key.name(), key.section().name());
    file.error(at, &format!("{key:?} stands outside of [{section}]"))
        .hint(format!("Write [{section}] on a line above {key}."))
}

/// A file while it is read.
struct File<'a> {
    text: &'a str,
    path: Rc<Path>,
    home: Option<&'a Path>,
}

impl File<'_> {
    fn set(&self, layer: &mut Layer, key: Key, value: &Spanned<DeValue<'_>>) -> Result<()> {
        let content = value.get_ref();
        match key.shape() {
            Shape::OneOf(names) => match content.as_str() {
                Some(text) => self.set_text(layer, key, OsStr::new(text), value),
                None => {
                    let wanted = format!("one of {} in quotes", names.join(", "));
                    Err(self.misshaped(value, key.name(), &wanted))
                }
            },
            Shape::Text => match content.as_str() {
                Some(text) => self.set_text(layer, key, OsStr::new(text), value),
                None => Err(self.misshaped(value, key.name(), in_quotes(key))),
            },
            Shape::Amount => match amount(content) {
                Some(text) => self.set_text(layer, key, OsStr::new(text), value),
                None => Err(self.misshaped(value, key.name(), "a number or a text")),
            },
            Shape::Switch => match content.as_bool() {
                Some(true) => self.set_text(layer, key, OsStr::new("true"), value),
                Some(false) => self.set_text(layer, key, OsStr::new("false"), value),
                None => Err(self.misshaped(value, key.name(), "true or false")),
            },
            Shape::SwitchOr(_) => match (content.as_bool(), content.as_str()) {
                (Some(true), _) => self.set_text(layer, key, OsStr::new("true"), value),
                (Some(false), _) => self.set_text(layer, key, OsStr::new("false"), value),
                (None, Some(text)) => self.set_text(layer, key, OsStr::new(text), value),
                (None, None) => Err(self.misshaped(value, key.name(), "true, false or a text")),
            },
            Shape::List => self.set_list(layer, key, value),
            Shape::Table => self.set_table(layer, key, value),
        }
    }

    fn set_list(&self, layer: &mut Layer, key: Key, value: &Spanned<DeValue<'_>>) -> Result<()> {
        let shape = "a list of texts, as in [\"…\"]";
        let list = value.get_ref().as_array();
        for element in list.ok_or_else(|| self.misshaped(value, key.name(), shape))?.iter() {
            let text = element.get_ref().as_str();
            let text = text.ok_or_else(|| self.misshaped(element, key.name(), shape))?;
            self.set_text(layer, key, OsStr::new(text), element)?;
        }
        Ok(())
    }

    fn set_table(&self, layer: &mut Layer, key: Key, value: &Spanned<DeValue<'_>>) -> Result<()> {
        let shape = "a table of texts, as in { LANG = \"C\" }";
        let table = value.get_ref().as_table();
        for (name, element) in table.ok_or_else(|| self.misshaped(value, key.name(), shape))? {
            let text = element.get_ref().as_str();
            let text = text.ok_or_else(|| self.misshaped(element, key.name(), shape))?;
            let assignment = OsString::from(format!("{}={text}", name.get_ref()));
            self.set_text(layer, key, &assignment, element)?;
        }
        Ok(())
    }

    fn set_text(
        &self,
        layer: &mut Layer,
        key: Key,
        text: &OsStr,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<()> {
        let at = value.span().start;
        let origin = Origin::File(Rc::clone(&self.path), self.line(at));
        let base = self.path.parent().unwrap_or(Path::new("/"));
        let expanded = self.expanded(key, text);
        layer.set(key, expanded.as_deref().unwrap_or(text), base, &origin).map_err(|error| {
            let placed = self.error(at, &format!("{}: {}", key.name(), error.message));
            Error { hint: error.hint, source: error.source, ..placed }
        })
    }

    /// The text with a leading `~/` replaced, where it is a path and there is a home.
    fn expanded(&self, key: Key, text: &OsStr) -> Option<OsString> {
        if !matches!(key, Key::Workspace | Key::Read | Key::Write | Key::Hide) {
            return None;
        }
        let below = text.to_str()?.strip_prefix('~')?;
        match below.strip_prefix('/') {
            Some(below) => Some(self.home?.join(below).into()),
            None if below.is_empty() => Some(self.home?.into()),
            None => None,
        }
    }

    fn misshaped(&self, value: &Spanned<DeValue<'_>>, key: &str, wanted: &str) -> Error {
        let found = value.get_ref().type_str();
        let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
        self.error(value.span().start, &format!("{key}: {article} {found} stands here"))
            .hint(format!("Write {wanted}."))
    }

    fn error(&self, at: usize, message: &str) -> Error {
        let place = format!("{}:{}", self.path.display(), self.line(at));
        Error::new(ErrorKind::Config, format!("{place}: {message}"))
    }

    /// In characters, from 1 on, as editors count.
    fn column(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or(self.text);
        before.rsplit('\n').next().unwrap_or_default().chars().count() + 1
    }

    fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }
}

/// What stands in quotes for a key that takes a text.
fn in_quotes(key: Key) -> &'static str {
    match matches!(key, Key::Ask | Key::Timeout | Key::IdlePause | Key::Ttl) {
        true => "a number with its unit in quotes, as in \"5m\"",
        false => "a text in quotes",
    }
}

fn amount<'a>(value: &'a DeValue<'_>) -> Option<&'a str> {
    if let Some(integer) = value.as_integer() {
        return (integer.radix() == 10).then(|| integer.as_str());
    }
    value.as_float().map(toml::de::DeFloat::as_str).or_else(|| value.as_str())
}

/// The schema of a configuration file.
pub(crate) fn schema() -> Schema {
    let sections: Map<String, Value> = Section::ALL
        .into_iter()
        .map(|section| {
            let keys: Map<String, Value> =
                keys_of(section).map(|key| (key.name().to_owned(), property(key))).collect();
            let table = json!({
                "description": section.description(),
                "type": "object",
                "additionalProperties": false,
                "properties": keys,
            });
            (section.name().to_owned(), table)
        })
        .collect();
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cofferdam configuration",
        "description": "cofferdam.toml, or config.toml in the user's configuration directory. Format 1.",
        "type": "object",
        "additionalProperties": false,
        "properties": sections,
    })
}

fn property(key: Key) -> Value {
    let mut property = match key.shape() {
        Shape::OneOf(names) => json!({ "type": "string", "enum": names }),
        Shape::Text => json!({ "type": "string" }),
        Shape::Amount => json!({ "type": ["string", "number"] }),
        Shape::List => json!({ "type": "array", "items": { "type": "string" } }),
        Shape::Table => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Shape::Switch => json!({ "type": "boolean" }),
        Shape::SwitchOr(names) => {
            let switch = [true, false].map(Value::from);
            let all: Vec<Value> =
                switch.into_iter().chain(names.into_iter().map(Value::from)).collect();
            json!({ "type": ["boolean", "string"], "enum": all })
        }
    };
    if let Some(object) = property.as_object_mut() {
        object.insert("description".to_owned(), key.description().into());
    }
    property
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::IdlePause;
    use std::path::PathBuf;

    fn read_text(text: &str) -> Result<Layer> {
        read(text, Path::new("/p/cofferdam.toml"), Some(Path::new("/home/u")))
    }

    fn check_error(text: &str, message: &str, hint: &str) {
        let error = read_text(text).unwrap_err();
        assert_eq!(error.message, format!("/p/cofferdam.toml:{message}"), "{text}");
        assert_eq!(error.hint.unwrap_or_default(), hint, "{text}");
        assert_eq!(error.kind, ErrorKind::Config);
    }

    #[test]
    fn every_key_is_read() {
        let layer = read_text(
            "[run]\nprofile = \"repo-write\"\nworkspace = \"w\"\nread = [\"~/r\"]\nwrite = [\"w\"]\n\
             hide = [\"/h\"]\negress = [\"a.b:1\"]\nenv = { A = \"1=2\" }\nenv_from = [\"B\"]\n\
             timeout = \"5m\"\nmemory = \"1G\"\npids = 1_00\ncpu = 1.5\ndisk = 1048576\n\
             max_output = \"1M\"\nuser = \"root\"\non_unavailable = \"degrade\"\n\
             backend = \"local\"\nallow_sensitive_writes = true\ncopy_on_write = \"copy\"\n\
             pull = \"never\"\ninsecure_registry = [\"a.lan:5000\"]\n\
             [session]\ninit = [\"a, b\", \"c\"]\nidle_pause = \"none\"\nttl = \"24h\"\n",
        )
        .unwrap();
        assert_eq!(layer.cpu_millis.unwrap().value, 1500);
        assert_eq!(layer.pids.unwrap().value, 100);
        assert_eq!(layer.disk_bytes.unwrap().value, 1 << 20);
        assert_eq!(layer.read[0].value, PathBuf::from("/home/u/r"));
        assert_eq!(layer.write[0].value, PathBuf::from("/p/w"));
        assert_eq!(layer.read[0].origin.to_string(), "/p/cofferdam.toml:4");
        assert_eq!(layer.env.len(), 2);
        assert_eq!(layer.copy_on_write.unwrap().value.name(), "copy");
        assert_eq!(layer.pull.unwrap().value, crate::images::PullPolicy::Never);
        assert_eq!(layer.insecure_registry[0].value, "a.lan:5000");
        assert!(layer.sensitive_writes.is_some() && layer.backend.is_some());
        assert_eq!(layer.init[0].value, "a, b");
        assert_eq!(layer.idle_pause.unwrap().value, IdlePause::Never);
        assert_eq!(layer.ttl.unwrap().value.as_secs(), 86_400);
    }

    #[test]
    fn what_is_misspelled_is_named_with_its_line_and_neighbour() {
        check_error(
            "[run]\n\nmemroy = 1\n",
            "3: there is no key \"memroy\" in [run]",
            "Did you mean memory?",
        );
        check_error(
            "[session]\nidle_puase = 1\n",
            "2: there is no key \"idle_puase\" in [session]",
            "Did you mean idle_pause?",
        );
        check_error(
            "[run]\nttl = \"1h\"\n",
            "2: \"ttl\" stands outside of [session]",
            "Write [session] on a line above ttl.",
        );
        check_error(
            "[session]\nidle_pause = \"180\"\n",
            "2: idle_pause: \"180\" is not a duration",
            "Write a number above 0 with its unit, as in 180s, or none for never.",
        );
        check_error("[rum]\n", "1: there is no section \"rum\"", "Did you mean run?");
        check_error(
            "\nmemory = 1\n",
            "2: \"memory\" stands outside of [run]",
            "Write [run] on a line above memory.",
        );
        check_error(
            "[run]\nprofile = \"readonly\"\n",
            "2: profile: there is no profile \"readonly\"",
            "Did you mean read-only?",
        );
        check_error(
            "[run]\nread = [\n  \"a\",\n  5]\n",
            "4: read: an integer stands here",
            "Write a list of texts, as in [\"…\"].",
        );
        check_error(
            "[run]\ncopy_on_write = 1\n",
            "2: copy_on_write: an integer stands here",
            "Write true, false or a text.",
        );
        check_error(
            "[run]\ncopy_on_write = \"ovrlay\"\n",
            "2: copy_on_write: there is no layer \"ovrlay\"",
            "Did you mean overlay? true and false do as well.",
        );
        check_error(
            "[run]\ninsecure_registry = [\"http://a\"]\n",
            "2: insecure_registry: \"http://a\" is no host",
            "Write HOST or HOST:PORT, without a scheme and a path.",
        );
        check_error("run = 5\n", "1: run: an integer stands here", "Write a table.");
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_line_column_and_a_remedy() {
        for (text, place) in [
            ("[run]\nprofile = read-only\n", "2: column 11: "),
            ("[run\n", "1: column 5: "),
            ("[run]\n# \u{e4}\nenv = { \u{e4} }\n", "3: column 9: "),
        ] {
            let error = read_text(text).unwrap_err();
            let lead = format!("/p/cofferdam.toml:{place}");
            assert!(error.message.starts_with(&lead), "{text}: {}", error.message);
            assert_eq!(error.hint.as_deref(), Some(SYNTAX));
        }
    }

    /// The release build aborts on a panic, so no text may cause one.
    #[test]
    fn no_text_breaks_the_reader() {
        let seed =
            b"[run]\nread = [\"~/\xc3\xa9\", '']\nenv = { A.b = \"1\" }\ncpu = 1.5e3\npids=0x1F\n";
        let mut state: u64 = 1;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        for _ in 0..20_000 {
            let mut bytes = seed.to_vec();
            for _ in 0..=next(4) {
                let at = next(bytes.len());
                match next(3) {
                    0 => bytes[at] = b"[]{}\"'=.,#\n\\\0 1a\xff"[next(17)],
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, bytes[at]),
                }
            }
            let _ = read_text(&String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn broken_text_is_named_with_its_line() {
        for text in ["[run]\nmemory = \n", "[run]\nmemory = \"", "[run]\nread = [\"a\"\n", "[run"] {
            let error = read_text(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Config, "{text}");
            assert!(error.message.starts_with("/p/cofferdam.toml:"), "{error}");
        }
        assert!(read_text("[run]\nmemory = 1\nmemory = 2\n").is_err());
        assert!(read_text("[run]\nread = [[]]").is_err());
        let deep = format!("[run]\nread = {}", "[".repeat(100_000));
        assert!(read_text(&deep).is_err());
    }
}
