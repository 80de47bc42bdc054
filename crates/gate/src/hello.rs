//! The name in the first message of a TLS client. Strict: what two readers could read differently is
//! refused.

use cofferdam_core::policy::HostName;

/// Whether these bytes are a whole first message.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    matches!(read(bytes), Hello::Whole(_))
}

/// What the first bytes of a connection are to TLS.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// Not its.
    None,
    /// The beginning of a first message.
    Partial,
    /// A whole first message, and the name in it, where there is one.
    Whole(Option<HostName>),
    /// A first message that is malformed, and how.
    Malformed(&'static str),
}

/// The type of a record that carries the messages of a handshake.
const RECORD_HANDSHAKE: u8 = 22;

/// The type of a record that says that what follows is enciphered.
const RECORD_CHANGE_CIPHER: u8 = 20;

/// The type of a record that warns, or ends the connection.
const RECORD_ALERT: u8 = 21;

/// The type of a client's first message.
const CLIENT_HELLO: u8 = 1;

/// The extension that carries the name.
const SERVER_NAME: u16 = 0;

/// The type of a name that is a host's.
const HOST_NAME: u8 = 0;

/// The longest record.
const MAX_RECORD_BYTES: usize = 16 * 1024;

/// Reads the first bytes of a connection.
pub(crate) fn read(bytes: &[u8]) -> Hello {
    match bytes {
        [] | [RECORD_HANDSHAKE] => Hello::Partial,
        [RECORD_HANDSHAKE, 3, ..] => match message(bytes) {
            Ok(Some(message)) => match server_name(&message) {
                Ok(name) => Hello::Whole(name),
                Err(why) => Hello::Malformed(why),
            },
            Ok(None) => Hello::Partial,
            Err(why) => Hello::Malformed(why),
        },
        _ => unusual(bytes),
    }
}

/// First bytes of no client, which some servers read on from all the same and find a name: a warning before
/// the message, a version that there never was, and the form of SSL 2.
fn unusual(bytes: &[u8]) -> Hello {
    let (enough, leads_on) = match bytes {
        // A length of two bytes, the type, and the version.
        [0x80..=0xbf, rest @ ..] => (4, matches!(rest, [_, CLIENT_HELLO, 0 | 3, ..])),
        // A version of two bytes, a length of two, and the body.
        [RECORD_HANDSHAKE, _, _, body @ ..] => {
            (6, matches!(body, [0, 0, ..] | [_, _, CLIENT_HELLO, ..]))
        }
        [RECORD_ALERT, _, _, body @ ..] => (6, matches!(body, [0, 2, 1 | 2, ..])),
        [RECORD_CHANGE_CIPHER, _, _, body @ ..] => (6, matches!(body, [0, 1, 1, ..])),
        [RECORD_HANDSHAKE | RECORD_ALERT | RECORD_CHANGE_CIPHER, ..] => (6, false),
        _ => return Hello::None,
    };
    match leads_on {
        true => Hello::Malformed("it begins like TLS, but not as a client does"),
        false if bytes.len() < enough => Hello::Partial,
        false => Hello::None,
    }
}

/// The body of the first message, put together from as many records as it takes.
fn message(bytes: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let mut rest = Reader(bytes);
    let mut joined = Vec::new();
    loop {
        if let [kind, high, middle, low, body @ ..] = joined.as_slice() {
            if *kind != CLIENT_HELLO {
                return Err("the first message of TLS is not a client's");
            }
            let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            if body.len() >= length {
                return Ok(body.get(..length).map(<[u8]>::to_vec));
            }
        }
        let Some([kind, major, _, high, low]) = rest.array::<5>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if kind != RECORD_HANDSHAKE || major != 3 || length == 0 || length > MAX_RECORD_BYTES {
            return Err("a record of TLS is malformed");
        }
        let Some(part) = rest.take(length) else { return Ok(None) };
        joined.extend_from_slice(part);
    }
}

fn server_name(message: &[u8]) -> Result<Option<HostName>, &'static str> {
    let short = "the first message of TLS is cut off";
    let mut reader = Reader(message);
    // Its version and its random bytes.
    reader.take(34).ok_or(short)?;
    reader.short_list().ok_or(short)?;
    reader.list().ok_or(short)?;
    reader.short_list().ok_or(short)?;
    if reader.is_empty() {
        return Ok(None);
    }
    let mut extensions = reader.list().ok_or(short)?;
    if !reader.is_empty() {
        return Err("something follows the first message of TLS");
    }
    let mut found = None;
    while !extensions.is_empty() {
        let kind = extensions.number().ok_or(short)?;
        let body = extensions.list().ok_or(short)?;
        if kind == SERVER_NAME && found.replace(body).is_some() {
            return Err("the first message of TLS names two servers");
        }
    }
    found.map(only_name).transpose()
}

fn only_name(mut extension: Reader<'_>) -> Result<HostName, &'static str> {
    let malformed = "the name of the server in TLS is malformed";
    let mut names = extension.list().ok_or(malformed)?;
    let [kind] = names.array::<1>().ok_or(malformed)?;
    let name = names.list().ok_or(malformed)?;
    if kind != HOST_NAME || !names.is_empty() || !extension.is_empty() {
        return Err(malformed);
    }
    let name = std::str::from_utf8(name.0).map_err(|_| malformed)?;
    name.parse().map_err(|_| malformed)
}

/// Bytes that are yet to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// What follows its length in two bytes.
    fn list(&mut self) -> Option<Self> {
        let length = self.number()?;
        self.take(length.into()).map(Self)
    }

    /// What follows its length in one byte.
    fn short_list(&mut self) -> Option<Self> {
        let [length] = self.array()?;
        self.take(length.into()).map(Self)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with_length(body: &[u8]) -> Vec<u8> {
        let mut out = u16::try_from(body.len()).unwrap().to_be_bytes().to_vec();
        out.extend_from_slice(body);
        out
    }

    fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
        [kind.to_be_bytes().to_vec(), with_length(body)].concat()
    }

    pub(crate) fn name_extension(name: &[u8]) -> Vec<u8> {
        extension(0, &with_length(&[vec![0], with_length(name)].concat()))
    }

    /// A first message with these extensions, in records of so many bytes.
    pub(crate) fn hello(extensions: &[u8], record_bytes: usize) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
        body.extend(with_length(extensions));
        let mut message = vec![1, 0];
        message.extend(with_length(&body));
        let record = |part: &[u8]| [vec![22, 3, 1], with_length(part)].concat();
        message.chunks(record_bytes).flat_map(record).collect()
    }

    fn named(name: &str) -> Hello {
        Hello::Whole(Some(name.parse().unwrap()))
    }

    #[test]
    fn the_name_is_found_however_the_message_is_cut() {
        let extensions = [extension(10, &[0, 2, 0, 29]), name_extension(b"Example.com")].concat();
        for record_bytes in [1, 3, 4, 5, 40, 4096] {
            let bytes = hello(&extensions, record_bytes);
            assert_eq!(read(&bytes), named("example.com"), "records of {record_bytes}");
            for end in 0..bytes.len() {
                assert_eq!(read(&bytes[..end]), Hello::Partial, "{end} of {record_bytes}");
            }
        }
        assert_eq!(read(&hello(&[], 4096)), Hello::Whole(None));
        assert_eq!(read(b"GET / HTTP/1.1"), Hello::None);
    }

    #[test]
    fn a_name_that_could_be_read_differently_is_malformed() {
        let twice = [name_extension(b"a.test"), name_extension(b"b.test")].concat();
        let mut two_in_one = Vec::new();
        for name in [b"a.test", b"b.test"] {
            two_in_one.extend([vec![0], with_length(name)].concat());
        }
        let two_in_one = extension(0, &with_length(&two_in_one));
        let other_type = extension(0, &with_length(&[vec![1], with_length(b"a.test")].concat()));
        for bad in [
            twice,
            two_in_one,
            other_type,
            extension(0, &[]),
            name_extension(b""),
            name_extension(b"evil\0.a.test"),
            name_extension(b"a.test/"),
            name_extension(b"127.0.0.1.1"),
            name_extension("\u{e9}.test".as_bytes()),
            name_extension(b"\xff"),
        ] {
            assert!(matches!(read(&hello(&bad, 4096)), Hello::Malformed(_)), "{bad:?}");
        }
    }

    #[test]
    fn what_begins_like_tls_and_is_not_is_malformed() {
        let malformed = |bytes: &[u8]| matches!(read(bytes), Hello::Malformed(_));
        assert!(malformed(&[22, 3, 1, 0, 0]));
        assert!(malformed(&[22, 3, 1, 0, 4, 2, 0, 0, 0]));
        assert!(malformed(&[22, 3, 1, 0xff, 0xff]));
        assert!(malformed(&[22, 3, 1, 0, 1, 1, 23, 3, 1, 0, 1, 0]));
        assert!(malformed(&[22, 3, 1, 0, 4, 1, 0, 0, 0]));
    }

    #[test]
    fn what_some_servers_skip_or_overlook_before_a_name_is_malformed() {
        let good = hello(&name_extension(b"b.test"), 4096);
        assert_eq!(read(&good), named("b.test"), "control");
        let with_major = |major: u8| [&[22, major][..], &good[2..]].concat();
        for bad in [
            [&[21, 3, 1, 0, 2, 1, 90][..], &good].concat(),
            [&[21, 7, 1, 0, 2, 2, 0][..], &good].concat(),
            [&[20, 3, 3, 0, 1, 1][..], &good].concat(),
            [&[22, 2, 1, 0, 0][..], &good].concat(),
            with_major(0),
            with_major(2),
            with_major(4),
            vec![0x80, 46, 1, 3, 1, 0, 3],
            vec![0x80, 46, 1, 0, 2, 0, 3],
        ] {
            let whole = read(&bad);
            assert!(matches!(whole, Hello::Malformed(_)), "{bad:?}");
            let decided = (1..bad.len()).map(|end| read(&bad[..end]));
            assert!(
                decided.into_iter().all(|now| now == Hello::Partial || now == whole),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn other_protocols_may_begin_with_the_same_byte() {
        // A message of MongoDB begins with its length, the lowest byte first.
        for other in
            [[22, 1, 0, 0, 1, 0, 0, 0], [21, 1, 0, 0, 2, 0, 0, 0], [20, 1, 0, 0, 1, 0, 0, 0]]
        {
            assert_eq!(read(&other), Hello::None, "{other:?}");
        }
        assert_eq!(read(&[0x9c, 1, 0, 0]), Hello::None);
        assert_eq!(read(&[0xff, 0xfd, 1]), Hello::None, "telnet");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            read(&bytes);
            read(&[&[22, 3, 1][..], &bytes].concat());
            read(&hello(&bytes, 4096));
        }
    }
}
