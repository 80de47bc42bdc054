//! Sessions whose manifest wants a git repository.

use crate::place::{PYTHON, Place, Said, ended, everyone, outcome, skipped, started, until};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

pub(crate) fn has_git() -> bool {
    let has = Path::new("/usr/bin/git").exists() && Path::new(PYTHON).exists();
    if !has {
        skipped("repositories in manifests", "there is no git or no Python here");
    }
    has
}

/// A shell script of the person's, on the host. It must succeed.
pub(crate) fn host(place: &Place, script: &str) -> Said {
    let script = format!(
        "set -e; export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a \
         GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; {script}"
    );
    let mut command = place.host("sh");
    let said = outcome(command.args(["-c", &script]).current_dir(place.base.join("home")), LONG);
    assert_eq!(said.code(), Some(0), "{script}: {said:?}");
    said
}

/// A repository `origin` with two commits, a branch and a tag.
pub(crate) fn lay_out(place: &Place) -> PathBuf {
    host(
        place,
        "git init -q -b main origin; cd origin; mkdir -p src; echo one >src/a; \
         printf '#!/bin/sh\\necho ran\\n' >run; chmod 755 run; ln -s src/a short; git add .; \
         git commit -qm one; git tag v1; echo two >src/a; git commit -qam two; \
         git branch side; echo three >src/a; git commit -qam three",
    );
    place.base.join("home/origin")
}

fn manifest(place: &Place, more: &str) -> String {
    let file = place.base.join("m.toml");
    fs::write(&file, format!("version = 1\n[[entries]]\ntype = \"git\"\npath = \"r\"\n{more}\n"))
        .unwrap();
    file.to_str().unwrap().to_owned()
}

fn create(place: &Place, more: &str) -> Said {
    let file = manifest(place, more);
    let mut command = place.cofferdam(&["create", "--name", "s", "--manifest", &file]);
    outcome(&mut command, LONG)
}

/// Nothing was made, brought or left.
fn is_refused(place: &Place, more: &str, word: &str) {
    nothing_came_of(place, &create(place, more), (more, word));
}

fn nothing_came_of(place: &Place, said: &Said, (more, word): (&str, &str)) {
    assert!(!matches!(said.code(), Some(0)) && said.stderr.contains(word), "{more}: {said:?}");
    let left = place.says(&["ls", "--json"], 0).object();
    assert_eq!(left["sessions"].as_array().map(Vec::len), Some(0), "{more}: {left}");
    assert!(!place.workspace.join("r").exists(), "{more}");
    assert_eq!(fs::read_dir(place.state.join("staging")).unwrap().count(), 0, "{more}");
}

#[test]
fn a_workspace_holds_a_clone_that_git_finds_clean() {
    everyone(|place| {
        if !has_git() {
            return;
        }
        let origin = lay_out(place);
        let url = format!("url = {:?}\n", origin.to_str().unwrap());
        let commit = host(place, "git -C origin rev-parse v1").text().trim().to_owned();
        let read = |name: &str| fs::read_to_string(place.workspace.join("r").join(name)).unwrap();
        for (more, text, commits) in [
            ("", "three\n", "3\n"),
            ("ref = \"side\"", "two\n", "2\n"),
            ("ref = \"v1\"", "one\n", "1\n"),
            ("depth = 1", "three\n", "1\n"),
            (&*format!("ref = {commit:?}"), "one\n", "1\n"),
        ] {
            let said = create(place, &format!("{url}{more}"));
            assert_eq!(said.code(), Some(0), "{more}: {said:?}");
            assert_eq!(read("src/a"), text, "{more}");
            let git = |words: &[&str]| {
                let words = [&["exec", "s", "--", "git", "-C", "r"], words].concat();
                place.says(&words, 0).text()
            };
            assert_eq!(git(&["status", "--porcelain"]), "", "{more}");
            assert_eq!(git(&["rev-list", "--count", "HEAD"]), commits, "{more}");
            assert_eq!(git(&["fsck", "--strict"]), "", "{more}");
            assert_eq!(place.says(&["exec", "s", "--", "r/run"], 0).text(), "ran\n");
            assert_eq!(read("short"), text);
            assert_eq!(fs::read_dir(place.state.join("staging")).unwrap().count(), 0);
            // The same again stays as it has become; in a new session too.
            fs::write(place.workspace.join("r/src/a"), "mine\n").unwrap();
            let file = manifest(place, &format!("{url}{more}"));
            place.says(&["ensure", "s", "--manifest", &file], 0);
            place.says(&["rm", "s"], 0);
            place.says(&["create", "--name", "s", "--manifest", &file], 0);
            assert_eq!(read("src/a"), "mine\n");
            // Another is a conflict.
            place.says(&["rm", "s"], 0);
            let other = create(place, &format!("{url}depth = 2"));
            assert!(other.stderr.contains("is there already"), "{other:?}");
            assert_eq!(read("src/a"), "mine\n");
            fs::remove_dir_all(place.workspace.join("r")).unwrap();
        }
    });
}

/// A server of `origin` that wants a user and a token. Ended with the value.
struct Server {
    child: Child,
    url: String,
    log: PathBuf,
}

impl Server {
    fn start(place: &Place, token: &str) -> Self {
        lay_out(place);
        host(place, "git clone -q --bare origin r.git; git -C r.git update-server-info");
        let script = place.base.join("server.py");
        fs::write(&script, include_str!("repository_server.py")).unwrap();
        let (home, log) = (place.base.join("home"), place.base.join("home/log"));
        let mut command = place.host(PYTHON);
        command.arg(&script).arg(&home).arg(&log);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "me:{token}").unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, url: format!("http://127.0.0.1:{}", port.trim()), log }
    }

    fn manifest(&self, place: &Place, way: &str) -> String {
        let url = format!("{}{way}", self.url);
        let more = format!(
            "url = {url:?}\ninsecure_loopback = true\ncredential_env = \"A_TOKEN\"\n\
             credential_user = \"me\""
        );
        manifest(place, &more)
    }

    /// From now on who has the token is answered.
    fn go(&self) {
        fs::write(self.log.with_extension("go"), "").unwrap();
    }

    fn saw(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a token looks like, plain and as it goes over the wire.
fn looks(token: &str) -> [Vec<u8>; 2] {
    let basic = format!("me:{token}");
    let script = "import base64, sys; print(base64.b64encode(sys.argv[1].encode()).decode())";
    let said = std::process::Command::new(PYTHON).args(["-c", script, &basic]).output().unwrap();
    [token.as_bytes().to_vec(), said.stdout.trim_ascii().to_vec()]
}

fn holds(text: &[u8], looks: &[Vec<u8>]) -> bool {
    looks.iter().any(|look| text.windows(look.len()).any(|part| part == look.as_slice()))
}

/// The files below a directory that hold a token.
fn files_with(top: &Path, looks: &[Vec<u8>]) -> Vec<PathBuf> {
    let mut left = vec![top.to_owned()];
    let mut found = Vec::new();
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_file() && fs::read(entry.path()).is_ok_and(|text| holds(&text, looks))
            {
                found.push(entry.path());
            }
        }
    }
    found
}

/// What a look at all processes came to.
#[derive(Debug, Default)]
struct Seen {
    /// The command lines that were there.
    lines: BTreeSet<String>,
    /// Those whose command line or environment held the token.
    told: BTreeSet<String>,
    /// Whether the caller's did, which it has from whoever started it.
    caller: bool,
}

impl Seen {
    fn look(&mut self, caller: u32, looks: &[Vec<u8>]) {
        let own = fs::read(format!("/proc/{caller}/cmdline")).unwrap_or_default();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            // ORDER: the words first. A child of the caller's that is no other program yet has both of it.
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let line = String::from_utf8_lossy(&words).replace('\0', " ");
            if holds(&words, looks) {
                self.told.insert(line.clone());
            }
            if holds(&environment, looks) {
                let is_caller = entry.file_name() == *caller.to_string() || words == own;
                self.caller |= is_caller;
                if !is_caller {
                    self.told.insert(line.clone());
                }
            }
            self.lines.insert(line);
        }
    }
}

#[test]
fn a_token_reaches_the_server_and_is_nowhere_else() {
    everyone(|place| {
        if !has_git() {
            return;
        }
        let token = format!("tok-{}", place.marker);
        let looks = looks(&token);
        let server = Server::start(place, &token);
        let file = server.manifest(place, "/r.git");
        let mut command =
            place.cofferdam(&["create", "--name", "s", "--manifest", &file, "--json"]);
        command.env("A_TOKEN", &token).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = started(&mut command);
        let (mut seen, caller, mut staged) = (Seen::default(), child.id(), Vec::new());
        until(LONG, || {
            let has_token = holds(server.saw().as_bytes(), &looks);
            seen.look(caller, &looks);
            staged.extend(files_with(&place.state, &looks));
            // One whole look while the token is on its way.
            if has_token {
                server.go();
            }
            child.try_wait().unwrap()
        });
        let said = ended(child, LONG);
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert_eq!(seen.told, BTreeSet::new());
        assert_eq!(staged, Vec::<PathBuf>::new());
        // The controls: the look sees what there is, git ran meanwhile, and the server had the token.
        assert!(seen.caller, "{seen:?}");
        assert!(seen.lines.iter().any(|line| line.contains("credential.http://127.0.0.1")));
        let basic = String::from_utf8(looks[1].clone()).unwrap();
        assert!(server.saw().contains(&basic), "{}", server.saw());
        assert!(holds(&fs::read(&server.log).unwrap(), &looks));
        let events = place.says(&["events", "s", "--json"], 0);
        let shown = place.says(&["show", "s", "--json"], 0);
        let script = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; grep -r tok- . ~ /tmp; \
                      git -C r status --porcelain; git -C r config --list";
        let inside = place.says(&["exec", "s", "--", "sh", "-c", script], 0);
        for said in [&said, &events, &shown, &inside] {
            assert!(!holds(&said.stdout, &looks) && !holds(said.stderr.as_bytes(), &looks));
        }
        assert!(inside.text().contains(&format!("remote.origin.url={}/r.git", server.url)));
        for place in [&place.state, &place.workspace] {
            assert_eq!(files_with(place, &looks), Vec::<PathBuf>::new());
        }
    });
}

#[test]
fn a_server_that_wants_another_token_or_leads_elsewhere_gets_and_says_nothing() {
    everyone(|place| {
        if !has_git() {
            return;
        }
        let token = format!("tok-{}", place.marker);
        let server = Server::start(place, &token);
        server.go();
        let with = |way: &str, token: Option<&str>| {
            let file = server.manifest(place, way);
            let mut command = place.cofferdam(&["create", "--name", "s", "--manifest", &file]);
            outcome(command.envs(token.map(|token| ("A_TOKEN", token))), LONG)
        };
        // The server says back what it was given, and git says what the server says.
        let wrong = with("/r.git", Some("tok-wrong"));
        nothing_came_of(place, &wrong, ("wrong", "***"));
        assert!(!holds(wrong.stderr.as_bytes(), &looks("tok-wrong")), "{wrong:?}");
        nothing_came_of(place, &with("/r.git", None), ("none", "A_TOKEN"));
        let before = server.saw();
        nothing_came_of(place, &with("/away/r.git", Some(&token)), ("away", "git ended"));
        assert!(!server.saw()[before.len()..].contains(" /r.git"), "{}", server.saw());
        let url = server.url.replace("http://", &format!("http://me:{token}@"));
        let said = create(place, &format!("url = \"{url}/r.git\"\ninsecure_loopback = true"));
        nothing_came_of(place, &said, ("userinfo", "credential_env"));
        assert!(!holds(said.stderr.as_bytes(), &looks(&token)), "{said:?}");
        // The control.
        let said = with("/r.git", Some(&token));
        assert_eq!(said.code(), Some(0), "{said:?}");
    });
}

/// A program for a hook or a filter that leaves a file behind, and the name of that file.
fn trap(place: &Place) -> (PathBuf, PathBuf) {
    let (program, traces) = (place.base.join("home/trap"), place.base.join("home/traces"));
    host(
        place,
        &format!(
            "printf '#!/bin/sh\\necho \"$0\" >>{0}\\ncat\\n' >trap; chmod 755 trap",
            traces.display()
        ),
    );
    (program, traces)
}

#[test]
fn nothing_of_a_hostile_repository_runs_on_the_host_or_leads_elsewhere() {
    everyone(|place| {
        if !has_git() {
            return;
        }
        lay_out(place);
        let (program, traces) = trap(place);
        let trap = program.to_str().unwrap();
        // The person's own git knows the filter and has a template with hooks.
        host(
            place,
            &format!(
                "cd origin; echo '* filter=lfs' >.gitattributes; git add .; git commit -qm four; \
                 for hook in post-checkout post-upload-pack pre-auto-gc reference-transaction; do \
                 cp {trap} .git/hooks/$hook; done; cd ..; mkdir -p t/hooks; \
                 cp {trap} t/hooks/post-checkout; \
                 printf '[filter \"lfs\"]\\nsmudge = {trap}\\nclean = {trap}\\n[core]\\n\
                 fsmonitor = {trap}\\nhooksPath = %s/t/hooks\\n[init]\\ntemplateDir = %s/t\\n' \
                 $PWD $PWD >.gitconfig"
            ),
        );
        let url = format!("url = {:?}\n", place.base.join("home/origin"));
        let file = manifest(place, &url);
        let mut command = place.cofferdam(&["create", "--name", "s", "--manifest", &file]);
        let said = outcome(command.env("HOME", place.base.join("home")), LONG);
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert!(!traces.exists(), "{:?}", fs::read_to_string(&traces));
        // What stands there while there is a sandbox, so that nobody makes it.
        let hooks = place.workspace.join("r/.git/hooks");
        assert_eq!(fs::read_dir(&hooks).unwrap().count(), 0);
        // The control: cloned by the person it runs.
        host(
            place,
            "unset GIT_CONFIG_GLOBAL; export HOME=$PWD; git clone -q origin mine; test -s traces",
        );
        place.says(&["rm", "s"], 0);
        assert!(!hooks.exists());
        fs::remove_dir_all(place.workspace.join("r")).unwrap();
        host(
            place,
            "cd origin; git rm -q .gitattributes; ln -s /etc out; git add out; git commit -qm five",
        );
        is_refused(place, &url, "absolute");
        host(
            place,
            "cd origin; git rm -q out; ln -s ../../etc out; git add out; git commit -qm six",
        );
        is_refused(place, &url, "lead out");
        // A tree that writes into the .git of who checks it out.
        host(
            place,
            "cd origin; git rm -q out; git commit -qm seven; blob=$(git hash-object -w src/a); \
             inner=$(printf '100644 blob %s\\tconfig\\n' $blob | git mktree); \
             for name in .git .GIT git~1; do n=$((n + 1)); \
             tree=$(printf '040000 tree %s\\t%s\\n' $inner $name | git mktree); \
             git branch bad$n $(git commit-tree -m bad $tree); done",
        );
        for branch in ["bad1", "bad2", "bad3"] {
            is_refused(place, &format!("{url}ref = {branch:?}\ndepth = 1"), "git ended");
        }
        // The control.
        assert_eq!(create(place, &format!("{url}ref = \"main\"\ndepth = 1")).code(), Some(0));
    });
}

#[test]
fn a_directory_whose_repository_is_elsewhere_is_no_repository() {
    everyone(|place| {
        if !has_git() {
            return;
        }
        lay_out(place);
        host(
            place,
            "mkdir file link parts; echo 'gitdir: ../origin/.git' >file/.git; \
             ln -s ../origin/.git link/.git; git init -q parts; rm -r parts/.git/objects; \
             ln -s ../../origin/.git/objects parts/.git/objects; \
             git clone -q --shared origin shared; git -C origin worktree add -q ../tree side; \
             git -C file rev-parse HEAD; git -C link rev-parse HEAD; git -C tree rev-parse HEAD",
        );
        let url = |name: &str| format!("url = {:?}\n", place.base.join("home").join(name));
        for name in ["file", "link", "parts", "tree"] {
            is_refused(place, &url(name), "lead");
        }
        is_refused(place, &url("shared"), "borrows");
        is_refused(place, &url("none"), "no git repository");
        // The control.
        assert_eq!(create(place, &url("origin")).code(), Some(0));
    });
}

#[test]
fn what_a_command_plants_in_a_repository_brings_nothing_of_another() {
    everyone(|place| {
        if !has_git() {
            return;
        }
        let secret = lay_out(place);
        let git = secret.join(".git");
        let own = place.workspace.join("own");
        place.says(
            &[
                "run",
                "--shell",
                &format!(
                    "git init -q -b main own; cd own/.git; rm -rf refs/heads objects/*; \
                     ln -s {0}/refs/heads refs/heads; ln -s {0}/packed-refs packed-refs; \
                     for name in {1}; do ln -s {0}/objects/$name objects/$name; done",
                    git.display(),
                    names(&git.join("objects")).join(" "),
                ),
            ],
            0,
        );
        let url = format!("url = {:?}\n", own.to_str().unwrap());
        let create = || {
            let file = manifest(place, &url);
            let words = ["create", "--cow", "--name", "s", "--manifest", &file];
            outcome(&mut place.cofferdam(&words), LONG)
        };
        nothing_came_of(place, &create(), (&url, "leads elsewhere"));
        // The control: git follows them.
        let script = format!("git clone -q --no-local {} out; test -e out/src/a", own.display());
        host(place, &script);
        place.says(&["run", "--shell", "cd own/.git; rm packed-refs HEAD; mkfifo HEAD"], 0);
        nothing_came_of(place, &create(), (&url, "is no file"));
    });
}

fn names(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn a_repository_that_a_session_works_in_is_cloned() {
    everyone(|place| {
        if !has_git() {
            return;
        }
        lay_out(place);
        let own = place.workspace.join("own");
        host(place, &format!("git clone -q origin {}", own.display()));
        let control = own.join(".git/commondir");
        place.says(&["create", "--name", "before"], 0);
        // The control: the session holds the name.
        assert_eq!(fs::read(&control).unwrap(), b".\n");
        let said = create(place, &format!("url = {:?}\n", own.to_str().unwrap()));
        assert_eq!(said.code(), Some(0), "{said:?}");
        let git = |words: &[&str]| {
            place.says(&[&["exec", "s", "--", "git", "-C", "r"], words].concat(), 0).text()
        };
        assert_eq!(git(&["rev-list", "--count", "HEAD"]), "3\n");
        assert_eq!(git(&["remote", "get-url", "origin"]), format!("{}\n", own.display()));
        assert_eq!(git(&["status", "--porcelain"]), "");
    });
}

#[test]
fn a_repository_behind_ssh_is_fetched_by_the_callers_ssh_which_asks_nobody() {
    everyone(|place| {
        if !has_git() {
            return;
        }
        let origin = lay_out(place);
        // Stands for ssh and a server: says how it was called, and does here what it is to do there.
        host(
            place,
            "mkdir bin; printf '#!/bin/sh\\necho \"$@\" >>%s/called\\nfor last; do :; done\\n\
             exec sh -c \"$last\"\\n' $PWD >bin/ssh; chmod 755 bin/ssh",
        );
        let bin = place.base.join("home/bin");
        let url = format!("url = \"ssh://git@example.invalid:2222{}\"", origin.display());
        let file = manifest(place, &url);
        let with = |path: String| {
            let mut command = place.cofferdam(&["create", "--name", "s", "--manifest", &file]);
            outcome(command.env("PATH", path), LONG)
        };
        let said = with(format!("{}:/usr/bin:/bin", bin.display()));
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert_eq!(fs::read_to_string(place.workspace.join("r/src/a")).unwrap(), "three\n");
        let called = fs::read_to_string(place.base.join("home/called")).unwrap();
        for word in ["-oBatchMode=yes", "-oControlMaster=no", "-p 2222", "git@example.invalid"] {
            assert!(called.contains(word), "{called}");
        }
    });
}

#[test]
fn a_clone_that_is_killed_leaves_nothing_after_the_next_start() {
    everyone(|place| {
        if !has_git() {
            return;
        }
        let token = format!("tok-{}", place.marker);
        let (looks, server) = (looks(&token), Server::start(place, &token));
        let file = server.manifest(place, "/r.git");
        let mut command = place.cofferdam(&["create", "--name", "s", "--manifest", &file]);
        command.env("A_TOKEN", &token).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = started(&mut command);
        let begun = until(LONG, || holds(server.saw().as_bytes(), &looks).then_some(()));
        assert!(begun.is_some(), "{}", server.saw());
        // The control: there is something to leave.
        let staging = place.state.join("staging");
        assert_eq!(fs::read_dir(&staging).unwrap().count(), 1);
        assert!(marked(&server.url) > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        let ended = until(LONG, || (marked(&server.url) == 0).then_some(()));
        assert!(ended.is_some(), "git goes on");
        server.go();
        place.says(&["gc"], 0);
        assert_eq!(fs::read_dir(&staging).unwrap().count(), 0);
        let locks = fs::read_dir(place.state.join("locks")).unwrap().flatten();
        let left = locks.filter(|lock| lock.file_name().to_string_lossy().contains("staging"));
        assert_eq!(left.count(), 0);
        let mut again = place.cofferdam(&["ensure", "s", "--manifest", &file]);
        let said = outcome(again.env("A_TOKEN", &token), LONG);
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert_eq!(fs::read_to_string(place.workspace.join("r/src/a")).unwrap(), "three\n");
    });
}

/// How many processes have an address in their command line.
fn marked(url: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let words = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    words.filter(|words| holds(words, &[url.as_bytes().to_vec()])).count()
}

#[test]
fn what_a_manifest_brings_is_protected_from_the_first_command_on() {
    everyone(|place| {
        if !has_git() {
            return;
        }
        let origin = lay_out(place);
        let said = create(place, &format!("url = {:?}\n", origin.to_str().unwrap()));
        assert_eq!(said.code(), Some(0), "{said:?}");
        let attacks =
            ["git -C r config core.fsmonitor x", "echo x >r/.git/hooks/post-index-change"];
        for attack in attacks.into_iter().chain(["echo x >r/.envrc", "mkdir r/.vscode"]) {
            let words = ["exec", "s", "--shell", attack];
            let said = outcome(&mut place.cofferdam(&words), LONG);
            assert_ne!(said.code(), Some(0), "{attack}");
        }
        place.says(&["exec", "s", "--shell", "cd r; echo x >src/a; git add -A"], 0);
        assert_eq!(place.says(&["show", "s", "--json"], 0).object()["manifest"], "done");
    });
}
