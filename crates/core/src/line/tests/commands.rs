//! What an honest guest does.

use super::*;
use crate::line::{Descriptors, Incoming};
use crate::{Duplex, Ending, ErrorKind, Guest, ProcessInput, Standard, Stdin, collect};
use async_trait::async_trait;
use cofferdam_wire::message::{
    EgressAnswer, GuestOpens, News, NotStarted, NotStartedReason, Proof, Prove, SetupFailure,
};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Mutex;

/// `INITIAL_CREDIT_BYTES`, as a size.
const WINDOW: usize = 1 << 20;

#[tokio::test]
async fn a_command_runs_and_its_streams_stay_apart() {
    let (guest, mut played) = meet_plain().await;
    let mut wanted = command("a");
    wanted.env.insert("A".into(), "1".into());
    wanted.timeout = Some(Duration::from_micros(1));
    let (process, started) = tokio::join!(guest.spawn(&wanted), async {
        let (started, spawn) = played.requested().await;
        played.say(started.control, &FromProcess::Started { pid: 2 }).await;
        assert_eq!((spawn.id.as_str(), spawn.timeout_ms), ("a", Some(1)));
        assert_eq!(spawn.cwd.as_bytes(), b"/workspace");
        assert_eq!(spawn.env, [("A".into(), "1".into())]);
        assert_eq!(started.stdin, 0);
        started
    });
    let process = process.unwrap();
    assert_eq!(guest.processes().await.unwrap(), std::slice::from_ref(&process.id));
    played.frame(started.stderr, Kind::Data, b"oops").await;
    played.frame(started.stdout, Kind::Data, b"one ").await;
    played.frame(started.stdout, Kind::Data, b"two").await;
    played.end(started, How::Exited(3)).await;
    let output = soon(collect(process, 100)).await.unwrap();
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"one two"[..], &b"oops"[..]));
    assert_eq!((output.ending, output.cpu_us), (Ending::Exited(3), Some(7)));
    assert_eq!(guest.processes().await.unwrap(), []);
}

#[tokio::test]
async fn an_ending_that_comes_before_the_last_output_waits_for_it() {
    let (guest, mut played) = meet_plain().await;
    let (process, started) = spawn(&guest, &mut played, &command("a")).await;
    played.say(started.control, &ended(How::Signaled(9))).await;
    played.frame(started.stdout, Kind::Data, b"late").await;
    played.frame(started.stdout, Kind::End, b"").await;
    played.frame(started.stderr, Kind::End, b"").await;
    let output = soon(collect(process, 100)).await.unwrap();
    assert_eq!((&output.stdout[..], output.ending), (&b"late"[..], Ending::Signaled(9)));
}

#[tokio::test]
async fn a_program_that_does_not_start_is_an_ending_and_no_error() {
    let (guest, mut played) = meet_plain().await;
    for (reason, code) in
        [(NotStartedReason::NotFound, 127), (NotStartedReason::BadWorkingDirectory, 125)]
    {
        let wanted = command("a");
        let (process, ()) = tokio::join!(guest.spawn(&wanted), async {
            let (started, _) = played.requested().await;
            let detail = "no\x1b[1m such".to_owned();
            let answer = FromProcess::NotStarted(NotStarted { reason, errno: 2, detail });
            played.say(started.control, &answer).await;
            played.frame(started.stdout, Kind::End, b"").await;
        });
        let output = soon(collect(process.unwrap(), 100)).await.unwrap();
        assert_eq!(output.ending, Ending::NotStarted { code, detail: "no[1m such".to_owned() });
    }
    guest.still_there().unwrap();
}

#[tokio::test]
async fn an_id_in_use_is_a_conflict_and_free_again_after_the_end() {
    let (guest, mut played) = meet_plain().await;
    let (process, started) = spawn(&guest, &mut played, &command("a")).await;
    assert_eq!(guest.spawn(&command("a")).await.unwrap_err().kind, ErrorKind::Conflict);
    played.end(started, How::Exited(0)).await;
    soon(collect(process, 0)).await.unwrap();
    spawn(&guest, &mut played, &command("a")).await;
}

#[tokio::test]
async fn a_terminal_over_plain_bytes_is_unsupported() {
    let (guest, _played) = meet_plain().await;
    let mut wanted = command("a");
    wanted.terminal = Some(crate::Terminal { rows: 1, columns: 1 });
    assert_eq!(guest.spawn(&wanted).await.unwrap_err().kind, ErrorKind::Unsupported);
}

#[tokio::test]
async fn a_slow_reader_stops_nobody_else_and_loses_nothing() {
    let (guest, mut played) = meet_plain().await;
    let (slow, slow_started) = spawn(&guest, &mut played, &command("slow")).await;
    // All the credit there is, and nobody reads.
    for _ in 0..WINDOW / 1024 {
        played.frame(slow_started.stdout, Kind::Data, &[1; 1024]).await;
    }
    let (quick, started) = spawn(&guest, &mut played, &command("quick")).await;
    played.frame(started.stdout, Kind::Data, b"quick").await;
    played.end(started, How::Exited(0)).await;
    assert_eq!(soon(collect(quick, 100)).await.unwrap().stdout, b"quick");
    played.end(slow_started, How::Exited(0)).await;
    assert_eq!(soon(collect(slow, WINDOW * 2)).await.unwrap().stdout.len(), WINDOW);
}

#[tokio::test]
async fn a_reader_that_reads_grants_more() {
    let (guest, mut played) = meet_plain().await;
    let (process, started) = spawn(&guest, &mut played, &command("a")).await;
    let writer = async {
        let (mut credit, mut left) = (WINDOW, 4 * WINDOW);
        while left > 0 {
            while credit < 65_536 {
                let (channel, kind, body) = played.next().await.unwrap();
                assert_eq!((channel, kind), (started.stdout, Kind::Credit));
                credit += u32::from_le_bytes(body.try_into().unwrap()) as usize;
            }
            played.frame(started.stdout, Kind::Data, &[7; 65_536]).await;
            (credit, left) = (credit - 65_536, left - 65_536);
        }
        played.end(started, How::Exited(0)).await;
    };
    let (output, ()) = soon(async { tokio::join!(collect(process, WINDOW), writer) }).await;
    let output = output.unwrap();
    assert_eq!((output.stdout.len(), output.omitted.stdout), (WINDOW, 3 * WINDOW as u64));
}

#[tokio::test]
async fn input_waits_for_credit_and_a_kill_does_not() {
    let (guest, mut played) = meet_plain().await;
    let mut wanted = command("a");
    wanted.stdin = Stdin::Piped;
    let (process, started) = spawn(&guest, &mut played, &wanted).await;
    let input = process.input.clone();
    let writer = tokio::spawn(async move {
        // More than credit, backlog and queue hold.
        while input.send(ProcessInput::Bytes(vec![5; 300_000])).await.is_ok() {}
    });
    let mut came = 0;
    while came < WINDOW {
        let (channel, kind, body) = soon(played.next()).await.unwrap();
        assert_eq!((channel, kind), (started.stdin, Kind::Data));
        came += body.len();
    }
    assert_eq!(came, WINDOW);
    process.killer.kill();
    assert_eq!(soon(played.hear()).await, (started.control, ToProcess::Kill));
    played.frame(started.stdin, Kind::Credit, &10_u32.to_le_bytes()).await;
    assert_eq!(soon(played.next()).await.unwrap().2, [5; 10]);
    played.end(started, How::Signaled(9)).await;
    assert_eq!(soon(collect(process, 0)).await.unwrap().ending, Ending::Signaled(9));
    soon(writer).await.unwrap();
}

#[tokio::test]
async fn signals_overtake_input_and_its_end_comes_last() {
    let (guest, mut played) = meet_plain().await;
    let mut wanted = command("a");
    wanted.stdin = Stdin::Piped;
    let (process, started) = spawn(&guest, &mut played, &wanted).await;
    process.input.send(ProcessInput::Bytes(vec![5; WINDOW + 1])).await.unwrap();
    process.input.send(ProcessInput::Close).await.unwrap();
    process.input.send(ProcessInput::Signal(15)).await.unwrap();
    let (mut came, mut signaled) = (0, false);
    while came < WINDOW || !signaled {
        let (channel, kind, body) = soon(played.next()).await.unwrap();
        if channel == started.control {
            assert_eq!(body, serde_json::to_vec(&ToProcess::Signal(15)).unwrap());
            signaled = true;
        } else {
            assert_eq!((channel, kind), (started.stdin, Kind::Data));
            came += body.len();
        }
    }
    played.frame(started.stdin, Kind::Credit, &1_u32.to_le_bytes()).await;
    assert_eq!(soon(played.next()).await.unwrap(), (started.stdin, Kind::Data, vec![5]));
    assert_eq!(soon(played.next()).await.unwrap(), (started.stdin, Kind::End, vec![]));
}

#[tokio::test]
async fn a_spawn_that_is_given_up_kills_its_command() {
    let (guest, mut played) = meet_plain().await;
    let wanted = command("a");
    let started = tokio::select! {
        _ = guest.spawn(&wanted) => panic!("it has not started"),
        (started, _) = played.requested() => started,
    };
    played.say(started.control, &FromProcess::Started { pid: 2 }).await;
    assert_eq!(soon(played.hear()).await, (started.control, ToProcess::Kill));
}

#[tokio::test]
async fn a_proof_and_a_ping_are_answered() {
    let (guest, mut played) = meet_plain().await;
    let prove = Prove::default();
    let (proof, ()) = tokio::join!(guest.prove(&prove), async {
        let (channel, _, _) = played.next().await.unwrap();
        played.say(channel, &Proof::default()).await;
        played.frame(channel, Kind::End, b"").await;
    });
    assert_eq!(proof.unwrap(), Proof::default());
    let (pong, ()) = tokio::join!(guest.ping(), async {
        let (channel, _, _) = played.next().await.unwrap();
        played.frame(channel, Kind::Data, b"").await;
    });
    pong.unwrap();
}

#[tokio::test]
async fn a_sandbox_that_was_not_set_up_says_where() {
    let (host, inside) = tokio::io::duplex(4096);
    let mut played = Played::new(inside);
    let failure = SetupFailure { step: "mount proc".into(), call: "mount(2)".into(), errno: 1 };
    played.say(0, &Greeting::SetupFailed(failure)).await;
    let error = opened(host).await.err().unwrap();
    assert_eq!(error.kind, ErrorKind::SetupFailed);
    assert!(error.chain().contains("mount proc: mount(2): Operation not permitted"), "{error:?}");
}

#[tokio::test]
async fn a_sandbox_that_goes_away_leaves_events_without_an_ending() {
    let (guest, mut played) = meet_plain().await;
    let (mut process, started) = spawn(&guest, &mut played, &command("a")).await;
    let (mut done, done_started) = spawn(&guest, &mut played, &command("done")).await;
    played.frame(started.stdout, Kind::Data, b"half").await;
    played.say(done_started.control, &ended(How::Exited(0))).await;
    drop(played);
    let half =
        ProcessEvent::Output { stream: Standard::Output, offset: 0, bytes: b"half".to_vec() };
    assert_eq!(last(&mut process).await, Some(half));
    // This one had ended, and only the ends of its streams are missing.
    assert!(matches!(last(&mut done).await, Some(ProcessEvent::Ended { .. })));
    assert_eq!(closed(&guest).await.kind, ErrorKind::Unavailable);
    assert_eq!(guest.processes().await.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(guest.spawn(&command("b")).await.unwrap_err().kind, ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_sandbox_that_goes_away_amid_a_frame_is_gone_and_broke_no_rule() {
    // Amid the head, amid a body that passes through the buffer, and amid one that does not.
    for (body, sent) in [(5_usize, 4_usize), (5, 11), (200 << 10, 50 << 10)] {
        let (guest, mut played) = meet_plain().await;
        let (mut process, started) = spawn(&guest, &mut played, &command("a")).await;
        let mut bytes = Vec::new();
        frame::encode(started.stdout, Kind::Data, &vec![b'x'; body], &mut bytes).unwrap();
        played.raw(&bytes[..sent]).await;
        drop(played);
        assert_eq!(last(&mut process).await, None);
        let error = closed(&guest).await;
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Unavailable, "the sandbox is gone")
        );
    }
}

#[tokio::test]
async fn letting_go_of_a_guest_closes_its_line() {
    let (guest, mut played) = meet_plain().await;
    drop(guest);
    assert_eq!(soon(played.next()).await, None);
}

/// A gate that knows one host.
struct OneHost(Mutex<Option<DuplexStream>>);

#[async_trait]
impl EgressGate for OneHost {
    async fn dial(&self, host: &str, port: u16) -> Result<Box<dyn Duplex>> {
        let refused = || Error::new(ErrorKind::Denied, format!("{host}:{port} is not listed"));
        match host {
            "known" => Ok(Box::new(self.0.lock().await.take().ok_or_else(refused)?)),
            _ => Err(refused()),
        }
    }
}

#[tokio::test]
async fn a_guest_reaches_what_the_gate_lets_it_reach() {
    let (near, mut far) = tokio::io::duplex(4096);
    let (_guest, mut played) = meet(Arc::new(OneHost(Mutex::new(Some(near))))).await;
    let egress = |host: &str| GuestOpens::Egress { host: host.into(), port: 80 };
    played.say(2, &egress("unknown")).await;
    let (channel, _, body) = soon(played.next()).await.unwrap();
    let answer = EgressAnswer::Refused("unknown:80 is not listed".into());
    assert_eq!((channel, serde_json::from_slice::<EgressAnswer>(&body).unwrap()), (2, answer));
    played.say(4, &egress("known")).await;
    let (channel, _, body) = soon(played.next()).await.unwrap();
    let connected = EgressAnswer::Connected;
    assert_eq!((channel, serde_json::from_slice::<EgressAnswer>(&body).unwrap()), (4, connected));
    played.frame(4, Kind::Data, b"question").await;
    played.frame(4, Kind::End, b"").await;
    let mut question = String::new();
    soon(far.read_to_string(&mut question)).await.unwrap();
    assert_eq!(question, "question");
    far.write_all(b"answer").await.unwrap();
    drop(far);
    assert_eq!(soon(played.next()).await.unwrap(), (4, Kind::Data, b"answer".to_vec()));
    assert_eq!(soon(played.next()).await.unwrap(), (4, Kind::End, vec![]));
}

/// A stream that brings a descriptor with its first bytes, and gives another stream for it.
struct Bringing {
    stream: tokio::io::ReadHalf<DuplexStream>,
    descriptor: Option<OwnedFd>,
}

impl Incoming for Bringing {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        descriptors: &mut Vec<OwnedFd>,
    ) -> Poll<std::io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        descriptors.extend(self.descriptor.take());
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

struct Masters(std::sync::Mutex<Option<DuplexStream>>);

impl Descriptors for Masters {
    fn terminal(&self, _master: OwnedFd) -> std::io::Result<Box<dyn Duplex>> {
        Ok(Box::new(self.0.lock().unwrap().take().unwrap()))
    }
}

#[tokio::test]
async fn a_terminal_comes_as_a_descriptor_and_carries_both_ways() {
    let (near, mut far) = tokio::io::duplex(4096);
    let (host, inside) = tokio::io::duplex(4096);
    let mut played = Played::new(inside);
    played.hello().await;
    let (read, write) = tokio::io::split(host);
    let descriptor = Some(std::fs::File::open("/dev/null").unwrap().into());
    let mut carrier = Carrier::plain(tokio::io::join(tokio::io::empty(), write));
    carrier.incoming = Box::new(Bringing { stream: read, descriptor });
    carrier.descriptors = Some(Arc::new(Masters(std::sync::Mutex::new(Some(near)))));
    let surroundings = Surroundings::new("/workspace");
    let guest = WireGuest::over(carrier, Arc::new(NoGate), surroundings).await.unwrap();
    let mut wanted = command("a");
    wanted.terminal = Some(crate::Terminal { rows: 1, columns: 2 });
    let (process, control) = tokio::join!(guest.spawn(&wanted), async {
        let (control, _, _) = played.next().await.unwrap();
        played.frame(control, Kind::Data, b"").await;
        played.say(control, &FromProcess::Started { pid: 2 }).await;
        control
    });
    let process = process.unwrap();
    process.input.send(ProcessInput::Bytes(b"typed".to_vec())).await.unwrap();
    let size = crate::Terminal { rows: 3, columns: 4 };
    process.input.send(ProcessInput::Resize(size)).await.unwrap();
    let mut typed = [0; 5];
    soon(far.read_exact(&mut typed)).await.unwrap();
    assert_eq!(&typed, b"typed");
    assert_eq!(soon(played.hear()).await, (control, ToProcess::Resize(size)));
    far.write_all(b"shown").await.unwrap();
    drop(far);
    played.say(control, &ended(How::Exited(0))).await;
    assert_eq!(soon(collect(process, 100)).await.unwrap().stdout, b"shown");
}

/// Plays a guest that is asked to run a command, and ends as `play` does.
async fn run<F: Future<Output = ()>>(
    kept: usize,
    play: impl FnOnce(Played, Started, Spawn) -> F,
) -> (WireGuest, crate::Result<crate::Output>) {
    let (guest, mut played) = meet_plain().await;
    let wanted = command("a");
    let (output, ()) = tokio::join!(guest.run(&wanted, kept), async {
        let (started, spawn) = played.requested().await;
        play(played, started, spawn).await;
    });
    (guest, output)
}

#[tokio::test]
async fn a_command_that_is_run_asks_for_its_news_together_and_keeps_so_much() {
    let (guest, output) = run(4, |mut played, started, spawn| async move {
        assert_eq!(spawn.news, News::Together);
        played.frame(started.stdout, Kind::Data, b"one ").await;
        played.frame(started.stdout, Kind::Data, b"two").await;
        played.frame(started.stderr, Kind::Data, b"oops").await;
        // As an older guest does.
        played.say(started.control, &FromProcess::Started { pid: 2 }).await;
        played.end(started, How::Exited(3)).await;
        played.forget().await;
    })
    .await;
    let output = output.unwrap();
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"one "[..], &b"oops"[..]));
    assert_eq!((output.omitted.stdout, output.omitted.stderr), (3, 0));
    assert_eq!((output.ending, output.cpu_us), (Ending::Exited(3), Some(7)));
    assert_eq!(guest.processes().await.unwrap(), []);
}

#[tokio::test]
async fn a_program_that_is_run_and_does_not_start_is_an_ending() {
    let (_guest, output) = run(4, |mut played, started, _| async move {
        let (reason, detail) = (NotStartedReason::NotFound, "no such".to_owned());
        let answer = FromProcess::NotStarted(NotStarted { reason, errno: 2, detail });
        played.say(started.control, &answer).await;
        played.forget().await;
    })
    .await;
    assert_eq!(output.unwrap().ending.exit_code(), 127);
}

#[tokio::test]
async fn a_sandbox_that_goes_away_under_a_run_is_no_ending() {
    let (_guest, output) = run(4, |mut played, started, _| async move {
        played.frame(started.stdout, Kind::Data, b"abc").await;
    })
    .await;
    let error = output.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("3 bytes"), "{error}");
}

#[tokio::test]
async fn a_guest_that_ends_a_run_twice_over_loses_the_line() {
    let (guest, output) = run(4, |mut played, started, _| async move {
        for _ in 0..2 {
            played.say(started.control, &FromProcess::Started { pid: 2 }).await;
        }
        played.forget().await;
    })
    .await;
    assert_eq!(output.unwrap_err().kind, ErrorKind::Protocol);
    assert_eq!(closed(&guest).await.kind, ErrorKind::Protocol);
}

#[tokio::test]
async fn a_run_that_is_given_up_kills_its_command_and_hears_it_to_its_end() {
    let (guest, mut played) = meet_plain().await;
    let wanted = command("a");
    let started = tokio::select! {
        _ = guest.run(&wanted, 10) => panic!("it has not ended"),
        (started, _) = played.requested() => started,
    };
    assert_eq!(soon(played.hear()).await, (started.control, ToProcess::Kill));
    // Until then the guest may go on, and the name is taken.
    assert_eq!(guest.processes().await.unwrap().len(), 1);
    played.frame(started.stdout, Kind::Data, b"late").await;
    played.end(started, How::Signaled(9)).await;
    soon(async {
        while !guest.processes().await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    guest.still_there().unwrap();
}
