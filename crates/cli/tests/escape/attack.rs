//! The attacks, as they are written down beside their sources.

/// What comes before each source.
const PRELUDE: &str = include_str!("../../../../tests/escape/attacks/prelude.py");

const SOURCES: [&str; 8] = [
    include_str!("../../../../tests/escape/attacks/files.py"),
    include_str!("../../../../tests/escape/attacks/protected.py"),
    include_str!("../../../../tests/escape/attacks/kernel.py"),
    include_str!("../../../../tests/escape/attacks/network.py"),
    include_str!("../../../../tests/escape/attacks/processes.py"),
    include_str!("../../../../tests/escape/attacks/environment.py"),
    include_str!("../../../../tests/escape/attacks/limits.py"),
    include_str!("../../../../tests/escape/attacks/usability.py"),
];

/// What becomes of an attack where nothing confines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bare {
    /// It works.
    Works,
    /// The kernel refuses it to an ordinary user, or the machine may lack what it needs.
    Refused,
    /// It must not be tried.
    Unsafe,
}

/// What a function is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It must fail inside.
    Attack(Bare),
    /// It must work inside.
    Use {
        /// Only where the workspace can be written.
        writes: bool,
    },
}

/// One function of one source.
#[derive(Debug, Clone)]
pub(crate) struct Attack {
    pub(crate) name: String,
    pub(crate) purpose: Purpose,
    /// Further options of `cofferdam run`.
    pub(crate) options: Vec<String>,
    /// Whether it is none where there is a way out.
    pub(crate) needs_closed: bool,
    /// The whole program that is sent.
    pub(crate) program: String,
}

impl Attack {
    /// What it belongs to: the first part of its name.
    pub(crate) fn category(&self) -> &str {
        match self.purpose {
            Purpose::Attack(_) => self.name.split('.').next().unwrap_or_default(),
            Purpose::Use { .. } => "usability",
        }
    }
}

/// All attacks and uses, as far as `COFFERDAM_ESCAPE_ONLY` wants them.
pub(crate) fn all() -> Vec<Attack> {
    let only = std::env::var("COFFERDAM_ESCAPE_ONLY").unwrap_or_default();
    let wanted = |attack: &Attack| attack.name.starts_with(&only);
    SOURCES.iter().flat_map(|source| parse(source)).filter(wanted).collect()
}

fn parse(source: &str) -> Vec<Attack> {
    let program = format!("{PRELUDE}\n{source}\nmain()\n");
    source.lines().filter_map(|line| head(line, &program)).collect()
}

fn head(line: &str, program: &str) -> Option<Attack> {
    let mut words = line.split_whitespace();
    if words.next()? != "#" {
        return None;
    }
    let kind = words.next()?;
    let name = words.next()?.to_owned();
    let rest: Vec<&str> = words.collect();
    let value = |key: &str| rest.iter().find_map(|word| word.strip_prefix(key));
    let purpose = match (kind, value("bare=")) {
        ("attack", Some("works")) => Purpose::Attack(Bare::Works),
        ("attack", Some("refused")) => Purpose::Attack(Bare::Refused),
        ("attack", Some("unsafe")) => Purpose::Attack(Bare::Unsafe),
        ("attack", other) => panic!("{name}: bare={other:?}"),
        ("use", _) => Purpose::Use { writes: rest.contains(&"write") },
        _ => return None,
    };
    let options = value("opts=").map(|text| text.split(',').map(str::to_owned).collect());
    let options = options.unwrap_or_default();
    let needs_closed = rest.contains(&"closed");
    Some(Attack { name, purpose, options, needs_closed, program: program.to_owned() })
}

#[test]
fn there_are_enough_attacks_and_each_has_a_function() {
    let everything: Vec<Attack> = SOURCES.iter().flat_map(|source| parse(source)).collect();
    let uses = everything.iter().filter(|a| matches!(a.purpose, Purpose::Use { .. })).count();
    assert!(everything.len() - uses >= 120, "{} attacks", everything.len() - uses);
    assert!(uses >= 24, "{uses} uses");
    for attack in everything {
        let function = format!("\ndef {}():", attack.name.replace(['.', '-'], "_"));
        assert_eq!(attack.program.matches(&function).count(), 1, "{}", attack.name);
    }
}
