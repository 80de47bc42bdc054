//! The head of a request of HTTP/1: read strictly, and written anew.
//!
//! Nothing of a request that is passed on was copied unread: what another reader could read differently
//! is refused, and what is for the next hop alone is left out.

use crate::limits::Limits;
use cofferdam_core::policy::{Asked, Host};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

/// A request that is passed on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Where it goes.
    pub(crate) asked: Asked,
    /// Its head as it is passed on.
    pub(crate) head: Vec<u8>,
    /// How many bytes follow.
    pub(crate) body_bytes: u64,
}

/// What a head asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A connection.
    Tunnel(Asked),
    /// An answer.
    Answer(Request),
}

/// Whom a request was sent to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum To<'a> {
    /// A proxy: it names the server.
    Proxy,
    /// This server. One that names another is refused.
    Server(&'a Asked),
}

/// What is wrong with a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    /// What is wrong.
    pub(crate) reason: String,
    /// Whether it is well-formed and meant for somebody else.
    pub(crate) is_elsewhere: bool,
}

impl From<&str> for Bad {
    fn from(reason: &str) -> Self {
        Self { reason: reason.to_owned(), is_elsewhere: false }
    }
}

/// Headers that are for the next hop alone.
const HOP_BY_HOP: [&str; 7] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
];

/// The longest name of a method.
const MAX_METHOD_BYTES: usize = 32;

/// The port of HTTP.
const HTTP_PORT: u16 = 80;

/// Reads a head, its empty line included.
pub(crate) fn read(head: &[u8], to: To<'_>, limits: &Limits) -> Result<Wanted, Bad> {
    let text = plain_text(head)?;
    let text = text.strip_suffix("\r\n\r\n").ok_or("the head has no end")?;
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("the first line is not a method, a target and a version".into());
    };
    if method.is_empty()
        || method.len() > MAX_METHOD_BYTES
        || !method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-')
    {
        return Err("the method is malformed".into());
    }
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err("the version is neither HTTP/1.1 nor HTTP/1.0".into());
    }
    let headers = Headers::read(lines, limits)?;
    match (method, to) {
        ("CONNECT", To::Proxy) => headers.tunnel(target).map(Wanted::Tunnel),
        ("CONNECT", To::Server(_)) => Err("a server is no proxy".into()),
        (_, to) => headers.answer(method, target, version, to).map(Wanted::Answer),
    }
}

/// The head as text: lines end as they ought to, and hold nothing that is not to be seen.
fn plain_text(head: &[u8]) -> Result<&str, Bad> {
    let mut bytes = head.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' if bytes.peek() == Some(&&b'\n') => {
                bytes.next();
            }
            b'\r' | b'\n' => return Err("a line does not end with CR and LF".into()),
            b'\t' | 0x20..=0x7e => {}
            0x80..=0xff => return Err("the head holds a byte that is not ASCII".into()),
            _ => return Err("the head holds a control character".into()),
        }
    }
    std::str::from_utf8(head).map_err(|_| "the head is no text".into())
}

/// The headers, and those among them that decide.
#[derive(Default)]
struct Headers<'a> {
    all: Vec<(&'a str, &'a str)>,
    host: Option<&'a str>,
    body_bytes: Option<u64>,
    /// Those that are for the next hop alone because the request says so.
    dropped: Vec<&'a str>,
}

impl<'a> Headers<'a> {
    fn read(lines: impl Iterator<Item = &'a str>, limits: &Limits) -> Result<Self, Bad> {
        let mut headers = Self::default();
        for line in lines {
            if headers.all.len() >= limits.headers {
                return Err("there are too many headers".into());
            }
            if line.starts_with([' ', '\t']) {
                return Err("a header is folded".into());
            }
            let (name, value) = line.split_once(':').ok_or("a header has no colon")?;
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err("the name of a header is malformed".into());
            }
            let value = value.trim_matches([' ', '\t']);
            headers.note(name, value)?;
            headers.all.push((name, value));
        }
        Ok(headers)
    }

    fn note(&mut self, name: &'a str, value: &'a str) -> Result<(), Bad> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("host") && self.host.replace(value).is_some() {
            return Err("there are two Host headers".into());
        }
        if is("content-length") {
            let is_number =
                (1..=18).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_digit());
            let length = value.parse().ok().filter(|_| is_number);
            let length: u64 = length.ok_or("the Content-Length is not a number")?;
            if self.body_bytes.replace(length).is_some() {
                return Err("there are two Content-Length headers".into());
            }
        }
        if is("transfer-encoding") {
            return Err("a Transfer-Encoding is not passed on".into());
        }
        if is("upgrade") {
            return Err("an Upgrade is not passed on".into());
        }
        if is("connection") {
            self.dropped.extend(value.split(',').map(|name| name.trim_matches([' ', '\t'])));
        }
        Ok(())
    }

    fn tunnel(&self, target: &str) -> Result<Asked, Bad> {
        if self.body_bytes.is_some() {
            return Err("a CONNECT has no body".into());
        }
        let asked = authority(target, None)?;
        self.check_host(&asked)?;
        Ok(asked)
    }

    fn answer(
        &self,
        method: &str,
        target: &str,
        version: &str,
        to: To<'_>,
    ) -> Result<Request, Bad> {
        let (named, path) = split_target(method, target)?;
        let asked = match (to, named) {
            (To::Proxy, Some(named)) => authority(named, Some(HTTP_PORT))?,
            (To::Proxy, None) => {
                return Err("this is a proxy: name the server in the target".into());
            }
            (To::Server(asked), None) => asked.clone(),
            (To::Server(asked), Some(named)) => {
                let named = authority(named, Some(HTTP_PORT))?;
                if named != *asked {
                    return Err(elsewhere("target", &named, asked));
                }
                named
            }
        };
        if self.host.is_none() && version == "HTTP/1.1" {
            return Err("there is no Host header".into());
        }
        self.check_host(&asked)?;
        let head = self.rebuilt(method, &path, version, &asked);
        Ok(Request { asked, head, body_bytes: self.body_bytes.unwrap_or(0) })
    }

    /// The Host header names what is asked for.
    fn check_host(&self, asked: &Asked) -> Result<(), Bad> {
        let Some(host) = self.host else { return Ok(()) };
        check_named("Host header", host, asked)
    }

    fn rebuilt(&self, method: &str, path: &str, version: &str, asked: &Asked) -> Vec<u8> {
        let mut head = format!("{method} {path} {version}\r\nHost: {}", asked.host);
        // Writing to a string cannot fail.
        if asked.port != HTTP_PORT {
            let _ = write!(head, ":{}", asked.port);
        }
        head.push_str("\r\n");
        for (name, value) in &self.all {
            let is = |other: &&str| name.eq_ignore_ascii_case(other);
            let is_own = is(&"host") || is(&"content-length");
            if !is_own && !HOP_BY_HOP.iter().any(is) && !self.dropped.iter().any(is) {
                let _ = write!(head, "{name}: {value}\r\n");
            }
        }
        if let Some(length) = self.body_bytes {
            let _ = write!(head, "Content-Length: {length}\r\n");
        }
        head.push_str("Connection: close\r\n\r\n");
        head.into_bytes()
    }
}

/// Whom a head seems to name that was refused: for words about it, and for nothing else. Where that
/// cannot be read it is the address of nobody.
pub(crate) fn seems_for(head: &[u8]) -> Asked {
    let text = String::from_utf8_lossy(head);
    let target = text.split_ascii_whitespace().nth(1).unwrap_or_default();
    let target = target.split_once("://").map_or(target, |(_, rest)| rest);
    let named = target.split(['/', '?']).next().unwrap_or_default();
    let host = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("host").then(|| value.trim())
    });
    let seems = |text: &str| authority(text, Some(HTTP_PORT)).ok();
    seems(named).or_else(|| seems(host?)).unwrap_or_else(nobody)
}

/// What stands for a host that was not named so that it can be read.
pub(crate) fn nobody() -> Asked {
    Asked { host: Host::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port: HTTP_PORT }
}

/// What names a server names the one that was asked for. Without a port, whatever port that is.
pub(crate) fn check_named(what: &str, text: &str, asked: &Asked) -> Result<(), Bad> {
    let named = authority(text, Some(asked.port))?;
    match named == *asked {
        true => Ok(()),
        false => Err(elsewhere(what, &named, asked)),
    }
}

/// Reads `HOST:PORT`, or `HOST` where there is a port to add.
fn authority(text: &str, default: Option<u16>) -> Result<Asked, Bad> {
    let malformed = || Bad::from("the host or its port is malformed");
    if let Ok(asked) = text.parse() {
        return Ok(asked);
    }
    let port = default.ok_or_else(malformed)?;
    let host: Host = text.parse().map_err(|_| malformed())?;
    Ok(Asked { host, port })
}

/// Cuts a target into the server that it names, where it does, and the rest.
fn split_target<'a>(method: &str, target: &'a str) -> Result<(Option<&'a str>, String), Bad> {
    if !target.bytes().all(|b| b.is_ascii_graphic()) || target.contains('#') {
        return Err("the target is malformed".into());
    }
    if target.starts_with('/') || (target == "*" && method == "OPTIONS") {
        return Ok((None, target.to_owned()));
    }
    let rest = match target.split_at_checked("http://".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => rest,
        _ => return Err("the target is not one of http://".into()),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (named, path) = rest.split_at_checked(end).unwrap_or_default();
    let path = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    };
    Ok((Some(named), path))
}

fn elsewhere(what: &str, named: &Asked, asked: &Asked) -> Bad {
    let reason = format!("the {what} names {named}, not {asked}");
    Bad { reason, is_elsewhere: true }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked() -> Asked {
        "ok.test:80".parse().unwrap()
    }

    fn answer(head: &[u8], to: To<'_>) -> Option<Request> {
        match read(head, to, &Limits::default()) {
            Ok(Wanted::Answer(request)) => Some(request),
            Ok(Wanted::Tunnel(_)) | Err(_) => None,
        }
    }

    /// Whatever is accepted is written so that it is accepted again, alike, by the server that it is
    /// for.
    fn check(head: &[u8]) {
        for to in [To::Proxy, To::Server(&asked())] {
            let Some(request) = answer(head, to) else { continue };
            let again = answer(&request.head, To::Server(&request.asked)).expect("it is sound");
            assert_eq!(again, request, "{:?}", String::from_utf8_lossy(head));
        }
    }

    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            prop::sample::select(vec![
                "GET ",
                "POST ",
                "OPTIONS * ",
                "/",
                "http://ok.test",
                ":80",
                "/a?b",
                " ",
                " HTTP/1.1",
                " HTTP/1.0",
                "\r\n",
                "\n",
                "\r",
                "Host: ok.test\r\n",
                "Host: ok.test:80\r\n",
                "\0",
                "Content-Length: 3\r\n",
                "Content-Length: 0\r\n",
                "Connection: close, x\r\n",
                "x: y\r\n",
                "Transfer-Encoding: chunked\r\n",
                "Upgrade: h2c\r\n",
                "Host:",
                ":",
                "@",
                "#",
                "%00",
                "GET / HTTP/1.1\r\nHost: ok.test\r\n",
                "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n",
            ])
            .prop_map(|text| text.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..3),
        ];
        prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
    }

    #[test]
    fn headers_for_the_next_hop_are_left_out_and_the_length_is_written_anew() {
        let head = b"PUT / HTTP/1.0\r\nA: b\r\nContent-Length: 007\r\nConnection: a-b , X\r\n\
            x: 1\r\nA-B: 2\r\nProxy-Authorization: secret\r\n\r\n";
        let request = answer(head, To::Server(&asked())).unwrap();
        let wanted = "PUT / HTTP/1.0\r\nHost: ok.test\r\nA: b\r\nContent-Length: 7\r\n\
            Connection: close\r\n\r\n";
        assert_eq!(String::from_utf8(request.head).unwrap(), wanted);
        assert_eq!(request.body_bytes, 7);
    }

    #[test]
    fn a_refused_head_seems_to_be_for_whom_it_names() {
        let nobody = "0.0.0.0:80";
        for (head, wanted) in [
            ("GET http://a.test:8080/b?c HTTP/1.1\r\nHost: b.test\r\n\r\n", "a.test:8080"),
            ("CONNECT a.test:443 HTTP/1.1\r\n", "a.test:443"),
            ("POST /b HTTP/1.1\nhost : b.test:81\n\n", "b.test:81"),
            ("POST /b HTTP/1.1\r\nHost: a@b\r\n", nobody),
            ("GET", nobody),
            ("", nobody),
        ] {
            assert_eq!(seems_for(head.as_bytes()).to_string(), wanted, "{head}");
        }
    }

    #[test]
    fn a_target_without_a_path_has_one() {
        let path = |target: &str| {
            let head = format!("GET {target} HTTP/1.0\r\n\r\n");
            let request = answer(head.as_bytes(), To::Proxy)?;
            String::from_utf8(request.head).unwrap().split(' ').nth(1).map(str::to_owned)
        };
        assert_eq!(path("http://ok.test").as_deref(), Some("/"));
        assert_eq!(path("HTTP://ok.test?a").as_deref(), Some("/?a"));
        assert_eq!(path("http://ok.test/a/../b%2f").as_deref(), Some("/a/../b%2f"));
        assert_eq!(path("http://"), None);
        assert_eq!(path("*"), None);
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_accepted_again_alike(head in pieces()) {
            check(&head);
            check(&[&head[..], b"\r\n\r\n"].concat());
            check(&[&b"GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"[..], &head, b"\r\n\r\n"].concat());
        }
    }
}
