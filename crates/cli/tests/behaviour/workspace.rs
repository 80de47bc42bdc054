//! Several sandboxes, the host and git in one workspace.

use crate::place::{PYTHON, Place, SOON, Said, ended, everyone, outcome, skipped, started};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

/// A sandbox with a shell in it that does what it is told.
struct Inside {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Inside {
    fn start(place: &Place, options: &[&str]) -> Self {
        let words = [&["run", "-i"], options, &["--", "/bin/sh"]].concat();
        let mut command = place.cofferdam(&words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut inside = Self { child, answers };
        assert_eq!(inside.does("true"), (0, String::new()), "it started");
        inside
    }

    /// Its exit code, and what it says on both streams.
    fn does(&mut self, line: &str) -> (i32, String) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{{ {line}\n}} 2>&1 </dev/null; echo \"<end> $?\"").unwrap();
        let mut text = String::new();
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line).unwrap() == 0 {
                let _ = self.child.kill();
                let rest = self.child.wait_with_output_of_the_end();
                panic!("the sandbox ended: {text}{rest}");
            }
            if let Some((last, code)) = line.split_once("<end> ") {
                text.push_str(last);
                return (code.trim().parse().unwrap(), text);
            }
            text.push_str(&line);
        }
    }

    fn succeeds(&mut self, line: &str) -> String {
        let (code, text) = self.does(line);
        assert_eq!(code, 0, "{line}: {text}");
        text
    }

    /// Ends it. What it remarked is returned.
    fn end(self) -> String {
        let said = ended(self.child, SOON);
        assert!(said.status.success(), "{said:?}");
        said.stderr
    }
}

trait Rest {
    fn wait_with_output_of_the_end(&mut self) -> String;
}

impl Rest for Child {
    fn wait_with_output_of_the_end(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut stderr, &mut text);
        }
        let _ = self.wait();
        text
    }
}

/// Git for the person, on the host, with nothing but what the repository says.
pub(crate) fn git(place: &Place, words: &[&str]) -> String {
    let mut command = place.host("/usr/bin/git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@b.c"]).args(words);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    let said = outcome(&mut command, SOON);
    assert!(said.status.success(), "git {words:?}: {said:?}");
    said.text()
}

pub(crate) fn has_git() -> bool {
    let is_there = Path::new("/usr/bin/git").exists();
    if !is_there {
        skipped("git", "the program is not installed for all users");
    }
    is_there
}

/// A repository with one commit.
pub(crate) fn repository(place: &Place) {
    git(place, &["init", "-q", "-b", "main", "."]);
    place.write("file", "one\n");
    git(place, &["add", "file"]);
    git(place, &["commit", "-q", "-m", "one"]);
}

/// Names that are protected, whether they are there or not.
const PROTECTED: [&str; 9] = [
    ".git/hooks/pre-commit",
    ".git/config",
    ".git/config.worktree",
    ".envrc",
    ".vscode/tasks.json",
    ".mcp.json",
    ".claude/settings.json",
    ".bashrc",
    "cofferdam.toml",
];

fn is_protected(inside: &mut Inside) {
    for name in PROTECTED {
        let (code, text) = inside.does(&format!("echo attacked >>{name}"));
        assert_ne!(code, 0, "{name} was written: {text}");
        let directory = name.split('/').take(1).collect::<String>();
        let (code, _) =
            inside.does(&format!("mv {directory} moved || rm {directory} || rmdir {directory}"));
        assert_ne!(code, 0, "{directory} was moved or removed");
    }
}

#[test]
fn a_sandbox_that_ends_takes_no_protection_from_another() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        repository(place);
        let mut first = Inside::start(place, &[]);
        let mut second = Inside::start(place, &[]);
        is_protected(&mut first);
        first.succeeds("echo first >first");
        second.succeeds("test \"$(cat first)\" = first");
        assert_eq!(first.end(), "", "placeholders are no news");
        is_protected(&mut second);
        let mut third = Inside::start(place, &[]);
        assert_eq!(second.end(), "");
        is_protected(&mut third);
        assert_eq!(third.end(), "");
        assert_eq!(git(place, &["status", "--porcelain"]), "?? first\n", "nothing else is left");
        for name in PROTECTED.iter().filter(|name| !name.starts_with(".git/")) {
            let name = name.split('/').next().unwrap();
            assert!(place.workspace.join(name).symlink_metadata().is_err(), "{name} is left");
        }
    });
}

#[test]
fn runs_that_overlap_report_no_control_file_that_nobody_made() {
    everyone(|place| {
        let words = ["run", "--json", "--shell", "sleep 0.$((RANDOM % 3)); echo done"];
        let mut children = Vec::new();
        for _ in 0..8 {
            let mut command = place.cofferdam(&words);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            children.push(command.spawn().unwrap());
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        for child in children {
            let report = ended(child, SOON).object();
            assert_eq!(report["exit_code"], 0, "{report}");
            assert_eq!(report["new_control_files"], json!([]));
        }
        let left: Vec<_> = fs::read_dir(&place.workspace).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    });
}

#[test]
fn a_repository_that_is_made_inside_is_reported() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let report = place.report(&["--", "/usr/bin/git", "init", "-q", "made"]);
        assert_eq!(report["exit_code"], 0, "{report}");
        let named = report["new_control_files"].to_string();
        assert!(named.contains("made/.git"), "{report}");
        let said = place.run(&["--", "/usr/bin/git", "init", "-q", "again"]);
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert!(said.stderr.contains("new control files in the workspace"), "{}", said.stderr);
        assert!(said.stderr.contains("again/.git"), "{}", said.stderr);
        // From the next run on it is protected.
        let line = "echo '[core]' >>made/.git/config";
        assert_ne!(place.run(&["--shell", line]).code(), Some(0));
        let report = place.report(&["--", "true"]);
        assert_eq!(report["new_control_files"], json!([]), "what is known is no news");
    });
}

#[test]
fn a_repository_in_the_workspace_itself_can_be_made_and_used() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let line = "git init -q -b main . && git config --local --list >/dev/null && echo x >x && \
                    git add x && git -c user.name=A -c user.email=a@b.c commit -q -m x && git log \
                    --format=%s";
        let report = place.report(&["--shell", line]);
        assert_eq!(report["stdout"], "x\n", "{report}");
        assert!(report["new_control_files"].to_string().contains(".git"), "{report}");
        assert_eq!(git(place, &["log", "--format=%s"]), "x\n", "the host sees the same");
        assert_eq!(git(place, &["status", "--porcelain"]), "");
    });
}

#[test]
fn commits_work_in_a_repository_of_the_workspace() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        repository(place);
        let line = "set -e; echo two >>file; git add -A; git -c user.name=B -c user.email=b@c.d \
                    commit -q -m two; git branch side; git checkout -q side; echo three >three; \
                    git add three; git -c user.name=B -c user.email=b@c.d commit -q -m three; \
                    git checkout -q main; git merge -q side; git stash list; git gc -q; \
                    git fsck --no-progress; git log --format=%s";
        let report = place.report(&["--shell", line]);
        assert_eq!(report["stdout"], "three\ntwo\none\n", "{report}");
        assert_eq!(report["new_control_files"], json!([]));
        assert_eq!(git(place, &["log", "--format=%s"]), "three\ntwo\none\n");
        assert_eq!(git(place, &["status", "--porcelain"]), "");
        assert_eq!(git(place, &["fsck", "--no-progress"]), "");
        // What was made belongs to whoever owns the workspace.
        let uid = place.uid().to_string();
        let all = ["-c", "find . ! -uid \"$0\" | head", &uid];
        assert_eq!(outcome(place.host("sh").args(all), SOON).text(), "");
    });
}

#[test]
fn git_shows_no_placeholder_inside_or_outside_while_a_sandbox_lives() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        repository(place);
        let mut inside = Inside::start(place, &[]);
        assert_eq!(git(place, &["status", "--porcelain"]), "", "on the host");
        assert_eq!(inside.succeeds("git status --porcelain"), "", "inside");
        inside.succeeds("echo new >new; git add -A");
        assert_eq!(git(place, &["status", "--porcelain"]), "A  new\n", "on the host");
        assert_eq!(inside.succeeds("git status --porcelain"), "A  new\n", "inside");
        git(place, &["add", "-A"]);
        assert_eq!(git(place, &["diff", "--cached", "--name-only"]), "new\n");
        assert_eq!(inside.end(), "");
        assert_eq!(git(place, &["status", "--porcelain"]), "A  new\n");
    });
}

#[test]
fn the_host_can_use_git_while_a_sandbox_lives() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        repository(place);
        let mut inside = Inside::start(place, &[]);
        git(place, &["config", "user.name", "C"]);
        place.write("file", "host\n");
        git(place, &["commit", "-q", "-a", "-m", "host"]);
        assert_eq!(inside.succeeds("git log --format=%s | head -1"), "host\n");
        assert_eq!(inside.succeeds("git config user.name"), "C\n");
        let protected = crate::place::until(SOON, || {
            let (code, _) = inside.does("echo '[core]' >>.git/config");
            (code != 0).then_some(())
        });
        assert!(protected.is_some(), "the pin did not come back");
        inside.end();
    });
}

/// Runs a command that says nothing and writes to this file as long as it can, at most so long; the host does its
/// work once that runs. Code 0: it cannot write any more.
fn quietly_writing(place: &Place, file: &str, host: impl FnOnce()) -> Said {
    let line = format!(
        "touch ready; until test -e go; do sleep 0.02; done; n=0
         while (echo '[core]' >>{file}) 2>/dev/null && test $n -lt 400; do n=$((n+1)); sleep 0.05; done
         ! (echo '[core]' >>{file}) 2>/dev/null && test -e {file}"
    );
    let mut command = place.cofferdam(&["run", "--profile", "repo-write", "--shell", &line]);
    let child = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let ready = place.workspace.join("ready");
    assert!(crate::place::until(SOON, || ready.exists().then_some(())).is_some());
    host();
    place.write("go", "");
    ended(child, 3 * SOON)
}

#[test]
fn a_command_that_says_nothing_cannot_write_what_the_host_wrote_anew() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        repository(place);
        let said = quietly_writing(place, ".git/config", || {
            git(place, &["config", "user.name", "C"]);
        });
        assert_eq!(said.code(), Some(0), "{said:?}");
    });
}

#[test]
fn a_repository_that_goes_ends_no_command_and_is_protected_where_it_comes_back() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        git(place, &["init", "-q", "sub"]);
        let said = quietly_writing(place, "sub/.git/config", || {
            fs::rename(place.workspace.join("sub"), place.base.join("first")).unwrap();
            git(place, &["init", "-q", "sub"]);
        });
        assert_eq!(said.code(), Some(0), "{said:?}");
        let line = "rm ready; until test -e ready; do sleep 0.02; done; mkdir sub && echo went on";
        let mut command = place.cofferdam(&["run", "--profile", "repo-write", "--shell", line]);
        let gone = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let ready = place.workspace.join("ready");
        assert!(crate::place::until(SOON, || (!ready.exists()).then_some(())).is_some());
        // As a whole: while one file goes after the other, placeholders come for those that are protected.
        fs::rename(place.workspace.join("sub"), place.base.join("second")).unwrap();
        place.write("ready", "");
        let said = ended(gone, SOON);
        assert_eq!((said.code(), said.text().as_str()), (Some(0), "went on\n"), "{said:?}");
    });
}

#[test]
fn control_files_can_be_written_by_whoever_asks_for_it() {
    everyone(|place| {
        let line = "echo x >.envrc && mkdir .vscode && echo y >.vscode/tasks.json";
        assert_ne!(place.run(&["--shell", line]).code(), Some(0));
        let said = place.run(&["--allow-sensitive-writes", "--shell", line]);
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert!(place.workspace.join(".vscode/tasks.json").exists());
    });
}

#[test]
fn a_workspace_is_read_only_where_the_profile_says_so() {
    everyone(|place| {
        place.write("file", "as it was");
        let line = "cat file; echo x >file; echo x >new; mkdir d; rm file; echo $?";
        let said = place.run(&["--profile", "read-only", "--shell", line]);
        assert_eq!(said.text(), "as it was1\n", "{said:?}");
        assert_eq!(fs::read_dir(&place.workspace).unwrap().count(), 1);
    });
}

#[test]
fn the_way_to_a_workspace_in_private_space_cannot_be_moved() {
    everyone(|place| {
        // The control: what lies beside the way can be moved, where the way begins too.
        let base = place.base.to_str().unwrap();
        let line = format!(
            "mkdir /tmp/own && mv /tmp/own /tmp/moved && ! mv {base} /tmp/away 2>/tmp/why \
             && cat /tmp/why && test -d {base}/workspace"
        );
        let said = place.run(&["--shell", &line]);
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert!(said.text().contains("busy"), "{said:?}");
        place.says(&["create", "--name", "s"], 0);
        let kept = place.says(&["exec", "s", "--shell", &line], 0);
        assert!(kept.text().contains("busy"), "{kept:?}");
    });
}

/// Each of these leads git on the host to what was written inside, where nothing is pinned.
#[test]
fn what_takes_a_repository_over_is_told_of() {
    if !has_git() {
        return;
    }
    let shared = "rm .git/HEAD; echo 'ref: refs/heads/x' >HEAD; echo y >commondir; \
        printf '[core]\\nworktree = .\\n' >config.worktree; mkdir -p y/objects y/refs; \
        printf '[core]\\nfsmonitor = x\\n' >y/config";
    let bare = "rm .git/HEAD; echo 'ref: refs/heads/x' >HEAD; mkdir objects refs; echo x >config";
    let link = "mkdir -p .git/logs; rm -f .git/logs/HEAD; ln -s /etc/hostname .git/logs/HEAD";
    let all: [(&str, &[&str]); 3] = [
        (shared, &["HEAD", "commondir", "config.worktree", "y/config"]),
        (bare, &["HEAD", "config"]),
        (link, &[".git/logs/HEAD"]),
    ];
    everyone(|place| {
        for (attack, told) in all {
            let made = place.host("git").args(["init", "-q", "."]).status().unwrap();
            assert!(made.success());
            let report = place.run(&["--json", "--shell", attack]).object();
            assert_eq!(report["new_control_files"], json!(told), "{report}");
            for entry in fs::read_dir(&place.workspace).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => fs::remove_dir_all(&path).unwrap(),
                    false => fs::remove_file(&path).unwrap(),
                }
            }
        }
    });
}

/// A path that is meant from the work tree, in the configuration of the user for every repository.
#[test]
fn hooks_that_the_users_own_configuration_names_are_protected() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let home = place.base.join("home");
        fs::write(home.join("more"), "[core]\n\thooksPath = .githooks\n").unwrap();
        fs::write(home.join(".gitconfig"), "[include]\n\tpath = ~/more\n").unwrap();
        for name in ["more", ".gitconfig"] {
            place.give(&home.join(name));
        }
        let made = place.host("git").args(["init", "-q", "."]).status().unwrap();
        assert!(made.success());
        place.write(".githooks/pre-commit", "x");
        place.write("other/pre-commit", "x");
        let attack = "echo evil >other/pre-commit; echo evil >.githooks/pre-commit";
        let words = ["run", "--shell", attack];
        let output = place.cofferdam(&words).env("HOME", &home).output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        let content = |name: &str| fs::read_to_string(place.workspace.join(name)).unwrap();
        assert_eq!(content(".githooks/pre-commit"), "x");
        assert_eq!(content("other/pre-commit"), "evil\n", "the control");
        // The workspace holds that configuration itself, and hooks of every repository.
        fs::remove_dir_all(place.workspace.join(".git")).unwrap();
        let own = place.write(
            "dots",
            &format!("[core]\n\thooksPath = {0}/hooks\n", place.workspace.display()),
        );
        place.write("hooks/pre-push", "x");
        fs::write(home.join(".gitconfig"), format!("[include]\n\tpath = {}\n", own.display()))
            .unwrap();
        for attack in ["echo evil >>dots", "mv dots d", "echo evil >hooks/pre-push"] {
            let output = place.cofferdam(&["run", "--shell", attack]).env("HOME", &home).output();
            assert!(!output.unwrap().status.success(), "{attack}");
        }
        assert_eq!(content("hooks/pre-push"), "x");
    });
}

/// Each link on the way is pinned, as is what it leads to.
#[test]
fn hooks_by_way_of_links_are_protected_with_the_links() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        for line in ["init -q .", "config core.hooksPath lnk/h"] {
            let made = place.host("git").args(line.split(' ')).status().unwrap();
            assert!(made.success());
        }
        place.write("real/h/pre-commit", "x");
        place.write("evil/h/pre-commit", "evil");
        for (target, name) in [("real", "second"), ("second", "lnk")] {
            let path = place.workspace.join(name);
            std::os::unix::fs::symlink(target, &path).unwrap();
            place.give(&path);
        }
        let attacks = [
            "echo evil >real/h/pre-commit",
            "echo evil >lnk/h/pre-push",
            "rm second && ln -s evil second",
            "ln -sfn evil lnk",
            "mv real gone",
            "mv -T evil real",
        ];
        for attack in attacks {
            let said = place.run(&["--shell", attack]);
            assert_ne!(said.code(), Some(0), "{attack} {said:?}");
        }
        let said = place.run(&["--shell", "echo fine >evil/h/pre-commit; cat lnk/h/pre-commit"]);
        assert_eq!((said.code(), said.text().as_str()), (Some(0), "x"), "the control: {said:?}");
        let read = |path: &str| fs::read_to_string(place.workspace.join(path)).unwrap();
        assert_eq!(read("lnk/h/pre-commit"), "x");
    });
}

/// Says something at a socket, and what came of it.
const SAYS: &str = "
import socket, sys
s = socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[2]))
s.settimeout(5)
s.connect(sys.argv[1])
s.send(b'escape')
";

/// A socket's node can be connected to from another network namespace, and in a mount that is read-only.
#[test]
fn sockets_of_the_host_in_the_workspace_cannot_be_reached() {
    everyone(|place| {
        let open = |path: &Path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
            place.give(path);
        };
        for directory in ["sub/deep", ".git/objects", ".git/refs", ".vscode"] {
            place.write(&format!("{directory}/x"), "");
        }
        place.write(".git/HEAD", "ref: refs/heads/x\n");
        let streams = ["stream", "sub/deep/stream", ".git/fsmonitor--daemon.ipc", ".vscode/ipc"];
        let listeners = streams.map(|name| {
            let path = place.workspace.join(name);
            let listener = UnixListener::bind(&path).unwrap();
            open(&path);
            listener.set_nonblocking(true).unwrap();
            listener
        });
        let packets = place.workspace.join("packets");
        let receiver = UnixDatagram::bind(&packets).unwrap();
        open(&packets);
        receiver.set_nonblocking(true).unwrap();
        let all = streams.map(|name| (name, "SOCK_STREAM"));
        let all = all.into_iter().chain([("packets", "SOCK_DGRAM")]);
        for (name, kind) in all {
            let words = ["-c", SAYS, name, kind];
            let control = place.host(PYTHON).args(words).status().unwrap();
            assert!(control.success(), "the control: {name}");
            for profile in ["no-network", "read-only", "repo-write"] {
                let options = ["--profile", profile, "--", PYTHON];
                let said = place.run(&[&options[..], &words].concat());
                assert_ne!(said.code(), Some(0), "{profile} {name} {said:?}");
                let sensitive = ["--allow-sensitive-writes", "--", PYTHON];
                let said = place.run(&[&sensitive[..], &words].concat());
                assert_ne!(said.code(), Some(0), "{name} {said:?}");
            }
        }
        place.says(&["create", "--name", "s"], 0);
        let words = ["exec", "s", "--", PYTHON, "-c", SAYS, "sub/deep/stream", "SOCK_STREAM"];
        assert_ne!(place.say(&words).code(), Some(0), "in a session");
        place.says(&["rm", "s"], 0);
        let mut heard = [0; 64];
        assert_eq!(receiver.recv(&mut heard).unwrap(), 6, "the control");
        assert!(receiver.recv(&mut heard).is_err(), "and nobody else");
        let explained = place.says(&["explain"], 0).text();
        assert!(explained.contains("a program of the host listens there"), "{explained}");
        drop(listeners);
        // What nobody listens at any more is as any file.
        let again = "import os, socket; os.unlink('stream'); \
            socket.socket(socket.AF_UNIX).bind('stream')";
        let said = place.run(&["--", PYTHON, "-c", again]);
        assert_eq!(said.code(), Some(0), "{said:?}");
    });
}

/// A socket that no look can find may be reached, and then the report does not promise otherwise.
#[test]
fn where_sockets_of_the_host_cannot_all_be_found_every_profile_says_so() {
    everyone(|place| {
        let deep = format!("{}x", "d/".repeat(70));
        for name in [deep.as_str(), "closed/x"] {
            let first = place.workspace.join(name.split('/').next().unwrap());
            place.write(name, "");
            let is_closed = name == "closed/x";
            if is_closed {
                // Nothing is closed to root.
                fs::set_permissions(&first, fs::Permissions::from_mode(0o300)).unwrap();
            }
            let is_seen = is_closed && place.is_root();
            for options in [&["--profile", "read-only"][..], &["--allow-sensitive-writes"], &[]] {
                let words = [options, &["--on-unavailable", "degrade", "--", "true"]].concat();
                let report = place.report(&words);
                let files = &report["enforced"]["files"];
                let expected = if is_seen { "full" } else { "partial" };
                assert_eq!(files, expected, "as {}: {name} {options:?} {report}", place.uid());
                let said = place.run(&[options, &["--", "true"]].concat());
                assert_eq!(said.status.success(), is_seen, "{name} {options:?} {said:?}");
            }
            fs::set_permissions(&first, fs::Permissions::from_mode(0o700)).unwrap();
            fs::remove_dir_all(&first).unwrap();
        }
        // The control.
        let report = place.report(&["--profile", "read-only", "--", "true"]);
        assert_eq!(report["enforced"]["files"], "full", "{report}");
    });
}

#[test]
fn a_name_in_the_workspace_writes_no_line_of_an_explanation() {
    everyone(|place| {
        let made = "import os; os.makedirs('a\\nforged: \\x1b[31m/.git/hooks'); \
            open('a\\nforged: \\x1b[31m/.git/config', 'w').close()";
        let made = outcome(place.host(PYTHON).args(["-c", made]), SOON);
        assert_eq!(made.code(), Some(0), "{made:?}");
        let explained = place.says(&["explain"], 0).text();
        assert!(explained.contains("forged"), "{explained}");
        assert!(!explained.lines().any(|line| line.starts_with("forged")), "{explained}");
        assert!(!explained.contains('\x1b'), "{explained}");
    });
}
