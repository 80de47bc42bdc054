//! What toolchains need besides programs: caches to build from, and a name for commits.

use super::Search;
use crate::cow::no_lower;
use crate::view::Place;
use crate::view::lookup::{Found, find, may_hold_a_secret, text_of};
use cofferdam_core::Caller;
use cofferdam_wire::plan::Owner;
use std::path::Path;

/// What of cargo's home is shown besides its programs. Its credentials and `registry/src` are not: cargo writes the one,
/// and unpacks into the other, in the private directory around.
const CACHES_OF_CARGO: &[(&str, &str)] = &[
    ("registry/index", "names and versions of crates, to build without a network"),
    ("registry/cache", "crates, to build without a network"),
    ("git/db", "repositories of crates, to build without a network"),
];

/// No configuration that is read here is longer.
const CONFIGURATION_BYTES: u64 = 64 << 10;

impl Search<'_> {
    /// Cargo insists on writing in its home, so that is private, with the shown parts in it.
    pub(super) fn cargo_home(&mut self, home: &Found) {
        if self.tools.places.iter().any(|place| place.path() == home.path) {
            return;
        }
        self.tools.places.push(Place::Private {
            path: home.path.clone(),
            why: "cargo keeps locks and unpacked crates in its home".to_owned(),
        });
        let programs = format!("{}/bin", home.path);
        if let Some(found) = self.find(&programs) {
            self.show(&found, &programs, "programs of cargo");
        }
        for (name, why) in CACHES_OF_CARGO {
            let path = format!("{}/{name}", home.path);
            if let Some(found) = self.find(&path).filter(Found::is_directory) {
                self.cache(&found, &path, why);
            }
        }
        for name in ["config.toml", "config"] {
            let path = format!("{}/{name}", home.path);
            let Some(found) = self.find(&path).filter(Found::is_file) else { continue };
            match read(&found) {
                Some(text) if !may_hold_a_secret(&text) => {
                    self.show(&found, &path, "settings of cargo, without any secret");
                }
                Some(_) | None => self.tools.notes.push(format!(
                    "{path} is not shown: it may hold a secret; move that to credentials.toml"
                )),
            }
        }
    }

    /// A directory that a tool looks in before it fetches, and adds to when it has fetched. Its layer is
    /// worth a mount only where something can be fetched.
    fn cache(&mut self, found: &Found, path: &str, what: &str) {
        if !self.has_way_out {
            return self.show(found, path, what);
        }
        let is_root = self.facts.is_root();
        let obstacle = self.facts.obstacle().map(|obstacle| obstacle.found().to_owned());
        if let Some(why) = obstacle.or_else(|| no_lower(&found.path, is_root)) {
            self.tools.notes.push(format!(
                "{path} is shown read-only, without a layer for what is fetched: {why}; name a \
                 place inside for the tool, as with --env CARGO_HOME=/tmp/cargo or \
                 --env GOMODCACHE=/tmp/mod"
            ));
            return self.show(found, path, what);
        }
        let owner = if is_root { found.mapped() } else { Owner::Same };
        let shown = self.read_only(found, path, what);
        self.add(Place::Layered { shown, owner });
    }

    /// Caches that no entry of `PATH` leads to.
    pub(super) fn caches(&mut self) {
        let named = self.variable("GOMODCACHE").map(str::to_owned);
        let in_path = self.variable("GOPATH").map(|path| format!("{path}/pkg/mod"));
        let at_home = || self.caller.home.as_ref()?.join("go/pkg/mod").to_str().map(str::to_owned);
        let Some(place) = named.or(in_path).or_else(at_home) else { return };
        let Some(found) = self.find(&place).filter(Found::is_directory) else { return };
        if self.forbids(&found.path).is_none() {
            self.cache(&found, &found.path, "Go modules, to build without a network");
            self.tools.variables.insert("GOMODCACHE".to_owned(), found.path);
        }
    }
}

fn read(found: &Found) -> Option<String> {
    text_of(&found.path, CONFIGURATION_BYTES)
}

/// The caller's name and address of git's configuration, as a configuration of its own. Nothing
/// else is taken from there: it may hold tokens and name programs.
pub(super) fn git_identity(caller: &Caller) -> Option<String> {
    let home = caller.home.as_deref()?;
    let identity = |path: &Path| {
        let found = find(path).filter(Found::is_file)?;
        identity_of(&read(&found)?)
    };
    identity(&home.join(".gitconfig")).or_else(|| identity(&home.join(".config/git/config")))
}

/// `name` and `email` of the section `user`, as they are written.
fn identity_of(text: &str) -> Option<String> {
    let mut is_user = false;
    let mut identity = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_user = line.eq_ignore_ascii_case("[user]");
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_user) {
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            // A value that goes on in the next line would swallow what follows.
            if matches!(key.as_str(), "name" | "email") && !value.ends_with('\\') {
                identity.extend(["\t", &key, " = ", value, "\n"]);
            }
        }
    }
    (!identity.is_empty()).then(|| format!("[user]\n{identity}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_name_and_address_are_taken_from_git() {
        let text = "[credential]\n\thelper = store\n[User]\n  Name = A B # c\n email=a@b.c\n\
                    signingkey = X\n[url \"https://t@h/\"]\n name = evil\n";
        assert_eq!(identity_of(text).unwrap(), "[user]\n\tname = A B # c\n\temail = a@b.c\n");
        assert_eq!(identity_of("[core]\n name = x"), None);
        assert_eq!(identity_of("[user]\n name = x\\\n"), None);
    }
}
