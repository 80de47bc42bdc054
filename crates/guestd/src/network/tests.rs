use super::*;
use cofferdam_wire::plan::{Families, Listen, Transport};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const TCP: Listen = Listen { transport: Transport::Tcp, families: Families::V4, port: 61001 };
const TCP6: Listen = Listen { families: Families::V6, ..TCP };
const NAMES: Listen = Listen { transport: Transport::Udp, families: Families::Both, port: 61053 };

/// Does this in a thread with a network namespace of its own, where this host lets us make one.
fn in_own_network(work: impl FnOnce() + Send + 'static) {
    use rustix::thread::UnshareFlags;
    std::thread::spawn(|| {
        let is_root = rustix::process::geteuid().is_root();
        let Some(()) = is_root.then(|| sys::unshare(UnshareFlags::NEWNET).unwrap()) else {
            // A user's thread can make no user namespace; the behaviour tests do all of this as one.
            return;
        };
        crate::apply::identity::loopback().unwrap();
        work();
    })
    .join()
    .unwrap();
}

fn reach(address: &str) -> std::io::Result<TcpStream> {
    let address: SocketAddr = address.parse().unwrap();
    TcpStream::connect_timeout(&address, Duration::from_secs(5))
}

#[test]
fn this_host_is_found_to_redirect() {
    // What the rest of the tests rests on, and what every machine that runs them must have.
    assert_eq!(Redirection::try_out(), Redirection { works: Ok(()), v6: true });
}

#[test]
fn a_connection_to_any_address_comes_to_the_socket() {
    in_own_network(|| {
        let error = reach("192.0.2.7:443").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENETUNREACH), "control: nothing is there");
        lead_here(true).unwrap();
        redirect(61001, 61053).unwrap();
        let mut made = listen(&[TCP, TCP6]).unwrap().into_iter().map(TcpListener::from);
        let (v4, v6) = (made.next().unwrap(), made.next().unwrap());
        for (listener, address) in [(v4, "192.0.2.7:443"), (v6, "[2001:db8::7]:443")] {
            let mut client = reach(address).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            server.write_all(b"here").unwrap();
            drop(server);
            let mut said = String::new();
            client.read_to_string(&mut said).unwrap();
            assert_eq!(said, "here", "{address}");
            assert_eq!(client.peer_addr().unwrap().to_string(), address);
        }
    });
}

#[test]
fn names_are_asked_at_the_gate_and_other_datagrams_go_nowhere() {
    in_own_network(|| {
        lead_here(true).unwrap();
        redirect(61001, 61053).unwrap();
        let gate: UdpSocket = listen(&[NAMES]).unwrap().remove(0).into();
        let mut bytes = [0; 16];
        for (own, resolver) in [("0.0.0.0:0", "198.18.0.1:53"), ("[::]:0", "[2001:db8::1]:53")] {
            let client = UdpSocket::bind(own).unwrap();
            client.connect(resolver).unwrap();
            client.send(b"who?").unwrap();
            let (count, peer) = gate.recv_from(&mut bytes).unwrap();
            assert_eq!(&bytes[..count], b"who?");
            gate.send_to(b"nobody", peer).unwrap();
            assert_eq!(client.recv(&mut bytes).unwrap(), 6, "{resolver}");
        }
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        let refused = client.send_to(b"quic", "192.0.2.7:443").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        let own = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.send_to(b"own", own.local_addr().unwrap()).unwrap();
        assert_eq!(own.recv(&mut bytes).unwrap(), 3, "control: loopback works as before");
    });
}

#[test]
fn nobody_else_can_have_a_port_of_the_gate() {
    in_own_network(|| {
        lead_here(true).unwrap();
        let _made = listen(&[TCP, TCP6, NAMES]).unwrap();
        for taken in ["127.0.0.1:61001", "127.0.0.2:61001", "0.0.0.0:61001", "[::1]:61001"] {
            let error = TcpListener::bind(taken).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE), "{taken}");
        }
        for taken in ["127.0.0.1:61053", "198.18.0.1:61053", "[::1]:61053"] {
            let error = UdpSocket::bind(taken).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE), "{taken}");
        }
        TcpListener::bind("127.0.0.1:61000").unwrap();
    });
}
