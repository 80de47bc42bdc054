//! Ports of a session that are forwarded.

use crate::place::{PYTHON, Place, SOON, everyone, started, until};
use crate::schema::is_valid;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// Answers each line in capitals, on one loopback address.
const SERVER: &str = "
import socket, sys, threading
family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
listener = socket.socket(family)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((sys.argv[1], int(sys.argv[2])))
listener.listen(64)
def serve(stream):
    for line in stream.makefile('rb'):
        stream.sendall(line.upper())
    stream.sendall(b'over')
    stream.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],)).start()
";

/// A `port` that runs.
pub(crate) struct Forwarding {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Forwarding {
    fn begin(place: &Place, ports: &[&str]) -> Self {
        Self::of(&mut place.cofferdam(&[&["port", "s", "--json"], ports].concat()))
    }

    /// The one that this command is.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// Where the next port is reached.
    pub(crate) fn address(&mut self, place: &Place) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        let object: Value = serde_json::from_str(&line).unwrap();
        is_valid(place, "port", &object);
        object["address"].as_str().unwrap().to_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        let status = until(SOON, || self.child.try_wait().unwrap()).unwrap_or_else(|| {
            let _ = self.child.kill();
            let _ = self.child.wait();
            panic!("the forwarding did not end")
        });
        let mut said = String::new();
        // With --json what fails is an object on standard output.
        self.out.read_to_string(&mut said).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

/// Starts a server in the session `s`, by way of this, and waits until it listens.
pub(crate) fn serve_inside(says: impl Fn(&[&str]), address: &str, port: &str) {
    says(&["exec", "--detach", "s", "--", PYTHON, "-c", SERVER, address, port]);
    let line = format!(
        "until ss -ltn 2>/dev/null | grep -q :{port} || \
        grep -qi ':{:04X} .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.02; done",
        port.parse::<u16>().unwrap()
    );
    says(&["exec", "s", "--shell", &line]);
}

/// What a server answers to a line; nothing, where the connection is cut.
pub(crate) fn ask(address: &str, line: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let line = line.to_owned();
    let sender = std::thread::spawn(move || {
        // A connection that was cut takes no more.
        let _ = writer.write_all(&line).and_then(|()| writer.shutdown(Shutdown::Write));
    });
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        Ok(_) | Err(_) => {}
    }
    sender.join().unwrap();
    answer
}

#[test]
fn a_server_inside_is_reached_and_none_of_the_host() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let mut forwarding = Forwarding::begin(place, &["0:3100", "0:3200"]);
        let (first, second) = (forwarding.address(place), forwarding.address(place));
        // Nobody listens inside yet: the connection is made here, and ends.
        assert_eq!(ask(&first, b""), b"");
        serve_inside(|words| drop(place.says(words, 0)), "127.0.0.1", "3100");
        serve_inside(|words| drop(place.says(words, 0)), "::1", "3200");
        assert_eq!(ask(&first, b"hello\n"), b"HELLO\nover");
        assert_eq!(ask(&second, b"over v6\n"), b"OVER V6\nover");
        // Much of it, both ways at once, by several.
        let much: Vec<u8> = b"0123456789abcdef\n".repeat(100_000);
        let expected = [much.to_ascii_uppercase().as_slice(), b"over"].concat();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(ask(&first, &much) == expected, "as {}", place.uid()));
            }
        });
        forwarding.signal(Signal::INT);
        let (code, said) = forwarding.finish();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("nobody listens on port 3100 of the sandbox"), "{said}");
        assert!(TcpStream::connect(&first).is_err(), "the port is free again");
    });
}

#[test]
fn a_server_of_the_host_is_not_reached_by_its_number() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let host = TcpListener::bind("127.0.0.1:0").unwrap();
        host.set_nonblocking(true).unwrap();
        let port = host.local_addr().unwrap().port();
        let mut forwarding = Forwarding::begin(place, &[&format!("0:{port}")]);
        let address = forwarding.address(place);
        assert_eq!(ask(&address, b"hello\n"), b"");
        let met = host.accept().map(|_| ()).unwrap_err();
        assert_eq!(met.kind(), ErrorKind::WouldBlock);
        // The control: who is outside reaches it.
        TcpStream::connect(host.local_addr().unwrap()).unwrap();
        until(SOON, || host.accept().ok()).expect("the host's own server is there");
        forwarding.signal(Signal::TERM);
        assert_eq!(forwarding.finish().0, Some(0));
    });
}

#[test]
fn a_sleeping_session_is_resumed_and_a_removed_one_ends_it() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        serve_inside(|words| drop(place.says(words, 0)), "127.0.0.1", "3100");
        let mut forwarding = Forwarding::begin(place, &["0:3100"]);
        let address = forwarding.address(place);
        place.says(&["pause", "s"], 0);
        assert_eq!(ask(&address, b"awake\n"), b"AWAKE\nover");
        place.says(&["rm", "s"], 0);
        let (code, said) = forwarding.finish();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("there is no session"), "{said}");
    });
}

#[test]
fn a_port_that_is_taken_refuses_the_whole() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port().to_string();
        let said = place.says(&["port", "s", "0:3000", &format!("{port}:3000")], 1);
        assert!(said.stderr.contains(&format!("listen on 127.0.0.1:{port}")), "{}", said.stderr);
        assert!(said.stderr.contains("0:3000"), "{}", said.stderr);
        assert_eq!(said.stdout, b"", "nothing was forwarded");
        place.says(&["port", "s", "70000"], 2);
        place.says(&["port", "s"], 2);
        place.says(&["port", "nobody", "3000"], 1);
    });
}
