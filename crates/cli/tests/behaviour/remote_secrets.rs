//! Secrets that the gates of a server's sandboxes put in toward their hosts, for the key that has them.

use crate::place::{Place, SOON, everyone, outcome};
use crate::remote::{Server, Way, key};
use crate::secrets_put_in::{Outside, is_there, plain_value, trusted};
use crate::way_out::HOST;

/// Adds a secret at a server, without a word on any command line.
fn add(way: &Way<'_>, value: &str) {
    let mut add = way.command(&["secret", "add", "T", "--from-env", "CANARY"]);
    let said = outcome(add.env("CANARY", value), SOON);
    assert_eq!(said.code(), Some(0), "{said:?}");
}

/// A server whose sandboxes may reach these hosts.
fn serve(place: &Place, file: &str, outside: &Outside, other: &Outside) -> Server {
    let (port, other) = (outside.port.to_string(), format!("127.0.0.1:{}", other.port));
    let more = ["--profile", "repo-write", "--egress", &other, "--allow-host-port", &port];
    Server::start_with(place, "127.0.0.1:0", &more, &[("SSL_CERT_FILE", file)])
}

#[test]
fn a_secret_of_a_key_is_put_in_by_the_gate_of_a_server() {
    everyone(|place| {
        if !is_there(place, "curl") {
            return;
        }
        let value = plain_value(place);
        let (authority, file) = trusted(place);
        let (outside, other) = (Outside::new(Some(&authority)), Outside::new(None));
        let (alice, bob) = (key(place, "alice"), key(place, "bob"));
        let server = serve(place, file.to_str().unwrap(), &outside, &other);
        let hers = Way::There(place, &server.url, Some(&alice));
        let his = Way::There(place, &server.url, Some(&bob));
        add(&hers, &value);
        let grant = format!("T@{HOST}");
        let make = |verb: &[&'static str]| granted(verb, &grant);
        hers.says(&make(&["create", "--name", "s"]), 0);
        hers.says(&make(&["ensure", "s"]), 0);
        let ask = format!(
            "curl -sS -H \"Authorization: Bearer $T\" https://{HOST}:{}/; echo $T",
            outside.port
        );
        let run = make(&["run"]);
        for words in [
            [&["exec", "s", "--shell"], [ask.as_str()].as_slice()].concat(),
            [run.as_slice(), &["--shell", &ask]].concat(),
        ] {
            let said = hers.says(&words, 0);
            assert!(said.text().contains("Bearer ***"), "{words:?}: {said:?}");
            assert!(said.text().contains("cofferdam-placeholder-"), "{said:?}");
            assert!(!said.text().contains(&value), "{said:?}");
            assert!(outside.asked().concat().contains(&value), "{words:?}");
        }
        // A run whose placeholder is on its way to another host is over.
        let leak = format!(
            "curl -sS -x http://127.0.0.1:61002 -H \"X: $T\" http://127.0.0.1:{}/; sleep 30",
            other.port
        );
        let words = [run.as_slice(), &["--json", "--shell", &leak]].concat();
        let report = hers.says(&words, 137).object();
        assert_eq!(report["ending"]["kind"], "secret_alarm", "{report}");
        assert_eq!(other.asked(), [""; 0]);
        // What is hers is not there for another, nor for a host that the operator does not allow.
        let said = his.says(&make(&["create"]), 1);
        assert!(said.stderr.contains("there is no secret T"), "{said:?}");
        his.says(&run_of(&make(&["run"])), 125);
        let beyond = ["create", "--profile", "repo-write", "--secret", "T@other.test"];
        assert!(hers.says(&beyond, 1).stderr.contains("other.test:443"));
        let listed = hers.says(&["ls", "--json"], 0).object();
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    });
}

/// A verb with this grant.
fn granted<'a>(verb: &[&'a str], grant: &'a str) -> Vec<&'a str> {
    [verb, &["--profile", "repo-write", "--secret", grant]].concat()
}

fn run_of<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &["--", "true"]].concat()
}

#[test]
fn a_key_grants_secrets_only_by_the_scope() {
    everyone(|place| {
        let scopes = ["--scope", "look", "--scope", "run", "--scope", "manage"];
        let made = [&["key", "create", "runs"], scopes.as_slice()].concat();
        let key = place.says(&made, 0).text().trim().to_owned();
        let more = ["--profile", "repo-write", "--egress", "a.test:443"];
        let server = Server::start_with(place, "127.0.0.1:0", &more, &[]);
        let way = Way::There(place, &server.url, Some(&key));
        for verb in [vec!["create"], vec!["ensure", "s"], vec!["run"]] {
            let words = [verb.as_slice(), &["--secret", "T@a.test"]].concat();
            let (words, code) = match verb[0] {
                "run" => (run_of(&words), 125),
                _ => (words, 1),
            };
            let said = way.says(&words, code);
            assert!(said.stderr.contains("no scope secrets"), "{words:?}: {said:?}");
        }
        way.says(&["ensure", "s"], 0);
        for verb in [vec!["exec", "s"], vec!["run"]] {
            for given in [["--secret-file", "T"], ["--secret-fd", "T=3"]] {
                let said = way.says(&run_of(&[verb.as_slice(), &given].concat()), 125);
                assert!(said.stderr.contains("no scope secrets"), "{verb:?}: {said:?}");
            }
        }
    });
}

#[test]
fn a_sandbox_there_begins_with_less_than_its_operator_allows() {
    everyone(|place| {
        let key = key(place, "alice");
        let more = ["--profile", "repo-write", "--egress", "*.a.test:443", "--egress", "b.test"];
        let server = Server::start_with(place, "127.0.0.1:0", &more, &[]);
        let way = Way::There(place, &server.url, Some(&key));
        let less = ["--egress", "x.a.test:443", "--deny-egress", "b.test"];
        way.says(&[["create", "--name", "less"].as_slice(), &less].concat(), 0);
        let shown = way.says(&["network", "show", "less", "--json"], 0).text();
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["allow"], serde_json::json!(["x.a.test:443"]), "{shown}");
        assert_eq!(shown["deny"], serde_json::json!(["b.test"]), "{shown}");
        for rule in ["c.test:443", "x.a.test", "*"] {
            let said = way.says(&["create", "--egress", rule], 1);
            assert!(said.stderr.contains(&format!("way out to {rule}")), "{said:?}");
            let run = [["run", "--egress", rule].as_slice(), &["--", "true"]].concat();
            way.says(&run, 125);
        }
        assert_eq!(way.says(&["ls"], 0).text().lines().count(), 2, "a head and one session");
    });
}

#[test]
fn a_command_is_given_the_values_of_its_key_as_files_and_descriptors() {
    everyone(|place| {
        let value = plain_value(place);
        let (alice, bob) = (key(place, "alice"), key(place, "bob"));
        let server = Server::start_with(place, "127.0.0.1:0", &[], &[]);
        let hers = Way::There(place, &server.url, Some(&alice));
        let his = Way::There(place, &server.url, Some(&bob));
        add(&hers, &value);
        hers.says(&["ensure", "s"], 0);
        let look = "sha256sum </run/secrets/key; sha256sum <&3; cat /run/secrets/key; env; \
                    cat /proc/$$/cmdline";
        let sum = outcome(
            place.host("sh").args(["-c", "printf %s \"$V\" | sha256sum"]).env("V", &value),
            SOON,
        );
        for verb in [vec!["exec", "s"], vec!["run"]] {
            let given = ["--secret-file", "T=key", "--secret-fd", "T=3", "--shell", look];
            let said = hers.says(&[verb.as_slice(), &given].concat(), 0);
            assert_eq!(said.text().matches(&sum.text()).count(), 2, "{verb:?}: {said:?}");
            assert!(said.text().contains("***") && !said.text().contains(&value), "{said:?}");
            let said = his.says(&run_of(&[verb.as_slice(), &["--secret-file", "T"]].concat()), 125);
            assert!(!said.stderr.is_empty(), "{said:?}");
        }
        // What has no secret of its own finds none, and another key has none of this name.
        let said = hers.says(&["exec", "s", "--shell", "ls /run/secrets"], 0);
        assert_eq!(said.text(), "");
        his.says(&["ensure", "his"], 0);
        let said = his.says(&["exec", "his", "--secret-file", "T", "--", "true"], 125);
        assert!(said.stderr.contains("there is no secret T"), "{said:?}");
        // A place that two want, or that there is not, is refused before anything is asked.
        let twice = ["exec", "s", "--secret-file", "T", "--secret-file", "T", "--", "true"];
        assert!(hers.says(&twice, 125).stderr.contains("two secrets"));
    });
}
