//! What stays hidden whatever is listed: keys, credentials, sockets of daemons, histories.
//!
//! LIMIT: a secret that does not exist when the sandbox starts is not covered. A directory that is
//! shown and in which one appears later shows it.

use super::lookup::{exists, find, is_within};
use super::{Hidden, Place};
use cofferdam_core::{Caller, Error, ErrorKind, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Names below the home directory, with what they hold.
const AT_HOME: &[(&str, &str)] = &[
    (".ssh", "SSH keys"),
    (".gnupg", "GnuPG keys"),
    (".aws", "AWS credentials"),
    (".azure", "Azure credentials"),
    (".oci", "Oracle cloud credentials"),
    (".boto", "Google storage credentials"),
    (".s3cfg", "S3 credentials"),
    (".kube", "Kubernetes credentials"),
    (".docker", "Docker credentials and contexts"),
    (".vault-token", "Vault token"),
    (".terraform.d/credentials.tfrc.json", "Terraform credentials"),
    (".netrc", "passwords of hosts"),
    (".git-credentials", "git passwords"),
    (".npmrc", "npm credentials"),
    (".yarnrc.yml", "yarn credentials"),
    (".pypirc", "PyPI credentials"),
    (".cargo/credentials", "cargo credentials"),
    (".cargo/credentials.toml", "cargo credentials"),
    (".gem/credentials", "gem credentials"),
    (".m2/settings.xml", "maven passwords"),
    (".m2/settings-security.xml", "maven passwords"),
    (".gradle/gradle.properties", "gradle credentials"),
    (".pgpass", "PostgreSQL passwords"),
    (".my.cnf", "MySQL passwords"),
    (".password-store", "password store"),
    (".mozilla", "browser profile"),
    (".thunderbird", "mail profile"),
    (".Xauthority", "access to the display"),
    (".bash_history", "shell history"),
    (".zsh_history", "shell history"),
    (".python_history", "shell history"),
    (".psql_history", "shell history"),
    (".claude", "agent credentials and sessions"),
    (".claude.json", "agent credentials"),
    (".codex", "agent credentials and sessions"),
    (".gemini", "agent credentials and sessions"),
];

/// Names below `~/.config`.
const AT_CONFIG: &[(&str, &str)] = &[
    ("gcloud", "Google cloud credentials"),
    ("gh", "GitHub credentials"),
    ("hub", "GitHub credentials"),
    ("glab-cli", "GitLab credentials"),
    ("git/credentials", "git passwords"),
    ("op", "1Password sessions"),
    ("rclone", "cloud storage credentials"),
    ("doctl", "DigitalOcean credentials"),
    ("pip", "pip configuration with credentials"),
    ("containers/auth.json", "registry credentials"),
    ("google-chrome", "browser profile"),
    ("chromium", "browser profile"),
    ("BraveSoftware", "browser profile"),
    ("microsoft-edge", "browser profile"),
    ("vivaldi", "browser profile"),
    ("opera", "browser profile"),
];

/// Names below `~/.local/share`.
const AT_SHARE: &[(&str, &str)] =
    &[("keyrings", "password store"), ("kwalletd", "password store"), ("pass", "password store")];

/// Secrets of the system, by their canonical names.
const OF_SYSTEM: &[(&str, &str)] = &[
    ("/etc/shadow", "password hashes"),
    ("/etc/shadow-", "password hashes"),
    ("/etc/gshadow", "password hashes"),
    ("/etc/gshadow-", "password hashes"),
    ("/etc/sudoers", "rules of sudo"),
    ("/etc/sudoers.d", "rules of sudo"),
    ("/etc/ssh", "SSH host keys"),
    ("/etc/ssl/private", "TLS keys"),
    ("/etc/pki/tls/private", "TLS keys"),
    ("/etc/letsencrypt", "TLS keys"),
    ("/etc/krb5.keytab", "Kerberos keys"),
    ("/etc/wireguard", "network keys"),
    ("/etc/NetworkManager/system-connections", "network passwords"),
    ("/etc/rancher", "Kubernetes credentials"),
    ("/etc/kubernetes", "Kubernetes credentials"),
    ("/run/docker.sock", "socket of the Docker daemon"),
    ("/run/docker", "socket of the Docker daemon"),
    ("/run/podman", "socket of podman"),
    ("/run/containerd", "socket of containerd"),
    ("/run/crio", "socket of CRI-O"),
    ("/run/dbus", "system bus"),
    ("/run/systemd", "sockets of systemd"),
    ("/run/user", "sockets of users' sessions"),
    ("/run/secrets", "secrets of a container"),
    ("/run/credentials", "credentials of services"),
    ("/var/lib/docker", "files of containers"),
    ("/var/lib/containerd", "files of containers"),
    ("/var/lib/kubelet", "Kubernetes credentials"),
];

/// Variables that name a secret's place.
const BY_VARIABLE: &[(&str, &str)] = &[
    ("SSH_AUTH_SOCK", "SSH agent"),
    ("GNUPGHOME", "GnuPG keys"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "Google cloud credentials"),
    ("CLOUDSDK_CONFIG", "Google cloud credentials"),
    ("AWS_SHARED_CREDENTIALS_FILE", "AWS credentials"),
    ("AWS_CONFIG_FILE", "AWS credentials"),
    ("KUBECONFIG", "Kubernetes credentials"),
    ("DOCKER_CONFIG", "Docker credentials and contexts"),
    ("NETRC", "passwords of hosts"),
    ("NPM_CONFIG_USERCONFIG", "npm credentials"),
    ("npm_config_userconfig", "npm credentials"),
    ("GH_CONFIG_DIR", "GitHub credentials"),
    ("PASSWORD_STORE_DIR", "password store"),
    ("XAUTHORITY", "access to the display"),
    ("XDG_RUNTIME_DIR", "sockets of this user's session"),
];

/// The secrets that exist here.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets {
    /// Canonical paths, with what they hold.
    known: Vec<(String, &'static str)>,
    /// The canonical home directory.
    home: Option<String>,
}

impl Secrets {
    /// Those of this caller and of the system. Names that are links are followed, so that keys kept
    /// in a directory of dotfiles are known by their true place.
    pub(super) fn of(caller: &Caller) -> Self {
        let home = caller.home.as_deref().and_then(find).map(|home| home.path);
        let mut secrets = Self { known: Vec::new(), home };
        if let Some(home) = caller.home.as_deref() {
            secrets.add_below(home, AT_HOME);
            secrets.add_below(&home.join(".config"), AT_CONFIG);
            secrets.add_below(&home.join(".local/share"), AT_SHARE);
        }
        for (name, what) in BY_VARIABLE {
            if let Some(value) = caller.env.get(OsStr::new(name)) {
                secrets.add(Path::new(value), what);
            }
        }
        if let Some(cargo) = caller.env.get(OsStr::new("CARGO_HOME")) {
            let names =
                &[("credentials", "cargo credentials"), ("credentials.toml", "cargo credentials")];
            secrets.add_below(Path::new(cargo), names);
        }
        if let Some(state) = state_directory(caller) {
            secrets.add(&state, "Cofferdam's own state");
        }
        secrets.known.extend(OF_SYSTEM.iter().map(|(path, what)| ((*path).to_owned(), *what)));
        secrets
    }

    /// Adds those of `names` that are in `directory`. Reading the directory once is cheaper than
    /// asking for each name, of which most are missing.
    fn add_below(&mut self, directory: &Path, names: &[(&str, &'static str)]) {
        let Some(found) = find(directory) else { return };
        let Ok(entries) = std::fs::read_dir(&found.path) else {
            return names.iter().for_each(|(name, what)| self.add(&directory.join(name), what));
        };
        for entry in entries.flatten() {
            let first = entry.file_name();
            let of_entry = names.iter().filter(|(name, _)| {
                name.split('/').next().is_some_and(|part| first == OsStr::new(part))
            });
            for (name, what) in of_entry {
                let is_plain = entry.file_type().is_ok_and(|kind| !kind.is_symlink());
                let path = format!("{}/{name}", found.path);
                match is_plain && !name.contains('/') {
                    true => self.known.push((path, what)),
                    false => self.add(Path::new(&path), what),
                }
            }
        }
    }

    /// A secret cannot be the root or the home directory, or nothing could be shown at all.
    fn add(&mut self, path: &Path, what: &'static str) {
        let Some(found) = path.is_absolute().then(|| find(path)).flatten() else { return };
        if found.path != "/" && self.home.as_deref() != Some(found.path.as_str()) {
            self.known.push((found.path, what));
        }
    }

    /// The canonical home directory of the caller.
    pub(super) fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// What kind of secret a canonical path is, or is a part of.
    pub(super) fn is(&self, path: &str) -> Option<&'static str> {
        self.known.iter().find(|(secret, _)| is_within(path, secret)).map(|(_, what)| *what)
    }

    /// Fails where this path is a secret, or a part of one. `what` says who listed it.
    pub(super) fn refuse(&self, path: &str, what: &str) -> Result<()> {
        match self.is(path) {
            None => Ok(()),
            Some(kind) => Err(Error::new(
                ErrorKind::Denied,
                format!("{what} {path} stays hidden: {kind}"),
            )
            .hint("Copy what the command needs into the workspace; no option shows this path.")),
        }
    }

    /// The secrets that lie below what is shown, and have to be covered.
    pub(super) fn below(&self, places: &[Place]) -> Vec<Hidden> {
        let shown = |secret: &str| {
            // What is shown elsewhere is covered there, by its own name here.
            places
                .iter()
                .filter_map(Place::shown)
                .any(|shown| is_within(secret, &shown.path) || is_within(secret, &shown.source))
        };
        self.known
            .iter()
            .filter(|(secret, _)| shown(secret) && exists(secret))
            .map(|(secret, what)| Hidden {
                path: secret.clone(),
                why: format!("{what} stay hidden whatever is shown around them"),
            })
            .collect()
    }
}

/// Whether this variable of the caller says where secrets or Cofferdam's state are.
pub(super) fn reads(variable: &str) -> bool {
    ["HOME", "COFFERDAM_HOME", "XDG_STATE_HOME"].contains(&variable)
        || BY_VARIABLE.iter().any(|(known, _)| *known == variable)
}

/// Where Cofferdam keeps its state, which commands must neither read nor write.
pub(super) fn state_directory(caller: &Caller) -> Option<PathBuf> {
    let named = |name: &str| {
        caller.env.get(OsStr::new(name)).filter(|value| !value.is_empty()).map(PathBuf::from)
    };
    named("COFFERDAM_HOME")
        .or_else(|| named("XDG_STATE_HOME").map(|state| state.join("cofferdam")))
        .or_else(|| caller.home.as_ref().map(|home| home.join(".local/state/cofferdam")))
}
