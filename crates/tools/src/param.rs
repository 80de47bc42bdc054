//! Parameters of tools: one table says what a model is told, and what is taken.

use cofferdam_core::{Error, ErrorKind};
use serde_json::{Map, Value, json};

/// The most that two names may differ for one to be meant by the other.
const NEAR: usize = 3;

/// A parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// A text that is not empty.
    Word,
    /// A whole number within these bounds.
    Whole(u64, u64),
    /// A whole number within these bounds, as its reader takes it: what is none, or out of them, is no
    /// fault.
    Lenient(u64, u64),
    /// Yes or no.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, as its reader takes it: what is unknown is no fault.
    Wish(&'static [&'static str]),
    /// At most so many texts that are not empty.
    Words(usize),
    /// At most so many objects of these parameters, and at least one.
    Objects(&'static [Param], usize),
}

/// Whether a parameter has to be there, and what it is where it is not.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Need {
    Required,
    Optional,
    /// The word, number or flag that is taken then.
    Preset(Preset),
}

/// What stands for a parameter that is left out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Preset {
    Word(&'static str),
    Whole(u64),
    Flag(bool),
}

/// What is wrong with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They are no object.
    NoObject,
    /// There is no such parameter.
    Unknown { name: String, nearest: Option<String>, known: Vec<String> },
    /// This one is missing.
    Missing { name: String },
    /// This one is not what it takes.
    Wrong { name: String, wanted: String },
}

impl Param {
    pub(crate) const fn required(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, about, kind, need: Need::Required }
    }

    pub(crate) const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, about, kind, need: Need::Optional }
    }

    pub(crate) const fn word(
        name: &'static str,
        kind: Kind,
        preset: &'static str,
        about: &'static str,
    ) -> Self {
        Self { name, about, kind, need: Need::Preset(Preset::Word(preset)) }
    }

    pub(crate) const fn whole(
        name: &'static str,
        (least, most): (u64, u64),
        preset: u64,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            about,
            kind: Kind::Whole(least, most),
            need: Need::Preset(Preset::Whole(preset)),
        }
    }

    pub(crate) const fn flag(name: &'static str, preset: bool, about: &'static str) -> Self {
        Self { name, about, kind: Kind::Flag, need: Need::Preset(Preset::Flag(preset)) }
    }

    /// What stands for it where it is left out.
    pub(crate) fn preset(&self) -> Option<Value> {
        match self.need {
            Need::Preset(preset) => Some(preset.value()),
            Need::Required | Need::Optional => None,
        }
    }

    fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), json!(self.about));
            if let Some(preset) = self.preset() {
                schema.insert("default".to_owned(), preset);
            }
        }
        schema
    }
}

impl Preset {
    fn value(self) -> Value {
        match self {
            Self::Word(word) => json!(word),
            Self::Whole(number) => json!(number),
            Self::Flag(flag) => json!(flag),
        }
    }
}

impl Kind {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Word => json!({ "type": "string", "minLength": 1 }),
            Self::Whole(least, u64::MAX) => json!({ "type": "integer", "minimum": least }),
            Self::Whole(least, most) | Self::Lenient(least, most) => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Self::Flag => json!({ "type": "boolean" }),
            Self::Choice(words) | Self::Wish(words) => json!({ "type": "string", "enum": words }),
            Self::Words(most) => {
                let item = Self::Word.schema();
                json!({ "type": "array", "items": item, "minItems": 1, "maxItems": most })
            }
            Self::Objects(params, most) => {
                json!({ "type": "array", "items": schema(params), "minItems": 1, "maxItems": most })
            }
        }
    }

    /// What it takes, as the end of a sentence.
    fn wanted(self) -> String {
        match self {
            Self::Text | Self::Wish(_) => "a string".to_owned(),
            Self::Word => "a string that is not empty".to_owned(),
            Self::Whole(least, u64::MAX) => format!("a whole number of at least {least}"),
            Self::Whole(least, most) | Self::Lenient(least, most) => {
                format!("a whole number from {least} to {most}")
            }
            Self::Flag => "true or false".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Words(most) => format!("a list of 1 to {most} strings that are not empty"),
            Self::Objects(_, most) => format!("a list of 1 to {most} objects"),
        }
    }

    fn check(self, name: &str, value: &Value) -> Result<(), Fault> {
        let fits = match self {
            Self::Text | Self::Wish(_) => value.is_string(),
            Self::Word => value.as_str().is_some_and(|text| !text.is_empty()),
            Self::Whole(least, most) => {
                whole(value).is_some_and(|number| (least..=most).contains(&number))
            }
            Self::Lenient(..) => true,
            Self::Flag => value.is_boolean(),
            Self::Choice(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Words(most) => value.as_array().is_some_and(|items| {
                let word = |item: &Value| item.as_str().is_some_and(|text| !text.is_empty());
                (1..=most).contains(&items.len()) && items.iter().all(word)
            }),
            Self::Objects(params, most) => {
                let items = value.as_array().filter(|items| (1..=most).contains(&items.len()));
                let Some(items) = items else { return Err(self.wrong(name)) };
                for (at, item) in items.iter().enumerate() {
                    check(params, item).map_err(|fault| fault.within(&format!("{name}[{at}]")))?;
                }
                true
            }
        };
        if fits { Ok(()) } else { Err(self.wrong(name)) }
    }

    fn wrong(self, name: &str) -> Fault {
        Fault::Wrong { name: name.to_owned(), wanted: self.wanted() }
    }
}

/// The schema of an object of these parameters.
pub(crate) fn schema(params: &[Param]) -> Value {
    let properties: Map<String, Value> =
        params.iter().map(|param| (param.name.to_owned(), param.schema())).collect();
    let required: Vec<&str> = params
        .iter()
        .filter(|param| matches!(param.need, Need::Required))
        .map(|param| param.name)
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Looks whether arguments are what these parameters take, before anything is done.
pub(crate) fn check(params: &[Param], arguments: &Value) -> Result<(), Fault> {
    let given = arguments.as_object().ok_or(Fault::NoObject)?;
    // ORDER: unknown ones before missing ones, since one is often the other misspelled.
    if let Some(name) = given.keys().find(|name| params.iter().all(|param| param.name != *name)) {
        return Err(Fault::unknown(name, params));
    }
    for param in params {
        match given.get(param.name) {
            Some(value) => param.kind.check(param.name, value)?,
            None if matches!(param.need, Need::Required) => {
                return Err(Fault::Missing { name: param.name.to_owned() });
            }
            None => {}
        }
    }
    Ok(())
}

/// The arguments with what stands for those that were left out, and whole numbers written as such.
pub(crate) fn complete(params: &[Param], arguments: Value) -> Value {
    let Value::Object(mut given) = arguments else { return arguments };
    for param in params {
        if let Some(preset) = param.preset() {
            given.entry(param.name).or_insert(preset);
        }
        if let (Kind::Whole(..), Some(value)) = (param.kind, given.get_mut(param.name))
            && let Some(number) = whole(value)
        {
            *value = json!(number);
        }
    }
    Value::Object(given)
}

/// A whole number, however it is written: for JSON Schema 5.0 is the integer 5.
fn whole(value: &Value) -> Option<u64> {
    let fraction = || {
        let number = value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0)?;
        // All of its digits, and no sign of a zero.
        format!("{:.0}", number.abs()).parse().ok()
    };
    value.as_u64().or_else(fraction)
}

/// The one of these names that is most like another one, if any is.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let lower = name.to_lowercase();
    let near = known
        .map(|other| (strsim::damerau_levenshtein(&lower, other), other))
        .filter(|(distance, other)| *distance <= NEAR && *distance < other.len());
    near.min_by_key(|(distance, _)| *distance).map(|(_, other)| other)
}

impl Fault {
    fn unknown(name: &str, params: &[Param]) -> Self {
        // HOSTILE: a name of any length would be compared with each known one.
        let short: String = name.chars().take(64).collect();
        Self::Unknown {
            nearest: nearest(&short, params.iter().map(|param| param.name)).map(str::to_owned),
            name: short,
            known: params.iter().map(|param| param.name.to_owned()).collect(),
        }
    }

    /// The same fault, of a part of what `place` is.
    fn within(self, place: &str) -> Self {
        match self {
            Self::NoObject => {
                Self::Wrong { name: place.to_owned(), wanted: "an object".to_owned() }
            }
            Self::Unknown { name, nearest, known } => {
                Self::Unknown { name: format!("{place}.{name}"), nearest, known }
            }
            Self::Missing { name } => Self::Missing { name: format!("{place}.{name}") },
            Self::Wrong { name, wanted } => Self::Wrong { name: format!("{place}.{name}"), wanted },
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let usage = |what: String| Self::new(ErrorKind::Usage, what);
        match fault {
            Fault::NoObject => {
                usage("the arguments are no object".to_owned()).hint("Send a JSON object.")
            }
            Fault::Unknown { name, nearest: Some(nearest), .. } => {
                usage(format!("unknown parameter {name:?}"))
                    .hint(format!("Did you mean {nearest:?}?"))
            }
            Fault::Unknown { name, nearest: None, known } if known.is_empty() => {
                usage(format!("unknown parameter {name:?}")).hint("This tool takes no parameter.")
            }
            Fault::Unknown { name, nearest: None, known } => {
                usage(format!("unknown parameter {name:?}"))
                    .hint(format!("Use {}.", known.join(", ")))
            }
            Fault::Missing { name } => usage(format!("missing required parameter {name:?}"))
                .hint(format!("Call again with {name}.")),
            Fault::Wrong { name, wanted } => usage(format!("parameter {name:?} must be {wanted}"))
                .hint(format!("Call again with another {name}.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &[Param] = &[
        Param::required("command", Kind::Word, "It."),
        Param::whole("timeout_ms", (1, 9), 5, "It."),
        Param::word("mode", Kind::Choice(&["a", "b"]), "a", "It."),
        Param::flag("loud", false, "It."),
        Param::optional("names", Kind::Words(2), "It."),
        Param::optional(
            "edits",
            Kind::Objects(&[Param::required("old", Kind::Text, "It.")], 2),
            "It.",
        ),
    ];

    #[test]
    fn what_is_not_taken_is_named() {
        let refused = |arguments: Value, expected: &str| {
            let error = Error::from(check(PARAMS, &arguments).unwrap_err());
            assert_eq!(error.kind, ErrorKind::Usage);
            assert_eq!(error.message, expected, "{arguments}");
            assert!(error.hint.is_some(), "{arguments}");
        };
        refused(json!([]), "the arguments are no object");
        refused(json!({}), "missing required parameter \"command\"");
        refused(json!({ "comand": "x" }), "unknown parameter \"comand\"");
        let wrong = |name: &str, value: Value, wanted: &str| {
            let mut arguments = json!({ "command": "x" });
            arguments[name] = value;
            refused(arguments, &format!("parameter {name:?} must be {wanted}"));
        };
        wrong("command", json!(""), "a string that is not empty");
        wrong("command", json!(null), "a string that is not empty");
        wrong("timeout_ms", json!(10), "a whole number from 1 to 9");
        wrong("timeout_ms", json!(1.5), "a whole number from 1 to 9");
        wrong("timeout_ms", json!(-5.0), "a whole number from 1 to 9");
        wrong("timeout_ms", json!("5"), "a whole number from 1 to 9");
        wrong("timeout_ms", json!(1e300), "a whole number from 1 to 9");
        wrong("mode", json!("c"), "one of a, b");
        wrong("loud", json!("true"), "true or false");
        wrong("names", json!([]), "a list of 1 to 2 strings that are not empty");
        wrong("names", json!(["a", "b", "c"]), "a list of 1 to 2 strings that are not empty");
        wrong("edits", json!({}), "a list of 1 to 2 objects");
        let one = |edit: Value| json!({ "command": "x", "edits": [edit] });
        refused(one(json!(1)), "parameter \"edits[0]\" must be an object");
        refused(one(json!({})), "missing required parameter \"edits[0].old\"");
        refused(one(json!({ "old": "", "new": "" })), "unknown parameter \"edits[0].new\"");
        refused(one(json!({ "old": 1 })), "parameter \"edits[0].old\" must be a string");
    }

    #[test]
    fn a_hint_has_the_nearest_name_or_all_of_them() {
        let hint = |name: &str| {
            let mut arguments = json!({ "command": "x" });
            arguments[name] = json!(1);
            Error::from(check(PARAMS, &arguments).unwrap_err()).hint.unwrap()
        };
        assert_eq!(hint("timeout"), "Did you mean \"timeout_ms\"?");
        assert_eq!(hint("Mode"), "Did you mean \"mode\"?");
        assert_eq!(hint("working_dir"), "Use command, timeout_ms, mode, loud, names, edits.");
    }

    #[test]
    fn a_whole_number_may_be_written_as_a_fraction() {
        let check = |given: &str, expected: u64| {
            let arguments: Value =
                serde_json::from_str(&format!("{{\"command\": \"x\", \"timeout_ms\": {given}}}"))
                    .unwrap();
            check(PARAMS, &arguments).unwrap();
            assert_eq!(
                complete(PARAMS, arguments)["timeout_ms"].as_u64(),
                Some(expected),
                "{given}"
            );
        };
        check("5", 5);
        check("5.0", 5);
        check("0.9e1", 9);
        assert_eq!(whole(&json!(-0.0)), Some(0));
        assert_eq!(whole(&json!(u64::MAX)), Some(u64::MAX));
        assert_eq!(whole(&json!(1e18)), Some(1_000_000_000_000_000_000));
    }

    #[test]
    fn what_is_left_out_is_what_the_schema_says() {
        let given = json!({ "command": "x", "loud": true });
        check(PARAMS, &given).unwrap();
        let expected = json!({ "command": "x", "loud": true, "timeout_ms": 5, "mode": "a" });
        assert_eq!(complete(PARAMS, given), expected);
        let schema = schema(PARAMS);
        assert_eq!(schema["required"], json!(["command"]));
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["timeout_ms"]["default"], 5);
        assert_eq!(schema["properties"]["edits"]["items"]["additionalProperties"], false);
    }
}
