//! `cofferdam config`.

use crate::args::{
    CheckArgs, ConfigArgs, ConfigOptions, ConfigVerb, IdlePause, SchemaArgs, TrustArgs,
};
use crate::choice::Choice;
use crate::config::{
    ConsultedFile, Key, Layer, Loaded, Sourced, Standing, Unapproved, VariableWish, approve, load,
    open_checked, withdraw,
};
use crate::images::PullPolicy;
use crate::surroundings::Surroundings;
use crate::{exit, render};
use cofferdam_core::{Limits, OnUnavailable, Profile, Result, SensitiveWrites, User, Workspace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The configuration in force. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CheckedConfig {
    /// The files that were read, a later one winning.
    pub(crate) files: Vec<ConsultedFile>,
    /// Every value in force.
    pub(crate) values: Vec<CheckedValue>,
}

/// A value in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CheckedValue {
    /// The key.
    pub(crate) key: String,
    /// The value, as it would be typed.
    pub(crate) value: String,
    /// Who said it: a line of a file, a variable, or `default`.
    pub(crate) origin: String,
}

/// Does what the verb says.
pub(super) fn perform(args: &ConfigArgs) -> Result<u8> {
    match &args.verb {
        ConfigVerb::Check(args) => check(args),
        ConfigVerb::Trust(args) => trust(args),
        ConfigVerb::Schema(args) => schema(args),
    }
}

fn check(args: &CheckArgs) -> Result<u8> {
    let surroundings = Surroundings::of_this_process();
    let options = ConfigOptions { config: args.file.clone(), no_config: false };
    let Loaded { layer, files } =
        load(&surroundings, &options, Layer::default(), Unapproved::Show)?;
    layer.rules()?;
    layer.limits()?;
    let checked = CheckedConfig { files, values: values(&layer) };
    match args.json {
        true => render::print_json(&checked)?,
        false => render::print_text(&text(&checked))?,
    }
    Ok(exit::DONE)
}

fn trust(args: &TrustArgs) -> Result<u8> {
    let surroundings = Surroundings::of_this_process();
    let state_directory = surroundings.state_directory()?;
    let path = surroundings.located(&args.file)?;
    if args.remove {
        let path = crate::places::of_file(&path)?;
        let was_approved = withdraw(&state_directory, &path)?;
        let what = if was_approved { "is no longer approved" } else { "was not approved" };
        render::print_text(&format!("{} {what}\n", path.display()))?;
        return Ok(exit::DONE);
    }
    let file = open_checked(&path)?;
    let home = surroundings.home.as_deref();
    if super::manifest::is_manifest(&file.path, &file.text) {
        approve(&state_directory, &file)?;
        render::print_text(&format!("{} is approved as it is now\n", file.path.display()))?;
        return Ok(exit::DONE);
    }
    // What cannot be read is not approved: the next run would only fail on it.
    let layer = crate::config::read(&file, home)?;
    layer.rules()?;
    layer.limits()?;
    approve(&state_directory, &file)?;
    let said: Vec<CheckedValue> =
        values(&layer).into_iter().filter(|value| value.origin != DEFAULT).collect();
    let rows: Vec<Vec<String>> = said.iter().map(row).collect();
    render::print_text(&format!("{} is approved as it is now\n", file.path.display()))?;
    render::print_text(&render::table(&rows))?;
    Ok(exit::DONE)
}

fn schema(args: &SchemaArgs) -> Result<u8> {
    let schema = args.object.text()?;
    render::print_text(&schema)?;
    Ok(exit::DONE)
}

fn text(checked: &CheckedConfig) -> String {
    let mut text = String::new();
    for file in &checked.files {
        let standing = match file.standing {
            Standing::Own => "yours",
            Standing::Named => "named",
            Standing::Approved => "approved",
            Standing::Unapproved => {
                "NOT APPROVED: a run refuses it; approve it with `cofferdam config trust FILE`"
            }
        };
        text.extend([&*render::plain(&file.path), "  ", standing, "\n"]);
    }
    if !checked.files.is_empty() {
        text.push('\n');
    }
    let rows: Vec<Vec<String>> = checked.values.iter().map(row).collect();
    text.push_str(&render::table(&rows));
    text
}

fn row(value: &CheckedValue) -> Vec<String> {
    [&value.key, &value.value, &value.origin].map(|cell| render::plain(cell).into_owned()).to_vec()
}

/// A wait that may be none.
fn asking(time: std::time::Duration) -> String {
    if time.is_zero() { "0".to_owned() } else { render::duration(time) }
}

const DEFAULT: &str = "default";

/// Every value in force, in the order of the keys; a list has a row for each element.
fn values(layer: &Layer) -> Vec<CheckedValue> {
    Key::ALL.into_iter().flat_map(|key| values_of(layer, key)).collect()
}

fn values_of(layer: &Layer, key: Key) -> Vec<CheckedValue> {
    let defaults = Limits::default();
    let one = |(value, origin): (String, String)| {
        vec![CheckedValue { key: key.name().to_owned(), value, origin }]
    };
    match key {
        Key::Profile => one(single(&layer.profile, |v| v.name().into(), Profile::default().name())),
        Key::Workspace => one(single(&layer.workspace, workspace, "the current directory")),
        Key::Read => many(key, &layer.read, |path| path.display().to_string()),
        Key::Write => many(key, &layer.write, |path| path.display().to_string()),
        Key::Hide => many(key, &layer.hide, |path| path.display().to_string()),
        Key::Egress => many(key, &layer.egress, ToString::to_string),
        Key::DenyEgress => many(key, &layer.deny_egress, ToString::to_string),
        Key::AllowHostPort => many(key, &layer.host_ports, ToString::to_string),
        Key::Ask => one(single(&layer.ask, |v| asking(*v), "0")),
        Key::Secret => many(key, &layer.secrets, ToString::to_string),
        Key::Env => many(key, &set_variables(layer), Clone::clone),
        Key::EnvFrom => many(key, &passed_variables(layer), Clone::clone),
        Key::Timeout => one(single(&layer.timeout, |v| render::duration(*v), "no limit")),
        Key::Image => {
            let default = "this host's system";
            one(single(&layer.image, |v| v.reference.clone(), default))
        }
        Key::Pull => {
            let default = PullPolicy::default().named();
            one(single(&layer.pull, |v| v.named().into(), default))
        }
        Key::InsecureRegistry => many(key, &layer.insecure_registry, Clone::clone),
        Key::Memory => {
            let default = render::bytes(defaults.memory_bytes.value());
            one(single(&layer.memory_bytes, |v| render::bytes(*v), &default))
        }
        Key::Pids => {
            let default = defaults.pids.value().to_string();
            one(single(&layer.pids, ToString::to_string, &default))
        }
        Key::Cpu => one(single(&layer.cpu_millis, |v| render::cpu(*v), "no limit")),
        Key::Disk => {
            let default = render::bytes(defaults.disk_bytes.value());
            one(single(&layer.disk_bytes, |v| render::bytes(*v), &default))
        }
        Key::MaxOutput => {
            let default = "no limit; 16M with --json";
            one(single(&layer.max_output_bytes, |v| render::bytes(*v), default))
        }
        Key::User => one(single(&layer.user, |v| v.named().into(), User::default().named())),
        Key::OnUnavailable => {
            let default = OnUnavailable::default().named();
            one(single(&layer.on_unavailable, |v| v.named().into(), default))
        }
        Key::Backend => one(single(&layer.backend, |v| v.named().into(), "local")),
        Key::AllowSensitiveWrites => {
            let shown = |v: &SensitiveWrites| (*v == SensitiveWrites::Allowed).to_string();
            one(single(&layer.sensitive_writes, shown, "false"))
        }
        Key::CopyOnWrite => one(single(&layer.copy_on_write, |v| v.name().into(), "false")),
        Key::Init => many(key, &layer.init, |line| line.to_string_lossy().into_owned()),
        Key::IdlePause => one(single(&layer.idle_pause, idle_pause, "3m")),
        Key::Checkpoints => one(single(&layer.checkpoints, bool::to_string, "true")),
        Key::Ttl => one(single(&layer.ttl, |v| render::duration(*v), "never")),
    }
}

fn single<T>(
    wish: &Option<Sourced<T>>,
    shown: impl Fn(&T) -> String,
    default: &str,
) -> (String, String) {
    match wish {
        Some(said) => (shown(&said.value), said.origin.to_string()),
        None => (default.to_owned(), DEFAULT.to_owned()),
    }
}

fn many<T>(key: Key, wishes: &[Sourced<T>], shown: impl Fn(&T) -> String) -> Vec<CheckedValue> {
    wishes
        .iter()
        .map(|said| CheckedValue {
            key: key.name().to_owned(),
            value: shown(&said.value),
            origin: said.origin.to_string(),
        })
        .collect()
}

fn idle_pause(idle_pause: &IdlePause) -> String {
    match idle_pause {
        IdlePause::After(time) => render::duration(*time),
        IdlePause::Never => "none".to_owned(),
    }
}

fn workspace(workspace: &Workspace) -> String {
    match workspace.directory() {
        Some(path) => path.display().to_string(),
        None => "an empty private one".to_owned(),
    }
}

/// The names alone: a value may be a secret, and this is printed.
fn set_variables(layer: &Layer) -> Vec<Sourced<String>> {
    variables(layer, |wish| match wish {
        VariableWish::Set(name, _) => Some(name.to_string_lossy().into_owned()),
        VariableWish::Pass(_) => None,
    })
}

fn passed_variables(layer: &Layer) -> Vec<Sourced<String>> {
    variables(layer, |wish| match wish {
        VariableWish::Set(..) => None,
        VariableWish::Pass(name) => Some(name.to_string_lossy().into_owned()),
    })
}

fn variables(
    layer: &Layer,
    shown: impl Fn(&VariableWish) -> Option<String>,
) -> Vec<Sourced<String>> {
    let row = |said: &Sourced<VariableWish>| {
        Some(Sourced { value: shown(&said.value)?, origin: said.origin.clone() })
    };
    layer.env.iter().filter_map(row).collect()
}
