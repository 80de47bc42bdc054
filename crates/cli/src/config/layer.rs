//! What one source of settings says, and how layers lie over each other.

use super::Key;
use crate::args::{
    IdlePause, checked_name, parse_ask, parse_host, parse_idle_pause, parse_pids, parse_port,
    split_assignment,
};
use crate::choice::Choice;
use crate::images::PullPolicy;
use crate::parts::BackendName;
use cofferdam_core::secret::SecretGrant;
use cofferdam_core::{
    EgressRule, Error, ErrorKind, LayerChoice, Limit, Limits, OnUnavailable, Profile, Result,
    SensitiveWrites, User, Workspace, parse_bytes, parse_cpu, parse_duration,
};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Who said something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A line of a file.
    File(Rc<Path>, usize),
    /// A variable.
    Variable(&'static str),
    /// The command line.
    Flag,
}

impl Origin {
    /// An error about what stands there, which says where unless that is plain, and what to write there.
    pub(crate) fn named_in(&self, error: Error) -> Error {
        let written: fn(Key) -> Option<&'static str> = match self {
            Self::Flag => return error,
            Self::File(..) => |key| Some(key.name()),
            Self::Variable(_) => Key::variable,
        };
        let message = format!("{self}: {}", error.message);
        let hint = error.hint.map(|hint| self.reworded(hint, written));
        Error { kind: ErrorKind::Config, message, hint, ..error }
    }

    /// A hint in the words of this source: those below know flags alone.
    fn reworded(&self, mut hint: String, written: fn(Key) -> Option<&'static str>) -> String {
        let flag = |key: &Key| format!("--{}", key.name().replace('_', "-"));
        let mut keys = Key::ALL.to_vec();
        // ORDER: a longer one first, or the beginning of it would be taken for a shorter one.
        keys.sort_by_key(|key| std::cmp::Reverse(key.name().len()));
        for key in keys {
            let Some(word) = written(key) else { continue };
            // One that names both says which is which.
            if key.name().contains('_') && hint.contains(key.name()) {
                continue;
            }
            hint = hint.replace(&flag(&key), word);
        }
        match self {
            Self::File(..) => hint.replace("profile repo-write", "profile = \"repo-write\""),
            Self::Variable(_) | Self::Flag => {
                hint.replace("PROFILE repo-write", "PROFILE=repo-write")
            }
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag => f.write_str("command line"),
        }
    }
}

/// A value and who said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    /// The value.
    pub(crate) value: T,
    /// Who said it.
    pub(crate) origin: Origin,
}

/// An image as somebody named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageWish {
    /// The reference.
    pub(crate) reference: String,
    /// Where relative paths of it begin.
    pub(crate) from: PathBuf,
}

/// Whether what is written to the workspace lands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// It lands in the workspace.
    No,
    /// It lands in a layer that this makes.
    Layer(LayerChoice),
}

impl Beside {
    fn parse(text: &str) -> Result<Self> {
        match switch(text) {
            Ok(true) => Ok(Self::Layer(LayerChoice::default())),
            Ok(false) => Ok(Self::No),
            Err(_) => LayerChoice::choose(text).map(Self::Layer).map_err(|error| {
                let hint = error.hint.clone().unwrap_or_default();
                error.hint(format!("{hint} true and false do as well."))
            }),
        }
    }

    /// As a file says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::No => "false",
            Self::Layer(tier) => tier.name(),
        }
    }
}

/// A variable that somebody wants for the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VariableWish {
    /// With this value.
    Set(OsString, OsString),
    /// With the value that the caller has, if the caller has it.
    Pass(OsString),
}

/// What one source of settings says. Absent is "nothing said", never a default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) profile: Option<Sourced<Profile>>,
    pub(crate) image: Option<Sourced<ImageWish>>,
    pub(crate) pull: Option<Sourced<PullPolicy>>,
    pub(crate) insecure_registry: Vec<Sourced<String>>,
    pub(crate) workspace: Option<Sourced<Workspace>>,
    pub(crate) read: Vec<Sourced<PathBuf>>,
    pub(crate) write: Vec<Sourced<PathBuf>>,
    pub(crate) hide: Vec<Sourced<PathBuf>>,
    pub(crate) egress: Vec<Sourced<EgressRule>>,
    pub(crate) deny_egress: Vec<Sourced<EgressRule>>,
    pub(crate) host_ports: Vec<Sourced<u16>>,
    pub(crate) ask: Option<Sourced<Duration>>,
    pub(crate) secrets: Vec<Sourced<SecretGrant>>,
    pub(crate) env: Vec<Sourced<VariableWish>>,
    pub(crate) timeout: Option<Sourced<Duration>>,
    pub(crate) memory_bytes: Option<Sourced<u64>>,
    pub(crate) pids: Option<Sourced<u32>>,
    pub(crate) cpu_millis: Option<Sourced<u32>>,
    pub(crate) disk_bytes: Option<Sourced<u64>>,
    pub(crate) max_output_bytes: Option<Sourced<u64>>,
    pub(crate) user: Option<Sourced<User>>,
    pub(crate) on_unavailable: Option<Sourced<OnUnavailable>>,
    pub(crate) backend: Option<Sourced<BackendName>>,
    pub(crate) sensitive_writes: Option<Sourced<SensitiveWrites>>,
    pub(crate) copy_on_write: Option<Sourced<Beside>>,
    pub(crate) init: Vec<Sourced<OsString>>,
    pub(crate) idle_pause: Option<Sourced<IdlePause>>,
    pub(crate) ttl: Option<Sourced<Duration>>,
    pub(crate) checkpoints: Option<Sourced<bool>>,
}

impl Layer {
    /// Reads one text for one key, and keeps it. For a list, the text is one element; relative paths
    /// begin at `base`.
    pub(crate) fn set(
        &mut self,
        key: Key,
        text: &OsStr,
        base: &Path,
        origin: &Origin,
    ) -> Result<()> {
        match key {
            Key::Profile => self.profile = Some(said(Profile::choose(utf8(text)?)?, origin)),
            Key::Image => {
                let reference = image(utf8(text)?)?.to_owned();
                let wish = ImageWish { reference, from: base.to_owned() };
                self.image = Some(said(wish, origin));
            }
            Key::Pull => self.pull = Some(said(PullPolicy::choose(utf8(text)?)?, origin)),
            Key::InsecureRegistry => {
                self.insecure_registry.push(said(parse_host(utf8(text)?)?, origin));
            }
            Key::Workspace => {
                let directory = Workspace::Directory(path(text, base)?);
                self.workspace = Some(said(directory, origin));
            }
            Key::Read => self.read.push(said(path(text, base)?, origin)),
            Key::Write => self.write.push(said(path(text, base)?, origin)),
            Key::Hide => self.hide.push(said(path(text, base)?, origin)),
            Key::Egress => self.egress.push(said(utf8(text)?.parse()?, origin)),
            Key::DenyEgress => self.deny_egress.push(said(utf8(text)?.parse()?, origin)),
            Key::AllowHostPort => self.host_ports.push(said(parse_port(utf8(text)?)?, origin)),
            Key::Ask => self.ask = Some(said(parse_ask(utf8(text)?)?, origin)),
            Key::Secret => self.secrets.push(said(utf8(text)?.parse()?, origin)),
            Key::Env => {
                let (name, value) = split_assignment(text)?;
                self.env.push(said(VariableWish::Set(name, value), origin));
            }
            Key::EnvFrom => self.env.push(said(VariableWish::Pass(checked_name(text)?), origin)),
            Key::Timeout => self.timeout = Some(said(parse_duration(utf8(text)?)?, origin)),
            Key::Memory => self.memory_bytes = Some(said(parse_bytes(utf8(text)?)?, origin)),
            Key::Pids => self.pids = Some(said(parse_pids(utf8(text)?)?, origin)),
            Key::Cpu => self.cpu_millis = Some(said(parse_cpu(utf8(text)?)?, origin)),
            Key::Disk => self.disk_bytes = Some(said(parse_bytes(utf8(text)?)?, origin)),
            Key::MaxOutput => self.max_output_bytes = Some(said(parse_bytes(utf8(text)?)?, origin)),
            Key::User => self.user = Some(said(User::choose(utf8(text)?)?, origin)),
            Key::OnUnavailable => {
                self.on_unavailable = Some(said(OnUnavailable::choose(utf8(text)?)?, origin));
            }
            Key::Backend => self.backend = Some(said(BackendName::choose(utf8(text)?)?, origin)),
            Key::AllowSensitiveWrites => {
                let choice = match switch(utf8(text)?)? {
                    true => SensitiveWrites::Allowed,
                    false => SensitiveWrites::Protected,
                };
                self.sensitive_writes = Some(said(choice, origin));
            }
            Key::CopyOnWrite => {
                self.copy_on_write = Some(said(Beside::parse(utf8(text)?)?, origin))
            }
            Key::Init => self.init.push(said(text.to_owned(), origin)),
            Key::IdlePause => self.idle_pause = Some(said(parse_idle_pause(utf8(text)?)?, origin)),
            Key::Ttl => self.ttl = Some(said(parse_duration(utf8(text)?)?, origin)),
            Key::Checkpoints => self.checkpoints = Some(said(switch(utf8(text)?)?, origin)),
        }
        Ok(())
    }

    /// The rules of the way out that are listed. Fails where the profile rules them out, or one
    /// can never open anything.
    pub(crate) fn rules(&self) -> Result<Vec<EgressRule>> {
        let profile = self.profile.as_ref().map_or_else(Profile::default, |said| said.value);
        let rules: Vec<EgressRule> = self.egress.iter().map(|said| said.value.clone()).collect();
        profile.egress(&rules).map_err(|error| match self.egress.first() {
            None => error,
            Some(first) => first.origin.named_in(error),
        })?;
        for said in &self.egress {
            said.value.check_allowing().map_err(|error| said.origin.named_in(error))?;
        }
        Ok(rules)
    }

    /// The limits, if a sandbox can stand within them.
    pub(crate) fn limits(&self) -> Result<Limits> {
        let defaults = Limits::default();
        let one =
            Limits { memory_bytes: asked(&self.memory_bytes, defaults.memory_bytes), ..defaults };
        let other = Limits { disk_bytes: asked(&self.disk_bytes, defaults.disk_bytes), ..defaults };
        for (limits, wish) in [(one, &self.memory_bytes), (other, &self.disk_bytes)] {
            let origin = wish.as_ref().map_or(&Origin::Flag, |said| &said.origin);
            limits.check().map_err(|error| origin.named_in(error))?;
        }
        Ok(Limits {
            memory_bytes: one.memory_bytes,
            pids: asked(&self.pids, defaults.pids),
            cpu_millis: asked(&self.cpu_millis, defaults.cpu_millis),
            disk_bytes: other.disk_bytes,
        })
    }

    /// The secrets that are granted, each once, and who said the first.
    pub(crate) fn grants(&self) -> (Vec<SecretGrant>, Origin) {
        let mut grants: Vec<SecretGrant> = Vec::new();
        for said in &self.secrets {
            if !grants.contains(&said.value) {
                grants.push(said.value.clone());
            }
        }
        let first = self.secrets.first().map_or(Origin::Flag, |said| said.origin.clone());
        (grants, first)
    }

    /// This layer with a later one over it: single values of the later win, lists add up.
    pub(crate) fn under(mut self, mut later: Self) -> Self {
        // A stricter profile that is named later closes what earlier layers opened; else nobody
        // could run `--profile no-network` over a file that lists destinations.
        if later.profile.as_ref().is_some_and(|named| !named.value.has_way_out()) {
            self.egress.clear();
            self.host_ports.clear();
            self.secrets.clear();
            self.ask = None;
        }
        self.read.append(&mut later.read);
        self.write.append(&mut later.write);
        self.hide.append(&mut later.hide);
        self.egress.append(&mut later.egress);
        self.deny_egress.append(&mut later.deny_egress);
        self.host_ports.append(&mut later.host_ports);
        self.secrets.append(&mut later.secrets);
        self.env.append(&mut later.env);
        self.init.append(&mut later.init);
        self.insecure_registry.append(&mut later.insecure_registry);
        Self {
            profile: later.profile.or(self.profile),
            image: later.image.or(self.image),
            pull: later.pull.or(self.pull),
            ask: later.ask.or(self.ask),
            workspace: later.workspace.or(self.workspace),
            timeout: later.timeout.or(self.timeout),
            memory_bytes: later.memory_bytes.or(self.memory_bytes),
            pids: later.pids.or(self.pids),
            cpu_millis: later.cpu_millis.or(self.cpu_millis),
            disk_bytes: later.disk_bytes.or(self.disk_bytes),
            max_output_bytes: later.max_output_bytes.or(self.max_output_bytes),
            user: later.user.or(self.user),
            on_unavailable: later.on_unavailable.or(self.on_unavailable),
            backend: later.backend.or(self.backend),
            sensitive_writes: later.sensitive_writes.or(self.sensitive_writes),
            copy_on_write: later.copy_on_write.or(self.copy_on_write),
            idle_pause: later.idle_pause.or(self.idle_pause),
            ttl: later.ttl.or(self.ttl),
            checkpoints: later.checkpoints.or(self.checkpoints),
            ..self
        }
    }
}

/// A value that this source said.
pub(crate) fn said<T>(value: T, origin: &Origin) -> Sourced<T> {
    Sourced { value, origin: origin.clone() }
}

fn utf8(text: &OsStr) -> Result<&str> {
    text.to_str().ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{text:?} is not text in UTF-8"))
            .hint("Write it in UTF-8.")
    })
}

fn image(text: &str) -> Result<&str> {
    if text.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "an empty text is no image")
            .hint("Name one, as in debian:12, or leave it out for the host's own system."));
    }
    Ok(text)
}

fn path(text: &OsStr, base: &Path) -> Result<PathBuf> {
    if text.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "an empty text is not a path")
            .hint("Name a path, or leave it out."));
    }
    Ok(base.join(text))
}

fn switch(text: &str) -> Result<bool> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Error::new(ErrorKind::Usage, format!("{text:?} is neither true nor false"))
            .hint("Write true or false.")),
    }
}

fn asked<T: Copy>(wish: &Option<Sourced<T>>, default: Limit<T>) -> Limit<T> {
    wish.as_ref().map_or(default, |said| Limit::Asked(said.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(lines: &[(Key, &str)]) -> Layer {
        let mut layer = Layer::default();
        for (key, text) in lines {
            layer.set(*key, OsStr::new(text), Path::new("/base"), &Origin::Flag).unwrap();
        }
        layer
    }

    #[test]
    fn a_remedy_is_in_the_words_of_what_is_wrong() {
        let text = "Leave --env-from and --allow-host-port out, or use --profile repo-write.";
        let said = |origin: &Origin| {
            let error = Error::new(ErrorKind::Usage, "it").hint(text);
            origin.named_in(error).hint.unwrap()
        };
        assert_eq!(said(&Origin::Flag), text);
        assert_eq!(
            said(&Origin::File(Path::new("/p").into(), 1)),
            "Leave env_from and allow_host_port out, or use profile = \"repo-write\"."
        );
        assert_eq!(
            said(&Origin::Variable("COFFERDAM_EGRESS")),
            "Leave COFFERDAM_ENV_FROM and COFFERDAM_ALLOW_HOST_PORT out, or use \
             COFFERDAM_PROFILE=repo-write."
        );
    }

    #[test]
    fn the_later_wins_and_lists_add_up() {
        let first = layer(&[(Key::Memory, "1G"), (Key::Read, "a"), (Key::Pids, "5")]);
        let later = layer(&[(Key::Memory, "2G"), (Key::Read, "/b")]);
        let both = first.under(later);
        assert_eq!(both.memory_bytes.unwrap().value, 2 << 30);
        assert_eq!(both.pids.unwrap().value, 5);
        let read: Vec<_> = both.read.iter().map(|path| path.value.to_str().unwrap()).collect();
        assert_eq!(read, ["/base/a", "/b"]);
    }

    #[test]
    fn what_an_earlier_layer_denies_no_later_one_opens() {
        let own = layer(&[
            (Key::Profile, "repo-write"),
            (Key::Egress, "*.example.com:443"),
            (Key::DenyEgress, "ads.example.com"),
        ]);
        let both = own.under(layer(&[(Key::Egress, "ads.example.com:443"), (Key::Egress, "*")]));
        let rules =
            |said: Vec<Sourced<EgressRule>>| said.into_iter().map(|one| one.value).collect();
        let policy = cofferdam_core::NetworkPolicy {
            allow: rules(both.egress),
            deny: rules(both.deny_egress),
            ..Default::default()
        };
        let allows =
            |place: &str| cofferdam_core::policy::decide(&policy, &place.parse().unwrap()).allowed;
        assert!(!allows("ads.example.com:443"));
        assert!(allows("example.com:443") && allows("a.test:443"), "control: lists add up");
    }

    #[test]
    fn a_layer_is_chosen_by_a_switch_or_by_what_makes_it() {
        let check = |text: &str, expected: Beside| {
            let said = layer(&[(Key::CopyOnWrite, text)]).copy_on_write.unwrap().value;
            assert_eq!(said, expected, "{text}");
        };
        check("true", Beside::Layer(LayerChoice::default()));
        check("0", Beside::No);
        for tier in LayerChoice::ALL {
            check(tier.name(), Beside::Layer(tier));
        }
        let error = Beside::parse("reflnk").unwrap_err();
        assert!(error.hint.unwrap().ends_with("true and false do as well."));
    }

    #[test]
    fn a_stricter_profile_closes_what_was_opened_before() {
        let file = layer(&[
            (Key::Profile, "repo-write"),
            (Key::Egress, "crates.io:443"),
            (Key::AllowHostPort, "5432"),
            (Key::Ask, "30s"),
            (Key::Secret, "TOKEN@api.example.com"),
        ]);
        let strict = file.clone().under(layer(&[(Key::Profile, "no-network")]));
        assert!(strict.egress.is_empty() && strict.host_ports.is_empty() && strict.ask.is_none());
        assert!(strict.secrets.is_empty());
        let same = file.under(layer(&[(Key::Profile, "ci-only")]));
        assert_eq!((same.egress.len(), same.secrets.len()), (1, 1));
    }
}
