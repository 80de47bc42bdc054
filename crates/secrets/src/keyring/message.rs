//! Messages of D-Bus: as many of its types as a keyring needs, little-endian.
//!
//! HOSTILE in a small way: who answers is a process of the same user. Whatever it says is bounded, and a
//! message that is malformed is an error.

use zeroize::Zeroizing;

/// The longest message that is read.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// The fixed part of a head, and the length of the fields behind it.
pub(super) const FIXED_HEAD_BYTES: usize = 16;

const LITTLE_ENDIAN: u8 = b'l';
const VERSION: u8 = 1;
const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;
const ERROR: u8 = 3;

/// Fields of a head by their numbers.
const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const ERROR_NAME: u8 = 4;
const REPLY_SERIAL: u8 = 5;
const DESTINATION: u8 = 6;
const SIGNATURE: u8 = 8;

/// What is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    /// The types of the body.
    pub(super) signature: &'a str,
}

/// A body, or a head, that is being written. It is overwritten when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Writer(Zeroizing<Vec<u8>>);

impl Writer {
    /// With room that does not grow: what grows leaves copies.
    pub(super) fn new() -> Self {
        Self(Zeroizing::new(Vec::with_capacity(4096)))
    }

    pub(super) fn align(mut self, to: usize) -> Self {
        while !self.0.len().is_multiple_of(to) {
            self.0.push(0);
        }
        self
    }

    pub(super) fn byte(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(super) fn number(self, value: u32) -> Self {
        let mut aligned = self.align(4);
        aligned.0.extend_from_slice(&value.to_le_bytes());
        aligned
    }

    /// A text, or a path of an object.
    pub(super) fn text(self, value: &str) -> Self {
        let mut counted = self.number(length(value.len()));
        counted.0.extend_from_slice(value.as_bytes());
        counted.byte(0)
    }

    pub(super) fn signature(self, value: &str) -> Self {
        let mut counted = self.byte(u8::try_from(value.len()).unwrap_or(u8::MAX));
        counted.0.extend_from_slice(value.as_bytes());
        counted.byte(0)
    }

    pub(super) fn bytes(self, value: &[u8]) -> Self {
        let mut counted = self.number(length(value.len()));
        counted.0.extend_from_slice(value);
        counted
    }

    /// Elements that are aligned to `to`, which `write` writes.
    pub(super) fn array(self, to: usize, write: impl FnOnce(Self) -> Self) -> Self {
        let counted = self.number(0);
        let place = counted.0.len();
        let begun = counted.align(to);
        let begin = begun.0.len();
        let mut written = write(begun);
        let bytes = length(written.0.len().saturating_sub(begin)).to_le_bytes();
        let count = written.0.get_mut(place.saturating_sub(4)..place);
        if let Some(count) = count {
            count.copy_from_slice(&bytes);
        }
        written
    }

    /// A map from texts to texts.
    pub(super) fn map(self, entries: &[(&str, &str)]) -> Self {
        self.array(8, |all| {
            entries.iter().fold(all, |all, (key, value)| all.align(8).text(key).text(value))
        })
    }

    pub(super) fn done(self) -> Zeroizing<Vec<u8>> {
        self.0
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The whole message of a call.
pub(super) fn call(call: &Call<'_>, serial: u32, body: Writer) -> Zeroizing<Vec<u8>> {
    let body = body.done();
    let head = Writer::new().byte(LITTLE_ENDIAN).byte(METHOD_CALL).byte(0).byte(VERSION);
    let head = head.number(length(body.len())).number(serial).array(8, |fields| {
        let text = |fields: Writer, number, kind, value: &str| {
            fields.align(8).byte(number).signature(kind).text(value)
        };
        let fields = text(fields, PATH, "o", call.path);
        let fields = text(fields, INTERFACE, "s", call.interface);
        let fields = text(fields, MEMBER, "s", call.member);
        let fields = text(fields, DESTINATION, "s", call.destination);
        match call.signature {
            "" => fields,
            types => fields.align(8).byte(SIGNATURE).signature("g").signature(types),
        }
    });
    let mut message = head.align(8).done();
    message.extend_from_slice(&body);
    message
}

/// A message that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// The answer to a call, with its body and the types of that.
    Answer { to: u32, signature: String, body: Zeroizing<Vec<u8>> },
    /// The refusal of a call, by its name.
    Refusal { to: u32, name: String },
    /// Something else, such as a signal.
    Other,
}

/// How long a whole message is, by the fixed part of its head.
pub(super) fn whole_length(head: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(head);
    if reader.byte()? != LITTLE_ENDIAN {
        return None;
    }
    let (_, _, version) = (reader.byte()?, reader.byte()?, reader.byte()?);
    let (body, _, fields) = (reader.number()?, reader.number()?, reader.number()?);
    let fields = usize::try_from(fields).ok()?.checked_next_multiple_of(8)?;
    let whole = FIXED_HEAD_BYTES.checked_add(fields)?.checked_add(usize::try_from(body).ok()?)?;
    (version == VERSION && whole <= MAX_MESSAGE_BYTES).then_some(whole)
}

/// Reads a whole message. `None` where it is malformed.
pub(super) fn read(message: &[u8]) -> Option<Came> {
    let mut reader = Reader::new(message);
    let (_, kind) = (reader.byte()?, reader.byte()?);
    let (_, _) = (reader.byte()?, reader.byte()?);
    let body_bytes = usize::try_from(reader.number()?).ok()?;
    let _serial = reader.number()?;
    let (mut to, mut name, mut signature) = (None, String::new(), String::new());
    let mut fields = reader.array(8)?;
    while !fields.is_at_end() {
        fields.align(8)?;
        let number = fields.byte()?;
        match (number, fields.signature()?) {
            (REPLY_SERIAL, "u") => to = Some(fields.number()?),
            (ERROR_NAME, "s") => name = fields.text()?.to_owned(),
            (SIGNATURE, "g") => signature = fields.signature()?.to_owned(),
            (_, "u") => drop(fields.number()?),
            (_, "s" | "o") => drop(fields.text()?),
            (_, "g") => drop(fields.signature()?),
            _ => return None,
        }
    }
    reader.align(8)?;
    let body = reader.take(body_bytes)?;
    if !reader.is_at_end() {
        return None;
    }
    Some(match kind {
        METHOD_RETURN => Came::Answer { to: to?, signature, body: Zeroizing::new(body.to_vec()) },
        ERROR => Came::Refusal { to: to?, name },
        _ => Came::Other,
    })
}

/// Reads values from the beginning of a body, or of a part of one.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn align(&mut self, to: usize) -> Option<()> {
        let next = self.at.checked_next_multiple_of(to)?;
        let padding = self.bytes.get(self.at..next)?;
        self.at = next;
        padding.iter().all(|byte| *byte == 0).then_some(())
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        self.align(4)?;
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?))
    }

    /// A text, or a path of an object.
    pub(super) fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        self.ended(length)
    }

    pub(super) fn signature(&mut self) -> Option<&'a str> {
        let length = usize::from(self.byte()?);
        self.ended(length)
    }

    fn ended(&mut self, length: usize) -> Option<&'a str> {
        let text = self.take(length)?;
        if self.byte()? != 0 || text.contains(&0) {
            return None;
        }
        std::str::from_utf8(text).ok()
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    /// The elements of an array that are aligned to `to`.
    pub(super) fn array(&mut self, to: usize) -> Option<Self> {
        let length = usize::try_from(self.number()?).ok()?;
        self.align(to)?;
        let begin = self.at;
        self.take(length)?;
        // What is before stays, for alignment counts from the beginning.
        Some(Self { bytes: self.bytes.get(..begin.checked_add(length)?)?, at: begin })
    }

    /// Texts, or paths of objects.
    pub(super) fn texts(&mut self) -> Option<Vec<&'a str>> {
        let mut array = self.array(4)?;
        let mut all = Vec::new();
        while !array.is_at_end() {
            all.push(array.text()?);
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_written_as_the_protocol_says() {
        let hello = Call {
            destination: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            member: "Hello",
            signature: "",
        };
        let message = call(&hello, 1, Writer::new());
        assert_eq!(&message[..16], b"l\x01\0\x01\0\0\0\0\x01\0\0\0\x6d\0\0\0");
        assert_eq!(&message[16..20], b"\x01\x01o\0");
        assert_eq!(message.len(), 128);
        assert_eq!(whole_length(&message), Some(128));
        assert_eq!(read(&message), Some(Came::Other));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let body = Writer::new().byte(7).map(&[("a", "b"), ("key", "value")]).bytes(b"xyz").done();
        let mut reader = Reader::new(&body);
        assert_eq!(reader.byte(), Some(7));
        let mut map = reader.array(8).unwrap();
        let mut entries = Vec::new();
        while !map.is_at_end() {
            map.align(8).unwrap();
            entries.push((map.text().unwrap(), map.text().unwrap()));
        }
        assert_eq!(entries, [("a", "b"), ("key", "value")]);
        assert_eq!(reader.bytes(), Some(&b"xyz"[..]));
        assert!(reader.is_at_end());
    }

    #[test]
    fn whatever_is_cut_or_changed_is_read_or_refused() {
        let asked =
            Call { destination: "a.b", path: "/a", interface: "a.b", member: "C", signature: "s" };
        let message = call(&asked, 3, Writer::new().text("hello"));
        for end in 0..message.len() {
            assert_eq!(read(&message[..end]), None, "{end}");
        }
        for place in 0..message.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut changed = message.to_vec();
                changed[place] = byte;
                let _ = (read(&changed), whole_length(&changed));
            }
        }
        assert_eq!(whole_length(b"l\x01\0\x01\xff\xff\xff\xff\x01\0\0\0\x10\0\0\0"), None);
        assert_eq!(whole_length(b"B\x01\0\x01\0\0\0\0\x01\0\0\0\0\0\0\0"), None);
    }
}
