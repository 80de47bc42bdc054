//! The verbs of the command line with a server: they print what they print without one, and outlive it.

use crate::place::{Place, SOON, Said, ended, everyone, outcome, started, until};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A server of a place. It is killed with the value.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    /// Starts one and waits until it listens.
    pub(crate) fn start(place: &Place, listen: &str) -> Self {
        Self::start_with(place, listen, &[], &[])
    }

    /// The same with these options and variables.
    pub(crate) fn start_with(
        place: &Place,
        listen: &str,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let workspace = place.workspace.to_str().unwrap();
        let words = [&["serve", "--listen", listen, "--allow-workspace", workspace], more].concat();
        let mut command = place.cofferdam(&words);
        command.envs(variables.iter().copied()).stderr(Stdio::piped());
        let mut child = started(&mut command);
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let at = line.trim().rsplit("listening on ").next().unwrap().to_owned();
        assert!(line.contains("listening on "), "{line}");
        let url = match listen.strip_prefix("unix:") {
            Some(path) => format!("unix://{path}"),
            None => at,
        };
        // What it says later must not stop it.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, url }
    }

    /// Kills it.
    pub(crate) fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(crate) fn socket(place: &Place) -> String {
    format!("unix:{}", place.base.join("state/server.sock").display())
}

pub(crate) fn key(place: &Place, name: &str) -> String {
    place.says(&["key", "create", name], 0).text().trim().to_owned()
}

/// A file of the person's that holds a key.
fn key_file(place: &Place, name: &str, key: &str, mode: u32) -> PathBuf {
    let path = place.base.join(name);
    fs::write(&path, key).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    place.give(&path);
    path
}

/// Which sessions verbs are about.
pub(crate) enum Way<'a> {
    Here(&'a Place),
    There(&'a Place, &'a str, Option<&'a str>),
}

impl Way<'_> {
    fn place(&self) -> &Place {
        match self {
            Self::Here(place) | Self::There(place, ..) => place,
        }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        match self {
            Self::Here(place) => place.cofferdam(words),
            Self::There(place, url, key) => {
                let mut command = place.cofferdam(&[&["--server", url], words].concat());
                key.iter().for_each(|key| {
                    command.env("COFFERDAM_KEY", key);
                });
                command
            }
        }
    }

    #[track_caller]
    pub(crate) fn says(&self, words: &[&str], code: i32) -> Said {
        let said = outcome(&mut self.command(words), SOON);
        assert_eq!(said.code(), Some(code), "{words:?}: {said:?}");
        said
    }
}

/// What was printed, without what is another each time.
fn masked(text: &str) -> String {
    // One id of some thousands is a number, such as 2536e7.
    if text.starts_with(['{', '['])
        && let Ok(mut object) = serde_json::from_str::<Value>(text)
    {
        mask(&mut object);
        return object.to_string();
    }
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let (bare, end) = word.split_at(word.trim_end().len());
        let is_id =
            bare.len() >= 20 && bare.trim_start_matches('x').bytes().all(|b| b.is_ascii_hexdigit());
        let is_moment = bare.starts_with("20") && bare.contains('T');
        let is_age = bare.ends_with('s') && bare.trim_end_matches('s').parse::<u32>().is_ok();
        match (is_id, is_moment || is_age) {
            (true, _) => format!("ID{end}"),
            (_, true) => format!("WHEN{end}"),
            (false, false) => word.to_owned(),
        }
    });
    words.collect()
}

fn mask(value: &mut Value) {
    const OTHER_EACH_TIME: [&str; 7] =
        ["id", "session", "usage", "owner", "exec", "version", "list_sha256"];
    match value {
        Value::Object(fields) => {
            // How far it came before it was killed is another story each time.
            if fields.get("ending").is_some_and(|ending| ending == "output") {
                fields.remove("stdout");
            }
            fields.retain(|name, _| !name.ends_with("_ms") && !OTHER_EACH_TIME.contains(&&**name));
            fields.values_mut().for_each(mask);
        }
        Value::Array(all) => all.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Carries a scene out here, through a socket, and over TCP with a key. Each must print the same.
pub(crate) fn each_way(place: &Place, scene: impl Fn(&mut Scene<'_>)) {
    let carry_out = |way: Way<'_>| {
        let mut scene_ = Scene { way, told: Vec::new() };
        scene(&mut scene_);
        scene_.told
    };
    let here = carry_out(Way::Here(place));
    {
        let server = Server::start(place, &socket(place));
        let there = carry_out(Way::There(place, &server.url, None));
        is_same(&there, &here, "through a socket");
    }
    let workspace = place.workspace.to_str().unwrap();
    let made = ["key", "create", "scene", "--allow-workspace", workspace];
    let key = place.says(&made, 0).text().trim().to_owned();
    let server = Server::start(place, "127.0.0.1:0");
    let there = carry_out(Way::There(place, &server.url, Some(&key)));
    is_same(&there, &here, "with a key");
}

#[track_caller]
fn is_same(there: &[(String, String, String)], here: &[(String, String, String)], how: &str) {
    for (there, here) in there.iter().zip(here) {
        assert_eq!(there, here, "{how}");
    }
    assert_eq!(there.len(), here.len());
}

/// The lines without what the operating system said, which a server keeps to itself.
fn without_causes(text: &str) -> String {
    let bare = |line: &str| match line.find(" (os error ") {
        Some(end) => {
            let cause = line[..end].rfind(": ").unwrap_or(end);
            format!("{}\n", &line[..cause])
        }
        None => format!("{line}\n"),
    };
    text.lines().map(bare).collect()
}

/// What happens in one of the ways, and what was printed.
pub(crate) struct Scene<'a> {
    pub(crate) way: Way<'a>,
    told: Vec<(String, String, String)>,
}

impl Scene<'_> {
    /// Says something that prints the same whichever way.
    #[track_caller]
    pub(crate) fn same(&mut self, words: &[&str], code: i32) -> Said {
        let said = self.way.says(words, code);
        let stderr = without_causes(&masked(&said.stderr));
        self.told.push((words.join(" "), masked(&said.text()), stderr));
        said
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.way.place().write(name, text);
    }

    pub(crate) fn workspace(&self) -> String {
        self.way.place().workspace.to_str().unwrap().to_owned()
    }
}

#[test]
fn a_session_and_its_commands_are_the_same_with_a_server() {
    everyone(|place| {
        each_way(place, |scene| {
            let workspace = scene.workspace();
            let made = ["-w", &workspace, "--profile", "no-network", "--label", "a=b"];
            scene.same(&[&["create", "--name", "s"], made.as_slice()].concat(), 0);
            scene.same(&["create", "--name", "s", "-w", &workspace], 1);
            scene.same(&["ls", "--label", "a=b", "--json"], 0);
            scene.same(&["show", "s", "--json"], 0);
            let both = "echo out; echo err >&2; echo $X; pwd; exit 3";
            scene.same(&["exec", "s", "--env", "X=y", "--cwd", ".", "--shell", both], 3);
            scene.same(&["exec", "s", "--json", "--id", "one", "--shell", both], 3);
            scene.same(&["exec", "s", "--json", "--id", "one", "--shell", both], 3);
            scene.same(&["exec", "s", "--id", "one", "--", "true"], 125);
            scene.same(&["exec", "s", "--", "no-such-program"], 127);
            scene.same(&["exec", "s", "--json", "--id", "none", "--", "no-such-program"], 127);
            scene.same(&["wait", "s", "none", "--json"], 127);
            scene.same(&["exec", "s", "--", "sh", "-c", "kill -9 $$"], 137);
            scene.same(&["exec", "s", "--timeout", "100ms", "--", "sleep", "60"], 124);
            scene.same(&["exec", "s", "--max-output", "1K", "--", "yes"], 137);
            let sleeps =
                "exec 2>/dev/null; trap 'exit 7' TERM; echo up; while :; do sleep 0.02; done";
            scene.same(&["exec", "s", "-d", "--id", "up", "--shell", sleeps], 0);
            let is_up = || scene.way.says(&["logs", "s", "up"], 0).text() == "up\n";
            until(SOON, || is_up().then_some(())).unwrap();
            scene.same(&["logs", "s", "up", "--json"], 0);
            scene.same(&["logs", "s", "one", "--tail", "1"], 0);
            scene.same(&["wait", "s", "up", "--timeout", "100ms"], 124);
            scene.same(&["signal", "s", "up", "TERM"], 0);
            scene.same(&["wait", "s", "up"], 7);
            scene.same(&["logs", "s", "up", "-f"], 0);
            scene.same(&["attach", "s", "one"], 0);
            scene.same(&["ps", "s", "--json"], 0);
            scene.same(&["pause", "s", "--json"], 0);
            scene.same(&["stop", "s", "--json"], 0);
            scene.same(&["resume", "s", "--json"], 0);
            scene.same(&["extend", "s", "5m"], 1);
            scene.same(&["ensure", "s", "-w", &workspace, "--profile", "no-network"], 0);
            scene.same(&["rm", "no-such-session"], 1);
            scene.same(&["rm", "s"], 0);
            scene.same(&["show", "s"], 1);
        });
    });
}

#[test]
fn what_a_session_uses_and_its_proof_come_from_a_server_too() {
    everyone(|place| {
        let server = Server::start(place, &socket(place));
        place.says(&["create", "--name", "s"], 0);
        let there = Way::There(place, &server.url, None);
        let used = there.says(&["show", "s", "--metrics", "--json"], 0).object();
        assert!(used["processes"].as_u64() >= Some(1), "{used}");
        let proof = there.says(&["show", "s", "--proof", "--json"], 0).object();
        assert_eq!(proof["overall"], "FullyEnforced", "{proof}");
        there.says(&["show", "nobody", "--metrics"], 1);
    });
}

#[test]
fn input_goes_to_a_command_of_a_server_byte_for_byte() {
    everyone(|place| {
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let file = place.write("input", "");
        fs::write(&file, &bytes).unwrap();
        let server = Server::start(place, &socket(place));
        let way = Way::There(place, &server.url, None);
        way.says(&["create", "--name", "s"], 0);
        let mut command = way.command(&["exec", "s", "-i", "--", "cat"]);
        let said = outcome(command.stdin(fs::File::open(&file).unwrap()), SOON);
        assert!(said.stdout == bytes, "{} of {} bytes", said.stdout.len(), bytes.len());
        assert_eq!(way.says(&["exec", "s", "--", "cat"], 0).text(), "");
        // A run has a sandbox of its own, which is gone.
        let run = ["run", "--json", "--shell", "echo out; echo err >&2; exit 4"];
        let report = way.says(&run, 4).object();
        assert_eq!((&report["stdout"], &report["exit_code"]), (&"out\n".into(), &4.into()));
        assert_eq!(way.says(&["run", "--", "echo", "x"], 0).text(), "x\n");
        let listed = way.says(&["ls", "--json"], 0).object();
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn files_are_the_same_with_a_server() {
    everyone(|place| {
        each_way(place, |scene| {
            let workspace = scene.workspace();
            let _ = fs::remove_dir_all(scene.way.place().workspace.join("d"));
            scene.same(&["create", "--name", "f", "-w", &workspace, "--profile", "no-network"], 0);
            scene.same(&["file", "mkdir", "f", "d/e", "--json"], 0);
            let mut write = scene.way.command(&["file", "write", "f", "d/a", "--json"]);
            let input = scene.way.place().write("input", "one\ntwo\nthree\n");
            let said = outcome(write.stdin(fs::File::open(&input).unwrap()), SOON);
            assert_eq!(said.code(), Some(0), "{said:?}");
            scene.told.push(("write".to_owned(), masked(&said.text()), said.stderr));
            for (words, code) in [
                (vec!["read", "f", "d/a"], 0),
                (vec!["read", "f", "d/a", "--offset", "4", "--length", "3"], 0),
                (vec!["read", "f", "d/a", "--offset", "400"], 0),
                (vec!["read", "f", "d/a", "--json"], 0),
                (vec!["read", "f", "d/a", "--lines", "2:3"], 0),
                (vec!["read", "f", "../../etc/passwd", "--json"], 1),
                (vec!["cp", "f", "d/a", "d/b", "--json"], 0),
                (vec!["cp", "f", "-r", "d", "d2", "--json"], 0),
                (vec!["rm", "f", "-r", "d2", "--json"], 0),
                (vec!["mv", "f", "d/b", "d/c", "--json"], 0),
                (vec!["chmod", "f", "600", "d/c", "--json"], 0),
                (vec!["stat", "f", "d/c", "--json"], 0),
                (vec!["list", "f", "d", "--depth", "3", "--json"], 0),
                (vec!["read-many", "f", "d/a", "d/none", "--json"], 1),
                (vec!["glob", "f", "d/**", "--json"], 0),
                (vec!["glob", "f", "d/*"], 0),
                (vec!["grep", "f", "t.o", "d", "--json"], 0),
                (vec!["grep", "f", "t.o", "d", "-C", "1"], 0),
                (vec!["edit", "f", "d/a", "--old", "two", "--new", "2", "--json"], 0),
                (vec!["edit", "f", "d/a", "--old", "gone", "--new", "2"], 1),
                (vec!["rm", "f", "d"], 1),
            ] {
                scene.same(&[&["file"], words.as_slice()].concat(), code);
            }
            scene.same(&["rm", "f"], 0);
        });
    });
}

#[test]
fn archives_and_large_files_pass_through_a_server() {
    everyone(|place| {
        let server = Server::start(place, &socket(place));
        let way = Way::There(place, &server.url, None);
        let workspace = place.workspace.to_str().unwrap();
        way.says(&["create", "--name", "s", "-w", workspace, "--profile", "no-network"], 0);
        let bytes: Vec<u8> =
            (0..3_000_000_u32).map(|n| (n.wrapping_mul(7919) >> 3).to_le_bytes()[0]).collect();
        let listed = masked(&place.says(&["ls"], 0).text());
        assert_eq!(masked(&way.says(&["ls"], 0).text()), listed);
        let local = place.base.join("home/large");
        fs::write(&local, &bytes).unwrap();
        place.give(&local);
        let local = local.to_str().unwrap();
        let up = way.says(&["file", "upload", "s", local, "d/large"], 0).text();
        assert!(fs::read(place.workspace.join("d/large")).unwrap() == bytes);
        let back = place.base.join("home/back");
        let down = ["file", "download", "s", "d/large", back.to_str().unwrap()];
        assert_eq!(way.says(&down, 0).text(), up);
        assert!(fs::read(&back).unwrap() == bytes);
        let archive = place.base.join("home/archive.tar");
        fs::write(&archive, way.says(&["file", "export", "s", "d"], 0).stdout).unwrap();
        let mut import = way.command(&["file", "import", "s", "e", "--json"]);
        let said = outcome(import.stdin(fs::File::open(&archive).unwrap()), SOON);
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert_eq!(said.object()["files"], 1);
        assert!(fs::read(place.workspace.join("e/large")).unwrap() == bytes);
    });
}

#[test]
fn layers_and_history_are_the_same_with_a_server() {
    everyone(|place| {
        each_way(place, |scene| {
            let workspace = scene.workspace();
            scene.way.place().write("a", "one\n");
            let _ = fs::remove_file(scene.way.place().workspace.join("b"));
            let made = ["-w", &workspace, "--profile", "no-network", "--cow"];
            scene.same(&[&["create", "--name", "l"], made.as_slice()].concat(), 0);
            scene.same(&["exec", "l", "--shell", "echo two >a; echo new >b"], 0);
            scene.same(&["diff", "l"], 0);
            scene.same(&["diff", "l", "--stat"], 0);
            scene.same(&["diff", "l", "--name-only", "a", "b"], 0);
            scene.same(&["diff", "l", "--json", "a"], 0);
            scene.same(&["snapshot", "create", "l", "--label", "tests pass", "--json"], 0);
            scene.same(&["exec", "l", "--shell", "echo three >a"], 0);
            scene.same(&["diff", "l", "1.."], 0);
            scene.same(&["history", "l"], 0);
            scene.same(&["undo", "l"], 0);
            scene.same(&["snapshot", "ls", "l", "--json"], 0);
            scene.same(&["snapshot", "restore", "l", "tests pass"], 0);
            scene.same(&["fork", "l@tests pass", "other"], 0);
            scene.same(&["exec", "other", "--", "cat", "b"], 0);
            let file = scene.way.place().base.join("home/exported");
            let file = file.to_str().unwrap();
            scene.same(&["snapshot", "export", "l", "tests pass", file, "--replace", "--json"], 0);
            scene.same(&["snapshot", "import", "other", file, "--label", "came", "--json"], 0);
            scene.same(&["apply", "l", "--dry-run"], 0);
            scene.same(&["apply", "l", "none"], 1);
            scene.way.place().write("a", "mine\n");
            scene.same(&["apply", "l"], 1);
            scene.same(&["discard", "l", "--json"], 0);
            scene.same(&["snapshot", "rm", "l", "tests pass", "--json"], 0);
            scene.same(&["rm", "l", "other"], 0);
        });
    });
}

#[test]
fn a_command_is_followed_through_the_end_of_its_server() {
    everyone(|place| {
        let listen = socket(place);
        let mut server = Server::start(place, &listen);
        let url = server.url.clone();
        let way = Way::There(place, &url, None);
        let workspace = place.workspace.to_str().unwrap();
        way.says(&["create", "--name", "s", "-w", workspace, "--profile", "no-network"], 0);
        let line = "seq 1 30000; until [ -e go ]; do sleep 0.02; done; seq 30001 60000; exit 5";
        let mut command = way.command(&["exec", "s", "--id", "long", "--shell", line]);
        let mut child = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        assert_eq!(first, "1\n");
        server.stop();
        place.write("go", "");
        drop(server);
        let _next = Server::start(place, &listen);
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        let said = ended(child, SOON);
        assert_eq!(said.code(), Some(5), "{said:?}");
        let expected: String = (2..=60_000).map(|n| format!("{n}\n")).collect();
        assert!(rest == expected, "{} bytes of {}", rest.len(), expected.len());
    });
}

#[test]
fn what_belongs_to_one_key_is_not_there_for_another() {
    everyone(|place| {
        let (alice, bob) = (key(place, "alice"), key(place, "bob"));
        let server = Server::start(place, "127.0.0.1:0");
        let hers = Way::There(place, &server.url, Some(&alice));
        let his = Way::There(place, &server.url, Some(&bob));
        let id = hers.says(&["create", "--name", "s"], 0).text().trim().to_owned();
        hers.says(&["exec", "s", "--id", "x", "--", "echo", "secret"], 0);
        for name in ["s", &id, &id[..6]] {
            for (words, code) in [
                (vec!["show", name], 1),
                (vec!["exec", name, "--", "id"], 125),
                (vec!["logs", name, "x"], 1),
                (vec!["wait", name, "x"], 125),
                (vec!["signal", name, "x", "KILL"], 1),
                (vec!["file", "list", name], 1),
                (vec!["pause", name], 1),
                (vec!["rm", name], 1),
            ] {
                let said = his.says(&words, code);
                let is_there = said.stderr.contains("secret") || said.text().contains("secret");
                assert!(said.stderr.contains("there is no") && !is_there, "{words:?}: {said:?}");
            }
        }
        assert_eq!(his.says(&["events", "--json"], 0).object()["events"], Value::Array(vec![]));
        his.says(&["create", "--name", "s"], 0);
        // The control: she has all of it.
        assert_eq!(hers.says(&["logs", "s", "x"], 0).text(), "secret\n");
        assert_eq!(hers.says(&["wait", &id[..6], "x"], 0).code(), Some(0));
        // A key in a file, which is nobody else's; one in the clear on a command line is no option.
        let told = |words: &[&str], code: i32| {
            let said = outcome(&mut place.cofferdam(words), SOON);
            assert_eq!(said.code(), Some(code), "{words:?}: {said:?}");
            said
        };
        let file = key_file(place, "key", &alice, 0o600);
        let words = ["--server", &server.url, "--server-key-file", file.to_str().unwrap(), "ls"];
        assert!(told(&words, 0).text().contains(&id));
        let open = key_file(place, "open", &alice, 0o644);
        let words = ["--server", &server.url, "--server-key-file", open.to_str().unwrap(), "ls"];
        assert!(told(&words, 1).stderr.contains("chmod 600"));
        for bad in [Some("cofferdam_nonsense"), None] {
            let said = Way::There(place, &server.url, bad).says(&["ls"], 1);
            assert!(said.stderr.contains("key"), "{said:?}");
        }
    });
}

#[test]
fn what_is_no_server_is_said_at_once() {
    everyone(|place| {
        for bad in ["nonsense", "ftp://127.0.0.1", "unix://relative", "http://me@127.0.0.1"] {
            let said = place.says(&["--server", bad, "ls"], 2);
            assert!(said.stderr.contains("hint: "), "{said:?}");
            place.says(&["--server", bad, "exec", "s", "--", "true"], 125);
        }
        // Nobody listens there: the port was free a moment ago, and no socket is there.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let nowhere = format!("unix://{}/none.sock", place.base.display());
        for url in [format!("http://{free}"), nowhere] {
            let said = place.says(&["--server", &url, "ls"], 1);
            assert!(said.stderr.contains("reach the server"), "{said:?}");
            let said = place.says(&["--server", &url, "show", "s", "--json"], 1).object();
            assert_eq!(said["error"]["kind"], "unavailable");
        }
        // A key is not told to a host that is reached in the clear.
        let mut command = place.cofferdam(&["--server", "http://192.0.2.1", "ls"]);
        let said = outcome(command.env("COFFERDAM_KEY", "canary"), SOON);
        assert_eq!(said.code(), Some(1));
        assert!(said.stderr.contains("https") && !said.stderr.contains("canary"), "{said:?}");
    });
}

#[test]
fn what_is_of_this_machine_never_ignores_a_server() {
    everyone(|place| {
        let url = "http://127.0.0.1:1";
        for words in [
            vec!["doctor"],
            vec!["explain"],
            vec!["serve"],
            vec!["key", "ls"],
            vec!["image", "ls"],
            vec!["gc"],
            vec!["config", "check"],
            vec!["completions", "bash"],
            vec!["wrap", "--", "true"],
        ] {
            let said = place.says(&[&["--server", url], words.as_slice()].concat(), 2);
            assert!(said.stderr.contains("--server: `"), "{words:?}: {said:?}");
            let mut command = place.cofferdam(&words);
            let said = outcome(command.env("COFFERDAM_SERVER", url), SOON);
            assert_eq!(said.code(), Some(2), "{said:?}");
            assert!(said.stderr.contains("Unset COFFERDAM_SERVER"), "{said:?}");
        }
        let refused = |words: &[&str], what: &str| {
            let said = place.say(&[&["--server", url], words].concat());
            assert!(said.code() != Some(0) && said.stderr.contains(what), "{words:?}: {said:?}");
        };
        refused(&["create", "--read", "/etc"], "--read with a server");
        refused(&["create", "--allow-host-port", "80"], "--allow-host-port with a server");
        refused(&["create", "--user", "root"], "--user with a server");
        // The control: without one they are as ever, and so is what wants no variable to count.
        place.says(&["config", "check"], 0);
        let mut command = place.cofferdam(&["run", "--no-config", "--", "echo", "here"]);
        let said = outcome(command.env("COFFERDAM_SERVER", url), SOON);
        assert_eq!((said.code(), said.text().as_str()), (Some(0), "here\n"), "{said:?}");
        let mut command = place.cofferdam(&["run", "--", "echo", "--no-config"]);
        let said = outcome(command.env("COFFERDAM_SERVER", url), SOON);
        assert_eq!(said.code(), Some(125), "{said:?}");
    });
}
