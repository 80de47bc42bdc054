//! `cofferdam port`.

use crate::door::Session;
use crate::listen::{ENDING, Listening};
use crate::{exit, render, sessions};
use clap::Args;
use cofferdam_core::{Error, ErrorKind, MAX_PORT_CONNECTIONS, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Forwards ports of this machine's loopback to servers inside a session, until it is ended.
///
/// Each PORT is a port inside, or LOCAL:PORT where the port here is to be another one; 0 takes one that
/// is free. It listens on 127.0.0.1 alone. Web sockets and everything else over TCP pass. A connection
/// is made to the server's loopback inside when somebody connects here: the server may start later, and
/// start again. While a connection is open the session does not fall asleep; one that sleeps is
/// resumed by a connection. Every user of this machine can connect to what is forwarded.
///
/// Example: cofferdam port agent-1 3000
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PortArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The ports inside, each with the port here before it where that is to be another one.
    #[arg(value_name = "[LOCAL:]PORT", required = true, num_args = 1..)]
    pub(crate) ports: Vec<Forward>,

    /// Prints one JSON object a line on standard output for each port that is forwarded.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cofferdam port agent-1 3000              http://127.0.0.1:3000 is the server inside
  cofferdam port agent-1 8080:80 5432      two ports, one of them by another number
  cofferdam port agent-1 0:3000            by a number that is free, which is printed

Exit code:
  0 a signal ended it, as Ctrl-C; 1 Cofferdam could not do it, or the session was removed; 2 usage";

/// How often a session is looked for that nobody connects to.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// A port inside, and the one here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Forward {
    local: u16,
    port: u16,
}

impl FromStr for Forward {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::new(ErrorKind::Usage, format!("{text:?} is no port"))
                .hint("Write PORT or LOCAL:PORT, each from 1 to 65535; LOCAL may be 0.")
        };
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u16>().map_err(|_| bad()),
            false => Err(bad()),
        };
        let (local, port) = match text.split_once(':') {
            Some((local, port)) => (number(local)?, number(port)?),
            None => (number(text)?, number(text)?),
        };
        if port == 0 {
            return Err(bad());
        }
        Ok(Self { local, port })
    }
}

/// What `port --json` prints for each port. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Forwarded {
    /// The id of the session.
    pub(crate) session: String,
    /// The port inside.
    pub(crate) port: u16,
    /// Where it is reached, as `127.0.0.1:3000`.
    pub(crate) address: String,
}

/// Forwards until a signal comes, or the session is removed. As many connections at once as a sandbox
/// takes; more wait.
pub(super) fn perform(args: &PortArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let session = sessions::find_to_change(sessions, &args.session).await?;
        // ORDER: all of them before anything is printed: one that is in use refuses the whole.
        let mut listeners = Vec::new();
        for forward in &args.ports {
            listeners.push((listen(*forward).await?, forward.port));
        }
        let mut signals = Listening::to(&ENDING)?;
        let room = Arc::new(Semaphore::new(MAX_PORT_CONNECTIONS));
        let mut all = JoinSet::new();
        for (listener, port) in listeners {
            say(args, &session, &listener, port)?;
            all.spawn(serve(session.clone(), listener, port, Arc::clone(&room)));
        }
        all.spawn(until_removed(session.clone()));
        tokio::select! {
            _ = signals.next() => Ok(exit::DONE),
            ended = all.join_next() => match ended {
                Some(Ok(error)) => Err(error),
                Some(Err(_)) | None => Err(Error::new(ErrorKind::Io, "forward a port")),
            },
        }
    })
}

async fn listen(forward: Forward) -> Result<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, forward.local));
    TcpListener::bind(address).await.map_err(|error| {
        let Forward { port, .. } = forward;
        Error::new(ErrorKind::Io, format!("listen on {address}")).source(error).hint(format!(
            "Choose another port as in 8080:{port}, or 0:{port} for one that is free."
        ))
    })
}

fn say(args: &PortArgs, session: &Session, listener: &TcpListener, port: u16) -> Result<()> {
    let address = local_address(listener)?.to_string();
    if args.json {
        return render::print_json(&Forwarded { session: session.id().to_string(), port, address });
    }
    render::print_lines(&format!("{address} is port {port} of {}", args.session))
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr> {
    let cannot = |error| Error::new(ErrorKind::Io, "look where it listens").source(error);
    listener.local_addr().map_err(cannot)
}

/// Takes connections until that fails.
async fn serve(session: Session, listener: TcpListener, port: u16, room: Arc<Semaphore>) -> Error {
    // They end with the port: whoever drops this cuts them.
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return Error::new(ErrorKind::Io, "wait for a connection to end");
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // A caller that gave up, or too many descriptors for a moment.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let session = session.clone();
        open.spawn(async move {
            if let Err(error) = carry(&session, stream, port).await {
                // One line each: who connects sees only that nobody answers.
                eprintln!("cofferdam: {}", error.chain());
            }
            drop(place);
        });
    }
}

async fn carry(session: &Session, stream: TcpStream, port: u16) -> Result<()> {
    // Requests of web pages are small, and wait for each other.
    let _ = stream.set_nodelay(true);
    session.carry(port, stream).await
}

/// Ports that a model shows to the user: each at a port of this machine's loopback that was free, until
/// this is dropped.
#[cfg(feature = "mcp")]
#[derive(Default)]
pub(crate) struct Shown(tokio::sync::Mutex<ShownPorts>);

#[cfg(feature = "mcp")]
#[derive(Default)]
struct ShownPorts {
    known: std::collections::BTreeMap<(cofferdam_session::SessionId, u16), SocketAddr>,
    at_work: JoinSet<Error>,
}

/// The most ports that one connection shows.
#[cfg(feature = "mcp")]
const MAX_SHOWN: usize = 64;

#[cfg(feature = "mcp")]
#[async_trait::async_trait]
impl cofferdam_tools::Expose for Shown {
    async fn expose(&self, session: &cofferdam_session::Session, port: u16) -> Result<String> {
        let mut shown = self.0.lock().await;
        let key = (session.id().clone(), port);
        if let Some(address) = shown.known.get(&key) {
            return Ok(format!("http://{address}/"));
        }
        if shown.known.len() >= MAX_SHOWN {
            let what = format!("{MAX_SHOWN} ports are shown already");
            return Err(Error::new(ErrorKind::Conflict, what));
        }
        let listener = listen(Forward { local: 0, port }).await?;
        let address = local_address(&listener)?;
        let room = Arc::new(Semaphore::new(MAX_PORT_CONNECTIONS));
        shown.at_work.spawn(serve(Session::Here(session.clone()), listener, port, room));
        shown.known.insert(key, address);
        Ok(format!("http://{address}/"))
    }
}

/// Says that a session was removed, once it was.
async fn until_removed(session: Session) -> Error {
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        if let Err(error) = session.sessions().status(session.id()).await
            && error.kind == ErrorKind::NotFound
        {
            return error;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_stands_alone_or_behind_one_of_this_machine() {
        for (text, local, port) in [("3000", 3000, 3000), ("8080:80", 8080, 80), ("0:1", 0, 1)] {
            assert_eq!(text.parse::<Forward>().unwrap(), Forward { local, port }, "{text}");
        }
        for bad in ["", "0", "1:0", "65536", "a", "1:", ":1", "1:2:3", "+1", "-1", "127.0.0.1:80"] {
            let error = bad.parse::<Forward>().unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{bad:?}");
        }
    }
}
