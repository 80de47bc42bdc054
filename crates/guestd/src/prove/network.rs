//! Attacks on the network: P7, and what P6 says about sockets.

use super::attack::{Group, Row, Scene};
use super::calls::read;
use super::outcome::{Door, Layer, Outcome, any};
use super::sys;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::time::Duration;

const REACH: Group = Group { axis: "network", promise: "P7", door: Door::Network };
const SOCKET: Group = Group { axis: "network", promise: "P6", door: Door::Network };

pub(super) const ROWS: &[Row] = &[
    REACH.check("network.host_loopback", host_loopback, own_loopback),
    REACH.check("network.host_loopback_mapped", host_loopback_mapped, own_loopback),
    REACH.check("network.host_fast_open", host_fast_open, own_loopback),
    REACH.check("network.host_any_address", host_any_address, own_loopback),
    REACH.check("network.host_path_socket", host_path_socket, own_path_socket),
    REACH.check("network.host_abstract_socket", host_abstract_socket, own_abstract_socket),
    REACH.check("network.public_udp", |_| route(documented(53)), own_udp).when(is_cut),
    REACH.check("network.public_udp6", |_| route(documented6(53)), own_udp).when(is_cut),
    REACH.check("network.metadata_udp", |_| route(metadata(80)), own_udp).when(is_cut),
    REACH.check("network.other_udp", other_udp, own_udp).when(is_redirected).confined(),
    REACH.check("network.gate_ports", take_gate_ports, other_port).when(has_gate),
    REACH.check("network.broadcast", broadcast, own_udp).confined(),
    REACH.check("network.public_tcp", public_tcp, own_loopback).when(is_cut).confined(),
    REACH.check("network.interfaces", interfaces, has_loopback),
    REACH.check("network.change_interface", change_interface, read_interface),
    REACH.check("network.change_routes", change_routes, read_routes).confined(),
    SOCKET.check("network.raw_socket", |_| socket("raw", AF_INET, RAW, 1), tcp_socket),
    SOCKET.check("network.raw_socket6", |_| socket("raw", AF_INET6, RAW, 58), tcp_socket),
    SOCKET.check("network.ping_socket", |_| socket("ping", AF_INET, DATAGRAM, 1), tcp_socket),
    SOCKET.check("network.packet_socket", |_| socket("packet", 17, RAW, 0x0300), tcp_socket),
    SOCKET.check("network.vsock", |_| socket("vsock", 40, STREAM, 0), tcp_socket),
    SOCKET.check("network.kobject_events", |_| socket("uevent", AF_NETLINK, RAW, 15), route_socket),
    SOCKET.check("network.netfilter", |_| socket("netfilter", AF_NETLINK, RAW, 12), route_socket),
    SOCKET.check("network.audit", |_| socket("audit", AF_NETLINK, RAW, 9), route_socket),
    SOCKET.check("network.crypto_socket", |_| socket("alg", 38, SEQUENCE, 0), tcp_socket),
    SOCKET.check("network.high_bits_socket", high_bits_socket, tcp_socket),
    SOCKET.check("network.multipath_tcp", |_| socket("mptcp", AF_INET, STREAM, 262), tcp_socket),
    SOCKET.check("network.sctp", |_| socket("sctp", AF_INET, STREAM, 132), tcp_socket),
    SOCKET.check("network.udp_lite", |_| socket("udplite", AF_INET, DATAGRAM, 136), tcp_socket),
    SOCKET.check("network.xdp_socket", |_| socket("xdp", 44, RAW, 0), tcp_socket),
    SOCKET.check("network.key_socket", |_| socket("key", 15, RAW, 2), tcp_socket),
    SOCKET.check("network.other_families", other_families, tcp_socket),
    SOCKET.check("network.socket_pair_family", crypto_pair, unix_pair),
    REACH.usable("use.loopback_server", own_loopback),
    REACH.usable("use.loopback_udp", own_udp),
    REACH.usable("use.unix_sockets", unix_pair),
    REACH.usable("use.route_netlink", route_socket),
];

const AF_INET: usize = 2;
const AF_INET6: usize = 10;
const AF_NETLINK: usize = 16;
const STREAM: usize = 1;
const DATAGRAM: usize = 2;
const RAW: usize = 3;
const SEQUENCE: usize = 5;

/// Long enough for loopback, short enough for a battery.
const WAIT: Duration = Duration::from_millis(150);

fn errno(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::ETIMEDOUT)
}

fn connect(address: SocketAddr) -> Outcome {
    let call = format!("connect to {address}");
    match TcpStream::connect_timeout(&address, WAIT) {
        Ok(_) => Outcome::did(call),
        Err(error) => Outcome::met(errno(&error), call),
    }
}

fn host_port(scene: &Scene<'_>) -> u16 {
    scene.request.targets.host_port
}

fn host_loopback(scene: &Scene<'_>) -> Outcome {
    connect((Ipv4Addr::LOCALHOST, host_port(scene)).into())
}

/// The same address in the shape of the newer protocol, which filters by address forget.
fn host_loopback_mapped(scene: &Scene<'_>) -> Outcome {
    connect((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), host_port(scene)).into())
}

fn host_any_address(scene: &Scene<'_>) -> Outcome {
    any([Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(127, 1, 2, 3)]
        .map(|address| connect((address, host_port(scene)).into())))
}

/// Connects by sending, without a call to `connect`.
fn host_fast_open(scene: &Scene<'_>) -> Outcome {
    let number = match sys::raw(libc::SYS_socket, [AF_INET, STREAM, 0, 0, 0, 0]) {
        Ok(number) => number,
        Err(errno) => return Outcome::met(errno, "socket"),
    };
    // struct sockaddr_in: family in host order, port and address in network order.
    let [port_high, port_low] = host_port(scene).to_be_bytes();
    let [family_low, family_high] = 2_u16.to_ne_bytes();
    let address: [u8; 16] =
        [family_low, family_high, port_high, port_low, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    const FAST_OPEN: usize = 0x2000_0000;
    let text = b"x";
    let args = [number, text.as_ptr() as usize, 1, FAST_OPEN, address.as_ptr() as usize, 16];
    Outcome::of_call("sendto with fast open", sys::raw(libc::SYS_sendto, args))
}

fn host_path_socket(scene: &Scene<'_>) -> Outcome {
    let path = &scene.request.targets.host_socket;
    Outcome::of(&format!("connect to {path}"), &UnixStream::connect(path))
}

fn host_abstract_socket(scene: &Scene<'_>) -> Outcome {
    let name = &scene.request.targets.host_abstract;
    let connected = UnixAddress::from_abstract_name(name)
        .and_then(|address| UnixStream::connect_addr(&address));
    Outcome::of(&format!("connect to @{name}"), &connected)
}

// Addresses, and no text that might be a name: the C library's resolver is a tenth of this program.

/// An address for documents, where nobody is.
fn documented(port: u16) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, 1), port).into()
}

/// An address for documents, where nobody is.
fn documented6(port: u16) -> SocketAddr {
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), port).into()
}

/// Where clouds tell a machine its keys.
fn metadata(port: u16) -> SocketAddr {
    (Ipv4Addr::new(169, 254, 169, 254), port).into()
}

/// A datagram socket that is connected sends nothing: it only looks for a route.
fn route(to: SocketAddr) -> Outcome {
    let found = UdpSocket::bind(own_end(to)).and_then(|socket| socket.connect(to));
    Outcome::of(&format!("find a route to {to}"), &found)
}

/// Any port of any own address of the same family.
fn own_end(to: SocketAddr) -> SocketAddr {
    match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

fn is_redirected(scene: &Scene<'_>) -> bool {
    scene.request.targets.redirected
}

fn is_cut(scene: &Scene<'_>) -> bool {
    !is_redirected(scene)
}

fn has_gate(scene: &Scene<'_>) -> bool {
    !scene.request.targets.gate_ports.is_empty()
}

/// Where every address has a route, a datagram that is for no resolver has to fail when it is sent.
fn other_udp(_: &Scene<'_>) -> Outcome {
    any([documented(443), metadata(80), documented6(443)].map(|to| {
        let sent = UdpSocket::bind(own_end(to)).and_then(|socket| socket.send_to(b"x", to));
        match sent.map_err(|error| errno(&error)) {
            Err(libc::EPERM) => {
                Outcome::met_at(Layer::Namespace, libc::EPERM, format!("send to {to}"))
            }
            Err(number) => Outcome::met(number, format!("send to {to}")),
            Ok(_) => Outcome::did(format!("send to {to}")),
        }
    }))
}

/// Who listens in the gate's place could answer for any name.
fn take_gate_ports(scene: &Scene<'_>) -> Outcome {
    let ports = scene.request.targets.gate_ports.iter();
    let places = ports.flat_map(|port| {
        [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(127, 0, 0, 9)]
            .map(|address| SocketAddr::from((address, *port)))
    });
    any(places.map(|place| match TcpListener::bind(place) {
        Ok(_) => Outcome::did(format!("listen on {place}")),
        Err(error) => {
            Outcome::met_at(Layer::Namespace, errno(&error), format!("listen on {place}"))
        }
    }))
}

fn other_port(_: &Scene<'_>) -> Outcome {
    Outcome::of("listen on a port of its own", &TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
}

// Of linux/rtnetlink.h.
const ADD_ROUTE: u16 = 24;
const LIST_ROUTES: u16 = 26;

/// One message about routes, and the kernel's answer to it: the kind of its first message, and what
/// an error says.
fn about_routes(kind: u16, flags: u16) -> Result<(u16, i32), i32> {
    const REQUEST: u16 = 1;
    const ERROR: u16 = 2;
    let number = sys::raw(libc::SYS_socket, [AF_NETLINK, RAW, 0, 0, 0, 0])?;
    // A local route to 198.51.100.0/32 through the first interface.
    let mut message = [0_u8; 44];
    let parts: [&[u8]; 7] = [
        &44_u32.to_ne_bytes(),
        &kind.to_ne_bytes(),
        &(flags | REQUEST).to_ne_bytes(),
        &[0, 0, 0, 0, 0, 0, 0, 0, 2, 32, 0, 0, 254, 3, 254, 2, 0, 0, 0, 0],
        &[8, 0, 1, 0, 198, 51, 100, 0],
        &[8, 0, 4, 0],
        &1_u32.to_ne_bytes(),
    ];
    for (place, byte) in message.iter_mut().zip(parts.into_iter().flatten()) {
        *place = *byte;
    }
    let text = message.as_ptr() as usize;
    sys::raw(libc::SYS_sendto, [number, text, message.len(), 0, 0, 0])?;
    let mut answer = [0_u8; 4096];
    let place = answer.as_mut_ptr() as usize;
    sys::raw(libc::SYS_recvfrom, [number, place, answer.len(), 0, 0, 0])?;
    let [_, _, _, _, low, high, rest @ ..] = answer;
    let kind = u16::from_ne_bytes([low, high]);
    let error = rest.get(10..14).and_then(|bytes| bytes.first_chunk::<4>());
    let error = error.map_or(0, |bytes| -i32::from_ne_bytes(*bytes));
    Ok((kind, if kind == ERROR { error } else { 0 }))
}

fn change_routes(_: &Scene<'_>) -> Outcome {
    const ACKNOWLEDGE_AND_CREATE: u16 = 0x404;
    match about_routes(ADD_ROUTE, ACKNOWLEDGE_AND_CREATE) {
        Ok((_, libc::EPERM)) => Outcome::met_at(Layer::Capability, libc::EPERM, "add a route"),
        Ok((_, 0)) => Outcome::did("add a route"),
        Ok((_, number)) | Err(number) => Outcome::met(number, "add a route"),
    }
}

fn read_routes(_: &Scene<'_>) -> Outcome {
    const DUMP: u16 = 0x300;
    let found = about_routes(LIST_ROUTES, DUMP);
    Outcome::of_call(
        "list the routes",
        found.and_then(|(_, error)| match error {
            0 => Ok(0),
            number => Err(number),
        }),
    )
}

fn broadcast(_: &Scene<'_>) -> Outcome {
    let all = SocketAddr::from((Ipv4Addr::BROADCAST, 9));
    let sent = UdpSocket::bind(own_end(all)).and_then(|socket| {
        socket.set_broadcast(true)?;
        socket.send_to(b"x", all)
    });
    Outcome::of("send to all", &sent)
}

/// An address for documents, where nobody is. Without a route the answer comes at once; silence
/// means that the packet left.
fn public_tcp(_: &Scene<'_>) -> Outcome {
    match TcpStream::connect_timeout(&documented(443), WAIT) {
        Ok(_) => Outcome::did("connect to 192.0.2.1:443"),
        Err(error) if error.raw_os_error().is_none() => Outcome::did("a packet left for 192.0.2.1"),
        Err(error) => Outcome::met(errno(&error), "connect to 192.0.2.1:443"),
    }
}

fn interface_names() -> Result<Vec<String>, Outcome> {
    let table = read("/proc/self/net/dev")
        .map_err(|error| Outcome::untried(format!("read /proc/self/net/dev: {error}")))?;
    let names = table.lines().skip(2).filter_map(|line| line.split_once(':'));
    Ok(names.map(|(name, _)| name.trim().to_owned()).collect())
}

fn interfaces(_: &Scene<'_>) -> Outcome {
    match interface_names() {
        Ok(names) => match names.iter().find(|name| name.as_str() != "lo") {
            Some(name) => Outcome::did(format!("there is {name}")),
            None => Outcome::met_at(Layer::Namespace, libc::ENODEV, "find an interface beside lo"),
        },
        Err(outcome) => outcome,
    }
}

fn has_loopback(_: &Scene<'_>) -> Outcome {
    match interface_names() {
        Ok(names) => {
            Outcome::claim(names.iter().any(|name| name == "lo").into(), "lo is among them")
        }
        Err(outcome) => outcome,
    }
}

/// struct ifreq for `lo`: name, then flags.
fn loopback_request(act: impl FnOnce(usize, usize) -> Result<usize, i32>) -> Result<usize, i32> {
    let mut request = [0_u8; 40];
    for (place, byte) in request.iter_mut().zip(b"lo") {
        *place = *byte;
    }
    let number = sys::raw(libc::SYS_socket, [AF_INET, DATAGRAM, 0, 0, 0, 0])?;
    act(number, request.as_mut_ptr() as usize)
}

const READ_FLAGS: usize = 0x8913;
const WRITE_FLAGS: usize = 0x8914;

/// Writes back the flags that are there, which changes nothing and needs the same right.
fn change_interface(_: &Scene<'_>) -> Outcome {
    let result = loopback_request(|number, request| {
        sys::raw(libc::SYS_ioctl, [number, READ_FLAGS, request, 0, 0, 0])?;
        sys::raw(libc::SYS_ioctl, [number, WRITE_FLAGS, request, 0, 0, 0])
    });
    match result {
        Err(libc::EPERM) => {
            Outcome::met_at(Layer::Capability, libc::EPERM, "change the flags of lo")
        }
        other => Outcome::of_call("change the flags of lo", other),
    }
}

fn read_interface(_: &Scene<'_>) -> Outcome {
    let result = loopback_request(|number, request| {
        sys::raw(libc::SYS_ioctl, [number, READ_FLAGS, request, 0, 0, 0])
    });
    Outcome::of_call("read the flags of lo", result)
}

fn socket(name: &str, family: usize, kind: usize, protocol: usize) -> Outcome {
    let made = sys::raw(libc::SYS_socket, [family, kind, protocol, 0, 0, 0]);
    Outcome::of_call(&format!("socket of {name}"), made)
}

/// The kernel reads the low half of the family; a filter that compares both halves misses it.
fn high_bits_socket(_: &Scene<'_>) -> Outcome {
    socket("alg with high bits", (1 << 32) | 38, SEQUENCE, 0)
}

/// Families that have had holes: AX.25, X.25, AppleTalk, RDS, CAN, TIPC, Bluetooth, KCM, SMC, QIPCRTR.
fn other_families(_: &Scene<'_>) -> Outcome {
    const FAMILIES: [usize; 10] = [3, 9, 5, 21, 29, 30, 31, 41, 43, 42];
    any(FAMILIES.iter().flat_map(|family| {
        [STREAM, DATAGRAM, RAW, SEQUENCE]
            .map(|kind| socket(&format!("family {family}"), *family, kind, 0))
    }))
}

fn crypto_pair(_: &Scene<'_>) -> Outcome {
    let mut pair = [0_i32; 2];
    // TIPC is the one odd family whose sockets come in pairs.
    let args = [30, STREAM, 0, pair.as_mut_ptr() as usize, 0, 0];
    Outcome::of_call("socketpair of TIPC", sys::raw(libc::SYS_socketpair, args))
}

fn tcp_socket(_: &Scene<'_>) -> Outcome {
    socket("TCP", AF_INET, STREAM, 0)
}

fn route_socket(_: &Scene<'_>) -> Outcome {
    socket("NETLINK_ROUTE", AF_NETLINK, RAW, 0)
}

fn talk(mut one: impl Write, mut other: impl Read) -> std::io::Result<()> {
    one.write_all(b"ping")?;
    let mut heard = [0; 4];
    other.read_exact(&mut heard)?;
    if &heard == b"ping" { Ok(()) } else { Err(std::io::Error::from_raw_os_error(libc::EBADMSG)) }
}

fn own_loopback(_: &Scene<'_>) -> Outcome {
    let talked = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| {
        let client = TcpStream::connect_timeout(&listener.local_addr()?, WAIT)?;
        talk(client, listener.accept()?.0)
    });
    Outcome::of("talk over loopback", &talked)
}

fn own_udp(_: &Scene<'_>) -> Outcome {
    let talked = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|receiver| {
        receiver.set_read_timeout(Some(WAIT))?;
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        sender.connect(receiver.local_addr()?)?;
        sender.send(b"ping")?;
        receiver.recv(&mut [0; 4])
    });
    Outcome::of("send a datagram over loopback", &talked)
}

fn own_path_socket(scene: &Scene<'_>) -> Outcome {
    let path = scene.private("socket");
    let talked = UnixListener::bind(&path).and_then(|listener| {
        let client = UnixStream::connect(&path)?;
        talk(client, listener.accept()?.0)
    });
    let _ = std::fs::remove_file(&path);
    Outcome::of("talk over a path socket", &talked)
}

fn own_abstract_socket(_: &Scene<'_>) -> Outcome {
    let name = format!("cofferdam-attack-{}", std::process::id());
    let talked = UnixAddress::from_abstract_name(name).and_then(|address| {
        let listener = UnixListener::bind_addr(&address)?;
        let client = UnixStream::connect_addr(&address)?;
        talk(client, listener.accept()?.0)
    });
    Outcome::of("talk over an abstract socket", &talked)
}

fn unix_pair(_: &Scene<'_>) -> Outcome {
    let talked = UnixStream::pair().and_then(|(one, other)| talk(one, other));
    Outcome::of("talk over a socket pair", &talked)
}
