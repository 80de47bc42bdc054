//! Answers questions for names inside. No question ever leaves: a name that may be reached has an
//! address that stands for it, and any other does not exist.

use crate::attempt::Attempt;
use crate::gate::Gate;
use crate::request::nobody;
use cofferdam_core::ConnectionHow;
use cofferdam_core::network::HOST_NAME;
use cofferdam_core::policy::{Asked, Host, HostName, decide_name};
use simple_dns::rdata::{A, AAAA, RData};
use simple_dns::{
    CLASS, OPCODE, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, ResourceRecord, TYPE,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

/// Where questions for names go.
const DNS_PORT: u16 = 53;

/// How long an answer may be kept, in seconds. Short: a name may lose its address to another.
const TTL_S: u32 = 5;

/// The longest question. A name has 255 bytes at most.
const MAX_QUESTION_BYTES: usize = 1024;

/// Names whose denial is remembered, so that it is written once though it is asked for by several
/// questions at a time, for both kinds of addresses.
const MAX_REMEMBERED: usize = 64;
/// How long. What is asked for later is another try, and perhaps another command's.
const ONE_TRY: Duration = Duration::from_millis(100);

/// How long a connection may keep silent between questions.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers questions of one sandbox.
pub(crate) struct Dns {
    gate: Arc<Gate>,
    denied: Mutex<VecDeque<(String, u64, Instant)>>,
}

impl Dns {
    pub(crate) fn new(gate: Arc<Gate>) -> Self {
        Self { gate, denied: Mutex::new(VecDeque::new()) }
    }

    /// Answers over UDP, for ever.
    pub(crate) async fn over_udp(&self, socket: UdpSocket) {
        let mut question = vec![0; MAX_QUESTION_BYTES];
        loop {
            match socket.recv_from(&mut question).await {
                Ok((length, from)) => {
                    let answer = self.answer(question.get(..length).unwrap_or_default());
                    if let Some(answer) = answer {
                        let _ = socket.send_to(&answer, from).await;
                    }
                }
                // Such as that nobody waits for the last answer any more.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// Answers the questions of one connection.
    pub(crate) async fn over_tcp(&self, mut stream: TcpStream) {
        for _ in 0..self.gate.limits.questions {
            let question = tokio::time::timeout(PATIENCE, read(&mut stream));
            let Ok(Ok(question)) = question.await else { return };
            let Some(answer) = self.answer(&question) else { return };
            let Ok(length) = u16::try_from(answer.len()) else { return };
            let mut message = length.to_be_bytes().to_vec();
            message.extend_from_slice(&answer);
            let sent = tokio::time::timeout(PATIENCE, stream.write_all(&message));
            if !matches!(sent.await, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// The answer to one question; none to what is no question at all.
    pub(crate) fn answer(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let [high, low, flags, _, counts @ ..] = bytes else { return None };
        let is_question = flags & 0x80 == 0;
        let (id, counts) = (u16::from_be_bytes([*high, *low]), counts.get(..8)?);
        let packet = match counts {
            // One question, nothing claimed beside it but extensions. Checked before any of it is read.
            [0, 1, 0, 0, 0, 0, 0, 0..=2] => Packet::parse(bytes).ok(),
            _ => None,
        };
        let question = packet.as_ref().and_then(|packet| packet.questions.first());
        let is_alarm = self.look_at(bytes, question);
        if !is_question {
            return None;
        }
        let Some(packet) = &packet else { return refuse(id, RCODE::FormatError) };
        if packet.opcode() != OPCODE::StandardQuery {
            return refuse(id, RCODE::NotImplemented);
        }
        let question = question?;
        let mut reply = Packet::new_reply(id);
        reply.set_flags(PacketFlag::RECURSION_AVAILABLE | PacketFlag::AUTHORITATIVE_ANSWER);
        if packet.has_flags(PacketFlag::RECURSION_DESIRED) {
            reply.set_flags(PacketFlag::RECURSION_DESIRED);
        }
        reply.questions.push(question.clone());
        let name = if is_alarm { None } else { self.decide(question) };
        match name {
            Some(name) => reply.answers.extend(self.stand_in(question, &name)),
            None => *reply.rcode_mut() = RCODE::NameError,
        }
        reply.build_bytes_vec().ok()
    }

    /// Whether something is in there that must go nowhere. Then its holder was told.
    // HOSTILE: looked through as it came, whatever it is about and whatever is wrong with it.
    fn look_at(&self, bytes: &[u8], question: Option<&Question<'_>>) -> bool {
        let name = question.map(|question| question.qname.to_string());
        let host = name.as_deref().and_then(seems_for).map_or(nobody().host, Host::Name);
        let seems = Asked { host, port: DNS_PORT };
        // Names are alike in either case.
        let Some(sighting) = self.gate.look_at(&bytes.to_ascii_lowercase(), &seems) else {
            return false;
        };
        self.gate.raise(&sighting, &seems);
        let name = name.unwrap_or_else(|| seems.host.to_string());
        self.deny(&name, self.gate.policy().version, |attempt| attempt.saw(&sighting, &seems));
        true
    }

    /// The name that is asked for, if it is one that has an address.
    fn decide(&self, question: &Question<'_>) -> Option<HostName> {
        let asked = question.qname.to_string();
        let host = host_of(question, &asked);
        let is_internet = question.qclass == QCLASS::CLASS(CLASS::IN);
        let policy = self.gate.policy();
        let Some(name) = host.parse::<HostName>().ok().filter(|_| is_internet) else {
            let why = match is_internet {
                true => "it is no name of a host",
                false => "the question is not about the internet",
            };
            self.deny(&asked, policy.version, |attempt| attempt.refused(why));
            return None;
        };
        let decision = decide_name(&policy, &name);
        // Where a connection may wait to be allowed, its name has to lead it here. That of the host has
        // a remedy for each port and none by itself.
        let is_host = name.as_str() == HOST_NAME && decision.rule.is_none();
        let may_wait = policy.ask_ms > 0 && (decision.remedy.is_some() || is_host);
        if !decision.allowed && !may_wait {
            self.deny(name.as_str(), policy.version, |attempt| {
                attempt.decided(&decision, policy.version);
            });
            return None;
        }
        // What is asked about as a service has no address, and that is no denial.
        (host == asked).then_some(name)
    }

    fn stand_in<'a>(&self, question: &Question<'a>, name: &HostName) -> Option<ResourceRecord<'a>> {
        let (v4, v6) = self.gate.names().addresses(name);
        let data = if question.qtype == QTYPE::TYPE(TYPE::A) {
            RData::A(A { address: v4.to_bits() })
        } else if question.qtype == QTYPE::TYPE(TYPE::AAAA) && self.gate.has_v6 {
            RData::AAAA(AAAA { address: v6.to_bits() })
        } else {
            return None;
        };
        Some(ResourceRecord::new(question.qname.clone(), CLASS::IN, TTL_S, data))
    }

    /// Writes down that a name was denied, once for each try and edition of the policy.
    fn deny(&self, name: &str, version: u64, note: impl FnOnce(&mut Attempt)) {
        let mut denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        denied.retain(|(.., then)| then.elapsed() < ONE_TRY);
        if denied.iter().any(|(old, edition, _)| old == name && *edition == version) {
            return;
        }
        if denied.len() >= MAX_REMEMBERED {
            denied.pop_front();
        }
        denied.push_back((name.to_owned(), version, Instant::now()));
        drop(denied);
        let mut attempt = Attempt::new(&self.gate, ConnectionHow::Dns);
        attempt.names(name);
        note(&mut attempt);
    }
}

/// The host that a question is about. `_http._tcp.example.com` asks where the services of `example.com`
/// are, as package managers do before they connect to the host itself.
fn host_of<'a>(question: &Question<'_>, asked: &'a str) -> &'a str {
    let kinds = [TYPE::A, TYPE::AAAA].map(QTYPE::TYPE);
    let mut host = asked;
    while host.starts_with('_') && !kinds.contains(&question.qtype) {
        let Some((_, rest)) = host.split_once('.') else { return asked };
        host = rest;
    }
    host
}

/// Whose name it seems to be that is asked about: the longest end of it that names a host.
fn seems_for(asked: &str) -> Option<HostName> {
    let mut host = asked;
    loop {
        match host.parse() {
            Ok(name) => return Some(name),
            Err(_) => host = host.split_once('.')?.1,
        }
    }
}

fn refuse(id: u16, code: RCODE) -> Option<Vec<u8>> {
    let mut reply = Packet::new_reply(id);
    *reply.rcode_mut() = code;
    reply.build_bytes_vec().ok()
}

async fn read(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let length = usize::from(stream.read_u16().await?);
    if length > MAX_QUESTION_BYTES {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let mut question = vec![0; length];
    stream.read_exact(&mut question).await?;
    Ok(question)
}
