//! What a session may reach is changed while it runs, told afterwards, and learned.

use crate::place::{Place, everyone, until};
use crate::schema::is_valid;
use crate::sessions_durable::keepers;
use crate::way_out::{HOST, ask, server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// How long something inside may take to be told.
const SOON: Duration = Duration::from_secs(30);

fn heard(place: &Place, port: u16) -> String {
    place.says(&["exec", "s", "--shell", &ask(HOST, port)], 0).text()
}

#[test]
fn rules_are_changed_while_a_session_runs_and_outlive_its_sandbox() {
    everyone(|place| {
        let (first, second) = (server(), server());
        let (one, two) = (first.to_string(), second.to_string());
        let words = ["create", "--name", "s", "--profile", "repo-write", "--allow-host-port", &one];
        place.says(&words, 0);
        assert_eq!([heard(place, first), heard(place, second)], ["reached\n", "no\n"]);
        let set =
            ["network", "set", "s", "--allow-host-port", &two, "--egress", "a.test", "--json"];
        let set = place.says(&set, 0).object();
        is_valid(place, "network", &set);
        assert_eq!(set["version"], 2);
        assert_eq!([heard(place, first), heard(place, second)], ["no\n", "reached\n"]);
        place.says(&["network", "allow", "s", "b.test:443", "*.c.test:443"], 0);
        let denied = place.says(&["network", "deny", "s", "a.test"], 0).text();
        assert!(denied.contains("allow  b.test:443"), "{denied}");
        assert!(denied.contains("deny   a.test"), "{denied}");
        assert!(denied.contains("deny   everything else"), "{denied}");
        // Another sandbox of the session has what was said last.
        for keeper in keepers(place) {
            let keeper = Pid::from_raw(keeper.parse().unwrap()).unwrap();
            kill_process(keeper, Signal::KILL).unwrap();
        }
        assert_eq!([heard(place, first), heard(place, second)], ["no\n", "reached\n"]);
        let shown = place.says(&["network", "show", "s", "--json"], 0).object();
        assert_eq!(shown["allow"], json!(["b.test:443", "*.c.test:443"]));
        assert_eq!(shown["deny"], json!(["a.test"]));
        assert_eq!(shown["host_ports"], json!([second]));
        let events = place.says(&["events", "s", "--json"], 0).text();
        assert_eq!(events.matches("network_changed").count(), 3, "{events}");
    });
}

#[test]
fn connections_are_listed_with_what_became_of_them() {
    everyone(|place| {
        let port = server();
        let open = port.to_string();
        let words =
            ["create", "--name", "s", "--profile", "repo-write", "--allow-host-port", &open];
        place.says(&words, 0);
        assert_eq!(heard(place, port), "reached\n");
        place.says(&["exec", "s", "--shell", &ask("192.0.2.1", 8443)], 0);
        let list = place.says(&["audit", "s", "--json"], 0).object();
        is_valid(place, "connections", &list);
        let all = list["connections"].as_array().unwrap();
        let of = |decision: &str| -> Vec<&Value> {
            all.iter().filter(|one| one["decision"] == decision && one["how"] != "dns").collect()
        };
        let (allowed, denied) = (of("allowed"), of("denied"));
        assert_eq!((allowed.len(), denied.len()), (1, 1), "{list}");
        assert_eq!((&allowed[0]["host"], &allowed[0]["port"]), (&json!(HOST), &json!(port)));
        assert_eq!(allowed[0]["bytes_down"], 8);
        assert_eq!(denied[0]["address"], "192.0.2.1");
        assert_eq!(denied[0]["remedy"], "--egress 192.0.2.1:8443");
        let execs = place.says(&["ps", "s", "--json"], 0).object()["execs"].clone();
        let only = |number: usize| json!([execs[number]["id"]]);
        assert_eq!((&allowed[0]["execs"], &denied[0]["execs"]), (&only(0), &only(1)), "{list}");
        let text = place.says(&["audit", "s", "--denied"], 0).text();
        assert!(text.contains("192.0.2.1:8443") && !text.contains(HOST), "{text}");
        assert!(text.contains("rules of version 1"), "{text}");
        let since = list["next"].to_string();
        let later = place.says(&["audit", "s", "--json", "--since", &since], 0).object();
        assert_eq!(later["connections"], json!([]));
        // A name may hold any byte, and is one line.
        let forged = "import socket as s;u=s.socket(2,2);u.sendto(b'\\0\\7\\1\\0\\0\\1'+bytes(6)+\
            b'\\x0ca\\nforged one\\0\\0\\1\\0\\1',(open('/etc/resolv.conf').read().split()[1],53));u.recv(512)";
        place.says(&["exec", "s", "--", "python3", "-c", forged], 0);
        let text = place.says(&["audit", "s", "--denied"], 0).text();
        assert!(text.contains("a\\nforged one"), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("forged")), "{text}");
        let since = place.says(&["audit", "s", "--json"], 0).object()["next"].to_string();
        // Where two ran it was one of them.
        let waiting = place.says(&["exec", "--detach", "s", "--", "sleep", "60"], 0).text();
        place.says(&["exec", "s", "--shell", &ask("192.0.2.1", 8444)], 0);
        let both = place.says(&["audit", "s", "--json", "--since", &since], 0).object();
        let both = both["connections"][0]["execs"].as_array().unwrap().clone();
        assert_eq!((both.len(), &both[0]), (2, &json!(waiting.trim())), "{both:?}");
        let text = place.says(&["audit", "s", "--denied"], 0).text();
        let line = text.lines().find(|line| line.contains("8444")).unwrap();
        assert!(line.contains(&format!("asked by {} or ", waiting.trim())), "{line}");
    });
}

#[test]
fn what_is_denied_is_told_in_the_events_while_the_command_runs() {
    everyone(|place| {
        let (open, closed) = (server(), server());
        let port = open.to_string();
        let words =
            ["create", "--name", "s", "--profile", "repo-write", "--allow-host-port", &port];
        place.says(&words, 0);
        let denied = || -> Vec<Value> {
            let events = place.says(&["events", "s", "--json"], 0).object();
            let all = events["events"].as_array().unwrap().iter();
            let all = all.filter(|one| one["kind"] == "connection_denied");
            all.map(|one| one["data"].clone()).collect()
        };
        assert_eq!(heard(place, open), "reached\n", "control: what is allowed is no such event");
        assert_eq!(denied(), Vec::<Value>::new());
        // It asks over and over, and goes on.
        let script = format!("while :; do {}; sleep 0.1; done", ask(HOST, closed));
        place.says(&["exec", "--detach", "--id", "asks", "s", "--shell", &script], 0);
        let told =
            until(SOON, || Some(denied()).filter(|all| !all.is_empty())).expect("it is told");
        let remedy = format!("--allow-host-port {closed}");
        let expected = json!([HOST, closed, remedy, ["asks"]]);
        let shown = |one: &Value| json!([one["host"], one["port"], one["remedy"], one["execs"]]);
        assert_eq!(shown(&told[0]), expected, "{told:?}");
        // By other rules it is another denial; by the same ones it is told once however often it comes.
        place.says(&["network", "deny", "s", "other.test:443"], 0);
        let told = until(SOON, || Some(denied()).filter(|all| all.len() >= 2)).expect("told anew");
        assert_eq!(told.iter().map(shown).collect::<Vec<_>>(), [expected.clone(), expected]);
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn a_session_without_a_way_out_gets_none() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        assert_eq!(place.says(&["network", "show", "s"], 0).text(), "no way out\n");
        let said = place.says(&["network", "allow", "s", "a.test:443"], 1);
        assert!(said.stderr.contains("without a way out"), "{}", said.stderr);
        assert_eq!(place.says(&["audit", "s"], 0).text(), "");
        place.says(&["network", "allow", "s", "*.com:443"], 2);
        place.says(&["network", "allow", "s"], 2);
        let words = ["create", "--name", "open", "--profile", "full-dev"];
        place.says(&words, 0);
        let said = place.says(&["network", "set", "open"], 1);
        assert!(said.stderr.contains("Deny *"), "{}", said.stderr);
    });
}

#[test]
fn rules_that_leave_nothing_close_what_lives() {
    everyone(|place| {
        let rule = "good.example.com:80";
        for close in [&[][..], &["--deny-egress", "good.example.com"], &["--ask", "0s"]] {
            place.says(&["create", "--name", "s", "--profile", "repo-write", "--egress", rule], 0);
            let resolves = ["exec", "s", "--", "getent", "hosts", "good.example.com"];
            place.says(&resolves, 0);
            let set = [&["network", "set", "s", "--json"][..], close].concat();
            let said = place.says(&set, 0).object();
            assert_eq!((&said["allow"], &said["version"]), (&json!([]), &json!(2)), "{close:?}");
            assert_eq!(place.says(&["network", "show", "s", "--json"], 0).object(), said);
            place.says(&resolves, 2);
            // What comes next is open again, and nothing else.
            let allow = ["network", "allow", "s", "other.example.com:80"];
            let other = ["exec", "s", "--", "getent", "hosts", "other.example.com"];
            place.says(&allow, 0);
            place.says(&resolves, 2);
            place.says(&other, 0);
            // Nor is a sandbox that comes after the rules were taken away without a way to be told others.
            place.says(&set, 0);
            place.says(&["stop", "s"], 0);
            place.says(&resolves, 2);
            place.says(&other, 2);
            place.says(&allow, 0);
            place.says(&other, 0);
            place.says(&["rm", "s"], 0);
        }
    });
}

#[test]
fn rules_are_tried_and_told_without_any_sandbox() {
    everyone(|place| {
        let rules = ["--egress", "*.example.com:443", "--deny-egress", "ads.example.com"];
        let test = |destination: &str, code: i32| {
            let words = [&["policy", "test", "--json"][..], &rules, &[destination]].concat();
            let tested = place.says(&words, code).object();
            is_valid(place, "policy-tested", &tested);
            tested
        };
        assert_eq!(test("api.example.com:443", 0)["rule"], "*.example.com:443");
        assert_eq!(test("example.com:443", 0)["allowed"], true);
        assert_eq!(test("ads.example.com:443", 1)["rule"], "ads.example.com");
        assert_eq!(test("API.example.com.:80", 1)["remedy"], "--egress api.example.com:80");
        assert_eq!(test("169.254.169.254:80", 1)["allowed"], false);
        // An address is final; where a name leads to is not known here.
        let condition = |destination: &str, code| test(destination, code)["condition"].clone();
        assert!(condition("api.example.com:443", 0).as_str().unwrap().contains("private"));
        assert_eq!(condition("ads.example.com:443", 1), Value::Null);
        let told = |rule: &str, destination: &str, code| {
            place.says(&["policy", "test", "--egress", rule, destination], code).text()
        };
        assert!(told("*", "example.com:443", 0).contains("; where it leads to an address that is"));
        assert_eq!(
            told("*", "[2a00:1450::200e]:443", 0),
            "[2a00:1450::200e]:443 is allowed by *\n"
        );
        let six = told("*", "[2001:db8::1]:443", 1);
        assert!(six.contains("--egress [2001:db8::1]:443 would allow it"), "{six}");
        let listed = told("[2001:db8::/32]:443", "[2001:DB8:0::1]:443", 0);
        assert!(
            listed.starts_with("[2001:db8::1]:443 is allowed by [2001:db8::/32]:443"),
            "{listed}"
        );
        let inside = told("198.18.0.0/15", "198.18.0.5:443", 1);
        assert!(inside.contains("stand for a name"), "{inside}");
        // What a name that is allowed may still be denied by.
        let denied = |rule: &str| {
            let rules = ["--egress", "example.com:443", "--deny-egress", rule, "example.com:443"];
            place.says(&[&["policy", "test"][..], &rules].concat(), 0).text()
        };
        let condition = "where it leads to an address of --deny-egress 203.0.113.0/24";
        assert!(denied("203.0.113.0/24").contains(condition), "{}", denied("203.0.113.0/24"));
        assert!(!denied("203.0.113.0/24:80").contains("203.0.113"), "of another port");
        for bad in [
            "example.com",
            "example.com:0",
            "a b:1",
            "exa%6dple.com:443",
            "x@a.example.com:443",
            "::1:80",
            "[::1:80",
        ] {
            place.says(&["policy", "test", "--egress", "*", bad], 2);
        }
        let told = place.says(&[&["policy", "explain"], &rules[..]].concat(), 0).text();
        assert!(told.contains("example.com and every name below it on port 443"), "{told}");
        assert!(told.contains("whatever allows it"), "{told}");
        assert_eq!(place.says(&["policy", "explain"], 0).text(), "nothing is reached\n");
    });
}

#[test]
fn rules_are_learned_from_what_a_command_reached_and_proved() {
    everyone(|place| {
        let port = server();
        let open = port.to_string();
        let script = format!("{}; echo made >made", ask(HOST, port));
        let words = ["policy", "learn", "--allow-host-port", &open, "--json", "--shell", &script];
        let learned = place.says(&words, 0).object();
        is_valid(place, "policy-learned", &learned);
        assert_eq!(learned["host_ports"], json!([port]));
        assert_eq!((&learned["egress"], &learned["suffices"]), (&json!([]), &json!(true)));
        assert!(!place.workspace.join("made").exists(), "nothing of it stays");
        assert_eq!(place.says(&["ls", "--json"], 0).object()["sessions"], json!([]));
        // What was refused while it was watched is told, and is no part of the rules.
        let file = place.workspace.join("learned.toml");
        let script = ask("10.11.12.13", 80);
        let words = ["policy", "learn", "--output", file.to_str().unwrap(), "--shell", &script];
        let said = place.says(&words, 0);
        assert!(said.stderr.contains("run --config"), "{}", said.stderr);
        assert!(
            said.stderr.contains("10.11.12.13:80 was asked for and refused both times"),
            "{}",
            said.stderr
        );
        let expected = "[run]\nprofile = \"repo-write\"\negress = []\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
        place.says(&words, 1);
    });
}

#[test]
fn what_is_learned_is_a_configuration_as_it_stands() {
    everyone(|place| {
        let port = server();
        let open = port.to_string();
        let script = format!("{}; {}", ask(HOST, port), ask("198.51.100.7", 443));
        let rules = ["--allow-host-port", &open, "--egress", "198.51.100.7:443"];
        let learn = [&["policy", "learn"], &rules[..], &["--shell", &script]].concat();
        let text = place.says(&learn, 0).text();
        assert!(text.contains("198.51.100.7:443") && text.contains(&open), "{text}");
        let again = ["run", "--shell", &ask(HOST, port)].map(str::to_owned);
        let again: Vec<&str> = again.iter().map(String::as_str).collect();
        assert_eq!(place.says(&again, 0).text(), "no\n", "control: nothing opens it yet");
        let file = place.workspace.join("learned.toml");
        fs::write(&file, &text).unwrap();
        let file = file.to_str().unwrap();
        place.says(&["config", "check", file], 0);
        let named = [&["run", "--config", file], &again[1..]].concat();
        assert_eq!(place.says(&named, 0).text(), "reached\n");
        fs::rename(file, place.workspace.join("cofferdam.toml")).unwrap();
        place.says(&["config", "trust", "cofferdam.toml"], 0);
        place.says(&["config", "check"], 0);
        assert_eq!(place.says(&again, 0).text(), "reached\n");
    });
}

#[test]
fn what_is_learned_has_the_restrictions_that_it_was_tried_under() {
    everyone(|place| {
        let hidden = place.write("hidden/file", "secret");
        let hidden = hidden.parent().unwrap().to_str().unwrap();
        let file = place.workspace.join("learned.toml");
        let file = file.to_str().unwrap();
        let learn = ["policy", "learn", "--hide", hidden, "--disk", "10M", "--env", "A=b"];
        let learn = [&learn[..], &["--deny-egress", "b.example:443"]].concat();
        let learn = [&learn[..], &["--output", file, "--shell", "test $A = b"]].concat();
        let said = place.says(&learn, 0);
        assert!(said.stderr.contains("to be given again: --env A"), "{said:?}");
        let text = fs::read_to_string(file).unwrap();
        for line in ["deny_egress = [\"b.example:443\"]", "disk = \"10M\"", hidden] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let read = ["--", "cat", "hidden/file"];
        assert_eq!(place.run(&read).text(), "secret", "the control");
        assert_eq!(place.run(&[&["--config", file], &read[..]].concat()).text(), "");
    });
}

#[test]
fn what_learning_ends_with_says_what_came_of_it() {
    everyone(|place| {
        let port = server();
        let open = port.to_string();
        let learn = |script: &str, code| {
            let rules = ["--allow-host-port", &open, "--egress", "*.example.com"];
            let words = [&["policy", "learn"], &rules[..], &["--shell", script]].concat();
            place.says(&words, code).stderr.clone()
        };
        learn("true", 0);
        let failed = learn("exit 7", 3);
        assert!(failed.contains("the command fails, with 7, as it did before"), "{failed}");
        // The name is no connection, and so no rule is learned of it.
        let looks = format!("{}; getent hosts looked-up.example.com", ask(HOST, port));
        let missing = learn(&looks, 1);
        assert!(
            missing.contains("looked-up.example.com is refused under these rules"),
            "{missing}"
        );
        assert!(missing.contains("do not suffice"), "{missing}");
        // What is refused alike is told apart.
        let alike = learn(&format!("{}; {}", ask(HOST, port), ask("10.11.12.13", 80)), 0);
        assert!(alike.contains("10.11.12.13:80 was asked for and refused both times"), "{alike}");
    });
}

#[test]
fn rules_that_open_nothing_or_too_much_are_refused_wherever_they_are_written() {
    everyone(|place| {
        let host = "host.cofferdam.internal:5432";
        for (rule, why) in [(host, "--allow-host-port 5432"), ("*.co.uk:443", "a registry")] {
            let file = place.workspace.join("odd.toml");
            let text = format!("[run]\nprofile = \"repo-write\"\negress = [\"{rule}\"]\n");
            fs::write(&file, text).unwrap();
            let file = file.to_str().unwrap();
            let opens = ["--profile", "repo-write", "--egress"];
            for (words, code) in [
                ([&["run"], &opens[..], &[rule, "--", "true"]].concat(), 125),
                ([&["create"], &opens[..], &[rule]].concat(), 2),
                (vec!["policy", "explain", "--egress", rule], 2),
                (vec!["config", "check", file], 1),
                (vec!["run", "--config", file, "--", "true"], 125),
            ] {
                let said = place.says(&words, code);
                assert!(said.stderr.contains(why), "{words:?}: {}", said.stderr);
            }
        }
        // Controls: what such a rule denies is denied, and names below a holder's own are a family.
        for rule in [["--deny-egress", host], ["--egress", "*.example.co.uk:443"]] {
            place.says(&[&["policy", "explain"], &rule[..]].concat(), 0);
        }
    });
}

#[test]
fn what_is_learned_from_has_a_directory_and_a_time_as_any_command() {
    everyone(|place| {
        let learn = |words: &[&str], code| {
            let all = [&["policy", "learn", "--json"][..], words].concat();
            place.says(&all, code).object()
        };
        let script = "test \"$(basename \"$PWD\")\" = below";
        fs::create_dir(place.workspace.join("below")).unwrap();
        let below = learn(&["--cwd", "below", "--shell", script], 0);
        assert_eq!(below["observed_exit_code"], 0);
        let above = learn(&["--shell", script], 3);
        assert_eq!(above["observed_exit_code"], 1, "control: it starts in the workspace");
        for (words, code, why) in [
            (&["--", "no-such-program"][..], 1, "\"no-such-program\" was not found"),
            (
                &["--profile", "no-network", "--", "true"],
                2,
                "no way out, so there is nothing to learn",
            ),
        ] {
            let error = learn(words, code);
            let message = error["error"]["message"].as_str().unwrap();
            assert!(message.contains(why), "{error}");
            let hint = error["error"]["hint"].as_str().unwrap_or_default();
            assert!(!hint.contains("--egress"), "{error}");
        }
        let late = learn(&["--timeout", "200ms", "--shell", "sleep 600"], 3);
        assert_ne!(late["observed_exit_code"], 0);
        assert_eq!(late["observed_exit_code"], late["proved_exit_code"]);
    });
}
