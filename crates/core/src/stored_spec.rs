//! A spec as it is written down.

use crate::secret::SecretGrant;
use crate::{
    ByteString, Caller, DirectoryIdentity, EgressRule, Error, ErrorKind, GuestPath, HostMount,
    Image, LayerChoice, Limit, Limits, OnUnavailable, Profile, Result, SensitiveWrites, Spec, User,
    Workspace,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The format that this program writes, and the only one that it reads.
const FORMAT: u32 = 1;

/// A [`Spec`] as it is written down, or sent to another process. Format 1.
///
/// Holds values of variables, so it goes into private files only, and is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredSpec {
    format: u32,
    profile: String,
    egress: Vec<String>,
    /// Came later: what was stored before denies nothing besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deny: Vec<String>,
    /// Came later: what was stored before reaches none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    host_ports: Vec<u16>,
    /// Came later: what was stored before asks for nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    ask_ms: u64,
    /// Came later: what was stored before has a way out where a rule opens it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    keeps_way_out: bool,
    /// Came later: what was stored before is granted none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<SecretGrant>,
    /// Came later: what was stored before lies on the host's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<Image>,
    workspace: Option<ByteString>,
    /// Came later: what was stored before has no layer.
    #[serde(default, skip_serializing_if = "is_not")]
    copy_on_write: bool,
    /// Came later: what was stored before takes what there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layer: Option<String>,
    read: Vec<ByteString>,
    /// Came later: what was stored before has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mounts: Vec<StoredMount>,
    write: Vec<ByteString>,
    hide: Vec<ByteString>,
    /// Came later: what was stored before is shown what its paths lead to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    leads: Vec<(ByteString, ByteString)>,
    env: Vec<(ByteString, ByteString)>,
    limits: StoredLimits,
    user_is_root: bool,
    sensitive_writes_allowed: bool,
    degrade: bool,
    caller_env: Vec<(ByteString, ByteString)>,
    caller_home: Option<ByteString>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMount {
    source: ByteString,
    path: ByteString,
    identity: DirectoryIdentity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLimits {
    memory_bytes: StoredLimit,
    pids: StoredLimit,
    cpu_millis: StoredLimit,
    disk_bytes: StoredLimit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLimit {
    value: u64,
    asked: bool,
}

impl fmt::Debug for StoredSpec {
    /// Values of variables must not end up in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSpec").field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl StoredSpec {
    /// Takes every field over.
    #[must_use]
    pub fn new(spec: &Spec) -> Self {
        // All fields by name: a new one that is not stored does not compile.
        let Spec {
            profile,
            egress,
            deny,
            host_ports,
            ask,
            keeps_way_out,
            secrets,
            image,
            workspace,
            layer,
            read,
            mounts,
            write,
            hide,
            leads,
            env,
            limits,
            user,
            sensitive_writes,
            on_unavailable,
            caller,
        } = spec;
        Self {
            format: FORMAT,
            profile: profile.name().to_owned(),
            egress: egress.iter().map(ToString::to_string).collect(),
            deny: deny.iter().map(ToString::to_string).collect(),
            host_ports: host_ports.clone(),
            ask_ms: u64::try_from(ask.as_millis()).unwrap_or(u64::MAX),
            keeps_way_out: *keeps_way_out,
            secrets: secrets.clone(),
            image: image.clone(),
            workspace: workspace.directory().map(bytes),
            copy_on_write: match workspace {
                Workspace::CopyOnWrite(_) => true,
                Workspace::Directory(_) | Workspace::Private => false,
            },
            layer: (*layer != LayerChoice::Auto).then(|| layer.name().to_owned()),
            read: read.iter().map(|path| bytes(path)).collect(),
            mounts: mounts.iter().map(StoredMount::new).collect(),
            write: write.iter().map(|path| bytes(path)).collect(),
            hide: hide.iter().map(|path| bytes(path)).collect(),
            leads: leads.iter().map(|(path, end)| (bytes(path), bytes(end))).collect(),
            env: pairs(env),
            limits: StoredLimits {
                memory_bytes: limit(limits.memory_bytes),
                pids: limit(limits.pids),
                cpu_millis: limit(limits.cpu_millis),
                disk_bytes: limit(limits.disk_bytes),
            },
            user_is_root: *user == User::Root,
            sensitive_writes_allowed: *sensitive_writes == SensitiveWrites::Allowed,
            degrade: *on_unavailable == OnUnavailable::Degrade,
            caller_env: pairs(&caller.env),
            caller_home: caller.home.as_deref().map(bytes),
        }
    }

    /// How much memory it may use, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.limits.memory_bytes.value
    }

    /// The spec again. Another format is an error of the kind unsupported.
    pub fn spec(&self) -> Result<Spec> {
        if self.format != FORMAT {
            let what = format!("a stored spec is of format {}, not {FORMAT}", self.format);
            return Err(Error::new(ErrorKind::Unsupported, what)
                .hint("Use the version of Cofferdam that wrote it."));
        }
        let rules = |rules: &[String]| -> Result<Vec<EgressRule>> {
            rules.iter().map(|rule| rule.parse()).collect()
        };
        Ok(Spec {
            profile: self.profile.parse::<Profile>()?,
            egress: rules(&self.egress)?,
            deny: rules(&self.deny)?,
            host_ports: self.host_ports.clone(),
            ask: Duration::from_millis(self.ask_ms),
            keeps_way_out: self.keeps_way_out,
            secrets: self.secrets.clone(),
            image: self.image.clone(),
            workspace: match &self.workspace {
                Some(path) if self.copy_on_write => Workspace::CopyOnWrite(path_of(path)),
                Some(path) => Workspace::Directory(path_of(path)),
                None => Workspace::Private,
            },
            layer: layer_choice(self.layer.as_deref())?,
            read: self.read.iter().map(path_of).collect(),
            mounts: self.mounts.iter().map(StoredMount::mount).collect::<Result<_>>()?,
            write: self.write.iter().map(path_of).collect(),
            hide: self.hide.iter().map(path_of).collect(),
            leads: self.leads.iter().map(|(path, end)| (path_of(path), path_of(end))).collect(),
            env: variables(&self.env),
            limits: Limits {
                memory_bytes: wide(self.limits.memory_bytes),
                pids: narrow(self.limits.pids)?,
                cpu_millis: narrow(self.limits.cpu_millis)?,
                disk_bytes: wide(self.limits.disk_bytes),
            },
            user: if self.user_is_root { User::Root } else { User::Ordinary },
            sensitive_writes: match self.sensitive_writes_allowed {
                true => SensitiveWrites::Allowed,
                false => SensitiveWrites::Protected,
            },
            on_unavailable: match self.degrade {
                true => OnUnavailable::Degrade,
                false => OnUnavailable::Refuse,
            },
            caller: Caller {
                env: variables(&self.caller_env),
                home: self.caller_home.as_ref().map(path_of),
            },
        })
    }

    /// What somebody else asks for otherwise: names of fields, and of variables, never values.
    ///
    /// Who asks is no wish: the same session may be asked for from another terminal. Neither are
    /// mounts here: they belong to a manifest, which is known by its text. Where paths led is a fact.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut fields = Vec::new();
        let mut compare = |name: &str, same: bool| {
            if !same {
                fields.push(name.to_owned());
            }
        };
        compare("profile", self.profile == other.profile);
        compare("egress", self.egress == other.egress);
        compare("deny", self.deny == other.deny);
        compare("host_ports", self.host_ports == other.host_ports);
        compare("ask", self.ask_ms == other.ask_ms);
        compare("secrets", self.secrets == other.secrets);
        let id = |stored: &Self| stored.image.as_ref().map(|image| image.id.clone());
        compare("image", id(self) == id(other));
        compare("workspace", self.workspace == other.workspace);
        compare("copy_on_write", self.copy_on_write == other.copy_on_write);
        // Whoever takes what there is, takes what the session has.
        compare("layer", other.layer.is_none() || self.layer == other.layer);
        compare("read", self.read == other.read);
        compare("write", self.write == other.write);
        compare("hide", self.hide == other.hide);
        compare("limits", self.limits == other.limits);
        compare("user", self.user_is_root == other.user_is_root);
        compare(
            "sensitive_writes",
            self.sensitive_writes_allowed == other.sensitive_writes_allowed,
        );
        compare("on_unavailable", self.degrade == other.degrade);
        let (mine, theirs) = (variables(&self.env), variables(&other.env));
        let names = mine.keys().chain(theirs.keys());
        let mut changed: Vec<String> = names
            .filter(|name| mine.get(*name) != theirs.get(*name))
            .map(|name| format!("env {}", name.to_string_lossy()))
            .collect();
        changed.sort();
        changed.dedup();
        fields.extend(changed);
        fields
    }

    /// Whether its rules were changed since it was made.
    pub fn has_set_rules(&self) -> bool {
        self.keeps_way_out
    }

    /// The secrets that it is granted, as they are written.
    pub fn secrets(&self) -> Vec<String> {
        self.secrets.iter().map(ToString::to_string).collect()
    }

    /// The workspace's path, for people.
    pub fn workspace(&self) -> Option<String> {
        self.workspace.as_ref().map(ToString::to_string)
    }

    /// What of the host it is shown in its workspace.
    pub fn mounts(&self) -> Result<Vec<HostMount>> {
        self.mounts.iter().map(StoredMount::mount).collect()
    }

    /// Whether its workspace is a directory that is written itself.
    pub fn is_in_place(&self) -> bool {
        self.workspace.is_some() && !self.copy_on_write
    }

    /// Whether its workspace has a layer.
    pub fn is_copy_on_write(&self) -> bool {
        self.copy_on_write
    }

    /// The image that it lies on.
    pub fn image(&self) -> Option<&Image> {
        self.image.as_ref()
    }

    /// The profile's name.
    pub fn profile(&self) -> &str {
        &self.profile
    }
}

impl StoredMount {
    fn new(mount: &HostMount) -> Self {
        let HostMount { source, path, identity } = mount;
        let path = ByteString::from(path.as_bytes().to_vec());
        Self { source: bytes(source), path, identity: *identity }
    }

    fn mount(&self) -> Result<HostMount> {
        let path = GuestPath::new(self.path.as_bytes())?;
        Ok(HostMount { source: path_of(&self.source), path, identity: self.identity })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_not(value: &bool) -> bool {
    !*value
}

fn bytes(path: &Path) -> ByteString {
    ByteString::from(path.as_os_str())
}

fn path_of(bytes: &ByteString) -> PathBuf {
    PathBuf::from(bytes.as_os_str())
}

fn pairs(variables: &BTreeMap<OsString, OsString>) -> Vec<(ByteString, ByteString)> {
    let pairs = variables.iter();
    pairs.map(|(n, v)| (n.as_os_str().into(), v.as_os_str().into())).collect()
}

fn variables(pairs: &[(ByteString, ByteString)]) -> BTreeMap<OsString, OsString> {
    let pairs = pairs.iter();
    pairs.map(|(n, v)| (n.as_os_str().to_owned(), v.as_os_str().to_owned())).collect()
}

fn layer_choice(stored: Option<&str>) -> Result<LayerChoice> {
    let Some(name) = stored else { return Ok(LayerChoice::Auto) };
    LayerChoice::ALL.into_iter().find(|choice| choice.name() == name).ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, format!("a stored spec wants the layer {name:?}"))
            .hint("Use the version of Cofferdam that wrote it.")
    })
}

fn limit<T: Copy + Into<u64>>(limit: Limit<T>) -> StoredLimit {
    StoredLimit { value: limit.value().into(), asked: limit.is_asked() }
}

fn wide(stored: StoredLimit) -> Limit<u64> {
    match stored.asked {
        true => Limit::Asked(stored.value),
        false => Limit::Default(stored.value),
    }
}

fn narrow(stored: StoredLimit) -> Result<Limit<u32>> {
    let value = u32::try_from(stored.value)
        .map_err(|e| Error::new(ErrorKind::Io, "a stored limit is out of range").source(e))?;
    Ok(if stored.asked { Limit::Asked(value) } else { Limit::Default(value) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn odd() -> Spec {
        let mut spec = Spec::new(
            Workspace::Directory(OsString::from_vec(b"/w\xff".to_vec()).into()),
            Caller { env: [("PATH".into(), "/bin".into())].into(), home: Some("/home/u".into()) },
        );
        spec.profile = Profile::RepoWrite;
        spec.egress = vec!["*.example.com:443".parse().unwrap()];
        spec.deny = vec!["ads.example.com:443".parse().unwrap()];
        spec.host_ports = vec![5432];
        spec.ask = Duration::from_millis(1500);
        spec.keeps_way_out = true;
        spec.secrets = vec!["T@api.example.com:header=x-key".parse().unwrap()];
        spec.env.insert("TOKEN".into(), OsString::from_vec(b"\xfe".to_vec()));
        spec.limits.pids = Limit::Asked(7);
        spec.user = User::Root;
        spec
    }

    #[test]
    fn a_spec_is_read_as_it_was_written() {
        let beside = Spec { workspace: Workspace::CopyOnWrite("/w".into()), ..odd() };
        let on_image = Spec { image: Some(image("sha256:1")), ..odd() };
        let identity = DirectoryIdentity { inode: u64::MAX, born_s: -1, born_ns: 9 };
        let path = GuestPath::new(b"a/\xff").unwrap();
        let mount = HostMount { source: "/data".into(), path, identity };
        let mounted = Spec { mounts: vec![mount], ..odd() };
        let led = Spec { leads: [("/a".into(), "/b".into())].into(), ..odd() };
        let least = Spec::new(Workspace::Private, Caller::default());
        for spec in [odd(), beside, on_image, mounted, led, least] {
            let json = serde_json::to_string(&StoredSpec::new(&spec)).unwrap();
            let read: StoredSpec = serde_json::from_str(&json).unwrap();
            assert_eq!(read.spec().unwrap(), spec);
        }
    }

    #[test]
    fn what_was_stored_before_there_were_layers_has_none() {
        let json = serde_json::to_value(StoredSpec::new(&odd())).unwrap();
        for later in ["copy_on_write", "mounts", "leads"] {
            assert_eq!(json.get(later), None, "{later}");
        }
        let read: StoredSpec = serde_json::from_value(json).unwrap();
        assert_eq!(read.spec().unwrap(), odd());
        let beside = Spec { workspace: Workspace::CopyOnWrite("/w".into()), ..odd() };
        let place = Spec { workspace: Workspace::Directory("/w".into()), ..odd() };
        let found = StoredSpec::new(&place).differences(&StoredSpec::new(&beside));
        assert_eq!(found, ["copy_on_write"]);
    }

    fn image(id: &str) -> Image {
        let layer = crate::ImageLayer { tree: "/t".into(), hold: Some("/h".into()) };
        let run = crate::ImageRun { command: vec!["sh".into()], ..crate::ImageRun::default() };
        Image { id: id.into(), name: "oci:x".into(), layers: vec![layer], hold: None, run }
    }

    #[test]
    fn images_differ_by_what_they_are_and_not_by_their_name() {
        let on = |image| StoredSpec::new(&Spec { image, ..odd() });
        let one = on(Some(image("sha256:1")));
        let renamed = Image { name: "oci:y".into(), ..image("sha256:1") };
        assert_eq!(one.differences(&on(Some(renamed))), [""; 0]);
        assert_eq!(one.differences(&on(Some(image("sha256:2")))), ["image"]);
        assert_eq!(one.differences(&on(None)), ["image"]);
        assert_eq!(serde_json::to_value(on(None)).unwrap().get("image"), None);
    }

    #[test]
    fn differences_name_fields_and_never_values() {
        let (one, mut other) = (odd(), odd());
        other.env.insert("TOKEN".into(), "secret-value".into());
        other.profile = Profile::ReadOnly;
        other.caller.env.clear();
        let found = StoredSpec::new(&one).differences(&StoredSpec::new(&other));
        assert_eq!(found, ["profile", "env TOKEN"]);
        let shown = format!("{:?}", StoredSpec::new(&other));
        assert!(!shown.contains("secret-value"), "{shown}");
    }

    #[test]
    fn another_format_is_refused() {
        let mut stored = StoredSpec::new(&odd());
        stored.format = 2;
        assert_eq!(stored.spec().unwrap_err().kind, ErrorKind::Unsupported);
    }
}
