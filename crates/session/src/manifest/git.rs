//! A repository, cloned by the host's git into a private directory.
//!
//! HOSTILE: the server, and what is in the repository. One of this machine is copied first, see
//! [`own`](super::own). git is told to run nothing that they or any
//! configuration name, and to talk the one protocol that the address has. The token goes to it through
//! a file without a name that git's own helper reads, so it stands in no address, no command line, no
//! environment and no file of the disk.

use super::guard::Guard;
use super::own;
use super::repository::{Address, Credential, Reference, Repository};
use super::sys::spawn;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cofferdam_core::files::MAX_CARRIED_BYTES;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::MemfdFlags;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long git may take for one repository.
pub const CLONE_LIMIT: Duration = Duration::from_secs(600);
/// The most names of a clone, with those in its `.git`, while it is made.
pub const MAX_CLONED: usize = super::load::MAX_COPIED;
/// The most bytes of a token.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;
/// The most bytes that git may say; of these the end is shown.
const MAX_SAID_BYTES: u64 = 1 << 20;
const SHOWN_BYTES: usize = 600;
/// How often git is looked after, at most; a look takes at most a tenth of the time.
const LOOK: Duration = Duration::from_millis(20);

/// What of the caller's environment git is given: where programs and keys are, and the way out.
const PASSED: &[&str] = &[
    "PATH",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
];

/// What no configuration may say otherwise.
const FIXED: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.protectNTFS=true",
    "core.protectHFS=true",
    "transfer.fsckObjects=true",
    "submodule.recurse=false",
    "filter.lfs.smudge=",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    "http.followRedirects=false",
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "credential.helper=",
];

/// How far a clone may go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) time: Duration,
    pub(super) names: usize,
    pub(super) bytes: u64,
}

impl Bounds {
    pub(super) const USUAL: Self =
        Self { time: CLONE_LIMIT, names: MAX_CLONED, bytes: MAX_CARRIED_BYTES };
}

/// Whether a repository is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting<'a> {
    pub(super) time: Duration,
    pub(super) stopped: &'a AtomicBool,
    pub(super) began: Instant,
}

impl Waiting<'_> {
    pub(super) fn goes_on(&self) -> Result<()> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Canceled, "nobody waits for the clone any more"));
        }
        if self.began.elapsed() > self.time {
            let what = format!("git took more than {} s for a repository", self.time.as_secs());
            return Err(Error::new(ErrorKind::TimedOut, what).hint("Set depth = 1."));
        }
        Ok(())
    }
}

/// A token for one server, as git's helper answers it.
struct Secret {
    file: File,
    origin: String,
    /// In no error either, not even where a server says it back.
    hidden: Vec<String>,
}

impl Repository {
    /// Clones it into `tree`, a new directory in `stage`, and says where that is.
    pub(super) fn clone_to(
        &self,
        stage: &Path,
        bounds: Bounds,
        stopped: &AtomicBool,
    ) -> Result<PathBuf> {
        let (copy, work) = (stage.join("copy"), stage.join("work"));
        let home = work.join("home");
        for place in [stage, &work, &home] {
            DirBuilder::new().mode(0o700).create(place).map_err(|e| io("make a directory", e))?;
        }
        let secret = match (&self.credential, &self.address) {
            (Some(credential), Address::Web { origin, .. }) => {
                let token = std::env::var_os(&credential.variable);
                Some(credential.secret(origin, token)?)
            }
            (_, _) => None,
        };
        let waiting = Waiting { time: bounds.time, stopped, began: Instant::now() };
        let run = Run { home: &home, stage: &work, secret, bounds, waiting };
        let tree = work.join("tree");
        match &self.address {
            Address::Directory(directory) => {
                own::copy(directory, &copy, own::Room::USUAL, waiting)?;
                run.git(self, &self.clone_words(copy.as_os_str(), &tree))?;
                fs::remove_dir_all(&copy).map_err(|e| io("remove a copied repository", e))?;
                run.git(self, &told(directory, &tree)?)?;
            }
            Address::Web { url, .. } | Address::Ssh { url } => {
                run.git(self, &self.clone_words(url.as_ref(), &tree))?;
            }
        }
        if let Some(Reference::Commit(commit)) = &self.reference {
            let mut words: Vec<OsString> = vec!["-C".into(), tree.clone().into()];
            words.extend(["checkout", "--quiet", "--detach", commit].map(OsString::from));
            run.git(self, &words)?;
        }
        Ok(tree)
    }

    fn clone_words(&self, from: &OsStr, tree: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = match &self.address {
            // What is logged would name the copy, which is gone by then.
            Address::Directory(_) => {
                ["-c", "core.logAllRefUpdates=false"].map(OsString::from).into()
            }
            Address::Web { .. } | Address::Ssh { .. } => Vec::new(),
        };
        let usual = ["clone", "--quiet", "--template=", "--no-local", "--no-recurse-submodules"];
        words.extend(usual.map(OsString::from));
        match &self.reference {
            Some(Reference::Name(name)) => words.push(format!("--branch={name}").into()),
            Some(Reference::Commit(_)) => words.push("--no-checkout".into()),
            None => {}
        }
        words.extend(self.depth.map(|depth| format!("--depth={depth}").into()));
        words.extend(["--".into(), from.to_owned(), tree.into()]);
        words
    }
}

/// Has a clone of a copy say where the repository itself is.
fn told(directory: &Path, tree: &Path) -> Result<Vec<OsString>> {
    let whole = std::path::absolute(directory).map_err(|e| io("find the repository", e))?;
    let mut words: Vec<OsString> = vec!["-C".into(), tree.into()];
    words.extend(["config", "remote.origin.url"].map(OsString::from));
    words.push(whole.into());
    Ok(words)
}

impl Credential {
    fn secret(&self, origin: &str, token: Option<OsString>) -> Result<Secret> {
        let bad = |what: &str| {
            let what = format!("the variable {}, which holds a credential, {what}", self.variable);
            Error::new(ErrorKind::Usage, what).hint("Set it to the token, or leave it out.")
        };
        let token = token.ok_or_else(|| bad("is not set"))?;
        let token = token.into_string().map_err(|_| bad("is no text"))?;
        if token.is_empty() || token.len() > MAX_TOKEN_BYTES || token.contains(char::is_control) {
            return Err(bad(&format!("is empty, longer than {MAX_TOKEN_BYTES} bytes, or no line")));
        }
        let failed = |e| io("keep a credential", e);
        let memory = rustix::fs::memfd_create("credential", MemfdFlags::CLOEXEC);
        let mut file = File::from(memory.map_err(|e| failed(e.into()))?);
        write!(file, "username={}\npassword={token}\n", self.user).map_err(failed)?;
        let basic = BASE64_STANDARD.encode(format!("{}:{token}", self.user));
        Ok(Secret { file, origin: origin.to_owned(), hidden: vec![token, basic] })
    }
}

impl Secret {
    /// Git asks a helper in the words of a shell, which opens what git inherited. It asks for this
    /// one server alone.
    fn helper(&self) -> String {
        format!(
            "credential.{}.helper=!f() {{ test \"$1\" = get && cat </proc/self/fd/{}; }}; f",
            self.origin,
            self.file.as_raw_fd()
        )
    }
}

/// One or several programs with the same bounds.
struct Run<'a> {
    home: &'a Path,
    stage: &'a Path,
    secret: Option<Secret>,
    bounds: Bounds,
    waiting: Waiting<'a>,
}

impl Run<'_> {
    fn git(&self, repository: &Repository, words: &[OsString]) -> Result<()> {
        let memory = rustix::fs::memfd_create("said", MemfdFlags::CLOEXEC);
        let mut said = File::from(memory.map_err(|e| io("keep what git says", e.into()))?);
        let mut command = self.command(repository, words);
        command.stderr(said.try_clone().map_err(|e| io("keep what git says", e))?);
        let guard = Guard::start().map_err(|e| io("start a shell, which ends git with us", e))?;
        guard.lead(&mut command);
        let child = match &self.secret {
            Some(secret) => spawn(&mut command, &secret.file),
            None => command.spawn(),
        };
        let child = child.map_err(|e| {
            Error::new(ErrorKind::Unavailable, "start git, which fetches what the manifest wants")
                .hint("Install git, or leave the repository out of the manifest.")
                .source(e)
        })?;
        let status = self.look_after(child, guard, &said)?;
        if status.success() {
            return Ok(());
        }
        let mut text = Vec::new();
        said.rewind()
            .and_then(|()| said.take(MAX_SAID_BYTES).read_to_end(&mut text))
            .map_err(|e| io("read what git says", e))?;
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("with code {code}"),
            (None, signal) => format!("by signal {}", signal.unwrap_or_default()),
        };
        let what = format!("git ended {how}: {}", self.shown(&text));
        Err(Error::new(ErrorKind::Unavailable, what).hint(
            "Look at url and ref in the manifest; where the server asks who you are, name the variable \
             that holds a token: credential_env = \"NAME\".",
        ))
    }

    fn command(&self, repository: &Repository, words: &[OsString]) -> Command {
        let mut command = Command::new("git");
        command.env_clear().current_dir(self.stage);
        let secret = repository.credential.as_ref().map(|credential| credential.variable.as_str());
        for name in PASSED.iter().filter(|name| Some(**name) != secret) {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_LFS_SKIP_SMUDGE", "1"),
            ("GIT_ALLOW_PROTOCOL", repository.address.protocol()),
            ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes -oControlMaster=no -oControlPath=none"),
            ("LC_ALL", "C"),
        ] {
            command.env(name, value);
        }
        // A home of its own: credentials lie in `.netrc`, and attributes in `.config/git`.
        command.env("HOME", self.home).env("XDG_CONFIG_HOME", self.home);
        for fixed in FIXED {
            command.args(["-c", fixed]);
        }
        if let Some(secret) = &self.secret {
            command.args(["-c", &secret.helper()]);
        }
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Waits for git, within bounds. Whatever happens, nothing of its group is left.
    fn look_after(&self, mut child: Child, guard: Guard, said: &File) -> Result<ExitStatus> {
        let mut pause = LOOK;
        let ended = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Ok(None) => {}
                Err(e) => break Err(io("wait for git", e)),
            }
            let look = Instant::now();
            if let Err(error) = self.is_within(said) {
                break Err(error);
            }
            pause = pause.max(look.elapsed() * 10).min(Duration::from_secs(1));
            std::thread::sleep(pause.min(self.bounds.time));
        };
        drop(guard);
        child.wait().ok();
        // It may have ended between two looks.
        ended.and_then(|status| self.is_within(said).map(|()| status))
    }

    fn is_within(&self, said: &File) -> Result<()> {
        let Bounds { time: _, names, bytes } = self.bounds;
        self.waiting.goes_on()?;
        let talked = said.metadata().map_err(|e| io("look at what git says", e))?.len();
        let (found, held) = measure(self.stage);
        if found > names || held > bytes || talked > MAX_SAID_BYTES {
            let what = format!(
                "the clone of a repository has more than {names} names or {bytes} bytes, or git says \
                 more than {MAX_SAID_BYTES} bytes"
            );
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Set depth = 1."));
        }
        Ok(())
    }

    /// The end of what git said, on one line, without the token.
    fn shown(&self, said: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(said).into_owned();
        for hidden in self.secret.iter().flat_map(|secret| &secret.hidden) {
            text = text.replace(hidden, "***");
        }
        let line = text.trim().replace('\n', "; ").replace(char::is_control, " ");
        let over = line.chars().count().saturating_sub(SHOWN_BYTES);
        line.chars().skip(over).collect()
    }
}

/// How many names are below a directory, and how many bytes. What goes meanwhile does not count.
fn measure(top: &Path) -> (usize, u64) {
    let (mut names, mut bytes) = (0, 0);
    let mut left = vec![top.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            names += 1;
            bytes += found.len();
            if found.is_dir() {
                left.push(entry.path());
            }
        }
    }
    (names, bytes)
}

pub(super) fn io(what: &str, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, what).source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(directory: &Path) -> Repository {
        Repository {
            address: Address::Directory(directory.to_owned()),
            reference: None,
            depth: None,
            credential: None,
            fingerprint: String::new(),
        }
    }

    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("cofferdam-{name}-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        place
    }

    #[test]
    fn a_clone_has_limits_and_ends_when_nobody_waits() {
        let base = place("clone");
        let from = base.join("from");
        let script = "git init -q from && cd from && head -c 100000 /dev/urandom >a && git add a && \
                      git -c user.name=a -c user.email=a@b commit -qm a";
        let made = Command::new("sh").args(["-c", script]).current_dir(&base).status();
        assert!(made.unwrap().success());
        let clone = |name: &str, bounds, stopped: bool| {
            let stage = base.join(name);
            repository(&from).clone_to(&stage, bounds, &AtomicBool::new(stopped))
        };
        let usual = Bounds::USUAL;
        let kind = |name, bounds, stopped| clone(name, bounds, stopped).unwrap_err().kind;
        assert_eq!(
            kind("time", Bounds { time: Duration::ZERO, ..usual }, false),
            ErrorKind::TimedOut
        );
        assert_eq!(kind("names", Bounds { names: 9, ..usual }, false), ErrorKind::TooLarge);
        assert_eq!(kind("bytes", Bounds { bytes: 100_000, ..usual }, false), ErrorKind::TooLarge);
        assert_eq!(kind("stopped", usual, true), ErrorKind::Canceled);
        // The control.
        let tree = clone("fine", usual, false).unwrap();
        assert_eq!(fs::metadata(tree.join("a")).unwrap().len(), 100_000);
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn what_git_says_has_a_limit_and_its_end_is_shown_without_the_token() {
        let base = place("said");
        let credential = Credential { variable: "A".to_owned(), user: "me".to_owned() };
        let secret = credential.secret("https://a", Some("tok-1".into())).unwrap();
        let (stopped, began) = (AtomicBool::new(false), Instant::now());
        let (stage, bounds) = (base.as_path(), Bounds::USUAL);
        let waiting = Waiting { time: bounds.time, stopped: &stopped, began };
        let run = Run { home: stage, stage, secret: Some(secret), bounds, waiting };
        let said = File::create(base.join("said")).unwrap();
        said.set_len(MAX_SAID_BYTES).unwrap();
        assert!(run.is_within(&said).is_ok());
        said.set_len(MAX_SAID_BYTES + 1).unwrap();
        assert_eq!(run.is_within(&said).unwrap_err().kind, ErrorKind::TooLarge);
        let basic = BASE64_STANDARD.encode("me:tok-1");
        let text = format!("{}\ntok-1 and {basic}\x1b[2J\n", "x".repeat(2 * SHOWN_BYTES));
        let shown = run.shown(text.as_bytes());
        assert_eq!(shown.chars().count(), SHOWN_BYTES);
        assert!(shown.ends_with("x; *** and *** [2J"), "{shown}");
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_token_is_one_line_of_so_many_bytes() {
        let credential = Credential { variable: "A_TOKEN".to_owned(), user: "me".to_owned() };
        let secret = |token: &str| credential.secret("https://a", Some(token.into()));
        for bad in ["", "s3cret\nurl=https://b", &"s3cret".repeat(MAX_TOKEN_BYTES / 6 + 1)] {
            let Err(error) = secret(bad) else { panic!("{bad:?}") };
            let said = error.chain();
            assert!(said.contains("A_TOKEN") && !said.contains("s3cret"), "{said}");
        }
        assert!(credential.secret("https://a", None).is_err());
        // The control.
        assert!(secret(&"t".repeat(MAX_TOKEN_BYTES)).is_ok());
    }
}
