//! Verbs with a server that carry bytes as they come: ports, terminals, output that is followed; and secrets,
//! which belong to a key.

use crate::place::{PYTHON, SOON, ended, everyone, outcome, skipped, started};
use crate::ports::{Forwarding, ask, serve_inside};
use crate::remote::{Server, Way, key, socket};
use crate::sessions_terminal::SCENES;
use crate::terminal::sit_at;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_port_behind_a_server_is_reached_on_this_machine() {
    everyone(|place| {
        let key = key(place, "alice");
        let server = Server::start(place, "127.0.0.1:0");
        let way = Way::There(place, &server.url, Some(&key));
        let id = way.says(&["create", "--name", "s"], 0).text().trim().to_owned();
        let mut command = way.command(&["port", "s", "--json", "0:3100"]);
        let mut forwarding = Forwarding::of(&mut command);
        let address = forwarding.address(place);
        assert_eq!(ask(&address, b""), b"", "nobody listens yet");
        // Its owner is a key: this machine's user names it by its id.
        place.says(&["show", &id], 0);
        serve_inside_of(&way);
        assert_eq!(ask(&address, b"hello\n"), b"HELLO\nover");
        let much: Vec<u8> = b"0123456789abcdef\n".repeat(100_000);
        let expected = [much.to_ascii_uppercase().as_slice(), b"over"].concat();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(ask(&address, &much) == expected, "as {}", place.uid()));
            }
        });
        forwarding.signal(Signal::INT);
        let (code, said) = forwarding.finish();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("nobody listens on port 3100"), "{said}");
        assert!(TcpStream::connect(&address).is_err(), "the port is free again");
        // One who has no such sandbox reaches none of its ports.
        let other = crate::remote::key(place, "bob");
        let his = Way::There(place, &server.url, Some(&other));
        assert!(his.says(&["port", "s", "0:3100"], 1).stderr.contains("there is no"));
    });
}

fn serve_inside_of(way: &Way<'_>) {
    serve_inside(|words| drop(way.says(words, 0)), "127.0.0.1", "3100");
}

#[test]
fn secrets_behind_a_server_belong_to_their_key() {
    everyone(|place| {
        let (alice, bob) = (key(place, "alice"), key(place, "bob"));
        let server = Server::start(place, "127.0.0.1:0");
        let hers = Way::There(place, &server.url, Some(&alice));
        let his = Way::There(place, &server.url, Some(&bob));
        let mut add = hers.command(&["secret", "add", "TOKEN", "--from-env", "CANARY", "--json"]);
        let said = outcome(add.env("CANARY", "a-value-of-hers"), SOON);
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert_eq!(said.object()["name"], "TOKEN");
        assert!(!said.text().contains("a-value"));
        assert_eq!(names(&hers.says(&["secret", "ls", "--json"], 0).object()), ["TOKEN"]);
        assert!(names(&his.says(&["secret", "ls", "--json"], 0).object()).is_empty());
        assert!(names(&place.says(&["secret", "ls", "--json"], 0).object()).is_empty());
        assert!(his.says(&["secret", "rm", "TOKEN"], 1).stderr.contains("there is no secret"));
        let told = hers.says(&["secret", "ls"], 0);
        assert!(told.text().contains("TOKEN") && !told.text().contains("a-value"), "{told:?}");
        hers.says(&["secret", "rm", "TOKEN"], 0);
        assert!(names(&hers.says(&["secret", "ls", "--json"], 0).object()).is_empty());
    });
}

fn names(list: &Value) -> Vec<String> {
    let all = list["secrets"].as_array().unwrap().iter();
    all.map(|secret| secret["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn terminals_behind_a_server_are_as_they_are_here() {
    if !Path::new(PYTHON).exists() {
        return skipped("python3", "it sits at the terminals of these tests");
    }
    everyone(|place| {
        let server = Server::start(place, &socket(place));
        let variables = [("COFFERDAM_SERVER", server.url.as_str())];
        for scene in ["keys_and_size", "left_and_come_back_to", "a_shell_stays_open"] {
            sit_at(place, SCENES, scene, &variables);
            place.says(&["rm", "s"], 0);
        }
    });
}

#[test]
fn output_is_followed_while_it_is_written() {
    everyone(|place| {
        let server = Server::start(place, &socket(place));
        let way = Way::There(place, &server.url, None);
        way.says(&["create", "--name", "s"], 0);
        let line = "echo one; read x; echo two >&2; echo $x; exit 4";
        way.says(&["exec", "s", "-d", "-i", "--id", "talks", "--shell", line], 0);
        let mut command = way.command(&["logs", "-f", "s", "talks"]);
        let mut child = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        assert_eq!(first, "one\n", "told before the command goes on");
        let mut attach = way.command(&["attach", "-i", "s", "talks"]);
        let mut attached =
            started(attach.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()));
        std::io::Write::write_all(&mut attached.stdin.take().unwrap(), b"three\n").unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        let said = ended(child, SOON);
        assert_eq!(
            (said.code(), rest.as_str(), said.stderr.as_str()),
            (Some(0), "three\n", "two\n")
        );
        assert_eq!(ended(attached, SOON).code(), Some(0));
    });
}
