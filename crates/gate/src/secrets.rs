//! The secrets that a gate puts in, and the watch over what stands for them.
//!
//! TLS to a host that has a secret ends here and begins anew. All else goes on byte for byte, and what is
//! readable of it is looked through: requests of HTTP, first messages of TLS, and whatever is not encrypted.
//!
//! LIMIT: what is said within TLS to other hosts cannot be seen.

use crate::admit::{Refusal, admit};
use crate::attempt::{Attempt, Counts};
use crate::carry::Cut;
use crate::gate::Gate;
use crate::limits::Limits;
use crate::teller::Teller;
use cofferdam_core::network::{FromGate, GateOrder, SecretAlarm};
use cofferdam_core::policy::{Asked, Host};
use cofferdam_core::secret::Vault;
use cofferdam_core::{ConnectionHow, Error, ErrorKind, Result};
use cofferdam_terminate::{Authority, Injector, Notice, Sighting, Terminator, Upstream, Watch};
use std::io::{self, Cursor};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How often it is looked whether anything moves.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// All that is needed to put secrets in.
pub(crate) struct Secrets {
    injector: Arc<Injector>,
    terminator: Terminator,
    teller: Teller,
}

impl Secrets {
    /// From what came with the order; `None` where it has no secrets.
    pub(crate) fn open(
        order: &GateOrder,
        vault: Option<OwnedFd>,
        teller: Teller,
    ) -> Result<Option<Self>> {
        if order.secrets.is_empty() {
            return Ok(None);
        }
        let missing = || Error::new(ErrorKind::Protocol, "the values of secrets did not come");
        let Vault { authority, certificate, key, values, roots } =
            Vault::read(&vault.ok_or_else(missing)?.into(), order.secrets.len())?;
        let mut injector = Injector::default();
        for (granted, value) in order.secrets.iter().zip(values) {
            injector.grant(granted.grant.clone(), &granted.placeholder, value)?;
        }
        let injector = Arc::new(injector);
        let authority = Authority::restore(&authority, certificate, &key)?;
        let upstream = Upstream::new(roots.into_iter().map(Into::into))?;
        let terminator = Terminator::new(Arc::new(authority), Arc::clone(&injector), upstream);
        Ok(Some(Self { injector, terminator, teller }))
    }
}

impl Gate {
    /// Whether TLS to this host ends here.
    pub(crate) fn puts_in(&self, asked: &Asked) -> bool {
        match (&self.secrets, &asked.host) {
            (Some(secrets), Host::Name(name)) => secrets.injector.is_for(name.as_str()),
            (Some(_) | None, _) => false,
        }
    }

    /// The watch over what goes to this host, if there is anything to watch for.
    pub(crate) fn watch(&self, asked: &Asked) -> Option<Watch> {
        Some(self.secrets.as_ref()?.injector.watch(&asked.host.to_string()))
    }

    /// What is in the very name that is asked for.
    pub(crate) fn look_at_name(&self, asked: &Asked) -> Option<Sighting> {
        self.look_at(asked.host.to_string().as_bytes(), asked)
    }

    /// What is in bytes that are there as a whole.
    pub(crate) fn look_at(&self, bytes: &[u8], asked: &Asked) -> Option<Sighting> {
        let mut watch = self.watch(asked)?;
        watch.look(bytes).or_else(|| watch.finish())
    }

    /// Tells the holder, before whoever caused it hears anything.
    pub(crate) fn raise(&self, sighting: &Sighting, asked: &Asked) {
        if let (Some(secrets), Some(secret)) = (&self.secrets, sighting.secret.clone()) {
            let host = asked.host.to_string();
            let alarm = SecretAlarm { secret, host, port: asked.port };
            secrets.teller.tell(FromGate::Alarm(alarm));
        }
    }
}

/// Serves a connection to a host that has a secret, whose first bytes were read.
pub(crate) async fn put_in(
    mut attempt: Attempt,
    (client, read): (TcpStream, Vec<u8>),
    upstream: TcpStream,
    asked: &Asked,
) {
    let gate = Arc::clone(&attempt.gate);
    let Some(secrets) = &gate.secrets else { return };
    attempt.ended("TLS ended at the gate, which puts a secret in");
    let (counts, how) = (Arc::clone(&attempt.counts), attempt.how());
    let host = asked.host.to_string();
    let (from, to) = client.into_split();
    let client = tokio::io::join(Cursor::new(read).chain(from), to);
    let first = Mutex::new(Some(upstream));
    let dial = || async {
        // The first one was dialed when the connection was let through.
        let open = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stream = match open {
            Some(stream) => stream,
            None => dial_again(&gate, how, asked).await?,
        };
        Ok(Counted { stream, counts: Arc::clone(&counts) })
    };
    let attempt = Mutex::new(attempt);
    let noted = || attempt.lock().unwrap_or_else(PoisonError::into_inner);
    let told = |notice| match notice {
        Notice::Alarm(sighting) => {
            // ORDER: whoever is told may end this gate at once, and what was seen is in the log then.
            noted().saw(&sighting, asked);
            gate.raise(&sighting, asked);
        }
        Notice::Refused(why) => log_refused(&gate, how, asked, &why),
        Notice::Failed(why) => noted().ended(&why),
    };
    tokio::select! {
        served = secrets.terminator.serve(client, (&host, asked.port), dial, told) => {
            // Before anything was said that could be seen.
            if let Err(error) = served {
                noted().failed(&error.chain());
            }
        }
        cut = cut(&counts, &gate.limits) => noted().ended(cut.reason()),
    }
}

/// A request that was refused has a line of its own: the connection that it came over was allowed.
fn log_refused(gate: &Arc<Gate>, how: ConnectionHow, asked: &Asked, why: &str) {
    let mut attempt = Attempt::new(gate, how);
    attempt.asks(asked);
    attempt.refused(why);
}

/// Connects once more, by the rules that are in force now. It has a line of its own in the log.
async fn dial_again(gate: &Arc<Gate>, how: ConnectionHow, asked: &Asked) -> io::Result<TcpStream> {
    let mut attempt = Attempt::new(gate, how);
    admit(&mut attempt, asked).await.map_err(|refusal| {
        io::Error::other(match refusal {
            Refusal::Denied(decision) => decision.reason.unwrap_or_else(|| "denied".to_owned()),
            Refusal::Failed { reason, .. } => reason,
        })
    })
}

/// Returns when nothing moved for too long, or all took too long.
async fn cut(counts: &Counts, limits: &Limits) -> Cut {
    let moved = || counts.up.load(Ordering::Relaxed) + counts.down.load(Ordering::Relaxed);
    let (began, mut last) = (Instant::now(), (Instant::now(), moved()));
    loop {
        tokio::time::sleep(LOOK_EVERY.min(limits.idle_time).min(limits.total_time)).await;
        if last.1 != moved() {
            last = (Instant::now(), moved());
        }
        if began.elapsed() >= limits.total_time {
            return Cut::Total;
        }
        if last.0.elapsed() >= limits.idle_time {
            return Cut::Idle;
        }
    }
}

/// A connection to a host whose bytes are counted.
struct Counted {
    stream: TcpStream,
    counts: Arc<Counts>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let more = buffer.filled().len().saturating_sub(before);
        self.counts.down.fetch_add(more as u64, Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = &written {
            self.counts.up.fetch_add(*count as u64, Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
