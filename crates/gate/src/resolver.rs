//! One question to one resolver. Its answers are hostile: whoever owns a name writes them.

use cofferdam_core::policy::HostName;
use rustix::rand::{GetRandomFlags, getrandom};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

/// How long one resolver may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest answer over UDP that is read. Without an extension nobody may send more.
const MAX_UDP_BYTES: usize = 4096;

/// The most records of an answer that are read.
const MAX_RECORDS: u16 = 256;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    V4,
    V6,
}

/// What a resolver said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// Addresses, perhaps none.
    Addresses(Vec<IpAddr>),
    /// The name is another's, whose addresses it did not tell.
    Alias(HostName),
    /// There is no such name.
    NoSuchName,
}

/// Asks one resolver one question.
pub(crate) async fn ask(server: SocketAddr, name: &HostName, kind: Kind) -> io::Result<Said> {
    let query = Query::new(name, kind)?;
    let answer = tokio::time::timeout(PATIENCE, query.over_udp(server)).await??;
    match answer {
        Some(said) => Ok(said),
        None => tokio::time::timeout(PATIENCE, query.over_tcp(server)).await?,
    }
}

/// Takes bytes for an answer to the question with the number 0.
#[cfg(any(test, feature = "hostile"))]
pub(crate) fn any_answer(name: &HostName, bytes: &[u8]) -> Option<Said> {
    let query = Query { id: 0, name, kind: Kind::V4, bytes: Vec::new() };
    let packet = query.fitting(bytes)?;
    query.read(&packet).ok()
}

struct Query<'a> {
    id: u16,
    name: &'a HostName,
    kind: Kind,
    bytes: Vec<u8>,
}

impl<'a> Query<'a> {
    fn new(name: &'a HostName, kind: Kind) -> io::Result<Self> {
        let mut id = [0; 2];
        getrandom(&mut id, GetRandomFlags::empty())?;
        let id = u16::from_ne_bytes(id);
        let mut packet = Packet::new_query(id);
        packet.set_flags(PacketFlag::RECURSION_DESIRED);
        let asked = Name::new(name.as_str()).map_err(malformed)?;
        let class = QCLASS::CLASS(CLASS::IN);
        packet.questions.push(Question::new(asked, QTYPE::TYPE(wanted(kind)), class, false));
        let bytes = packet.build_bytes_vec().map_err(malformed)?;
        Ok(Self { id, name, kind, bytes })
    }

    /// `None` where the answer is too long for this way.
    async fn over_udp(&self, server: SocketAddr) -> io::Result<Option<Said>> {
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        // A port of its own for each question: an answer from elsewhere has to guess it.
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await?;
        socket.connect(server).await?;
        socket.send(&self.bytes).await?;
        let mut answer = vec![0; MAX_UDP_BYTES];
        loop {
            let length = socket.recv(&mut answer).await?;
            let answer = answer.get(..length).unwrap_or_default();
            // What does not fit the question may be a guess: the true answer may still come.
            let Some(packet) = self.fitting(answer) else { continue };
            if packet.has_flags(PacketFlag::TRUNCATION) {
                return Ok(None);
            }
            return self.read(&packet).map(Some);
        }
    }

    async fn over_tcp(&self, server: SocketAddr) -> io::Result<Said> {
        let mut stream = TcpStream::connect(server).await?;
        let length = u16::try_from(self.bytes.len()).map_err(malformed)?;
        let mut message = length.to_be_bytes().to_vec();
        message.extend_from_slice(&self.bytes);
        stream.write_all(&message).await?;
        let length = stream.read_u16().await?;
        let mut answer = vec![0; length.into()];
        stream.read_exact(&mut answer).await?;
        let packet = self.fitting(&answer);
        self.read(&packet.ok_or_else(|| malformed("it does not fit the question"))?)
    }

    /// The answer to this very question, if it is one.
    fn fitting<'b>(&self, answer: &'b [u8]) -> Option<Packet<'b>> {
        let mut counts = answer.get(4..12)?.chunks_exact(2);
        if !counts.all(|count| matches!(count, [high, low] if u16::from_be_bytes([*high, *low]) <= MAX_RECORDS)) {
            return None;
        }
        let packet = Packet::parse(answer).ok()?;
        let [question] = packet.questions.as_slice() else { return None };
        let fits = packet.id() == self.id
            && packet.has_flags(PacketFlag::RESPONSE)
            && question.qtype == QTYPE::TYPE(wanted(self.kind))
            && same(&question.qname, self.name);
        fits.then_some(packet)
    }

    fn read(&self, packet: &Packet<'_>) -> io::Result<Said> {
        let code = packet.rcode();
        if code == RCODE::NameError {
            return Ok(Said::NoSuchName);
        }
        match code == RCODE::NoError {
            true => Ok(follow(packet, self.name)),
            false => Err(malformed(format!("the resolver said {code:?}"))),
        }
    }
}

fn wanted(kind: Kind) -> TYPE {
    match kind {
        Kind::V4 => TYPE::A,
        Kind::V6 => TYPE::AAAA,
    }
}

/// Follows the aliases of an answer to addresses. Each record leads on at most once, so that a ring of
/// aliases ends.
fn follow(packet: &Packet<'_>, name: &HostName) -> Said {
    let mut current = name.clone();
    for _ in &packet.answers {
        let own = packet.answers.iter().filter(|record| same(&record.name, &current));
        let addresses: Vec<IpAddr> =
            own.clone().filter_map(|record| address(&record.rdata)).collect();
        if !addresses.is_empty() {
            return Said::Addresses(addresses);
        }
        let alias = own.filter_map(|record| alias(&record.rdata)).next();
        match alias {
            Some(alias) => current = alias,
            None => break,
        }
    }
    match current == *name {
        true => Said::Addresses(Vec::new()),
        false => Said::Alias(current),
    }
}

fn address(data: &RData<'_>) -> Option<IpAddr> {
    if let RData::A(v4) = data {
        return Some(Ipv4Addr::from_bits(v4.address).into());
    }
    if let RData::AAAA(v6) = data {
        return Some(Ipv6Addr::from_bits(v6.address).into());
    }
    None
}

fn alias(data: &RData<'_>) -> Option<HostName> {
    let RData::CNAME(name) = data else { return None };
    name.0.to_string().parse().ok()
}

fn same(name: &Name<'_>, other: &HostName) -> bool {
    name.to_string().trim_end_matches('.').eq_ignore_ascii_case(other.as_str())
}

fn malformed(why: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}
