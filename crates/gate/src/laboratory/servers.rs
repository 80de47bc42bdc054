//! What stands outside: a server of names, one of HTTP, one of TLS, one that speaks first.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use simple_dns::rdata::{A, AAAA, CNAME, RData};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// What a server of names says.
#[derive(Debug, Clone)]
pub(super) enum Told {
    Addresses(Vec<IpAddr>),
    /// One after the other, to an address at last.
    Chain(Vec<&'static str>, Vec<IpAddr>),
    /// An answer for another name.
    Misled(&'static str, IpAddr),
    /// Answers that do not fit the question first, then one that does.
    Forged(IpAddr, IpAddr),
    NoSuchName,
    Nothing,
    Broken,
}

/// Addresses of these texts.
pub(super) fn at(addresses: &[&str]) -> Told {
    Told::Addresses(addresses.iter().map(|address| address.parse().unwrap()).collect())
}

/// An authoritative server of names, which remembers what it was asked.
pub(super) struct Zone {
    pub(super) address: SocketAddr,
    pub(super) asked: Arc<Mutex<Vec<String>>>,
}

impl Zone {
    /// One that says this of a name when it is asked about it for the so many-th time.
    pub(super) async fn new(tell: impl Fn(&str, usize) -> Told + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let remembered = asked.clone();
        tokio::spawn(async move {
            let mut question = [0; 1024];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                let packet = Packet::parse(&question[..length]).unwrap();
                let name = packet.questions[0].qname.to_string();
                let kind = packet.questions[0].qtype;
                let key = format!("{name} {kind:?}");
                let times = {
                    let mut all = remembered.lock().unwrap();
                    all.push(key.clone());
                    all.iter().filter(|one| **one == key).count()
                };
                for answer in answers(&packet, &tell(&name, times)) {
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        Self { address, asked }
    }

    /// One that knows these names.
    pub(super) async fn of(names: &'static [(&'static str, &'static [&'static str])]) -> Self {
        Self::new(|asked, _| {
            let known = names.iter().find(|(name, _)| *name == asked);
            known.map_or(Told::NoSuchName, |(_, addresses)| at(addresses))
        })
        .await
    }

    pub(super) fn was_asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn record(name: &str, data: RData<'static>) -> ResourceRecord<'static> {
    ResourceRecord::new(Name::new(name).unwrap().into_owned(), CLASS::IN, 1, data)
}

fn addresses(name: &str, all: &[IpAddr], kind: QTYPE) -> Vec<ResourceRecord<'static>> {
    let of = |address: &IpAddr| match address {
        IpAddr::V4(v4) if kind == QTYPE::TYPE(TYPE::A) => {
            Some(record(name, RData::A(A { address: v4.to_bits() })))
        }
        IpAddr::V6(v6) if kind == QTYPE::TYPE(TYPE::AAAA) => {
            Some(record(name, RData::AAAA(AAAA { address: v6.to_bits() })))
        }
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    };
    all.iter().filter_map(of).collect()
}

fn answers(question: &Packet<'_>, told: &Told) -> Vec<Vec<u8>> {
    let name = question.questions[0].qname.to_string();
    let kind = question.questions[0].qtype;
    let mut reply = Packet::new_reply(question.id());
    reply.questions.clone_from(&question.questions);
    match told {
        Told::Nothing => return Vec::new(),
        Told::NoSuchName => *reply.rcode_mut() = RCODE::NameError,
        Told::Broken => *reply.rcode_mut() = RCODE::ServerFailure,
        Told::Addresses(all) => reply.answers = addresses(&name, all, kind),
        Told::Misled(other, address) => reply.answers = addresses(other, &[*address], kind),
        Told::Chain(chain, all) => {
            let mut owner = name;
            for next in chain {
                let target = CNAME(Name::new(next).unwrap());
                reply.answers.push(record(&owner, RData::CNAME(target)));
                (*next).clone_into(&mut owner);
            }
            reply.answers.extend(addresses(&owner, all, kind));
        }
        Told::Forged(forged, real) => {
            let mut wrong_id = Packet::new_reply(question.id().wrapping_add(1));
            wrong_id.questions.clone_from(&question.questions);
            wrong_id.answers = addresses(&name, &[*forged], kind);
            let mut wrong_name = Packet::new_reply(question.id());
            let mut other = question.questions[0].clone();
            other.qname = Name::new("other.test").unwrap();
            wrong_name.questions.push(other);
            wrong_name.answers = addresses(&name, &[*forged], kind);
            let mut no_answer = reply.clone();
            no_answer.remove_flags(PacketFlag::RESPONSE);
            no_answer.answers = addresses(&name, &[*forged], kind);
            reply.answers = addresses(&name, &[*real], kind);
            let all = [wrong_id, wrong_name, no_answer, reply];
            return all.iter().map(|packet| packet.build_bytes_vec().unwrap()).collect();
        }
    }
    vec![reply.build_bytes_vec().unwrap()]
}

/// A server that remembers what it was sent, one entry a connection.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) port: u16,
    pub(super) seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Server {
    /// One of HTTP that answers whatever comes first, and then listens for what else comes.
    pub(super) async fn web(address: &str) -> Self {
        Self::new(address, |mut stream, seen| async move {
            let mut piece = [0; 4096];
            let mut has_answered = false;
            loop {
                let patience = Duration::from_millis(if has_answered { 100 } else { 20_000 });
                let read = tokio::time::timeout(patience, stream.read(&mut piece)).await;
                let Ok(Ok(read @ 1..)) = read else { return };
                let whole = seen(&piece[..read]);
                if !has_answered && has_request(&whole) {
                    has_answered = true;
                    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            }
        })
        .await
    }

    /// One of HTTP that answers when all has come, be it nothing.
    pub(super) async fn patient(address: &str) -> Self {
        Self::new(address, |mut stream, seen| async move {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut piece).await {
                seen(&piece[..read]);
            }
            let _ = stream.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").await;
        })
        .await
    }

    /// One that says a word first, and then echoes.
    pub(super) async fn echo(address: &str, word: &'static str) -> Self {
        Self::new(address, move |mut stream, seen| async move {
            let _ = stream.write_all(word.as_bytes()).await;
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut piece).await {
                seen(&piece[..read]);
                let _ = stream.write_all(&piece[..read]).await;
            }
        })
        .await
    }

    async fn new<F: Future<Output = ()> + Send + 'static>(
        address: &str,
        serve: impl Fn(TcpStream, Box<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>) -> F + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::<Vec<u8>>::new()));
        let kept = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let place = {
                    let mut all = kept.lock().unwrap();
                    all.push(Vec::new());
                    all.len() - 1
                };
                let kept = kept.clone();
                tokio::spawn(serve(
                    stream,
                    Box::new(move |bytes| {
                        let mut all = kept.lock().unwrap();
                        all[place].extend_from_slice(bytes);
                        all[place].clone()
                    }),
                ));
            }
        });
        Self { port, seen }
    }

    /// How many connections came.
    pub(super) fn connections(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// All that was sent.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().concat()).into_owned()
    }
}

fn has_request(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// A server of TLS with a certificate of its own, which says a word to whoever gets that far.
pub(super) struct Tls {
    pub(super) port: u16,
    certificate: CertificateDer<'static>,
    pub(super) names: Arc<Mutex<Vec<Option<String>>>>,
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

impl Tls {
    /// One that has a certificate for these names.
    pub(super) async fn new(address: &str, names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let config = rustls::ServerConfig::builder_with_provider(provider());
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![certificate.clone()], key).unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let named = Arc::new(Mutex::new(Vec::new()));
        let kept = named.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, kept) = (acceptor.clone(), kept.clone());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let name = stream.get_ref().1.server_name().map(str::to_owned);
                    kept.lock().unwrap().push(name);
                    let _ = stream.write_all(b"secret word").await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { port, certificate, names: named }
    }

    /// What a client hears that asks for this name over a stream.
    pub(super) async fn hear(&self, stream: TcpStream, name: &str) -> Result<String, String> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let config = rustls::ClientConfig::builder_with_provider(provider());
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let hear = async {
            let mut stream = connector.connect(name, stream).await?;
            let mut heard = String::new();
            stream.read_to_string(&mut heard).await?;
            Ok::<_, std::io::Error>(heard)
        };
        super::soon(hear).await.map_err(|error| error.to_string())
    }
}
