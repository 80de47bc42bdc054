//! The loop that takes connections in, and what bounds them.

use crate::holding::holding;
use crate::listen::{Bound, Socket};
use crate::peer::Ends;
use crate::room::{Place, Room};
use crate::short::Short;
use crate::stalling::{Flow, Stalling};
use crate::{Server, router};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use cofferdam_core::{Error, ErrorKind, Result};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::io::Errno;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tower::ServiceExt;

/// The most connections at once unless an operator says otherwise. Where another one comes in, whoever waited longest
/// without a request in flight is closed; as long as there is none, it waits until one of them ends.
pub const MAX_CONNECTIONS: usize = 1024;
/// How many open files there are for each connection: its own, and those of what is asked over it, as a way to a
/// sandbox's keeper, a way to its files, and output that is kept.
const FILES_OF_EACH: u64 = 4;
/// The longest head of a request, in bytes.
pub const MAX_HEAD_BYTES: usize = 32 << 10;
/// How long a caller may take to send the head of a request.
pub const HEAD_TIME: Duration = Duration::from_secs(20);
/// How long requests may take to end once the server is to end.
pub const GRACE: Duration = Duration::from_secs(10);
/// How often a server finishes what was begun and ends what is over, as every start does.
const REPAIRED_EVERY: Duration = Duration::from_secs(60);

/// The most connections of a process that may have so many files open: [`MAX_CONNECTIONS`], or fewer, so that there
/// are files for what is asked. No number is no limit.
pub fn max_connections(open_files: Option<u64>) -> usize {
    let share = open_files.and_then(|files| usize::try_from(files / FILES_OF_EACH).ok());
    share.map_or(MAX_CONNECTIONS, |share| share.clamp(1, MAX_CONNECTIONS))
}

/// How far the end of a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Serving,
    /// Nothing new is taken in.
    Ending,
    /// What still goes on is cut.
    Cut,
}

pub(crate) async fn reached(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    drop(stage.wait_for(|stage| *stage >= wanted).await);
}

async fn repair_now_and_then(server: Server) {
    loop {
        tokio::time::sleep(REPAIRED_EVERY).await;
        if let Err(error) = server.0.sessions.repair().await {
            (server.0.options.log)(&format!("repair the sessions: {}", error.chain()));
        }
    }
}

/// Goes on with what another server prepared and was ended before it was done. The one before may be at that still
/// when this one begins, so it looks again.
async fn prepare_now_and_then(server: Server) {
    loop {
        let log = server.0.options.log;
        match server.0.sessions.prepare_what_was_left().await {
            Err(error) => log(&format!("prepare what was left: {}", error.chain())),
            Ok(failed) => failed.iter().for_each(|(session, error)| {
                log(&format!("prepare session {session}: {}", error.chain()));
            }),
        }
        tokio::time::sleep(REPAIRED_EVERY).await;
    }
}

/// By which way a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Over TCP: anybody who reaches the address.
    Tcp,
    /// Over TCP, from a socket of the user whose server it is, or of root.
    OwnTcp,
    /// Over TCP, where the kernel could not be asked whose the socket is.
    UnclearTcp(Errno),
    /// By the file of a socket: the user whose server it is.
    Unix,
}

impl Server {
    /// Answers what comes in until `end`, and then lets what is being answered end for a moment.
    ///
    /// Sandboxes and commands go on. A stream that is being followed is cut; it can be taken up where
    /// it was.
    pub async fn serve(&self, bound: Bound, end: impl Future<Output = ()>) -> Result<()> {
        if !bound.at.is_private() && !self.0.options.keys_only {
            return Err(public(&bound));
        }
        self.listens_at(&bound.at);
        let routes = router(self.clone());
        let room = Room::new(self.0.options.max_connections);
        let (ending, is_ending) = watch::channel(Stage::Serving);
        self.beside(repair_now_and_then(self.clone()));
        self.beside(prepare_now_and_then(self.clone()));
        let mut short = Short::new(self.0.options.log);
        let accepting = async {
            loop {
                let (routes, is_ending) = (routes.clone(), is_ending.clone());
                let flow = Arc::new(Flow::default());
                match &bound.listener {
                    Socket::Tcp(listener) => match listener.accept().await {
                        Ok((stream, peer)) => {
                            stream.set_nodelay(true).ok();
                            let way = Came::Tcp(Ends::new(peer, stream.local_addr().ok()));
                            let place = room.take(&flow).await;
                            let stream = Stalling::new(stream, flow.clone());
                            spawn(stream, way, routes, is_ending, (place, flow));
                        }
                        Err(error) => short.make_room(&room, &error).await,
                    },
                    Socket::Unix(listener) => match listener.accept().await {
                        Ok((stream, _)) => {
                            let place = room.take(&flow).await;
                            let stream = Stalling::new(stream, flow.clone());
                            spawn(stream, Came::Unix, routes, is_ending, (place, flow));
                        }
                        Err(error) => short.make_room(&room, &error).await,
                    },
                }
            }
        };
        tokio::select! {
            () = accepting => {}
            () = end => {}
        }
        // ORDER: the ear goes first, so that nobody comes in who would be cut.
        drop(bound);
        ending.send_replace(Stage::Ending);
        self.0.stage.send_replace(Stage::Ending);
        drop(is_ending);
        tokio::time::timeout(GRACE, ending.closed()).await.ok();
        ending.send_replace(Stage::Cut);
        self.0.stage.send_replace(Stage::Cut);
        ending.closed().await;
        Ok(())
    }
}

fn public(bound: &Bound) -> Error {
    let what = format!("{} is reached from elsewhere, and nobody would need a key", bound.at);
    Error::new(ErrorKind::Denied, what)
        .hint("Make a key with `cofferdam key create`, or listen on 127.0.0.1 or a Unix socket.")
}

/// How a connection came in. Whose it is is not looked at for who asks for nothing.
enum Came {
    Tcp(Ends),
    Unix,
}

impl Came {
    async fn way(&self) -> Way {
        match self {
            Self::Unix => Way::Unix,
            Self::Tcp(ends) => match ends.is_own().await {
                Ok(true) => Way::OwnTcp,
                Ok(false) => Way::Tcp,
                Err(errno) => Way::UnclearTcp(errno),
            },
        }
    }
}

/// Serves one connection beside the others.
fn spawn(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    came: Came,
    routes: Router,
    mut stage: watch::Receiver<Stage>,
    (place, flow): (Place, Arc<Flow>),
) {
    tokio::spawn(async move {
        let came = Arc::new(came);
        let begins = place.begins();
        let answer = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let (routes, flow, in_flight) = (routes.clone(), flow.clone(), begins());
            flow.tell_asked();
            let came = came.clone();
            async move {
                let mut request: Request = request.map(Body::new);
                request.extensions_mut().insert(came.way().await);
                request.extensions_mut().insert(flow.clone());
                let answer = routes.oneshot(request).await?;
                in_flight.is_answered();
                flow.tell_upgraded(answer.status() == StatusCode::SWITCHING_PROTOCOLS);
                Ok::<_, Infallible>(holding(answer, in_flight))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), answer)
            .with_upgrades();
        // ORDER: the connection goes before its place, for there may be no descriptor but its own for the next one.
        async {
            let mut connection = std::pin::pin!(connection);
            // A connection that breaks off is its caller's affair.
            tokio::select! {
                _ = connection.as_mut() => {}
                () = place.is_to_leave() => {}
                () = reached(&mut stage, Stage::Ending) => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        _ = connection => {}
                        () = reached(&mut stage, Stage::Cut) => {}
                    }
                }
            }
        }
        .await;
        drop(place);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_files_for_what_is_asked_over_each_connection() {
        let check = |files: Option<u64>, most: usize| assert_eq!(max_connections(files), most);
        check(None, MAX_CONNECTIONS);
        check(Some(1 << 20), MAX_CONNECTIONS);
        check(Some(4096), MAX_CONNECTIONS);
        check(Some(4095), MAX_CONNECTIONS - 1);
        check(Some(1024), 256);
        check(Some(0), 1);
    }
}
