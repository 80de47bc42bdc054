//! The messages of each generation as they go over the line, frozen.
//!
//! A guest that was started last month speaks what stands in `schema/generation-1.jsonl`: one line an
//! example, its type first. A line is never changed. What is new is an optional field, whose absence
//! means what it meant before, or a new message and with it a new generation, in a file of its own
//! that holds what came with it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use cofferdam_wire::ByteString;
use cofferdam_wire::files::{
    self, Answer, Before, CarryEnd, Entry, EntryKind, Failure, FileEvent, OneRead, Only, Request,
    Step, Why,
};
use cofferdam_wire::message::{
    Attempt, Check, Confirmed, Descendants, EgressAnswer, Ended, Files, FromProcess, GENERATION,
    Greeting, GuestOpens, Hello, HostOpens, How, News, NotStarted, NotStartedReason, Port, Proof,
    Prove, SetupFailure, Spawn, Stdio, Stream, Targets, TerminalSize, ToProcess,
};
use cofferdam_wire::port::PortAnswer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

const FROZEN: &str = include_str!("../schema/generation-1.jsonl");
/// What came with generation 2 of the requests for files.
const SECOND_OF_FILES: &str = include_str!("../schema/files-generation-2.jsonl");
/// What came with generation 3 of the requests for files.
const THIRD_OF_FILES: &str = include_str!("../schema/files-generation-3.jsonl");
const SECOND: &str = include_str!("../schema/generation-2.jsonl");
const THIRD: &str = include_str!("../schema/generation-3.jsonl");
const CARRIES: &str = include_str!("../schema/files-2-carry.jsonl");

const SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };

/// One line an example of each message and of each of its variants, as of generation 1.
fn first() -> String {
    let mut lines = String::new();
    each(&mut lines, "Greeting", greetings());
    each(&mut lines, "HostOpens", host_opens());
    each(
        &mut lines,
        "ToProcess",
        [ToProcess::Signal(15), ToProcess::Resize(SIZE), ToProcess::Kill],
    );
    each(&mut lines, "FromProcess", from_process());
    let egress = GuestOpens::Egress { host: "example.com".to_owned(), port: 443 };
    each(&mut lines, "GuestOpens", [egress]);
    let refused = EgressAnswer::Refused("no rule allows it".to_owned());
    each(&mut lines, "EgressAnswer", [EgressAnswer::Connected, refused]);
    each(&mut lines, "Proof", [proof()]);
    lines
}

/// The same for what generation 2 added.
fn second() -> String {
    let mut lines = String::new();
    let confirmed = Confirmed::default();
    let hello = Hello { generation: 2, version: "0.1.0".to_owned(), confirmed };
    each(&mut lines, "Greeting", [Greeting::Hello(hello)]);
    let streams =
        Stdio::Streams { stdin: Stream::Null, stdout: Stream::Null, stderr: Stream::Null };
    each(&mut lines, "HostOpens", [spawn(streams, Descendants::Stay, News::AtOnce)]);
    let left = FromProcess::Ended(Ended { left_below: Some(7), ..ended(How::Exited(0)) });
    each(&mut lines, "FromProcess", [left, FromProcess::Emptied]);
    files(&mut lines);
    lines
}

/// The same for what generation 3 added.
fn third() -> String {
    let mut lines = String::new();
    let confirmed = Confirmed::default();
    let hello = Hello { generation: GENERATION, version: "0.1.0".to_owned(), confirmed };
    each(&mut lines, "Greeting", [Greeting::Hello(hello)]);
    each(&mut lines, "HostOpens", [HostOpens::Port(Port { port: 3000 })]);
    let failed = PortAnswer::Failed { call: "connect to 127.0.0.1:3000".to_owned(), errno: 110 };
    let answers = [PortAnswer::Connected, PortAnswer::NobodyListens, PortAnswer::TooMany, failed];
    each(&mut lines, "PortAnswer", answers);
    lines
}

/// What carries of many changes are made of.
fn carries() -> String {
    let mut lines = String::new();
    let order = files::Carry { name: "a1".to_owned() };
    let requests = [Request::Carry(order.clone()), Request::Recover(order)];
    each(&mut lines, "files::Request", requests);
    let ends = [CarryEnd::Undone, CarryEnd::Done, CarryEnd::NoTrace, CarryEnd::Busy];
    let answers = [Answer::Carried { steps: 3 }].into_iter().chain(ends.map(Answer::Recovered));
    each(&mut lines, "files::Answer", answers);
    each(&mut lines, "files::Step", carry_steps());
    lines
}

fn files(lines: &mut String) {
    let files = Files { root: "/home/a".into(), names: vec!["/workspace".into()] };
    each(lines, "HostOpens", [HostOpens::Files(Box::new(files))]);
    let failure = Failure { why: Why::NotFound, detail: "no such".to_owned(), errno: 2 };
    let refused = files::Greeting::Refused(failure.clone());
    each(lines, "files::Greeting", [files::Greeting::Ready { generation: 1 }, refused]);
    each(lines, "files::Request", file_requests());
    each(lines, "files::Answer", file_answers(failure));
}

/// One line an example of what generation 2 of the requests for files added.
fn second_of_files() -> String {
    let mut lines = String::new();
    each(&mut lines, "files::Greeting", [files::Greeting::Ready { generation: 2 }]);
    let paths = vec!["a".into(), ByteString::from(vec![0xff])];
    let many = files::ReadMany { paths, max_bytes: 1, total_bytes: 2 };
    let copy = files::CopyTree { from: "a".into(), to: "b".into(), max_entries: 1 };
    each(&mut lines, "files::Request", [Request::ReadMany(many), Request::CopyTree(copy)]);
    let failure = Failure { why: Why::NotFound, detail: "no such".to_owned(), errno: 2 };
    let read = files::HasRead { size: 1, bytes: 1, sha256: None, mode: 0o644, modified_ms: 3 };
    let all = vec![OneRead::Read(read), OneRead::Failed { failure, bytes: 4 }];
    let skipped = vec![files::Skipped { path: "a".into(), kind: EntryKind::Fifo }];
    let (files, directories, links, bytes, skipped_more) = (1, 2, 3, 4, 5);
    let copied = files::Copied { files, directories, links, bytes, skipped, skipped_more };
    each(&mut lines, "files::Answer", [Answer::ReadMany(all), Answer::Copied(copied)]);
    lines
}

/// One line an example of what generation 3 of the requests for files added.
fn third_of_files() -> String {
    let mut lines = String::new();
    each(&mut lines, "files::Greeting", [files::Greeting::Ready { generation: 3 }]);
    let paths = vec!["a".into(), ByteString::from(vec![0xff])];
    let watch = files::Watch { paths, depth: 1, max_directories: 2, max_pending: 3 };
    each(&mut lines, "files::Request", [Request::Watch(watch)]);
    let failure = Failure { why: Why::Denied, detail: "no".to_owned(), errno: 13 };
    let (path, directory) = (|| ByteString::from("a"), true);
    let events = vec![
        FileEvent::Ready { directories: 1 },
        FileEvent::Created { path: path(), directory },
        FileEvent::Modified { path: vec![0xff].into() },
        FileEvent::Attributes { path: path(), directory },
        FileEvent::Removed { path: path(), directory: false },
        FileEvent::Renamed { from: path(), to: "b".into(), directory },
        FileEvent::Overflow,
        FileEvent::Unwatched { path: path(), failure },
    ];
    each(&mut lines, "files::Answer", [Answer::Events(events)]);
    lines
}

fn file_requests() -> Vec<Request> {
    let path = ByteString::from(vec![b'a', 0xff]);
    let order = files::Move { from: "a".into(), to: "b".into(), replace: true };
    let write = |only| Request::Write(files::Write { path: "a".into(), only, mode: Some(0o600) });
    vec![
        Request::Read(files::Read {
            path: path.clone(),
            offset: 1,
            length: Some(2),
            hash: true,
            max_bytes: Some(3),
        }),
        write(Only::Always),
        write(Only::IfExists),
        write(Only::IfMissing),
        write(Only::IfMatch("00".to_owned())),
        Request::Append(files::Append { path: path.clone(), mode: None }),
        Request::Stat { path: path.clone() },
        Request::List(files::List {
            path: path.clone(),
            depth: 1,
            after: Some("a".into()),
            limit: 10,
        }),
        Request::MakeDirectory { path: path.clone() },
        Request::Move(order.clone()),
        Request::Copy(order),
        Request::Remove(files::Remove { path: path.clone(), recursive: true }),
        Request::SetMode { path, mode: 0o644 },
    ]
}

fn carry_steps() -> Vec<Step> {
    let path = ByteString::from(vec![b'a', 0xff]);
    let expect = |is| Step::Expect { path: "a".into(), is };
    vec![
        expect(Before::Nothing),
        expect(Before::File { sha256: "00".to_owned(), mode: 0o644 }),
        expect(Before::Link { target: "b".into() }),
        Step::File { path: path.clone(), mode: 0o755, bytes: 1 },
        Step::Link { path: "a".into(), target: path.clone() },
        Step::Directory { path: "a".into(), mode: Some(0o700) },
        Step::Directory { path: "a".into(), mode: None },
        Step::Remove { path: path.clone() },
        Step::RemoveDirectory { path: path.clone() },
        Step::Rename { from: path, to: "b".into() },
    ]
}

fn file_answers(failure: Failure) -> Vec<Answer> {
    let kinds = [
        EntryKind::File,
        EntryKind::Directory,
        EntryKind::Link,
        EntryKind::Fifo,
        EntryKind::Socket,
        EntryKind::Device,
    ];
    let entry = |kind| Entry {
        path: "a".into(),
        kind,
        size: 1,
        mode: 0o644,
        modified_ms: 2,
        links: 1,
        target: Some("b".into()),
    };
    let whys = [
        Why::BadRequest,
        Why::Escape,
        Why::NotFound,
        Why::WrongType,
        Why::TooLarge,
        Why::Exists,
        Why::Changed,
        Why::Denied,
        Why::Exhausted,
        Why::Io,
    ];
    let mut all = vec![
        Answer::Read(files::HasRead {
            size: 1,
            bytes: 2,
            sha256: Some("00".to_owned()),
            mode: 0o644,
            modified_ms: 3,
        }),
        Answer::Written(files::Written { bytes: 1, sha256: "00".to_owned(), created: true }),
        Answer::Entry(entry(EntryKind::File)),
        Answer::Entries(kinds.map(entry).to_vec()),
        Answer::Listed { next: Some("a".into()) },
        Answer::Made { created: true },
        Answer::Done,
    ];
    all.extend(whys.map(|why| Answer::Failed(Failure { why, ..failure.clone() })));
    all
}

fn each<T: Serialize>(lines: &mut String, name: &str, all: impl IntoIterator<Item = T>) {
    for one in all {
        let text = serde_json::to_string(&one).unwrap();
        lines.extend([name, " ", &text, "\n"]);
    }
}

fn greetings() -> Vec<Greeting> {
    let confirmed = Confirmed { seccomp: true, landlock_abi: 7, skipped: vec!["why".to_owned()] };
    let hello = Hello { generation: 1, version: "0.1.0".to_owned(), confirmed };
    let (step, call) = ("mount".to_owned(), "mount(2)".to_owned());
    vec![Greeting::Hello(hello), Greeting::SetupFailed(SetupFailure { step, call, errno: 1 })]
}

fn host_opens() -> Vec<HostOpens> {
    let streams = Stdio::Streams {
        stdin: Stream::Null,
        stdout: Stream::Descriptor(0),
        stderr: Stream::Line(3),
    };
    vec![
        spawn(streams, Descendants::Die, News::AtOnce),
        spawn(Stdio::Terminal(SIZE), Descendants::DieWithSandbox, News::Together),
        HostOpens::Prove(Box::new(Prove {
            targets: targets(),
            env: vec![("A".into(), "b".into())],
        })),
        HostOpens::Ping,
    ]
}

fn spawn(stdio: Stdio, descendants: Descendants, news: News) -> HostOpens {
    HostOpens::Spawn(Box::new(Spawn {
        id: "a1".to_owned(),
        argv: vec!["true".into(), ByteString::from(vec![0xff, 0x00])],
        env: vec![("A".into(), "b".into())],
        cwd: "/workspace".into(),
        stdio,
        timeout_ms: Some(1500),
        descendants,
        news,
        handed: Vec::new(),
    }))
}

fn targets() -> Targets {
    Targets { canary: "canary".to_owned(), host_pid: 7, pids: Some(64), ..Targets::default() }
}

fn from_process() -> Vec<FromProcess> {
    let reasons = [
        NotStartedReason::NotFound,
        NotStartedReason::NotExecutable,
        NotStartedReason::BadWorkingDirectory,
        NotStartedReason::Exhausted,
        NotStartedReason::BadRequest,
    ];
    let not_started = |reason| {
        FromProcess::NotStarted(NotStarted { reason, errno: 2, detail: "no such".to_owned() })
    };
    let mut all = vec![FromProcess::Started { pid: 2 }, FromProcess::Stopped { signal: 20 }];
    all.extend(reasons.map(not_started));
    all.extend([How::Exited(3), How::Signaled(9)].map(|how| FromProcess::Ended(ended(how))));
    all
}

fn ended(how: How) -> Ended {
    Ended {
        how,
        timed_out: false,
        killed_descendants: 1,
        cpu_us: 2,
        peak_rss_bytes: 3,
        left_below: None,
    }
}

fn proof() -> Proof {
    let attempts = [
        Attempt::Succeeded("it read".to_owned()),
        Attempt::Failed { errno: 13, call: "open".to_owned() },
        Attempt::NotTried("no such thing here".to_owned()),
    ];
    let check = |attack: Attempt| Check {
        name: "files.read_outside".to_owned(),
        promise: "P1".to_owned(),
        axis: "files".to_owned(),
        attack,
        control: Attempt::Succeeded("it read".to_owned()),
        layer: "view".to_owned(),
    };
    Proof { checks: attempts.map(check).to_vec() }
}

#[test]
fn messages_are_written_as_they_were_frozen() {
    for (name, frozen, now) in [
        ("generation-1", FROZEN, first()),
        ("generation-2", SECOND, second()),
        ("generation-3", THIRD, third()),
        ("files-2-carry", CARRIES, carries()),
        ("files-generation-2", SECOND_OF_FILES, second_of_files()),
        ("files-generation-3", THIRD_OF_FILES, third_of_files()),
    ] {
        if std::env::var_os("BLESS").is_some() {
            let place = format!("{}/schema/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(place, &now).unwrap();
        }
        for (number, (frozen, now)) in frozen.lines().zip(now.lines()).enumerate() {
            assert_eq!(frozen, now, "line {} of {name}", number + 1);
        }
        assert_eq!(frozen.lines().count(), now.lines().count(), "{name}");
    }
}

/// What a newer side adds is passed over, so that an older one understands it.
#[test]
fn what_is_not_known_yet_is_passed_over() {
    let all = [FROZEN, SECOND, THIRD, CARRIES, SECOND_OF_FILES, THIRD_OF_FILES];
    for line in all.into_iter().flat_map(str::lines) {
        let (name, text) = line.split_once(' ').unwrap();
        let place = if name == "Proof" { "[{\"" } else { ":{\"" };
        let newer = text.replacen(place, &format!("{place}added_later\":[1],\""), 1);
        for text in [text, &newer] {
            match name {
                "Greeting" => reads::<Greeting>(text),
                "HostOpens" => reads::<HostOpens>(text),
                "ToProcess" => reads::<ToProcess>(text),
                "FromProcess" => reads::<FromProcess>(text),
                "GuestOpens" => reads::<GuestOpens>(text),
                "EgressAnswer" => reads::<EgressAnswer>(text),
                "Proof" => reads::<Proof>(text),
                "PortAnswer" => reads::<PortAnswer>(text),
                "files::Greeting" => reads::<files::Greeting>(text),
                "files::Request" => reads::<Request>(text),
                "files::Answer" => reads::<Answer>(text),
                "files::Step" => reads::<Step>(text),
                other => panic!("there is no message {other}"),
            }
        }
    }
}

fn reads<T: DeserializeOwned + Debug>(text: &str) {
    let read = serde_json::from_str::<T>(text);
    assert!(read.is_ok(), "{text}: {read:?}");
}

/// A host of the first day did not say these.
#[test]
fn a_field_that_came_later_means_what_its_absence_did() {
    let spawn = FROZEN.lines().find(|line| line.contains("\"news\":\"AtOnce\"")).unwrap();
    let older = spawn.split_once(' ').unwrap().1.replace(",\"news\":\"AtOnce\"", "");
    let HostOpens::Spawn(spawn) = serde_json::from_str(&older).unwrap() else { panic!("{older}") };
    assert_eq!(spawn.news, News::AtOnce);
}
