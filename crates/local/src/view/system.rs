//! The system's directories and configuration, by an allowlist of names.

use super::lookup::{Found, Name, find, is_within, may_hold_a_secret, name};
use super::{Link, Shown, TextFile};
use cofferdam_core::Profile;
use cofferdam_wire::plan::{Access, Owner};
use std::collections::BTreeSet;

/// What of the system is shown.
#[derive(Debug, Default)]
pub(super) struct System {
    pub(super) shown: Vec<Shown>,
    pub(super) links: Vec<Link>,
    pub(super) files: Vec<TextFile>,
}

/// Files up to this size are copied: a file costs about as much to copy as to mount, but a mount
/// costs again when the sandbox ends. Larger ones would make the plan heavy to send.
const COPIED_BYTES: u64 = 4096;

/// Directories of the root.
const ROOT: &[(&str, &str)] = &[
    ("/usr", "programs and libraries of the system"),
    ("/bin", "programs of the system"),
    ("/sbin", "programs of the system"),
    ("/lib", "libraries of the system"),
    ("/lib64", "libraries of the system, and the loader that programs name"),
    ("/lib32", "libraries of the system"),
    ("/libx32", "libraries of the system"),
    ("/nix/store", "programs and libraries, where the system is made of them"),
    ("/gnu/store", "programs and libraries, where the system is made of them"),
    ("/run/current-system", "programs in use, where the system is made of a store"),
];

/// Names below `/etc`. What is not here is not shown; `passwd`, `group`, `hosts`, `hostname`,
/// `nsswitch.conf`, `resolv.conf` and `machine-id` are made up by the plan.
const ETC: &[(&str, &str)] = &[
    ("alternatives", "links by which the system chooses among programs"),
    ("bash.bashrc", "start file of interactive shells"),
    ("ca-certificates.conf", "list of trusted authorities"),
    ("ca-certificates", "trusted authorities"),
    ("crypto-policies", "which ciphers libraries allow"),
    ("debian_version", "name of the system's release"),
    ("fedora-release", "name of the system's release"),
    ("redhat-release", "name of the system's release"),
    ("alpine-release", "name of the system's release"),
    ("arch-release", "name of the system's release"),
    ("fonts", "configuration of fonts"),
    ("gai.conf", "order of addresses"),
    ("gitconfig", "configuration of git for all users"),
    ("host.conf", "how names are looked up"),
    ("inputrc", "keys of line editing"),
    ("java", "configuration of Java"),
    ("ld.so.cache", "where the loader finds libraries"),
    ("ld.so.conf", "where the loader finds libraries"),
    ("ld.so.conf.d", "where the loader finds libraries"),
    ("ld-musl-x86_64.path", "where the loader finds libraries"),
    ("ld-musl-aarch64.path", "where the loader finds libraries"),
    ("locale.alias", "names of languages"),
    ("locale.conf", "language of the system"),
    ("localtime", "time zone"),
    ("lsb-release", "name of the system's release"),
    ("magic", "how files are recognised"),
    ("maven", "configuration of maven for all users"),
    ("mime.types", "names of file types"),
    ("openldap", "configuration of a library"),
    ("os-release", "name of the system's release"),
    ("pki/ca-trust", "trusted authorities"),
    ("pki/tls/certs", "trusted authorities"),
    ("pki/tls/cert.pem", "trusted authorities"),
    ("pki/tls/openssl.cnf", "configuration of TLS"),
    ("profile", "start file of login shells"),
    ("protocols", "names of protocols"),
    ("rpc", "names of protocols"),
    ("services", "names of ports"),
    ("shells", "which shells there are"),
    ("ssl/certs", "trusted authorities"),
    ("ssl/cert.pem", "trusted authorities"),
    ("ssl/openssl.cnf", "configuration of TLS"),
    ("static", "configuration, where the system is made of a store"),
    ("terminfo", "what terminals can do"),
    ("timezone", "time zone"),
    ("xattr.conf", "which attributes are copied"),
];

/// Names of [`ETC`] that no build should depend on, left out of a hermetic sandbox.
const NOT_HERMETIC: &[&str] = &["gitconfig", "maven", "bash.bashrc", "profile", "inputrc"];

/// Looks for what exists.
pub(super) fn look(profile: Profile) -> System {
    let mut system = System::default();
    for (path, why) in ROOT {
        system.add_root(path, why);
    }
    for (name, why) in ETC {
        if profile.shows_toolchains() || !NOT_HERMETIC.contains(name) {
            system.add_etc(&format!("/etc/{name}"), why);
        }
    }
    for path in java_configurations() {
        system.add_etc(&path, "configuration that Java's own directory links to");
    }
    system
}

impl System {
    fn add_root(&mut self, path: &str, why: &str) {
        match name(path) {
            Name::Missing => {}
            Name::Link(target) => {
                self.links.push(Link { path: path.to_owned(), target, why: why.to_owned() });
            }
            Name::Plain => {
                if let Some(found) = find(path) {
                    self.show(path, &found, why);
                }
            }
        }
    }

    /// A link that leads to what is shown anyway stays a link. Another one is followed here, and
    /// its target shown in its place.
    fn add_etc(&mut self, path: &str, why: &str) {
        let target = match name(path) {
            Name::Missing => return,
            Name::Link(target) => Some(target),
            Name::Plain => None,
        };
        let Some(found) = find(path) else { return };
        let is_shown = self.shown.iter().any(|shown| is_within(&found.path, &shown.path));
        match target {
            Some(target) if is_shown => {
                self.links.push(Link { path: path.to_owned(), target, why: why.to_owned() });
            }
            Some(_) | None => self.show_or_copy(path, &found, why),
        }
    }

    fn show_or_copy(&mut self, path: &str, found: &Found, why: &str) {
        // HOSTILE: as root everything can be read, but the sandbox may only see what all may.
        if !found.is_file() || found.bytes() > COPIED_BYTES || !found.is_public() {
            return self.show(path, found, why);
        }
        match std::fs::read_to_string(&found.path) {
            Ok(content) if may_hold_a_secret(&content) => {}
            Ok(content) => {
                let path = path.to_owned();
                self.files.push(TextFile { path, content, why: why.to_owned() });
            }
            Err(_) => self.show(path, found, why),
        }
    }

    fn show(&mut self, path: &str, found: &Found, why: &str) {
        self.shown.push(Shown {
            source: found.path.clone(),
            path: path.to_owned(),
            access: Access::ReadOnly,
            owner: Owner::Same,
            identity: None,
            why: why.to_owned(),
        });
    }
}

/// Debian's Java keeps its configuration in `/etc/java-17-openjdk` and finds it by links. Asked of
/// `/usr/lib/jvm`, which is shorter than `/etc`.
fn java_configurations() -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir("/usr/lib/jvm") else { return BTreeSet::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| {
            let end = name.find("-openjdk")?;
            let version = name.get(..end)?.strip_prefix("java-")?;
            (!version.contains('.')).then(|| format!("/etc/java-{version}-openjdk"))
        })
        .collect()
}
