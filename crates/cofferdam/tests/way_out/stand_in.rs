//! A gate that reaches nothing: it says what it was told to whoever connects, and writes down that it
//! denied them.

use cofferdam::{ConnectionDecision, ConnectionHow, ConnectionReport, NetworkPolicy};
use rustix::fd::{FromRawFd, OwnedFd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{BufRead, BufReader, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd as Descriptor;
use std::sync::{Arc, Mutex};

/// What a gate hears, as far as this one listens.
#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Heard {
    Order(Order),
    Policy(NetworkPolicy),
}

#[derive(serde::Deserialize)]
struct Order {
    sandbox: String,
    policy: NetworkPolicy,
    descriptors: Vec<String>,
}

/// The name that is denied to everybody.
pub(crate) const DENIED: &str = "denied.test";

pub(crate) fn serve() {
    let control = sys::control();
    let (line, came) = first(&control);
    let Ok(Heard::Order(order)) = serde_json::from_str(&line) else { panic!("no order: {line}") };
    let policy = Arc::new(Mutex::new(order.policy));
    let mut named: Vec<(String, OwnedFd)> = order.descriptors.into_iter().zip(came).collect();
    let (_, log) = named.pop().unwrap();
    let log = Arc::new(Mutex::new(File::from(log)));
    for (name, socket) in named {
        let (sandbox, policy, log) = (order.sandbox.clone(), Arc::clone(&policy), Arc::clone(&log));
        std::thread::spawn(move || match name.as_str() {
            "dns_udp" => echo(&socket.into()),
            _ => answer(&TcpListener::from(socket), &format!("{name} of {sandbox}"), &policy, &log),
        });
    }
    for line in BufReader::new(File::from(control)).lines().map_while(Result::ok) {
        let Ok(Heard::Policy(next)) = serde_json::from_str(&line) else { panic!("odd: {line}") };
        *policy.lock().unwrap() = next;
    }
}

fn answer(listener: &TcpListener, who: &str, policy: &Mutex<NetworkPolicy>, log: &Mutex<File>) {
    loop {
        let (mut client, _) = listener.accept().unwrap();
        let policy = policy.lock().unwrap().clone();
        let mut line = serde_json::to_vec(&denied(policy.version)).unwrap();
        line.push(b'\n');
        log.lock().unwrap().write_all(&line).unwrap();
        let pid = std::process::id();
        let rules: Vec<String> = policy.allow.iter().map(ToString::to_string).collect();
        let said =
            format!("{who}, process {pid}, version {}: {}\n", policy.version, rules.join(" "));
        // Who has gone already hears nothing.
        let _ = client.write_all(said.as_bytes());
        let _ = client.shutdown(std::net::Shutdown::Write);
        let mut heard = String::new();
        let _ = client.read_to_string(&mut heard);
        if heard == "die" {
            std::process::exit(7);
        }
    }
}

fn echo(socket: &UdpSocket) {
    let mut bytes = [0; 64];
    loop {
        let (count, peer) = socket.recv_from(&mut bytes).unwrap();
        socket.send_to(&bytes[..count], peer).unwrap();
    }
}

fn denied(policy_version: u64) -> ConnectionReport {
    ConnectionReport {
        at_ms: 1,
        id: 1,
        how: ConnectionHow::Transparent,
        host: Some(DENIED.to_owned()),
        address: None,
        port: 443,
        decision: ConnectionDecision::Denied,
        rule: None,
        reason: Some("a stand-in denies everything".to_owned()),
        remedy: None,
        bytes_up: 0,
        bytes_down: 0,
        duration_ms: 0,
        policy_version,
        request: None,
        execs: None,
    }
}

/// The first line, and the descriptors beside it.
fn first(control: &Descriptor) -> (String, Vec<OwnedFd>) {
    let (mut line, mut came) = (Vec::new(), Vec::new());
    while line.last() != Some(&b'\n') {
        let mut byte = [0; 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut pieces = [IoSliceMut::new(&mut byte)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let count = recvmsg(control, &mut pieces, &mut ancillary, flags).unwrap().bytes;
        assert_eq!(count, 1, "the control socket ended");
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                came.extend(fds);
            }
        }
        line.extend(byte);
    }
    (String::from_utf8(line).unwrap(), came)
}

#[path = "sys.rs"]
mod sys;
