//! Traces: what a collector is told, and what it is never told.

use crate::place::{Place, SOON, everyone, until};
use crate::serving::{Serving, key, told};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A collector on this machine that keeps what it is sent.
struct Collector {
    at: String,
    kept: Arc<Mutex<Vec<Sent>>>,
}

/// One sending.
#[derive(Debug, Clone)]
struct Sent {
    path: String,
    kind: String,
    body: Vec<u8>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&kept);
        // It ends with the process: nobody asks it any more.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let keeps = Arc::clone(&keeps);
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    while let Some(sent) = sent(&mut reader) {
                        keeps.lock().unwrap().push(sent);
                    }
                });
            }
        });
        Self { at, kept }
    }

    fn kept(&self) -> Vec<Sent> {
        self.kept.lock().unwrap().clone()
    }

    /// All spans, and the attributes of what they come from.
    fn spans(&self) -> Vec<(Value, Value)> {
        let mut all = Vec::new();
        for sent in self.kept() {
            let body: Value = serde_json::from_slice(&sent.body).unwrap();
            for of in body["resourceSpans"].as_array().unwrap() {
                for scope in of["scopeSpans"].as_array().unwrap() {
                    let spans = scope["spans"].as_array().unwrap().iter();
                    all.extend(spans.map(|span| (span.clone(), of["resource"].clone())));
                }
            }
        }
        all
    }
}

/// The next request on a connection, answered; `None` at its end.
fn sent(reader: &mut BufReader<TcpStream>) -> Option<Sent> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|count| *count > 0)?;
    let path = first.split(' ').nth(1)?.to_owned();
    let (mut length, mut kind) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "content-type" => kind = value.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    reader.get_mut().write_all(answer.as_bytes()).ok()?;
    Some(Sent { path, kind, body })
}

/// The value of an attribute, as text.
fn attribute(of: &Value, key: &str) -> Option<String> {
    let all = of["attributes"].as_array()?;
    let value = &all.iter().find(|one| one["key"] == key)?["value"];
    let value = value.as_object()?.values().next()?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
/// All that a span may tell.
const KEYS: [&str; 7] = [
    "http.request.method",
    "http.route",
    "http.response.status_code",
    "cofferdam.sandbox.id",
    "cofferdam.exec.id",
    "cofferdam.exec.ending",
    "cofferdam.exec.exit_code",
];

/// Does some of everything, and gives the id of a command and all that no span may tell.
fn some_of_everything(place: &Place, serving: &Serving) -> (String, Vec<String>) {
    let secret = key(place, "tracer");
    let ask = |line: &str, body: &str, status: u16| {
        let told = serving.ask(&secret, line, body);
        assert_eq!(told.status, status, "{line}: {}", told.body);
        told
    };
    ask("PUT /v1/sandboxes/hush-name", r#"{"env":{"HUSH":"hush-value"}}"#, 201);
    let body = r#"{"shell":"echo hush-argv; exit 3"}"#;
    let more = format!("traceparent: 00-{TRACE}-{PARENT}-01\r\n");
    let line = "POST /v1/sandboxes/hush-name/execs";
    let started = told(serving.send(&secret, line, body, &more));
    assert_eq!(started.status, 201, "{}", started.body);
    let exec = started.json()["id"].as_str().unwrap().to_owned();
    ask(&format!("GET /v1/sandboxes/hush-name/execs/{exec}/wait"), "", 200);
    let file = "/v1/sandboxes/hush-name/files?path=hush-path";
    ask(&format!("PUT {file}"), "hush-content", 201);
    ask(&format!("GET {file}"), "", 200);
    let run = json!({ "exec": { "argv": ["/bin/echo", "hush-argv"] } }).to_string();
    ask("POST /v1/run", &run, 200);
    ask("GET /hush-nowhere?hush-query=1", "", 404);
    ask("DELETE /v1/sandboxes/hush-name", "", 204);
    let mut hush = vec![secret];
    let words = ["name", "value", "argv", "path", "content", "nowhere", "query"];
    hush.extend(words.map(|word| format!("hush-{word}")));
    (exec, hush)
}

#[test]
fn a_collector_is_told_of_requests_and_commands_and_of_nothing_in_them() {
    everyone(|place| {
        let collector = Collector::start();
        let serving = Serving::start_with(
            place,
            &[],
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.at),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
                ("OTEL_SERVICE_NAME", "box-7"),
                ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=trial"),
            ],
        );
        let (id, hush) = some_of_everything(place, &serving);
        // The last of them are sent when it ends.
        serving.end(place, "-TERM");
        let spans = collector.spans();
        let named = |name: &str| -> Vec<&Value> {
            let all = spans.iter().map(|(span, _)| span);
            all.filter(|span| span["name"] == name).collect()
        };
        let asked = named("POST /v1/sandboxes/{sandbox}/execs")[0];
        assert_eq!((&asked["traceId"], &asked["parentSpanId"]), (&json!(TRACE), &json!(PARENT)));
        let status = attribute(asked, "http.response.status_code");
        assert_eq!(status.as_deref(), Some("201"), "{asked}");
        let execs = named("exec");
        assert_eq!(execs.len(), 2, "one by request, one in a run");
        let exec = execs.iter().find(|span| span["traceId"] == TRACE).unwrap();
        assert_eq!(exec["parentSpanId"], asked["spanId"]);
        let told = |key| attribute(exec, key).unwrap();
        assert_eq!(told("cofferdam.exec.id"), id);
        let ended = (told("cofferdam.exec.ending"), told("cofferdam.exec.exit_code"));
        assert_eq!(ended, ("exited".to_owned(), "3".to_owned()));
        assert_eq!(named("create").len(), 2);
        assert_eq!(named("POST /v1/run").len(), 1);
        assert_eq!(named("GET").len(), 1, "what nothing is at has no name");
        let (_, resource) = &spans[0];
        assert_eq!(attribute(resource, "service.name").as_deref(), Some("box-7"));
        let place_of = attribute(resource, "deployment.environment.name");
        assert_eq!(place_of.as_deref(), Some("trial"));
        // Nothing else is told, under no name and in no place.
        let keys: BTreeSet<&str> = spans
            .iter()
            .flat_map(|(span, _)| span["attributes"].as_array().unwrap())
            .map(|one| one["key"].as_str().unwrap())
            .collect();
        assert_eq!(keys, BTreeSet::from(KEYS));
        for sent in collector.kept() {
            assert_eq!(sent.path, "/v1/traces");
            let text = String::from_utf8_lossy(&sent.body).into_owned();
            let leaked = hush.iter().find(|word| text.contains(word.as_str()));
            assert_eq!(leaked, None, "{text}");
        }
    });
}

#[test]
fn traces_go_where_the_environment_says_and_nowhere_else() {
    everyone(|place| {
        let sent = |more: &[(&str, &str)]| {
            let collector = Collector::start();
            let at = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.at.as_str())];
            let serving = Serving::start_with(place, &[], &[&at, more].concat());
            assert_eq!(serving.ask("", "GET /v1/sandboxes", "").status, 200);
            serving.end(place, "-TERM");
            collector.kept()
        };
        let kept = sent(&[]);
        assert_eq!((kept[0].path.as_str(), kept[0].kind.as_str()), ("/v1/traces", PROTOBUF));
        let text = String::from_utf8_lossy(&kept[0].body).into_owned();
        assert!(text.contains("GET /v1/sandboxes") && text.contains("cofferdam"), "{text:?}");
        for off in [
            ("OTEL_SDK_DISABLED", "true"),
            ("OTEL_TRACES_SAMPLER", "always_off"),
            ("OTEL_TRACES_EXPORTER", "none"),
        ] {
            assert!(sent(&[off]).is_empty(), "{off:?}");
        }
    });
}

const PROTOBUF: &str = "application/x-protobuf";

#[test]
fn a_way_to_a_collector_that_is_not_understood_is_refused() {
    everyone(|place| {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
        ] {
            let mut command = place.cofferdam(&["serve", "--listen", "127.0.0.1:0"]);
            command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1").env(name, value);
            let out = command.output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(!out.status.success() && said.contains(name), "{said}");
        }
    });
}

#[test]
fn a_collector_that_is_not_there_is_said_and_stops_nobody() {
    everyone(|place| {
        // A place where nobody listens.
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let log = place.base.join("traces.log");
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://user:hush-password@{gone}")),
            ("OTEL_BSP_SCHEDULE_DELAY", "50".to_owned()),
        ];
        let mut command = place.cofferdam(&["serve", "--listen", "127.0.0.1:0"]);
        command.envs(variables).stderr(std::fs::File::create(&log).unwrap());
        let mut child = crate::place::started(&mut command);
        let said = || std::fs::read_to_string(&log).unwrap();
        let listens = || {
            let said = said();
            let at = said.split("listening on http://").nth(1)?.split_whitespace().next()?;
            Some(at.to_owned())
        };
        let at = until(SOON, listens).unwrap();
        let ask = || {
            let mut stream = TcpStream::connect(&at).unwrap();
            let head = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            told(stream).status
        };
        let is_said = || {
            assert_eq!(ask(), 200);
            said().contains("traces do not arrive").then_some(())
        };
        until(SOON, is_said).unwrap();
        assert!(!said().contains("hush-password"), "{}", said());
        child.kill().unwrap();
        child.wait().unwrap();
    });
}
