//! Frames: `[length u32][channel u32][kind u8]`, little endian, then `length` bytes.

/// The most bytes that one frame may carry. A longer one is refused before its body is read.
pub const MAX_FRAME_BYTES: usize = 1 << 20;

/// The most channels that may be open at a time on one line.
pub const MAX_CHANNELS: usize = 1024;

/// How many bytes a header takes.
pub const HEADER_BYTES: usize = 9;

/// How much a sender may send on a channel before the receiver grants more.
pub const INITIAL_CREDIT_BYTES: u64 = 1 << 20;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A JSON message.
    Message,
    /// Raw bytes. Each counts against the channel's credit.
    Data,
    /// Four bytes: how many more bytes the other side may send on this channel.
    Credit,
    /// The sender sends no more data on this channel.
    End,
}

impl Kind {
    fn from_byte(byte: u8) -> Result<Self, FrameError> {
        match byte {
            0 => Ok(Self::Message),
            1 => Ok(Self::Data),
            2 => Ok(Self::Credit),
            3 => Ok(Self::End),
            other => Err(FrameError::UnknownKind(other)),
        }
    }

    fn to_byte(self) -> u8 {
        match self {
            Self::Message => 0,
            Self::Data => 1,
            Self::Credit => 2,
            Self::End => 3,
        }
    }
}

/// The first nine bytes of a frame, understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// How many bytes follow.
    pub len: usize,
    /// Which conversation they belong to. The host opens odd channels, the guest even ones; 0 is
    /// about the line itself.
    pub channel: u32,
    /// What they are.
    pub kind: Kind,
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The length is over [`MAX_FRAME_BYTES`].
    TooLong(u32),
    /// The kind is none of ours.
    UnknownKind(u8),
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong(len) => {
                write!(f, "a frame of {len} bytes is over the limit of {MAX_FRAME_BYTES}")
            }
            Self::UnknownKind(kind) => write!(f, "frame kind {kind} is unknown"),
        }
    }
}

impl std::error::Error for FrameError {}

impl Header {
    /// The nine bytes that say this.
    pub fn encode(self) -> Result<[u8; HEADER_BYTES], FrameError> {
        let len = u32::try_from(self.len).unwrap_or(u32::MAX);
        if self.len > MAX_FRAME_BYTES {
            return Err(FrameError::TooLong(len));
        }
        let [a, b, c, d] = len.to_le_bytes();
        let [e, f, g, h] = self.channel.to_le_bytes();
        Ok([a, b, c, d, e, f, g, h, self.kind.to_byte()])
    }

    /// Understands nine bytes, and refuses what is too long or unknown.
    pub fn decode(bytes: [u8; HEADER_BYTES]) -> Result<Self, FrameError> {
        let [a, b, c, d, e, f, g, h, kind] = bytes;
        let len = u32::from_le_bytes([a, b, c, d]);
        // HOSTILE: the length may come from inside. Refuse before anybody allocates for it.
        if len as usize > MAX_FRAME_BYTES {
            return Err(FrameError::TooLong(len));
        }
        Ok(Self {
            len: len as usize,
            channel: u32::from_le_bytes([e, f, g, h]),
            kind: Kind::from_byte(kind)?,
        })
    }
}

/// Appends one frame to `out`.
pub fn encode(channel: u32, kind: Kind, body: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
    let header = Header { len: body.len(), channel, kind }.encode()?;
    out.extend_from_slice(&header);
    out.extend_from_slice(body);
    Ok(())
}

/// Turns a stream of bytes that arrives in pieces into frames.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    read: usize,
}

impl Decoder {
    /// Takes more bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read > 0 && self.read == self.bytes.len() {
            self.bytes.clear();
            self.read = 0;
        } else if self.read > MAX_FRAME_BYTES {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one.
    ///
    /// After an error the stream has no meaning any more and must be closed.
    pub fn next_frame(&mut self) -> Result<Option<(Header, &[u8])>, FrameError> {
        let waiting = self.bytes.get(self.read..).unwrap_or_default();
        let Some((head, rest)) = waiting.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let header = Header::decode(*head)?;
        let Some(body) = rest.get(..header.len) else { return Ok(None) };
        self.read += HEADER_BYTES + header.len;
        Ok(Some((header, body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_any_cut() {
        let mut stream = Vec::new();
        encode(1, Kind::Message, b"{}", &mut stream).unwrap();
        encode(7, Kind::Data, &[9; 300], &mut stream).unwrap();
        encode(7, Kind::End, b"", &mut stream).unwrap();
        for size in 1..40 {
            let mut decoder = Decoder::default();
            let mut seen = Vec::new();
            for piece in stream.chunks(size) {
                decoder.push(piece);
                while let Some((header, body)) = decoder.next_frame().unwrap() {
                    seen.push((header.channel, header.kind, body.len()));
                }
            }
            assert_eq!(seen, [(1, Kind::Message, 2), (7, Kind::Data, 300), (7, Kind::End, 0)]);
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_from_its_header_alone() {
        let mut decoder = Decoder::default();
        decoder.push(&[0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0]);
        assert_eq!(decoder.next_frame().unwrap_err(), FrameError::TooLong(0x7fff_ffff));
    }

    #[test]
    fn an_unknown_kind_is_refused() {
        let mut decoder = Decoder::default();
        decoder.push(&[0, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(decoder.next_frame().unwrap_err(), FrameError::UnknownKind(9));
    }
}
