//! A gate between stand-in servers and a stand-in inside, all on loopback.
//!
//! The tests make the sockets that the inside of a sandbox would make, and say for the kernel where a
//! connection that was led to the gate wanted to go. Each verdict is taken from outside: from what the
//! servers saw, and from the log.

mod address_attacks;
mod approvals;
mod fronting;
mod limits;
mod load;
mod lookups;
mod policies;
mod proxy_attacks;
mod secrets;
mod servers;
mod socks_attacks;
mod transparent;

use crate::limits::Limits;
use crate::order::{line, send_order};
use crate::serve::serve_within;
use cofferdam_core::secret::GateGrant;
use cofferdam_core::{
    ConnectionDecision, ConnectionReport, GateOrder, GateSocket, NetworkPolicy, ToGate,
};
use servers::Zone;
use std::collections::HashMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::task::JoinHandle;

/// How long anything here may take before the test is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A gate at work.
struct Lab {
    control: Option<UnixStream>,
    gate: JoinHandle<cofferdam_core::Result<()>>,
    transparent: SocketAddr,
    proxy: SocketAddr,
    dns_udp: SocketAddr,
    dns_tcp: SocketAddr,
    log: PathBuf,
    targets: Arc<Mutex<HashMap<SocketAddr, SocketAddr>>>,
    version: u64,
}

/// Waits for something, but not for ever.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it takes too long")
}

/// A policy of these rules.
fn policy(allow: &[String]) -> NetworkPolicy {
    let allow = allow.iter().map(|rule| rule.parse().unwrap()).collect();
    NetworkPolicy { version: 1, allow, ..NetworkPolicy::default() }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

impl Lab {
    /// A gate with this policy that asks this zone for names.
    async fn new(policy: NetworkPolicy, zone: &Zone) -> Self {
        Self::within(policy, zone, Limits::default()).await
    }

    async fn within(policy: NetworkPolicy, zone: &Zone, limits: Limits) -> Self {
        Self::logging(policy, zone, limits, 1 << 20).await
    }

    async fn logging(policy: NetworkPolicy, zone: &Zone, limits: Limits, log_bytes: u64) -> Self {
        Self::ordered((policy, zone), limits, log_bytes, None).await
    }

    /// A gate that puts these secrets in.
    async fn with_secrets(
        policy: NetworkPolicy,
        zone: &Zone,
        secrets: (Vec<GateGrant>, OwnedFd),
    ) -> Self {
        Self::ordered((policy, zone), Limits::default(), 1 << 20, Some(secrets)).await
    }

    async fn ordered(
        (policy, zone): (NetworkPolicy, &Zone),
        limits: Limits,
        log_bytes: u64,
        secrets: Option<(Vec<GateGrant>, OwnedFd)>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let log = std::env::temp_dir()
            .join(format!("cofferdam-gate-test-{}-{number}.log", std::process::id()));
        let log_file = std::fs::OpenOptions::new();
        let log_file = log_file.clone().create(true).read(true).append(true).open(&log).unwrap();
        let (transparent, proxy, dns_tcp) = (listener().await, listener().await, listener().await);
        let dns_udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (secrets, vault) = secrets.unzip();
        let mut order = GateOrder {
            sandbox: "laboratory".to_owned(),
            policy,
            resolvers: vec![zone.address],
            log_bytes,
            secrets: secrets.unwrap_or_default(),
            last_waiting: 0,
            descriptors: vec![
                GateSocket::TransparentV4,
                GateSocket::Proxy,
                GateSocket::DnsUdp,
                GateSocket::DnsTcp,
                GateSocket::Log,
            ],
        };
        let mut handed = vec![
            transparent.as_fd(),
            proxy.as_fd(),
            dns_udp.as_fd(),
            dns_tcp.as_fd(),
            log_file.as_fd(),
        ];
        if let Some(vault) = &vault {
            order.descriptors.push(GateSocket::Vault);
            handed.push(vault.as_fd());
        }
        send_order(ours.as_fd(), &order, &handed).unwrap();
        let targets = Arc::new(Mutex::new(HashMap::<SocketAddr, SocketAddr>::new()));
        let known = targets.clone();
        let original = Arc::new(move |client: &TcpStream| {
            let from = client.peer_addr()?;
            known.lock().unwrap().get(&from).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
        });
        Self {
            control: Some(ours),
            gate: tokio::spawn(serve_within(theirs, limits, original)),
            transparent: transparent.local_addr().unwrap(),
            proxy: proxy.local_addr().unwrap(),
            dns_udp: dns_udp.local_addr().unwrap(),
            dns_tcp: dns_tcp.local_addr().unwrap(),
            log,
            targets,
            version: 1,
        }
    }

    /// Puts another policy in force, with the next number.
    fn set_policy(&mut self, policy: NetworkPolicy) {
        self.version += 1;
        let policy = NetworkPolicy { version: self.version, ..policy };
        let line = line(&ToGate::Policy(policy)).unwrap();
        self.control.as_mut().unwrap().write_all(&line).unwrap();
    }

    /// A connection to the proxy.
    async fn to_proxy(&self) -> TcpStream {
        TcpStream::connect(self.proxy).await.unwrap()
    }

    /// A connection that wants to go to this address, and knows of no proxy.
    async fn to(&self, target: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let target = target.parse().unwrap();
        self.targets.lock().unwrap().insert(socket.local_addr().unwrap(), target);
        socket.connect(self.transparent).await.unwrap()
    }

    /// A connection that asks for the name first, as a program inside does.
    async fn to_name(&self, name: &str, port: u16) -> TcpStream {
        let address = self.lookup(name).await.expect("the name has an address");
        self.to(&SocketAddr::new(address, port).to_string()).await
    }

    /// Sends this to the proxy, and returns all that is answered.
    async fn ask_proxy(&self, request: &[u8]) -> Vec<u8> {
        answered(self.to_proxy().await, request).await
    }

    /// A tunnel to a host and port, and what the proxy said.
    async fn tunnel(&self, target: &str) -> (TcpStream, String) {
        let mut stream = self.to_proxy().await;
        stream.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"\r\n\r\n") {
            match soon(stream.read_u8()).await {
                Ok(byte) => said.push(byte),
                Err(_) => break,
            }
        }
        (stream, String::from_utf8(said).unwrap())
    }

    /// What the log says now.
    fn reports(&self) -> Vec<ConnectionReport> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        // What was dropped is a hole.
        text.trim_start_matches('\0')
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The first report of which this is true, once there is one.
    async fn report(&self, is_wanted: impl Fn(&ConnectionReport) -> bool) -> ConnectionReport {
        soon(async {
            loop {
                if let Some(report) = self.reports().into_iter().find(&is_wanted) {
                    return report;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }

    /// The first report of a connection that was denied.
    async fn denied(&self) -> ConnectionReport {
        self.report(|report| report.decision == ConnectionDecision::Denied).await
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.gate.abort();
        let _ = std::fs::remove_file(&self.log);
    }
}

/// Sends this, and returns all that comes until the other side ends or breaks off.
async fn answered(mut stream: TcpStream, request: &[u8]) -> Vec<u8> {
    let _ = stream.write_all(request).await;
    rest(&mut stream).await
}

/// All that comes until the other side ends or breaks off.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match soon(stream.read(&mut piece)).await {
            Ok(read) if read > 0 => all.extend_from_slice(&piece[..read]),
            Ok(_) | Err(_) => return all,
        }
    }
}

/// The status of an answer of HTTP; 0 where it is none.
fn status(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(answer);
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}
