//! Secrets: kept encrypted, given to commands, and nowhere else.

use crate::place::{PYTHON, Place, SOON, everyone, lines_of, outcome, skipped, started};
use crate::schema::is_valid;
use crate::sessions_durable::keepers;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A value that no other test has.
pub(crate) fn value(place: &Place) -> String {
    format!("pA5s+{}/w0rd&= x?", place.marker)
}

/// Adds it without a word on any command line.
pub(crate) fn add(place: &Place, name: &str, value: &str) {
    let mut command = place.cofferdam(&["secret", "add", name]);
    let mut child = started(command.stdin(Stdio::piped()).stdout(Stdio::null()));
    writeln!(child.stdin.take().unwrap(), "{value}").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_key_of_the_secrets_is_said_and_moves_only_when_told() {
    everyone(|place| {
        assert_eq!(place.says(&["secret", "key"], 0).text(), "none yet\n");
        add(place, "TOKEN", &value(place));
        assert_eq!(place.says(&["secret", "key"], 0).text(), "file\n");
        let key = place.says(&["secret", "key", "--json"], 0).object();
        is_valid(place, "secret-key", &key);
        assert_eq!(key["key"], "file");
        let said = place.says(&["secret", "key", "--move-to", "keyring"], 1);
        assert!(said.stderr.contains("DBUS_SESSION_BUS_ADDRESS is not set"), "{}", said.stderr);
        place.says(&["secret", "key", "--move-to", "file"], 0);
        assert_eq!(place.says(&["secret", "key"], 0).text(), "file\n");
    });
}

/// How large a core of this process may be.
fn most_of_core(pid: &str) -> u64 {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    line.split_whitespace().nth(4).unwrap().parse().unwrap_or(u64::MAX)
}

#[test]
fn who_holds_values_leaves_no_core() {
    everyone(|place| {
        add(place, "T", &value(place));
        let with_cores = |words: &str| {
            let mut shell = place.host("bash");
            let line = format!("ulimit -Sc \"$(ulimit -Hc)\"; exec {words}");
            shell.args(["-c", &line, place.program()]);
            shell
        };
        let control =
            outcome(with_cores("cat /proc/self/limits").stdin(Stdio::null()), SOON).text();
        if !control.contains("Max core file size        unlimited") {
            return skipped("cores", "the caller's hard limit lets no process leave one");
        }
        let mut run = with_cores("\"$0\" run --secret-file T --shell 'echo on; sleep 100'");
        let mut run = started(run.stdout(Stdio::piped()));
        let said = lines_of(run.stdout.take().unwrap()).recv_timeout(SOON).unwrap();
        assert_eq!((&*said, most_of_core(&run.id().to_string())), ("on", 1));
        run.kill().unwrap();
        run.wait().unwrap();
        let created = outcome(&mut with_cores("\"$0\" create --name k"), SOON);
        assert_eq!(created.code(), Some(0), "{created:?}");
        for keeper in keepers(place) {
            assert_eq!(most_of_core(&keeper), 1);
        }
    });
}

/// What a value looks like wherever it is.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![value.as_bytes().to_vec()];
    for before in 0..3 {
        let text = ["", "x", "xx"][before].to_owned() + value;
        let (first, end) = ((before * 8).div_ceil(6), text.len() * 8 / 6);
        for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            forms.push(encoded.as_bytes()[first..end].to_vec());
        }
    }
    let escaped = |digits: fn(&u8) -> String| -> Vec<u8> {
        let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._~".contains(b);
        let text = value.as_bytes().iter().map(|b| match plain(b) {
            true => char::from(*b).to_string(),
            false => digits(b),
        });
        text.collect::<String>().into_bytes()
    };
    forms.push(escaped(|b| format!("%{b:02X}")));
    forms.push(escaped(|b| format!("%{b:02x}")));
    forms
}

fn has(bytes: &[u8], forms: &[Vec<u8>]) -> bool {
    forms.iter().any(|form| bytes.windows(form.len()).any(|part| part == form))
}

fn files(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path(), found),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Every file of the place, and every process' words and environment, that has the value in it.
pub(crate) fn sightings(place: &Place, value: &str) -> Vec<String> {
    let forms = forms(value);
    let mut all = Vec::new();
    files(&place.base, &mut all);
    all.retain(|path| path != Path::new(place.program()));
    for process in fs::read_dir("/proc").unwrap().flatten() {
        all.extend(["cmdline", "environ"].map(|name| process.path().join(name)));
    }
    let seen = all.into_iter().filter(|path| fs::read(path).is_ok_and(|bytes| has(&bytes, &forms)));
    seen.map(|path| path.display().to_string()).collect()
}

/// A line that writes the secret in every way.
fn leak() -> String {
    let script = "import sys, urllib.parse as u, base64 as b\n\
        v = open('/run/secrets/T').read()\n\
        print(v); print(u.quote(v, safe='')); print(b.b64encode(('user:' + v).encode()).decode())\n\
        for c in v: sys.stderr.write(c); sys.stderr.flush()\n";
    format!(
        "cat /run/secrets/T; echo; base64 -w0 /run/secrets/T; echo; {PYTHON} -u -c \"{script}\""
    )
}

#[test]
fn a_value_is_in_no_file_and_no_process_but_those_it_is_for() {
    everyone(|place| {
        let value = value(place);
        add(place, "T", &value);
        place.says(&["create", "--cow", "--name", "s"], 0);
        let leak = leak();
        let holds =
            ["exec", "s", "-d", "--id", "holds", "--secret-file", "T", "--secret-fd", "T=5"];
        place.says(&[&holds[..], &["--shell", &format!("{leak}; sleep 1000")]].concat(), 0);
        let one = place.says(&["exec", "s", "--secret-file", "T", "--shell", &leak], 0);
        let shown = one.text() + &one.stderr;
        assert!(shown.contains("***") && !has(shown.as_bytes(), &forms(&value)), "{shown}");
        // A command that was given nothing, and reads what another one was given.
        let other = place.says(&["exec", "s", "--json", "--shell", &leak], 0);
        assert_eq!(other.object()["stderr"], "***");
        let run = place.says(&["run", "--json", "--secret-file", "T", "--shell", &leak], 0);
        assert_eq!(run.object()["stderr"], "***");
        let export = place.base.join("state/out");
        place.says(&["snapshot", "create", "s", "--label", "one"], 0);
        place.says(&["snapshot", "export", "s", "one", export.to_str().unwrap()], 0);
        let words: [&[&str]; 6] = [
            &["secret", "ls", "--json"],
            &["logs", "s", "holds"],
            &["ps", "s", "--json"],
            &["show", "s", "--json"],
            &["events", "s", "--json"],
            &["history", "s", "--json"],
        ];
        for said in words.map(|words| place.says(words, 0)) {
            let shown = said.text() + &said.stderr;
            assert!(!has(shown.as_bytes(), &forms(&value)), "{shown}");
        }
        assert_eq!(sightings(place, &value), [""; 0]);
        // The controls: it is seen where it is.
        let planted = place.write("planted", &format!("{{{}}}", STANDARD.encode(&value)));
        let mut sleep = started(place.host("sleep").arg("1000").env("PLANTED", &value));
        let seen = sightings(place, &value);
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        let expected = [planted.display().to_string(), format!("/proc/{}/environ", sleep.id())];
        assert_eq!(seen, expected);
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn a_file_with_a_secret_is_private_in_memory_and_goes_with_its_command() {
    everyone(|place| {
        add(place, "T", &value(place));
        let look = "stat -c '%a %U %F' /run/secrets/T; stat -f -c %T /run/secrets; \
            ls -A /run/secrets; (echo x >> /run/secrets/T) 2>/dev/null || echo closed";
        let expected = "400 cofferdam regular file\ntmpfs\nT\nclosed\n";
        let run = place.says(&["run", "--secret-file", "T", "--shell", look], 0);
        assert_eq!(run.text().replace("sandbox", "cofferdam"), expected);
        place.says(&["create", "--name", "s"], 0);
        let kept =
            place.says(&["exec", "s", "--secret-file", "T=x", "--shell", "ls /run/secrets"], 0);
        assert_eq!(kept.text(), "x\n");
        assert_eq!(place.says(&["exec", "s", "--shell", "ls -A /run/secrets"], 0).text(), "");
        // Two that run at once may have the same, and not two under one name.
        add(place, "U", "another value");
        place.says(
            &["exec", "s", "-d", "--id", "d", "--secret-file", "T", "--", "sleep", "1000"],
            0,
        );
        place.says(&["exec", "s", "--secret-file", "T", "--", "test", "-r", "/run/secrets/T"], 0);
        let refused = place.says(&["exec", "s", "--secret-file", "U=T", "--", "true"], 125);
        assert!(
            refused.stderr.contains("another command has another /run/secrets/T"),
            "{refused:?}"
        );
        place.says(&["exec", "s", "--", "test", "-r", "/run/secrets/T"], 0);
        place.says(&["signal", "s", "d", "KILL"], 0);
        place.says(&["wait", "s", "d"], 137);
        assert_eq!(place.says(&["exec", "s", "--shell", "ls -A /run/secrets"], 0).text(), "");
        // Where no command is given any, a run has no such place.
        assert_eq!(place.says(&["run", "--shell", "ls /run"], 0).text(), "");
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn a_secret_as_a_descriptor_is_read_from_its_beginning() {
    everyone(|place| {
        let value = value(place);
        add(place, "T", &value);
        add(place, "U", "another value");
        let sum = format!(
            "{PYTHON} -c 'import os; print(len(os.read(7, 999)), \
            len(open(\"/dev/fd/9\").read()), sorted(map(int, os.listdir(\"/proc/self/fd\")))[:6])'"
        );
        let expected = format!("{} 13 [0, 1, 2, 3, 7, 9]\n", value.len());
        for kind in ["run", "exec"] {
            let words = match kind {
                "run" => vec!["run"],
                _ => {
                    place.says(&["create", "--name", "s"], 0);
                    vec!["exec", "s"]
                }
            };
            let given = ["--secret-fd", "U=9", "--secret-fd", "T=7", "--shell", &sum];
            assert_eq!(place.says(&[&words[..], &given].concat(), 0).text(), expected, "{kind}");
        }
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn what_is_no_value_comes_through_as_it_is() {
    everyone(|place| {
        let value = value(place);
        add(place, "T", &value);
        let count = "head -c 3000000 /dev/zero | tr '\\0' p; printf 'pA5s+coffer'";
        let said = place.says(&["run", "--secret-fd", "T=3", "--shell", count], 0);
        assert_eq!(said.stdout.len(), 3_000_000 + 11);
        assert!(said.text().ends_with("ppppA5s+coffer"));
        place.says(&["create", "--name", "s"], 0);
        let said = place.says(&["exec", "s", "--secret-fd", "T=3", "--shell", count], 0);
        assert_eq!(said.stdout.len(), 3_000_000 + 11);
        // On a terminal, too.
        for words in [&["run"][..], &["exec", "s"]] {
            let given =
                ["-t", "--secret-fd", "T=3", "--shell", "cat <&3; echo; printf 'pA5s+coffer'"];
            let said = place.says(&[words, &given].concat(), 0);
            assert_eq!(said.text(), "***\r\npA5s+coffer");
        }
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn secrets_are_added_listed_and_removed() {
    everyone(|place| {
        let listed = || place.says(&["secret", "ls", "--json"], 0).object();
        assert_eq!(listed()["secrets"].as_array().unwrap().len(), 0);
        let file = place.base.join("home/value");
        fs::write(&file, "of a file\n").unwrap();
        place.give(&file);
        let from_file = ["secret", "add", "F", "--from-file", file.to_str().unwrap(), "--json"];
        let made = place.says(&from_file, 0).object();
        is_valid(place, "secret", &made);
        let mut command = place.cofferdam(&["secret", "add", "E", "--from-env", "PLANTED"]);
        assert_eq!(outcome(command.env("PLANTED", "of a variable"), SOON).code(), Some(0));
        let names = listed();
        is_valid(place, "secrets", &names);
        assert_eq!(
            (&names["secrets"][0]["name"], &names["secrets"][1]["name"]),
            (&"E".into(), &"F".into())
        );
        let lengths = "wc -c < /run/secrets/E; wc -c < /run/secrets/F";
        let words = ["run", "--secret-file", "E", "--secret-file", "F", "--shell", lengths];
        assert_eq!(place.says(&words, 0).text(), "13\n10\n");
        place.says(&["secret", "rm", "F"], 0);
        assert!(place.says(&["secret", "rm", "F"], 1).stderr.contains("there is no secret F"));
        let missing = place.says(&["run", "--secret-file", "F", "--", "true"], 125);
        assert!(missing.stderr.contains("there is no secret F"), "{missing:?}");
        // What may be a value is not repeated, and there is no option to write one.
        let refused = place.says(&["secret", "add", "a/b-value"], 2);
        assert!(refused.stderr.contains("cannot be the name"), "{refused:?}");
        place.says(&["secret", "add", "N", "--value", "x"], 2);
        let short = outcome(&mut place.cofferdam(&["secret", "add", "N"]), SOON);
        assert!(short.code() == Some(2) && short.stderr.contains("shorter"), "{short:?}");
        let twice = ["run", "--secret-fd", "E=3", "--secret-fd", "E=3", "--", "true"];
        assert!(place.says(&twice, 125).stderr.contains("descriptor 3"));
    });
}

#[test]
fn a_damaged_secret_is_told_beside_the_list_of_the_others() {
    everyone(|place| {
        add(place, "T", &value(place));
        let mut files = fs::read_dir(place.state.join("secrets")).unwrap().flatten();
        let file = files.find(|file| file.file_name().to_string_lossy().ends_with(".secret"));
        fs::write(file.unwrap().path(), "x").unwrap();
        add(place, "U", &value(place));
        let said = place.says(&["secret", "ls", "--json"], 1);
        assert_eq!(said.object()["secrets"][0]["name"], "U", "{said:?}");
        assert!(said.stderr.contains(".secret is damaged"), "{said:?}");
        place.says(&["secret", "rm", "T"], 0);
        assert_eq!(place.says(&["secret", "ls"], 0).stderr, "");
    });
}

#[test]
fn a_store_that_is_open_to_others_or_damaged_gives_nothing() {
    everyone(|place| {
        add(place, "T", &value(place));
        let key = place.state.join("secrets/key");
        let chmod = |mode: &str| {
            assert!(place.host("chmod").arg(mode).arg(&key).status().unwrap().success())
        };
        chmod("644");
        let open = place.says(&["run", "--secret-file", "T", "--", "true"], 125);
        assert!(
            open.stderr.contains("is open to others") && open.stderr.contains("chmod 0600"),
            "{open:?}"
        );
        chmod("600");
        fs::write(&key, "x").unwrap();
        let damaged = place.says(&["secret", "ls"], 1);
        assert!(damaged.stderr.contains("secrets/key is damaged"), "{damaged:?}");
    });
}
