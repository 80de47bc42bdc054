//! The life of a gate: from its order to the end of its control socket.

use crate::attempt::now_ms;
use crate::denied::Denied;
use crate::dns::Dns;
use crate::gate::{Gate, Original, Parts};
use crate::limits::Limits;
use crate::log::Log;
use crate::order::{Control, Handed};
use crate::resolve::Resolve;
use crate::secrets::Secrets;
use crate::teller::{self, Teller};
use crate::waiting::Waiting;
use crate::{host_file, proxy, sys, transparent};
use cofferdam_core::{ConnectionReport, Error, ErrorKind, GateOrder, Result, ToGate, Verdict};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

/// How long is waited after nothing could be accepted, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Is a gate until the other end of its control socket is closed, or says what cannot be understood.
/// Then every connection is broken off. The first message is the order; see
/// [`send_order`](crate::send_order). When the future is dropped the same happens.
pub async fn serve(control: UnixStream) -> Result<()> {
    serve_within(control, Limits::default(), Arc::new(original)).await
}

/// Is a gate with these limits.
pub(crate) async fn serve_within(
    control: UnixStream,
    limits: Limits,
    original: Original,
) -> Result<()> {
    serve_noted(control, limits, original, &[]).await
}

/// Is a gate that writes this down first.
async fn serve_noted(
    control: UnixStream,
    limits: Limits,
    original: Original,
    notes: &[String],
) -> Result<()> {
    let failed =
        |error: io::Error| Error::new(ErrorKind::Io, "use what came with the order").source(error);
    let mut control = Control::new(control)?;
    let Some((order, mut handed)) = control.order().await? else { return Ok(()) };
    // Everything that is at work is dropped with this, and with it the connections.
    let mut at_work = JoinSet::new();
    let (teller, untold) = Teller::new();
    at_work.spawn(teller::tell(untold, control.other_side()));
    let secrets = Secrets::open(&order, handed.vault.take(), teller.clone())?;
    let waiting = Waiting::new(&order, &limits, teller.clone());
    let denied = Denied::new(teller);
    let started = Started { order, handed, secrets, waiting, denied };
    let gate = open(started, limits, original, &mut at_work).map_err(failed)?;
    notes.iter().for_each(|note| gate.note(note));
    while let Some(message) = control.next(false).await? {
        match message {
            ToGate::Policy(policy) => {
                policy.check()?;
                gate.set_policy(policy);
            }
            ToGate::Approve { id } => gate.waiting.answer(id, Verdict::Approve),
            ToGate::Deny { id } => gate.waiting.answer(id, Verdict::Deny),
            ToGate::Order(_) => {
                return Err(Error::new(ErrorKind::Protocol, "a gate was given a second order"));
            }
        }
    }
    at_work.shutdown().await;
    Ok(())
}

/// The whole of a process that is a gate. Its control socket is the descriptor
/// [`CONTROL_DESCRIPTOR`](cofferdam_core::network::CONTROL_DESCRIPTOR).
///
/// `confine` takes away what a gate does not need, before anything is read that others wrote. It answers
/// what it could not take away, for the first lines of the log.
pub fn process(confine: impl FnOnce() -> Result<Vec<String>>) -> Result<()> {
    let failed =
        |what: &str, error: io::Error| Error::new(ErrorKind::SetupFailed, what).source(error);
    let control = sys::take_control_descriptor().map_err(|error| {
        failed("find the control socket of the gate", error.into())
            .hint("A gate is started by Cofferdam itself.")
    })?;
    raise_descriptors();
    // ORDER: what of the host's files can be read afterwards is found out against what could be before.
    host_file::look_before();
    let confined = confine();
    host_file::look_after();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed("start the gate", error))?;
    runtime.block_on(async {
        let notes = match confined {
            Ok(notes) => notes,
            Err(error) => return Err(say_why(control.into(), error).await),
        };
        let served = serve_noted(control.into(), Limits::default(), Arc::new(original), &notes);
        tokio::select! {
            ended = served => ended,
            () = host_file::outdated() => {
                let what = "the host's resolvers were changed, and a new gate has to read them";
                Err(Error::new(ErrorKind::Unavailable, what))
            }
        }
    })
}

/// Writes down why there is no gate: nobody else hears it.
async fn say_why(control: UnixStream, error: Error) -> Error {
    if let Ok(mut control) = Control::new(control)
        && let Ok(Some((order, handed))) = control.order().await
        && let Ok(log) = Log::new(handed.log.map(Into::into), order.log_bytes)
    {
        let version = order.policy.version;
        log.write(&ConnectionReport::of_the_gate(now_ms(), version, &error.chain()));
    }
    error
}

/// As many descriptors as this process may have: each connection has two.
fn raise_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// What a gate was started with.
struct Started {
    order: GateOrder,
    handed: Handed,
    secrets: Option<Secrets>,
    waiting: Waiting,
    denied: Denied,
}

fn open(
    Started { order, handed, secrets, waiting, denied }: Started,
    limits: Limits,
    original: Original,
    at_work: &mut JoinSet<()>,
) -> io::Result<Arc<Gate>> {
    let gate = Arc::new(Gate::new(Parts {
        limits,
        log: Log::new(handed.log.map(Into::into), order.log_bytes)?,
        resolve: Resolve::new(order.resolvers),
        original,
        has_v6: handed.transparent_v6.is_some(),
        policy: order.policy,
        secrets,
        waiting,
        denied,
    }));
    for listener in [handed.transparent_v4, handed.transparent_v6].into_iter().flatten() {
        at_work.spawn(accept(gate.clone(), listening(listener)?, transparent::serve));
    }
    if let Some(listener) = handed.proxy {
        at_work.spawn(accept(gate.clone(), listening(listener)?, proxy::serve));
    }
    let dns = Arc::new(Dns::new(gate.clone()));
    if let Some(socket) = handed.dns_udp {
        let socket = std::net::UdpSocket::from(socket);
        socket.set_nonblocking(true)?;
        let (dns, socket) = (dns.clone(), UdpSocket::from_std(socket)?);
        at_work.spawn(async move { dns.over_udp(socket).await });
    }
    if let Some(listener) = handed.dns_tcp {
        let answer = move |_, client| {
            let dns = dns.clone();
            async move { dns.over_tcp(client).await }
        };
        at_work.spawn(accept(gate.clone(), listening(listener)?, answer));
    }
    Ok(gate)
}

fn listening(listener: OwnedFd) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Serves every connection that comes, as many at a time as there may be.
async fn accept<F: Future<Output = ()> + Send + 'static>(
    gate: Arc<Gate>,
    listener: TcpListener,
    serve: impl Fn(Arc<Gate>, TcpStream) -> F,
) {
    let mut served = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                // While there is none, further ones wait where nobody has accepted them.
                let Ok(permit) = gate.connections.clone().acquire_owned().await else { return };
                let _ = client.set_nodelay(true);
                let serving = serve(gate.clone(), client);
                served.spawn(async move {
                    serving.await;
                    drop(permit);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
        while served.try_join_next().is_some() {}
    }
}

/// Where the kernel says that a connection wanted to go before it was led here.
fn original(client: &TcpStream) -> io::Result<SocketAddr> {
    let is_v4 = client.local_addr()?.ip().to_canonical().is_ipv4();
    Ok(match is_v4 {
        true => SocketAddr::V4(rustix::net::sockopt::ip_original_dst(client)?),
        false => SocketAddr::V6(rustix::net::sockopt::ipv6_original_dst(client)?),
    })
}
