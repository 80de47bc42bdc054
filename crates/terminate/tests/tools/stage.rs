//! A host outside, a terminator before it, and programs that ask.

use bytes::Bytes;
use cofferdam_core::secret::SecretValue;
use cofferdam_terminate::{
    Authority, Injector, MAX_HEADERS, Notice, Sighting, Terminator, Upstream, placeholder,
};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Output;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The host that has a secret.
pub(crate) const HOST: &str = "api.example.com";
/// Its value.
pub(crate) const VALUE: &str = "the/real+token";
/// A word that must go nowhere.
pub(crate) const CANARY: &str = "canary-4711-0815";
/// How long an answer is that has no words.
pub(crate) const LONG: usize = 3_000_000;

/// What the host outside was asked: head and length of the body.
pub(crate) type Asked = Arc<Mutex<Vec<(http::request::Parts, Bytes)>>>;

/// What came of bodies that were answered before they were whole.
pub(crate) type Early = Arc<Mutex<Vec<u8>>>;

/// What the holder of a terminator was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard {
    alarms: Arc<Mutex<Vec<Sighting>>>,
    refusals: Arc<Mutex<Vec<String>>>,
    failures: Arc<Mutex<Vec<String>>>,
    /// How many connections have ended.
    ended: Arc<Mutex<usize>>,
}

impl Heard {
    pub(crate) fn alarms(&self) -> Vec<Sighting> {
        self.alarms.lock().unwrap().clone()
    }

    pub(crate) fn refusals(&self) -> Vec<String> {
        self.refusals.lock().unwrap().clone()
    }

    pub(crate) fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap().clone()
    }

    pub(crate) fn ended(&self) -> usize {
        *self.ended.lock().unwrap()
    }
}

/// All of it. Ends with its runtime.
pub(crate) struct Stage {
    /// Where programs connect to.
    pub(crate) front: SocketAddr,
    /// Where the host is.
    pub(crate) outside: SocketAddr,
    pub(crate) asked: Asked,
    /// What the holder of the terminator was told.
    pub(crate) heard: Heard,
    /// What came of bodies that were answered before they were whole.
    pub(crate) early: Early,
    pub(crate) session: Arc<Authority>,
    pub(crate) public: Arc<Authority>,
    pub(crate) placeholder: String,
    pub(crate) other: String,
    directory: PathBuf,
}

/// How the stage is set.
pub(crate) struct Set {
    /// What the secret is granted for.
    pub(crate) grant: String,
    /// The host that the terminator is told.
    pub(crate) host: &'static str,
    /// The name that the host outside has a certificate for.
    pub(crate) named: &'static str,
    /// Whether its authority is trusted.
    pub(crate) is_trusted: bool,
    /// What the host outside says to whatever it is asked, before it hangs up. Otherwise it answers.
    pub(crate) says: Option<String>,
}

impl Default for Set {
    fn default() -> Self {
        Self { grant: format!("T@{HOST}"), host: HOST, named: HOST, is_trusted: true, says: None }
    }
}

impl Stage {
    pub(crate) async fn new(name: &str) -> Self {
        Self::set(name, Set::default()).await
    }

    pub(crate) async fn set(name: &str, set: Set) -> Self {
        let public = Arc::new(Authority::new("public").unwrap());
        let session = Arc::new(Authority::new(name).unwrap());
        let asked = Asked::default();
        let early = Early::default();
        let outside = match set.says {
            Some(says) => say_outside(&public, set.named, says).await,
            None => serve_outside(&public, set.named, Arc::clone(&asked), Arc::clone(&early)).await,
        };
        let (held, other) = (placeholder().unwrap(), placeholder().unwrap());
        let value = |text: &str| SecretValue::new(text.as_bytes().to_vec()).unwrap();
        let mut injector = Injector::default();
        injector.grant(set.grant.parse().unwrap(), &held, value(VALUE)).unwrap();
        injector.grant("U@other.example.com".parse().unwrap(), &other, value("another")).unwrap();
        injector.canary(CANARY).unwrap();
        let trusted = set.is_trusted.then(|| public.certificate().clone());
        let upstream = Upstream::new(trusted).unwrap();
        let terminator = Terminator::new(Arc::clone(&session), Arc::new(injector), upstream);
        let heard = Heard::default();
        let front = serve_front(terminator, set.host, outside, heard.clone()).await;
        let directory =
            std::env::temp_dir().join(format!("terminate-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let placeholder = held;
        Self { front, outside, asked, heard, early, session, public, placeholder, other, directory }
    }

    /// A file of the test's.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.directory.join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// A program that is told to trust the session, and nothing else of us.
    pub(crate) fn program(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("HOME", &self.directory).kill_on_drop(true);
        let trust = cofferdam_terminate::trust(&self.session.pem(), &self.other_authorities(), &[]);
        let mut places = Vec::new();
        for (path, content) in &trust.files {
            let name = path.rsplit('/').next().unwrap();
            places.push((path.clone(), self.file(name, content)));
        }
        for (name, mut value) in trust.variables {
            for (inside, here) in &places {
                value = value.replace(inside, here);
            }
            command.env(name, value);
        }
        command
    }

    /// What else a system trusts.
    fn other_authorities(&self) -> String {
        Authority::new("another").unwrap().pem()
    }

    /// What curl says to these words; it knows where the host is.
    pub(crate) async fn curl(&self, words: &[&str]) -> Output {
        let port = self.front.port();
        let resolve = format!("{HOST}:{port}:127.0.0.1");
        let all =
            [&["curl", "-sS", "-i", "--max-time", "30", "--resolve", &resolve], words].concat();
        self.program(&all).output().await.unwrap()
    }

    /// A connection of a program that trusts the session and writes what it wants.
    pub(crate) async fn connect(&self) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.session.certificate().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.front).await.unwrap();
        let name = ServerName::try_from(HOST).unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    /// An address of the host, by way of the terminator.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{HOST}:{}{path}", self.front.port())
    }

    /// What a header was in the last request that the host got.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let asked = self.asked.lock().unwrap();
        let value = asked.last()?.0.headers.get(name)?;
        Some(value.to_str().unwrap().to_owned())
    }

    pub(crate) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

pub(crate) fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

async fn serve_outside(public: &Authority, named: &str, asked: Asked, early: Early) -> SocketAddr {
    let acceptor = TlsAcceptor::from(public.serve_as(named).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, asked) = (acceptor.clone(), Arc::clone(&asked));
            let early = Arc::clone(&early);
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(|request: Request<hyper::body::Incoming>| async {
                    let (head, body) = request.into_parts();
                    if head.uri.path() == "/early" {
                        tokio::spawn(read_on(body, Arc::clone(&early)));
                        return Ok(Response::new(Full::new(Bytes::from_static(b"early"))));
                    }
                    let Ok(body) = body.collect().await else {
                        return Err(std::io::Error::other("broken off"));
                    };
                    let long = head.uri.path() == "/long";
                    let answer = if long { vec![b'x'; LONG] } else { b"hello\n".to_vec() };
                    asked.lock().unwrap().push((head, body.to_bytes()));
                    Ok(Response::new(Full::new(Bytes::from(answer))))
                });
                let mut builder = hyper::server::conn::http1::Builder::new();
                // No fewer than the terminator sends on.
                builder.max_headers(MAX_HEADERS);
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

async fn say_outside(public: &Authority, named: &str, says: String) -> SocketAddr {
    let acceptor = TlsAcceptor::from(public.serve_as(named).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(says.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    address
}

/// Reads what comes of a body after it was answered.
async fn read_on(mut body: hyper::body::Incoming, early: Early) {
    while let Some(Ok(frame)) = body.frame().await {
        early.lock().unwrap().extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
    }
}

async fn serve_front(
    terminator: Terminator,
    host: &'static str,
    outside: SocketAddr,
    heard: Heard,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (terminator, heard) = (terminator.clone(), heard.clone());
            tokio::spawn(async move {
                let dial = || TcpStream::connect(outside);
                let told = |notice| match notice {
                    Notice::Alarm(sighting) => heard.alarms.lock().unwrap().push(sighting),
                    Notice::Refused(why) => heard.refusals.lock().unwrap().push(why),
                    Notice::Failed(why) => heard.failures.lock().unwrap().push(why),
                };
                let _ = terminator.serve(stream, (host, address.port()), dial, told).await;
                *heard.ended.lock().unwrap() += 1;
            });
        }
    });
    address
}
