//! The variables that commands get: an allowlist, what toolchains need, and what the caller asked.

use crate::plan::{GIT_CONFIG, WayOut};
use crate::view::{self, View, WorkspaceView};
use cofferdam_core::{Caller, Result, Spec, check_variable};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables of the caller that pass as they are. Whole names only: a prefix such as `LC_` or
/// `LANG` would let `LANG_SECRET` through.
const PASSED: &[&str] = &[
    "TERM",
    "COLORTERM",
    "COLORFGBG",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LINES",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_ADDRESS",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "CI",
    "DEBIAN_FRONTEND",
    "SOURCE_DATE_EPOCH",
    "RUST_BACKTRACE",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUTF8",
    "PYENV_VERSION",
    "RUSTUP_TOOLCHAIN",
    "NODE_ENV",
];

/// Variables of the caller that name a path, and pass where that path is shown.
const PASSED_IF_SHOWN: &[&str] = &[
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "JAVA_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "TERMINFO",
];

/// Variables that shape a run itself: where toolchains, records, secrets and the credentials of registries are, how
/// registries are reached, and what of the caller's language and terminal passes. A runner that clears the environment
/// would lose them.
const CARRIED: &[&str] = &[
    "ALL_PROXY",
    "CARGO_HOME",
    "COFFERDAM_HOME",
    "COLORTERM",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_CONFIG",
    "GOROOT",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "NO_COLOR",
    "NO_PROXY",
    "NVM_DIR",
    "PATH",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "REGISTRY_AUTH_FILE",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SDKMAN_DIR",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TZ",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// What a runner that clears the environment has to give to a wrapped `cofferdam run`.
///
/// A variable that is not UTF-8 is left out: a runner that keeps its environment has it.
pub fn carried(caller: &Caller) -> BTreeMap<String, String> {
    let text =
        caller.env.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    text.filter(|(name, _)| is_carried(name)).map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
}

/// Whether [`carried`] passes a variable of this name.
pub fn is_carried(name: &str) -> bool {
    CARRIED.contains(&name) || name.starts_with("LC_")
}

/// The caller with what a sandbox depends on and no more: what passes, and what says where toolchains
/// and secrets are. A caller that is written down should be this one, for its whole environment may
/// hold secrets.
pub fn reduced(caller: &Caller) -> Caller {
    let counts = |name: &str| {
        PASSED.contains(&name) || PASSED_IF_SHOWN.contains(&name) || view::reads_variable(name)
    };
    let env = caller.env.iter().filter(|(name, _)| name.to_str().is_some_and(counts));
    Caller {
        env: env.map(|(name, value)| (name.clone(), value.clone())).collect(),
        home: caller.home.clone(),
    }
}

/// Who commands are, and where they keep their things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The user's name.
    pub user: &'a str,
    /// The home directory.
    pub home: &'a str,
    /// Where temporary files go.
    pub temporary: &'a str,
    /// Whether the workspace's files look like this user's own from inside.
    pub owns_workspace: bool,
}

/// The environment of every command, before what [`cofferdam_core::Command::env`] adds.
///
/// Fails where a variable of the spec cannot be one.
pub fn environment(
    spec: &Spec,
    view: &View,
    identity: &Identity<'_>,
    way_out: Option<&WayOut>,
) -> Result<BTreeMap<OsString, OsString>> {
    let mut env = BTreeMap::new();
    if spec.profile.passes_variables() {
        pass(spec, view, &mut env);
    }
    let mut set = |name: &str, value: &str| {
        env.insert(OsString::from(name), OsString::from(value));
    };
    for (name, value) in &view.variables {
        set(name, value);
    }
    set("PATH", &view.path.join(":"));
    set("HOME", identity.home);
    set("USER", identity.user);
    set("LOGNAME", identity.user);
    set("SHELL", if view.shows("/bin/bash") { "/bin/bash" } else { "/bin/sh" });
    set("TMPDIR", identity.temporary);
    if has_identity_of_git(spec, view, identity) {
        // A git that lies elsewhere than in /usr/bin looks for that file elsewhere.
        set("GIT_CONFIG_SYSTEM", GIT_CONFIG);
    }
    for (name, value) in way_out.map(WayOut::variables).unwrap_or_default() {
        set(name, &value);
    }
    if way_out.is_none() {
        // Without a way out the tools should say so at once instead of trying names.
        for (needs, name, value) in
            [("CARGO_HOME", "CARGO_NET_OFFLINE", "true"), ("GOMODCACHE", "GOPROXY", "off")]
        {
            if view.variables.contains_key(needs) {
                set(name, value);
            }
        }
    }
    trust_workspace(view, identity, &mut env);
    if let Some(image) = &spec.image {
        // What cannot be a variable is left out: an image is not asked to mend it.
        let usable = |(name, value): &&(String, String)| {
            check_variable(OsStr::new(name), OsStr::new(value)).is_ok()
        };
        let own = image.run.env.iter().filter(usable);
        env.extend(own.map(|(name, value)| (OsString::from(name), OsString::from(value))));
    }
    if let Some(trusted) = &view.trusted {
        env.extend(trusted.variables.iter().map(|(n, v)| (OsString::from(n), OsString::from(v))));
    }
    for (name, value) in &spec.env {
        check_variable(name, value)?;
        env.insert(name.clone(), value.clone());
    }
    Ok(env)
}

/// Whether the plan puts the caller's name and address into the system's configuration of git.
fn has_identity_of_git(spec: &Spec, view: &View, identity: &Identity<'_>) -> bool {
    let is_its_own = spec.image.is_none() && identity.home == view::HOME;
    is_its_own && view.home.is_some() && view.git_identity.is_some()
}

fn pass(spec: &Spec, view: &View, env: &mut BTreeMap<OsString, OsString>) {
    for name in PASSED {
        if let Some(value) = spec.caller.env.get(OsStr::new(name)) {
            env.insert(OsString::from(name), value.clone());
        }
    }
    for name in PASSED_IF_SHOWN {
        if let Some(value) = spec.caller.env.get(OsStr::new(name))
            && value.to_str().is_some_and(|path| view.shows(path))
        {
            env.insert(OsString::from(name), value.clone());
        }
    }
}

/// Git works only in directories of its own user. Where the workspace belongs to another one, as
/// seen from inside, git is told that this is meant.
fn trust_workspace(view: &View, identity: &Identity<'_>, env: &mut BTreeMap<OsString, OsString>) {
    if view.workspace == WorkspaceView::Private || identity.owns_workspace {
        return;
    }
    for (name, value) in [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
    ] {
        env.insert(OsString::from(name), OsString::from(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduced_caller_keeps_what_counts_and_no_secret() {
        let mut caller = Caller { env: BTreeMap::new(), home: Some("/home/ann".into()) };
        for name in ["PATH", "TERM", "CARGO_HOME", "SSL_CERT_FILE", "KUBECONFIG", "AWS_SECRET_KEY"]
        {
            caller.env.insert(name.into(), "/x".into());
        }
        let reduced = reduced(&caller);
        assert_eq!(reduced.home, caller.home);
        let names: Vec<_> = reduced.env.keys().map(|name| name.to_string_lossy()).collect();
        assert_eq!(names, ["CARGO_HOME", "KUBECONFIG", "PATH", "SSL_CERT_FILE", "TERM"]);
    }
}
