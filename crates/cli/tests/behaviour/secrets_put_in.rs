//! Secrets that never enter: put in by the gate toward their host, and nowhere else.
//!
//! The host outside is a port of this machine's own loopback, with a certificate of an authority that the
//! caller trusts by SSL_CERT_FILE.

use crate::place::{PYTHON, Place, SOON, Said, everyone, outcome, skipped, started, until};
use crate::secrets::{add, sightings, value};
use crate::way_out::HOST;
use cofferdam_terminate::Authority;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A host outside.
pub(crate) struct Outside {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Outside {
    /// One that speaks TLS by this authority, or none.
    pub(crate) fn new(authority: Option<&Authority>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = authority.map(|authority| authority.serve_as(HOST).unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, config, heard) = (client.unwrap(), config.clone(), heard.clone());
                std::thread::spawn(move || match config {
                    Some(config) => answer(over_tls(config, client), &heard),
                    None => answer(client, &heard),
                });
            }
        });
        Self { port, asked }
    }

    /// What it was asked since this was called last.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn over_tls(
    config: Arc<ServerConfig>,
    client: std::net::TcpStream,
) -> StreamOwned<ServerConnection, std::net::TcpStream> {
    StreamOwned::new(ServerConnection::new(config).unwrap(), client)
}

/// Answers one request with its line of authorization, as a host that shows too much.
fn answer(mut client: impl Read + Write, heard: &Mutex<Vec<String>>) {
    let (mut read, mut piece) = (Vec::new(), [0; 4096]);
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        match client.read(&mut piece) {
            Ok(count) if count > 0 => read.extend_from_slice(&piece[..count]),
            Ok(_) | Err(_) => break,
        }
    }
    if read.is_empty() {
        return;
    }
    let text = String::from_utf8_lossy(&read).into_owned();
    let shown = text.lines().find(|line| line.to_lowercase().starts_with("authorization"));
    let body = format!("told {}\n", shown.unwrap_or("nothing"));
    heard.lock().unwrap().push(text);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close", body.len());
    let _ = client.write_all(format!("{head}\r\n\r\n{body}").as_bytes());
    let _ = client.flush();
}

/// An authority that the caller trusts, and where its certificate is.
pub(crate) fn trusted(place: &Place) -> (Authority, PathBuf) {
    let authority = Authority::new("outside").unwrap();
    let path = place.write("outside.pem", &authority.pem());
    (authority, path)
}

/// A command of a caller who trusts it.
fn trusting(place: &Place, file: &Path, words: &[&str]) -> Command {
    let mut command = place.cofferdam(words);
    command.env("SSL_CERT_FILE", file);
    command
}

fn says(place: &Place, file: &Path, words: &[&str], code: i32) -> Said {
    let said = outcome(&mut trusting(place, file, words), SOON);
    assert_eq!(said.code(), Some(code), "as {}: {words:?}: {said:?}", place.uid());
    said
}

/// Asks as a program of Java does.
const FETCH: &str = "\
public class Fetch {
    public static void main(String[] words) throws Exception {
        var asked = java.net.URI.create(words[0]).toURL().openConnection();
        asked.setRequestProperty(\"Authorization\", \"Bearer \" + System.getenv(\"T\"));
        System.out.print(new String(asked.getInputStream().readAllBytes()));
    }
}
";

/// What programs of the place ask, each with the placeholder as a token.
fn programs(url: &str) -> Vec<(&'static str, String)> {
    let python = format!(
        "import os, urllib.request as u; r = u.Request('{url}'); \
         r.add_header('Authorization', 'Bearer ' + os.environ['T']); print(u.urlopen(r).read())"
    );
    let requests = format!(
        "import os, requests; h = {{'Authorization': 'Bearer ' + os.environ['T']}}; \
         print(requests.get('{url}', headers=h).text)"
    );
    let node = format!(
        "fetch('{url}', {{headers: {{authorization: 'Bearer ' + process.env.T}}}})\
         .then(r => r.text()).then(console.log)"
    );
    let git =
        format!("git -c http.extraHeader=\"Authorization: Bearer $T\" ls-remote {url}/x.git; true");
    let curl = |more: &str| format!("curl -sS {more} -H \"Authorization: Bearer $T\" {url}");
    vec![
        ("curl", curl("")),
        ("curl", curl("-x http://127.0.0.1:61002")),
        ("curl", curl("-x socks5h://127.0.0.1:61002")),
        ("java", format!("java Fetch.java {url}")),
        ("python", format!("{PYTHON} -c \"{python}\"")),
        ("requests", format!("{PYTHON} -c \"{requests}\"")),
        ("node", format!("node -e \"{node}\"")),
        ("git", git),
    ]
}

/// Whether the program is there for commands of this place.
pub(crate) fn is_there(place: &Place, name: &str) -> bool {
    let probe = match name {
        "python" => format!("{PYTHON} -c pass"),
        "requests" => format!("{PYTHON} -c 'import requests'"),
        name => format!("command -v {name}"),
    };
    let is_there = place.run(&["--shell", &probe]).code() == Some(0);
    if !is_there {
        skipped(name, "it is not there for commands");
    }
    is_there
}

#[test]
fn a_secret_is_put_in_for_programs_that_know_nothing_of_it_and_is_nowhere_inside() {
    everyone(|place| {
        let value = plain_value(place);
        add(place, "T", &value);
        let (authority, file) = trusted(place);
        let outside = Outside::new(Some(&authority));
        let (port, grant) = (outside.port.to_string(), format!("T@{HOST}:scheme=Bearer"));
        let run = ["run", "--profile", "repo-write", "--allow-host-port", &port];
        let url = format!("https://{HOST}:{port}");
        place.write("Fetch.java", FETCH);
        for (name, line) in programs(&url) {
            if !is_there(place, name) {
                continue;
            }
            let words = [&run[..], &["--secret", &grant, "--shell", &line]].concat();
            let said = says(place, &file, &words, 0);
            let asked = outside.asked().concat();
            assert!(asked.contains(&format!("Bearer {value}")), "{name}: {asked} {said:?}");
            assert!(!(said.text() + &said.stderr).contains(&value), "{name}: {said:?}");
            if name == "curl" {
                assert!(said.text().contains("Bearer ***"), "what comes back is masked: {said:?}");
            }
        }
        // Inside there is a placeholder, and no key and no value in any file.
        let look = "echo $T; diff /etc/ssl/certs/ca-certificates.crt /run/cofferdam/ca-bundle.pem; grep -rl 'PRIVATE KEY' /run/cofferdam; ls /run/cofferdam; \
                    touch /run/cofferdam/x 2>/dev/null || echo closed";
        let words = [&run[..], &["--secret", &grant, "--shell", look]].concat();
        let said = says(place, &file, &words, 0).text();
        assert!(said.starts_with("cofferdam-placeholder-"), "{said}");
        assert!(said.ends_with("\nca-bundle.pem\nca.jks\nca.pem\nclosed\n"), "{said}");
        // The control: without a grant the placeholder is what arrives, and TLS is not touched.
        let plain = format!("curl -sSk -H 'Authorization: Bearer plain' {url}");
        let said = says(place, &file, &[&run[..], &["--shell", &plain]].concat(), 0);
        assert!(said.text().contains("Bearer plain"), "{said:?}");
    });
}

/// A value that can stand in a request.
pub(crate) fn plain_value(place: &Place) -> String {
    value(place).replace(['&', '=', '?', ' '], "-")
}

#[test]
fn a_configuration_grants_a_secret_by_its_name() {
    everyone(|place| {
        let value = plain_value(place);
        add(place, "T", &value);
        let (authority, file) = trusted(place);
        let outside = Outside::new(Some(&authority));
        let (port, grant) = (outside.port, format!("T@{HOST}:scheme=Bearer"));
        let text = format!(
            "[run]\nprofile = \"repo-write\"\nallow_host_port = [\"{port}\"]\nsecret = [\"{grant}\"]\n"
        );
        place.write("grants.toml", &text);
        let ask = format!("curl -sS -H \"Authorization: Bearer $T\" https://{HOST}:{port}");
        let run = ["run", "--config", "grants.toml"];
        // Said again it is the same grant.
        for more in [&[] as &[&str], &["--secret", &grant]] {
            let said = says(place, &file, &[&run, more, &["--shell", &ask]].concat(), 0);
            assert!(outside.asked().concat().contains(&format!("Bearer {value}")), "{said:?}");
        }
        let shown = place.says(&["config", "check", "grants.toml"], 0).text();
        assert!(shown.contains("T@") && !shown.contains(&value), "{shown}");
        // A profile without a way out closes this, too, and what is wrong is said by file and line.
        let strict = [&run[..], &["--profile", "no-network", "--shell", "echo ${T-none}"]].concat();
        assert_eq!(place.says(&strict, 0).text(), "none\n");
        let learn = ["policy", "learn", "--config", "grants.toml", "--shell", &ask];
        let learned = says(place, &file, &learn, 0).text();
        assert!(learned.contains(&format!("\nsecret = [\"T@{HOST}:")), "{learned}");
        place.write("wrong.toml", "[run]\nprofile = \"repo-write\"\nsecret = [\"T@*.test\"]\n");
        let said = place.says(&["run", "--config", "wrong.toml", "--", "true"], 125);
        assert!(said.stderr.contains("wrong.toml:3: "), "{said:?}");
    });
}

#[test]
fn what_cannot_be_granted_is_refused_before_anything_is_made() {
    everyone(|place| {
        add(place, "T", "a value");
        let out = ["--profile", "repo-write"];
        for (words, why) in [
            (vec!["--secret", "X@a.test"], "there is no secret X"),
            (vec!["--secret", "T@*.a.test"], "one host"),
            (vec!["--secret", "T@a.test", "--secret", "T@a.test:query=k"], "twice"),
            (vec!["--secret", "T@a.test", "--env", "T=x"], "variable T is set"),
        ] {
            for verb in [vec!["run"], vec!["create", "--name", "s"]] {
                let ending = if verb[0] == "run" { vec!["--", "true"] } else { Vec::new() };
                let said = place.say(&[&verb[..], &out, &words, &ending].concat());
                assert_ne!(said.code(), Some(0), "{said:?}");
                assert!(said.stderr.contains(why), "{words:?}: {said:?}");
            }
        }
        for profile in ["no-network", "read-only"] {
            let words = ["--profile", profile, "--secret", "T@a.test", "--", "true"];
            let said = place.run(&words);
            assert_eq!(said.code(), Some(125), "{said:?}");
            assert!(said.stderr.contains("has no way out"), "{said:?}");
        }
        let kept = place.says(&["ls", "--json"], 0).object();
        assert_eq!(kept["sessions"], serde_json::json!([]), "nothing was made");
        let explained =
            place.says(&["explain", "--profile", "repo-write", "--secret", "T@a.test"], 0);
        assert!(explained.text().contains("a.test:443"), "{explained:?}");
        assert!(explained.text().contains("$T is a placeholder"), "{explained:?}");
    });
}

#[test]
fn a_placeholder_toward_another_host_ends_a_run_and_goes_nowhere() {
    everyone(|place| {
        let value = plain_value(place);
        add(place, "T", &value);
        let other = Outside::new(None);
        let (port, address) = (other.port.to_string(), format!("127.0.0.1:{}", other.port));
        let words =
            ["run", "--profile", "repo-write", "--egress", &address, "--secret", "T@a.test"];
        let ask = |what: &str| {
            format!("curl -sS -x http://127.0.0.1:61002 {what} http://127.0.0.1:{port}/; sleep 30")
        };
        for what in [
            "-H \"Authorization: Bearer $T\"",
            "-u \"user:$T\"",
            "-d \"body=$T\"",
            "-p -H \"X: $T\"",
            "-G -d \"q=$T\"",
        ] {
            let said = place.says(&[&words[..], &["--shell", &ask(what)]].concat(), 137);
            assert!(said.stderr.contains("secret"), "{what}: {said:?}");
            let asked = other.asked().concat();
            assert!(!asked.contains("cofferdam-placeholder-"), "{what}: {asked}");
        }
        let script = ask("-H \"X: $T\"");
        let json = [&words[..], &["--json", "--shell", &script]].concat();
        let report = place.says(&json, 137).object();
        assert_eq!(report["ending"]["kind"], "secret_alarm", "{report}");
        // The control: without the placeholder it goes through.
        let plain =
            format!("curl -sS -x http://127.0.0.1:61002 -H 'X: y' http://127.0.0.1:{port}/");
        let said = place.says(&[&words[..], &["--shell", &plain]].concat(), 0);
        assert_eq!(said.text(), "told nothing\n");
        assert_eq!(other.asked().len(), 1);
    });
}

#[test]
fn a_run_that_ends_for_a_placeholder_within_tls_names_secret_and_host() {
    everyone(|place| {
        add(place, "T", &plain_value(place));
        add(place, "U", &plain_value(place));
        let (authority, file) = trusted(place);
        let outside = Outside::new(Some(&authority));
        let (port, grant) = (outside.port.to_string(), format!("T@{HOST}"));
        let words = ["run", "--profile", "repo-write", "--allow-host-port", &port];
        let words = [&words[..], &["--secret", &grant, "--secret", "U@a.test"]].concat();
        let wanted = format!("secret alarm: the placeholder of secret U is not for {HOST}:{port}");
        for what in ["-H \"X: $U\"", "-d \"x=$U\""] {
            let script = format!("curl -sS {what} https://{HOST}:{port}/; sleep 30");
            let told = says(place, &file, &[&words[..], &["--shell", &script]].concat(), 137);
            assert!(told.stderr.contains(&wanted), "{told:?}");
            let json = [&words[..], &["--json", "--shell", &script]].concat();
            let report = says(place, &file, &json, 137).object();
            assert_eq!(report["ending"]["kind"], "secret_alarm", "{report}");
            let denials = report["denials"].as_array().unwrap();
            assert!(denials.iter().any(|denial| denial["reason"] == *wanted), "{report}");
            assert!(!outside.asked().concat().contains("placeholder"));
        }
        // The control: its own goes there, and nothing is denied.
        let own = format!("curl -sS -H \"Authorization: Bearer $T\" https://{HOST}:{port}/");
        let said = says(place, &file, &[&words[..], &["--shell", &own]].concat(), 0);
        assert!(!said.stderr.contains("denied"), "{said:?}");
    });
}

#[test]
fn a_session_has_its_secrets_over_pause_loss_and_gate_and_is_frozen_by_an_alarm() {
    everyone(|place| {
        let value = plain_value(place);
        add(place, "T", &value);
        let (authority, file) = trusted(place);
        let (outside, other) = (Outside::new(Some(&authority)), Outside::new(None));
        let (port, address) = (outside.port.to_string(), format!("127.0.0.1:{}", other.port));
        let grant = format!("T@{HOST}");
        let create = ["create", "--cow", "--name", "s", "--profile", "repo-write"];
        let way = ["--allow-host-port", &port, "--egress", &address, "--secret", &grant];
        says(place, &file, &[&create[..], &way].concat(), 0);
        let ask = format!("curl -sS -H \"Authorization: Bearer $T\" https://{HOST}:{port}/");
        let reaches = || {
            let said = says(place, &file, &["exec", "s", "--shell", &ask], 0);
            assert!(said.text().contains("Bearer ***"), "{said:?}");
            assert!(outside.asked().concat().contains(&value));
        };
        reaches();
        place.says(&["pause", "s"], 0);
        place.says(&["resume", "s"], 0);
        reaches();
        let shown = place.says(&["show", "s", "--json"], 0).object();
        assert_eq!(shown["secrets"][0], format!("{grant}:header=authorization"), "{shown}");
        memory_is_without(place, &value);
        let said = place.says(&["exec", "s", "--secret", &grant, "--", "true"], 125);
        assert!(said.stderr.contains("--secret is for a sandbox"), "{said:?}");
        // All that is kept of it, and all that runs, is without the value.
        place.says(&["snapshot", "create", "s", "--label", "one"], 0);
        let export = place.base.join("state/out");
        place.says(&["snapshot", "export", "s", "one", export.to_str().unwrap()], 0);
        assert_eq!(sightings(place, &value), [""; 0]);
        let planted = place.write("planted", &value);
        let mut sleep = started(place.host("sleep").arg("1000").env("PLANTED", &value));
        let seen = sightings(place, &value);
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        fs::remove_file(&planted).unwrap();
        let expected = [planted.display().to_string(), format!("/proc/{}/environ", sleep.id())];
        assert_eq!(seen, expected, "control");
        // Another sandbox of it reads the value anew.
        for keeper in crate::sessions_durable::keepers(place) {
            let keeper = rustix::process::Pid::from_raw(keeper.parse().unwrap()).unwrap();
            rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
        }
        reaches();
        alarm_freezes(place, &other);
        alarm_stays(place, &file, &other);
        // A secret that is gone is missed by its name.
        place.says(&["secret", "rm", "T"], 0);
        for keeper in crate::sessions_durable::keepers(place) {
            let keeper = rustix::process::Pid::from_raw(keeper.parse().unwrap()).unwrap();
            rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
        }
        let said = place.says(&["exec", "s", "--", "true"], 125);
        assert!(said.stderr.contains("secret T"), "{said:?}");
        place.says(&["rm", "s"], 0);
    });
}

/// Nothing that runs inside has the value in its memory, the sandbox's first process included.
fn memory_is_without(place: &Place, value: &str) {
    if !place.is_root() {
        skipped("memory of the sandbox", "only root can read it");
        return;
    }
    let marker = format!("10{}", std::process::id());
    place.says(&["exec", "s", "-d", "--id", "marked", "--", "sleep", &marker], 0);
    let namespace = |pid: &Path| fs::read_link(pid.join("ns/pid")).ok();
    let all = || fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_marked = |pid: &PathBuf| {
        let words = fs::read(pid.join("cmdline")).unwrap_or_default();
        words == format!("sleep\0{marker}\0").as_bytes()
    };
    let marked = until(SOON, || all().find(is_marked)).expect("it runs");
    let inside = namespace(&marked).unwrap();
    let of_it: Vec<PathBuf> =
        all().filter(|pid| namespace(pid).as_ref() == Some(&inside)).collect();
    assert!(of_it.len() > 1, "its first process is among them: {of_it:?}");
    let has =
        |pid: &PathBuf, text: &str| memory(pid).windows(text.len()).any(|w| w == text.as_bytes());
    for pid in &of_it {
        assert!(!has(pid, value), "{}", pid.display());
    }
    assert!(has(&marked, &marker), "control: memory can be read");
    place.says(&["signal", "s", "marked", "KILL"], 0);
}

/// What a process of a sandbox of ours has in memory that can be written.
fn memory(pid: &Path) -> Vec<u8> {
    let maps = fs::read_to_string(pid.join("maps")).unwrap_or_default();
    let Ok(file) = fs::File::open(pid.join("mem")) else { return Vec::new() };
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (from, rest) = line.split_once('-').unwrap();
        let to = rest.split(' ').next().unwrap();
        let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).unwrap());
        let mut piece = vec![0; usize::try_from(to - from).unwrap().min(64 << 20)];
        if std::os::unix::fs::FileExt::read_at(&file, &mut piece, from).is_ok() {
            all.append(&mut piece);
        }
    }
    all
}

/// What an alarm froze stays so when its keeper is killed, each time.
fn alarm_stays(place: &Place, file: &Path, other: &Outside) {
    let port = other.port;
    let ask = format!("curl -sS -x http://127.0.0.1:61002 -H \"X: $T\" http://127.0.0.1:{port}/");
    for _ in 0..2 {
        says(place, file, &["exec", "s", "--shell", &ask], 125);
        let keepers = crate::sessions_durable::keepers(place);
        assert!(!keepers.is_empty());
        for keeper in keepers {
            let keeper = rustix::process::Pid::from_raw(keeper.parse().unwrap()).unwrap();
            rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
        }
        let refused = place.says(&["exec", "s", "--", "true"], 125);
        assert!(refused.stderr.contains("is frozen: the placeholder of secret T"), "{refused:?}");
        assert!(refused.stderr.contains("cofferdam resume"), "{refused:?}");
        assert!(crate::sessions_durable::keepers(place).is_empty(), "nothing was started");
        let shown = place.says(&["show", "s", "--json"], 0).object();
        assert_eq!(shown["alarm"]["secret"], "T", "{shown}");
        let listed = place.says(&["ls"], 0).text();
        assert!(listed.contains("frozen by an alarm"), "{listed}");
        says(place, file, &["resume", "s"], 0);
        let said = says(place, file, &["exec", "s", "--", "echo", "on"], 0);
        assert_eq!(said.text(), "on\n", "control: a person let it go on");
        let shown = place.says(&["show", "s", "--json"], 0).object();
        assert_eq!(shown.get("alarm"), None, "{shown}");
    }
    assert_eq!(other.asked(), [""; 0]);
}

/// A command that uses the placeholder toward another host stands still until somebody says otherwise.
fn alarm_freezes(place: &Place, other: &Outside) {
    let port = other.port;
    let ask =
        |what: &str| format!("curl -sS -x http://127.0.0.1:61002 {what} http://127.0.0.1:{port}/");
    let plain = place.says(&["exec", "s", "--shell", &ask("-H 'X: y'")], 0);
    assert_eq!(plain.text(), "told nothing\n", "control");
    other.asked();
    let line = format!("{}; echo went on", ask("-H \"X: $T\""));
    let said = place.says(&["exec", "s", "--id", "leaks", "--shell", &line], 125);
    assert!(said.stderr.contains("placeholder of secret T"), "{said:?}");
    assert_eq!(other.asked(), [""; 0]);
    let shown = place.says(&["show", "s", "--json"], 0).object();
    assert_eq!((&shown["phase"], &shown["alarm"]["secret"]), (&"paused".into(), &"T".into()));
    let events = place.says(&["events", "s", "--json"], 0).text();
    assert!(events.contains("\"secret_alarm\""), "{events}");
    // Nothing wakes it by the way.
    let said = place.says(&["exec", "s", "--", "true"], 125);
    assert!(said.stderr.contains("resume"), "{said:?}");
    let said = place.say(&["fork", "s", "copy"]);
    assert!(said.code() != Some(0) && said.stderr.contains("is frozen"), "{said:?}");
    place.says(&["resume", "s"], 0);
    place.says(&["fork", "s", "copy"], 0);
    place.says(&["rm", "copy"], 0);
    let went_on = || {
        let said = place.say(&["logs", "s", "leaks"]);
        said.text().contains("went on").then_some(())
    };
    until(SOON, went_on).expect("it goes on when it is resumed on purpose");
    let shown = place.says(&["show", "s", "--json"], 0).object();
    assert_eq!((&shown["phase"], shown.get("alarm")), (&"running".into(), None), "{shown}");
}
