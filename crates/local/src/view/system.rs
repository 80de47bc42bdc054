//! The system's directories and configuration, by an allowlist of names.

use super::lookup::{Name, find, is_within, may_hold_a_secret, name};
use super::{Link, Shown, TextFile};
use cofferdam_core::Profile;
use cofferdam_wire::plan::{Access, Owner};
use rustix::fs::{FileType, Mode, OFlags};
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
const COPIED_BYTES: usize = 4096;

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

/// Names below `/etc`, kept short because each costs a mount or a copy at every start. What is not
/// here is not shown; programs have a default for most of it. Start files of shells are left out on
/// purpose, for they set `PATH` anew. `passwd`, `group`, `hosts`, `hostname`,
/// `nsswitch.conf`, `resolv.conf` and `machine-id` are made up by the plan.
const ETC: &[(&str, &str)] = &[
    ("alternatives", "links by which the system chooses among programs"),
    ("crypto-policies", "which ciphers libraries allow"),
    ("fonts", "configuration of fonts"),
    ("gitconfig", "configuration of git for all users"),
    ("java", "configuration of Java"),
    ("ld.so.cache", "where the loader finds libraries"),
    ("ld-musl-x86_64.path", "where the loader finds libraries"),
    ("ld-musl-aarch64.path", "where the loader finds libraries"),
    ("localtime", "time zone"),
    ("maven", "configuration of maven for all users"),
    ("mime.types", "names of file types"),
    ("os-release", "name of the system's release"),
    ("pki/ca-trust", "trusted authorities"),
    ("pki/tls/certs", "trusted authorities"),
    ("pki/tls/cert.pem", "trusted authorities"),
    ("pki/tls/openssl.cnf", "configuration of TLS"),
    ("protocols", "names of protocols"),
    ("services", "names of ports"),
    ("ssl/certs", "trusted authorities"),
    ("ssl/cert.pem", "trusted authorities"),
    ("ssl/openssl.cnf", "configuration of TLS"),
    ("static", "configuration, where the system is made of a store"),
];

/// Names of [`ETC`] that no build should depend on, left out of a hermetic sandbox.
const NOT_HERMETIC: &[&str] = &["gitconfig", "maven"];

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
            Name::Plain => self.show(path, path, why),
        }
    }

    /// A link that leads to what is shown anyway stays a link. Another one is followed here, and
    /// its target shown in its place.
    fn add_etc(&mut self, path: &str, why: &str) {
        match name(path) {
            Name::Missing => {}
            Name::Plain => self.show_or_copy(path, path, why),
            Name::Link(target) => {
                let Some(found) = find(path) else { return };
                if self.shown.iter().any(|shown| is_within(&found.path, &shown.path)) {
                    self.links.push(Link { path: path.to_owned(), target, why: why.to_owned() });
                } else {
                    self.show_or_copy(path, &found.path, why);
                }
            }
        }
    }

    fn show_or_copy(&mut self, path: &str, source: &str, why: &str) {
        match small_text(source) {
            Small::No => self.show(path, source, why),
            Small::Text(content) if may_hold_a_secret(&content) => {}
            Small::Text(content) => {
                let path = path.to_owned();
                self.files.push(TextFile { path, content, why: why.to_owned() });
            }
        }
    }

    fn show(&mut self, path: &str, source: &str, why: &str) {
        self.shown.push(Shown {
            source: source.to_owned(),
            path: path.to_owned(),
            access: Access::ReadOnly,
            owner: Owner::Same,
            identity: None,
            why: why.to_owned(),
        });
    }
}

enum Small {
    No,
    Text(String),
}

/// The content of a small text file that everybody may read.
///
/// HOSTILE: as root everything can be read, but the sandbox may only see what all may.
fn small_text(path: &str) -> Small {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(stat) = rustix::fs::stat(path) else { return Small::No };
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let bytes = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
    if !is_file || bytes > COPIED_BYTES || stat.st_mode & 0o004 == 0 {
        return Small::No;
    }
    let mut content = vec![0; bytes];
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else { return Small::No };
    let read = rustix::io::read(&file, &mut content).unwrap_or(0);
    match String::from_utf8(content) {
        Ok(text) if read == bytes => Small::Text(text),
        Ok(_) | Err(_) => Small::No,
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
