//! One connection over standard input and output to tools that are served elsewhere.
//!
//! Messages are passed on as they are, in both generations of the protocol: nothing is understood of them but
//! what a request over HTTP says beside its message. The far side keeps nothing between two of them but by which
//! word it knows a client again.

use crate::bounded::Watched;
use crate::lines::Lines;
use crate::message::{error_message, fault};
use crate::open::SESSION;
use crate::server::refused;
use crate::wire::{GRACE, too_long};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_core::{Error, ErrorKind, Result};
use serde_json::Value;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};

/// How many messages are on their way at once, so that others of the same key are served, too.
const MAX_AT_ONCE: usize = 32;
/// How many answers wait to be written.
const WAITING: usize = 64;
/// How long what was answered may take to be written when all else has ended.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);
/// The first version whose requests have headers that tell what is in the message.
const WITH_HEADS: &str = "2026-07-28";
/// Where a message says its version.
const VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
const VERSION_HEAD: &str = "mcp-protocol-version";

/// A message on its way, and what is said beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The message.
    pub body: Vec<u8>,
    /// Names and values of headers.
    pub heads: Vec<(&'static str, String)>,
}

/// Who serves the tools. Clones are the same.
pub trait Far: Clone + Send + Sync + 'static {
    /// What is answered to a message.
    type Answers: Answers;

    /// Sends a message. It is given up where this, or what it answers, is dropped.
    fn send(&self, message: Sent) -> impl Future<Output = Result<Self::Answers>> + Send;
}

/// Messages that are answered to one.
pub trait Answers: Send {
    /// The word by which the far side knows this client again (`Mcp-Session-Id`), where it gives one.
    fn session(&self) -> Option<&str>;

    /// The next one; `None` where all was said.
    fn next(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>>> + Send;
}

/// Passes messages on until the client's stream ends or `stop` does. What has no answer by then goes on for some
/// seconds, and is then given up; at once by `stop`.
pub async fn serve(
    far: impl Far,
    (read, write): (
        impl AsyncRead + Send + Unpin + 'static,
        impl AsyncWrite + Send + Unpin + 'static,
    ),
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let (say, lines) = mpsc::channel(WAITING);
    let mut written = tokio::spawn(written(lines, write));
    let done = tokio::select! {
        done = pass(far, read, say) => done,
        () = stop => Ok(()),
        // Nobody hears what is answered any more.
        _ = &mut written => return Ok(()),
    };
    tokio::time::timeout(WRITTEN_WITHIN, written).await.ok();
    done
}

/// Writes lines until nobody has any more, or nobody reads them.
async fn written(mut lines: mpsc::Receiver<Vec<u8>>, mut write: impl AsyncWrite + Unpin) {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        if write.write_all(&line).await.is_err() || write.flush().await.is_err() {
            return;
        }
    }
}

async fn pass(
    far: impl Far,
    read: impl AsyncRead + Send + Unpin,
    say: mpsc::Sender<Vec<u8>>,
) -> Result<()> {
    let (tell, mut passed_over) = unbounded_channel();
    let mut lines = Lines::new(Watched::new(read, tell));
    let mut bridge = Bridge {
        far,
        say,
        agreed: Arc::default(),
        places: Arc::new(Semaphore::new(MAX_AT_ONCE)),
        open: HashMap::new(),
        work: JoinSet::new(),
    };
    loop {
        tokio::select! {
            line = lines.next() => match line? {
                Some(line) => bridge.take(line).await,
                None => break,
            },
            Some(id) = passed_over.recv() => {
                let refusal = serde_json::to_vec(&too_long(id)).unwrap_or_default();
                bridge.say.send(refusal).await.ok();
            }
            Some(ended) = bridge.work.join_next() => bridge.forget(ended.ok().flatten()),
        }
    }
    tokio::time::timeout(GRACE, async { while bridge.work.join_next().await.is_some() {} })
        .await
        .ok();
    Ok(())
}

struct Bridge<F> {
    far: F,
    say: mpsc::Sender<Vec<u8>>,
    agreed: Arc<Agreed>,
    places: Arc<Semaphore>,
    /// The requests on their way, by their ids in JSON.
    open: HashMap<String, AbortHandle>,
    work: JoinSet<Option<String>>,
}

/// What came of the handshake.
#[derive(Debug, Default)]
struct Agreed {
    /// What both sides speak.
    version: OnceLock<String>,
    /// What the far side wants to be told with all that follows.
    session: OnceLock<String>,
}

impl<F: Far> Bridge<F> {
    async fn take(&mut self, line: Vec<u8>) {
        if let Some((error, id)) = fault(&line) {
            self.say.send(error_message(&error, &id)).await.ok();
            return;
        }
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        let method = message.get("method").and_then(Value::as_str);
        if method == Some("notifications/cancelled") {
            // Over HTTP a request is given up by its connection, whoever else of this key uses the same id.
            let id = message.pointer("/params/requestId").map(Value::to_string);
            if let Some(work) = id.and_then(|id| self.open.remove(&id)) {
                work.abort();
            }
            return;
        }
        let id = message.get("id").filter(|_| method.is_some()).cloned();
        let heads = heads(&message, &self.agreed);
        let request = Request {
            sent: Sent { body: line, heads },
            id: id.clone(),
            agrees: (method == Some("initialize")).then(|| Arc::clone(&self.agreed)),
        };
        let (far, say, places) = (self.far.clone(), self.say.clone(), Arc::clone(&self.places));
        let work = self.work.spawn(async move {
            let _place = places.acquire_owned().await;
            request.carry(&far, &say).await
        });
        if let Some(id) = id {
            self.open.insert(id.to_string(), work);
        }
    }

    fn forget(&mut self, id: Option<String>) {
        if let Some(id) = id {
            self.open.remove(&id);
        }
    }
}

/// A message on its way.
struct Request {
    sent: Sent,
    /// Its id, if it is to be answered.
    id: Option<Value>,
    /// Where what the answer tells is kept.
    agrees: Option<Arc<Agreed>>,
}

impl Request {
    /// Passes on what is answered, and says which request is done. One that is to be answered is, whatever happens.
    async fn carry(self, far: &impl Far, say: &mpsc::Sender<Vec<u8>>) -> Option<String> {
        let Self { sent, id, agrees } = self;
        let mut is_open = id.is_some();
        let answered = async {
            let mut answers = far.send(sent).await?;
            // ORDER: before the answer is passed on, which is what the client goes on after.
            if let (Some(agrees), Some(session)) = (&agrees, answers.session()) {
                agrees.session.set(session.to_owned()).ok();
            }
            while let Some(answer) = answers.next().await? {
                let message: Value = serde_json::from_slice(&answer).map_err(|cause| {
                    Error::new(ErrorKind::Protocol, "the server answers with no message")
                        .source(cause)
                })?;
                if message.get("method").is_none() && message.get("id") == id.as_ref() {
                    is_open = false;
                }
                let version = message.pointer("/result/protocolVersion").and_then(Value::as_str);
                if let (Some(agrees), Some(version)) = (&agrees, version) {
                    agrees.version.set(version.to_owned()).ok();
                }
                // One that is spread over lines would be several.
                say.send(message.to_string().into_bytes()).await.ok();
            }
            Ok(())
        }
        .await;
        let id = id?;
        if is_open {
            let error = answered.err().unwrap_or_else(|| {
                Error::new(ErrorKind::Unavailable, "the server ended without an answer")
                    .hint("Look what was done before it is asked for again.")
            });
            say.send(error_message(&refused(&error), &id)).await.ok();
        }
        Some(id.to_string())
    }
}

/// What a request says beside its message: whose it is, the version, and from 2026 on what the message is about.
fn heads(message: &Value, agreed: &Agreed) -> Vec<(&'static str, String)> {
    let method = message.get("method").and_then(Value::as_str);
    let agreed = Some(agreed).filter(|_| method != Some("initialize"));
    let session = agreed.and_then(|agreed| agreed.session.get());
    let mut heads: Vec<_> = session.map(|word| (SESSION, word.clone())).into_iter().collect();
    let agreed = agreed.and_then(|agreed| agreed.version.get()).map(String::as_str);
    let Some(version) = message.pointer(VERSION).and_then(Value::as_str).or(agreed) else {
        return heads;
    };
    heads.push((VERSION_HEAD, version.to_owned()));
    let Some(method) = method.filter(|_| version >= WITH_HEADS) else { return heads };
    heads.push(("mcp-method", method.to_owned()));
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return heads,
    };
    let name = message.get("params").and_then(|params| params.get(key)).and_then(Value::as_str);
    heads.extend(name.map(|name| ("mcp-name", head_value(name))));
    heads
}

/// A text as the value of a header has it.
fn head_value(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let is_taken = text.starts_with("=?base64?") && text.ends_with("?=");
    match is_plain && !is_taken && text.trim() == text {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", BASE64.encode(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_MESSAGE_BYTES;
    use serde_json::json;
    use std::sync::Mutex;
    use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream};
    use tokio::sync::oneshot;

    /// A far side that answers by what a message is called.
    #[derive(Clone, Default)]
    struct Scripted {
        seen: Arc<Mutex<Vec<Sent>>>,
        given_up: Arc<Mutex<Vec<oneshot::Sender<()>>>>,
    }

    struct Said(Vec<Result<Vec<u8>>>, Option<&'static str>);

    impl Answers for Said {
        fn session(&self) -> Option<&str> {
            self.1
        }

        async fn next(&mut self) -> Result<Option<Vec<u8>>> {
            self.0.pop().transpose()
        }
    }

    impl Far for Scripted {
        type Answers = Said;

        async fn send(&self, sent: Sent) -> Result<Said> {
            self.seen.lock().unwrap().push(sent.clone());
            let message: Value = serde_json::from_slice(&sent.body).unwrap();
            let id = message["id"].clone();
            let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
            let told = json!({ "jsonrpc": "2.0", "method": "notifications/progress" });
            let bytes = |message: Value| Ok(serde_json::to_vec_pretty(&message).unwrap());
            let method = message["method"].as_str().unwrap_or_default();
            let answers = match method {
                "initialize" => vec![bytes(answer(json!({ "protocolVersion": "2025-11-25" })))],
                "tools/call" => vec![bytes(answer(json!("done"))), bytes(told)],
                "hangs" => {
                    let (tell, gone) = oneshot::channel();
                    self.given_up.lock().unwrap().push(tell);
                    // Dropped where it is given up; nobody sends.
                    gone.await.ok();
                    vec![]
                }
                "fails" => return Err(Error::new(ErrorKind::Denied, "no").hint("Do.")),
                "breaks" => vec![Err(Error::new(ErrorKind::Unavailable, "gone")), bytes(told)],
                _ => vec![],
            };
            Ok(Said(answers, (method == "initialize").then_some("word")))
        }
    }

    /// A client of the bridge.
    struct Client {
        write: Option<DuplexStream>,
        read: tokio::io::Lines<BufReader<DuplexStream>>,
        served: tokio::task::JoinHandle<Result<()>>,
    }

    impl Client {
        fn new(far: &Scripted, stop: impl Future<Output = ()> + Send + 'static) -> Self {
            let (write, theirs) = tokio::io::duplex(1 << 10);
            let (answers, read) = tokio::io::duplex(1 << 10);
            let served = tokio::spawn(serve(far.clone(), (theirs, answers), stop));
            Self { write: Some(write), read: BufReader::new(read).lines(), served }
        }

        async fn send(&mut self, line: &str) {
            let write = self.write.as_mut().unwrap();
            write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }

        async fn request(&mut self, id: u32, method: &str, params: Value) {
            let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            self.send(&message.to_string()).await;
        }

        async fn next(&mut self) -> Value {
            serde_json::from_str(&self.read.next_line().await.unwrap().unwrap()).unwrap()
        }
    }

    async fn called(far: &Scripted, count: usize) {
        while far.given_up.lock().unwrap().len() < count {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn messages_pass_with_the_headers_of_their_version_and_client() {
        let far = Scripted::default();
        let mut client = Client::new(&far, std::future::pending());
        client.request(1, "initialize", json!({ "protocolVersion": "2025-11-25" })).await;
        assert_eq!(client.next().await["result"]["protocolVersion"], "2025-11-25");
        client.request(2, "tools/call", json!({ "name": "shell_exec" })).await;
        assert_eq!(client.next().await["method"], "notifications/progress");
        assert_eq!(client.next().await["result"], "done");
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
        client.request(3, "tools/call", json!({ "name": "größe", "_meta": meta })).await;
        client.next().await;
        client.next().await;
        let seen = far.seen.lock().unwrap().clone();
        let heads: Vec<_> = seen.into_iter().map(|sent| sent.heads).collect();
        let text = |(name, value): (&'static str, &str)| (name, value.to_owned());
        let session = (SESSION, "word");
        assert_eq!(heads[0], []);
        assert_eq!(heads[1], [session, (VERSION_HEAD, "2025-11-25")].map(text));
        let of_2026 = [
            session,
            (VERSION_HEAD, "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?Z3LDtsOfZQ==?="),
        ];
        assert_eq!(heads[2], of_2026.map(text));
        drop(client.write.take());
        client.served.await.unwrap().unwrap();
        assert_eq!(client.read.next_line().await.unwrap(), None);
    }

    #[tokio::test]
    async fn every_request_is_answered_whatever_happens_to_it() {
        let mut client = Client::new(&Scripted::default(), std::future::pending());
        client.request(1, "fails", json!({})).await;
        let answer = client.next().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["data"]["kind"]),
            (&json!(1), &json!("denied"))
        );
        client.request(2, "breaks", json!({})).await;
        assert_eq!(client.next().await["method"], "notifications/progress");
        assert_eq!(client.next().await["error"]["data"]["kind"], "unavailable");
        client.request(3, "says nothing", json!({})).await;
        assert_eq!(client.next().await["error"]["data"]["kind"], "unavailable");
        client.send("{").await;
        assert_eq!(client.next().await["error"]["code"], -32700);
        client.send("").await;
        let long = "x".repeat(MAX_MESSAGE_BYTES);
        client.send(&format!("{{\"jsonrpc\":\"2.0\",\"id\":9,\"x\":\"{long}\"}}")).await;
        let answer = client.next().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["data"]["kind"]),
            (&json!(9), &json!("too_large"))
        );
        // The control: what comes next is served.
        client.request(4, "tools/call", json!({})).await;
        assert_eq!(client.next().await["method"], "notifications/progress");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_canceled_or_left_is_given_up_there() {
        let far = Scripted::default();
        let mut client = Client::new(&far, std::future::pending());
        client.request(1, "hangs", json!({})).await;
        called(&far, 1).await;
        client
            .send(
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            )
            .await;
        let mut first = far.given_up.lock().unwrap().remove(0);
        first.closed().await;
        client.request(2, "hangs", json!({})).await;
        called(&far, 1).await;
        let mut second = far.given_up.lock().unwrap().remove(0);
        let begin = tokio::time::Instant::now();
        drop(client.write.take());
        client.served.await.unwrap().unwrap();
        second.closed().await;
        assert!(begin.elapsed() >= GRACE && begin.elapsed() < GRACE * 2);
        // The cancel itself is nobody's to know over HTTP.
        assert_eq!(far.seen.lock().unwrap().len(), 2);
        assert_eq!(client.read.next_line().await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_at_once_where_it_is_told_to_or_nobody_listens() {
        let far = Scripted::default();
        let (stop, stopped) = oneshot::channel::<()>();
        let mut client = Client::new(&far, async move { drop(stopped.await) });
        client.request(1, "hangs", json!({})).await;
        called(&far, 1).await;
        let begin = tokio::time::Instant::now();
        stop.send(()).unwrap();
        client.served.await.unwrap().unwrap();
        assert!(begin.elapsed() < GRACE);
        let mut client = Client::new(&Scripted::default(), std::future::pending());
        drop(client.read);
        client.write.as_mut().unwrap().write_all(b"{\n{\n").await.unwrap();
        client.served.await.unwrap().unwrap();
    }
}
