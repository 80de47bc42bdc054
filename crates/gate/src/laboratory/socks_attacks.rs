//! Attacks on the proxy of SOCKS5.

use super::servers::{Server, Zone};
use super::{Lab, answered, policy, rest, soon};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const GREETING: [u8; 3] = [5, 1, 0];

fn by_name(command: u8, name: &[u8], port: u16) -> Vec<u8> {
    let mut request = vec![5, command, 0, 3, u8::try_from(name.len()).unwrap()];
    request.extend_from_slice(name);
    request.extend(port.to_be_bytes());
    request
}

fn by_address(address: &str, port: u16) -> Vec<u8> {
    let (kind, bytes) = match address.parse().unwrap() {
        std::net::IpAddr::V4(v4) => (1, v4.octets().to_vec()),
        std::net::IpAddr::V6(v6) => (4, v6.octets().to_vec()),
    };
    [vec![5, 1, 0, kind], bytes, port.to_be_bytes().to_vec()].concat()
}

struct Scene {
    lab: Lab,
    open: Server,
    shut: Server,
}

async fn scene() -> Scene {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"]), ("evil.test", &["127.0.0.2"])]).await;
    let (open, shut) = (Server::web("127.0.0.1").await, Server::web("127.0.0.2").await);
    let rules = [format!("ok.test:{}", open.port), format!("127.0.0.1:{}", open.port)];
    Scene { lab: Lab::new(policy(&rules), &zone).await, open, shut }
}

impl Scene {
    /// The code of the reply to a request; `None` where there is no reply.
    async fn reply(&self, request: &[u8]) -> Option<u8> {
        let answer = answered(self.lab.to_proxy().await, &[&GREETING, request].concat()).await;
        assert_eq!(answer.get(..2), Some(&[5, 0][..]));
        assert_eq!((self.open.connections(), self.shut.connections()), (0, 0), "{request:?}");
        answer.get(3).copied()
    }
}

#[tokio::test]
async fn what_is_allowed_is_connected_by_name_and_by_address() {
    let scene = scene().await;
    let port = scene.open.port;
    for request in [by_name(1, b"Ok.Test.", port), by_address("127.0.0.1", port)] {
        let mut stream = scene.lab.to_proxy().await;
        stream.write_all(&GREETING).await.unwrap();
        let mut said = [0; 2];
        soon(stream.read_exact(&mut said)).await.unwrap();
        stream.write_all(&request).await.unwrap();
        let mut reply = [0; 10];
        soon(stream.read_exact(&mut reply)).await.unwrap();
        assert_eq!(reply, [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        stream
            .write_all(format!("GET / HTTP/1.0\r\nHost: ok.test:{port}\r\n\r\n").as_bytes())
            .await
            .unwrap();
        stream.shutdown().await.unwrap();
        assert!(rest(&mut stream).await.ends_with(b"hello"));
    }
}

#[tokio::test]
async fn what_is_not_allowed_is_denied_by_the_rules() {
    let scene = scene().await;
    let (open, shut) = (scene.open.port, scene.shut.port);
    for (what, request) in [
        ("another name", by_name(1, b"evil.test", shut)),
        ("another port", by_name(1, b"ok.test", shut)),
        ("an address", by_address("127.0.0.2", shut)),
        ("an address as IPv6", by_address("::ffff:127.0.0.2", shut)),
        ("an address by NAT64", by_address("64:ff9b::7f00:2", shut)),
        ("an address as a name", by_name(1, b"127.0.0.2", shut)),
        ("loopback", by_address("::1", open)),
        ("metadata", by_address("169.254.169.254", 80)),
        ("an address that stands for nothing", by_address("198.18.1.0", open)),
        ("NUL", by_name(1, b"evil.test\0.ok.test", open)),
        ("NUL at the end", by_name(1, b"ok.test\0", open)),
        ("no name", by_name(1, b"", open)),
        ("a decimal address", by_name(1, b"2130706434", shut)),
        ("a short address", by_name(1, b"127.2", shut)),
        ("a newline", by_name(1, b"ok.test\r\n", open)),
        ("bytes that are no text", by_name(1, b"ok.test\xff", open)),
        ("a port in the name", by_name(1, b"ok.test:80", open)),
        ("port 0", by_name(1, b"ok.test", 0)),
    ] {
        assert_eq!(scene.reply(&request).await, Some(2), "{what}");
    }
}

#[tokio::test]
async fn there_is_one_command_one_version_and_no_password() {
    let scene = scene().await;
    let port = scene.open.port;
    assert_eq!(scene.reply(&by_name(2, b"ok.test", port)).await, Some(7), "a port to bind");
    assert_eq!(scene.reply(&by_name(3, b"ok.test", port)).await, Some(7), "datagrams");
    assert_eq!(scene.reply(&by_name(9, b"ok.test", port)).await, Some(7), "another command");
    assert_eq!(scene.reply(&[5, 1, 0, 2, 1, 2, 3, 4]).await, Some(8), "another kind of address");
    assert_eq!(scene.reply(&[4, 1, 0, 1, 127, 0, 0, 1, 0, 80]).await, Some(1), "another version");
    assert_eq!(scene.reply(&[5, 1, 7, 1, 127, 0, 0, 1, 0, 80]).await, Some(1), "a reserved byte");
    let password = answered(scene.lab.to_proxy().await, &[5, 1, 2]).await;
    assert_eq!(password, [5, 0xff]);
    let none = answered(scene.lab.to_proxy().await, &[5, 0]).await;
    assert_eq!(none, [5, 0xff]);
    let older = answered(scene.lab.to_proxy().await, &[4, 1, 0, 80, 127, 0, 0, 1, 0]).await;
    assert!(older.is_empty());
    let strange = answered(scene.lab.to_proxy().await, b"\r\nGET / HTTP/1.1\r\n\r\n").await;
    assert!(strange.is_empty());
    assert_eq!((scene.open.connections(), scene.shut.connections()), (0, 0));
}
