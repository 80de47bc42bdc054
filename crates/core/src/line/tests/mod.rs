//! The line against guests that are played by hand.

mod commands;
mod hostile;

use crate::line::{Carrier, Surroundings, WireGuest};
use crate::{Command, EgressGate, Error, NoGate, Process, ProcessEvent, ProcessId, Result};
use cofferdam_wire::frame::{self, Decoder, Kind};
use cofferdam_wire::message::{
    Confirmed, Ended, FromProcess, Greeting, Hello, HostOpens, How, Spawn, Stdio, Stream, ToProcess,
};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A guest that does what the test says.
struct Played {
    stream: DuplexStream,
    decoder: Decoder,
}

/// The channels of a command.
#[derive(Debug, Clone, Copy)]
struct Started {
    control: u32,
    stdin: u32,
    stdout: u32,
    stderr: u32,
}

impl Played {
    fn new(stream: DuplexStream) -> Self {
        Self { stream, decoder: Decoder::default() }
    }

    async fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    async fn frame(&mut self, channel: u32, kind: Kind, body: &[u8]) {
        let mut bytes = Vec::new();
        frame::encode(channel, kind, body, &mut bytes).unwrap();
        // The host may have closed the line; the test looks at the host's side.
        self.stream.write_all(&bytes).await.ok();
    }

    async fn say<T: Serialize>(&mut self, channel: u32, message: &T) {
        self.frame(channel, Kind::Message, &serde_json::to_vec(message).unwrap()).await;
    }

    async fn hello(&mut self) {
        let hello =
            Hello { generation: 1, version: "0".to_owned(), confirmed: Confirmed::default() };
        self.say(0, &Greeting::Hello(hello)).await;
    }

    /// The next frame from the host.
    async fn next(&mut self) -> Option<(u32, Kind, Vec<u8>)> {
        loop {
            if let Some((header, body)) = self.decoder.next_frame().unwrap() {
                return Some((header.channel, header.kind, body.to_vec()));
            }
            let mut bytes = vec![0; 4096];
            match self.stream.read(&mut bytes).await.unwrap() {
                0 => return None,
                len => self.decoder.push(&bytes[..len]),
            }
        }
    }

    async fn hear(&mut self) -> (u32, ToProcess) {
        let (channel, kind, body) = self.next().await.unwrap();
        assert_eq!(kind, Kind::Message);
        (channel, serde_json::from_slice(&body).unwrap())
    }

    /// Takes a request to start a command, without an answer.
    async fn requested(&mut self) -> (Started, Spawn) {
        let (control, kind, body) = self.next().await.unwrap();
        assert_eq!(kind, Kind::Message);
        let HostOpens::Spawn(spawn) = serde_json::from_slice(&body).unwrap() else {
            panic!("not a spawn")
        };
        let line = |stream| match stream {
            Stream::Line(id) => id,
            Stream::Null | Stream::Descriptor(_) => 0,
        };
        let Stdio::Streams { stdin, stdout, stderr } = spawn.stdio else { panic!("a terminal") };
        let (stdin, stdout, stderr) = (line(stdin), line(stdout), line(stderr));
        (Started { control, stdin, stdout, stderr }, *spawn)
    }

    async fn start(&mut self) -> Started {
        let (started, _) = self.requested().await;
        self.say(started.control, &FromProcess::Started { pid: 2 }).await;
        started
    }

    /// Stays for as long as the host's side does.
    async fn forget(mut self) {
        tokio::spawn(async move { while self.next().await.is_some() {} });
    }

    async fn end(&mut self, started: Started, how: How) {
        self.frame(started.stdout, Kind::End, b"").await;
        self.frame(started.stderr, Kind::End, b"").await;
        self.say(started.control, &ended(how)).await;
    }
}

fn ended(how: How) -> FromProcess {
    FromProcess::Ended(Ended {
        how,
        timed_out: false,
        killed_descendants: 0,
        cpu_us: 7,
        peak_rss_bytes: 8,
        left_below: None,
    })
}

async fn meet(gate: Arc<dyn EgressGate>) -> (WireGuest, Played) {
    let (host, inside) = tokio::io::duplex(1 << 16);
    let mut played = Played::new(inside);
    played.hello().await;
    let guest = WireGuest::over(Carrier::plain(host), gate, Surroundings::new("/workspace"));
    (guest.await.unwrap(), played)
}

async fn meet_plain() -> (WireGuest, Played) {
    meet(Arc::new(NoGate)).await
}

fn command(id: &str) -> Command {
    Command::new(ProcessId::new(id).unwrap(), ["true"])
}

async fn spawn(guest: &WireGuest, played: &mut Played, command: &Command) -> (Process, Started) {
    let (process, started) = tokio::join!(crate::Guest::spawn(guest, command), played.start());
    (process.unwrap(), started)
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.unwrap()
}

/// Waits until the line is closed, and says why.
async fn closed(guest: &WireGuest) -> Error {
    soon(async {
        loop {
            if let Err(error) = guest.still_there() {
                return error;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

async fn opened(stream: DuplexStream) -> Result<WireGuest> {
    let surroundings = Surroundings::new("/workspace");
    WireGuest::over(Carrier::plain(stream), Arc::new(NoGate), surroundings).await
}

async fn last(process: &mut Process) -> Option<ProcessEvent> {
    let mut last = None;
    while let Some(event) = soon(process.events.recv()).await {
        last = Some(event);
    }
    last
}
