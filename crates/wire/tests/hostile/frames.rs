//! What must hold for any stream of bytes that comes from inside. Shared with the fuzz targets.

use cofferdam_wire::frame::{Decoder, HEADER_BYTES, Header, MAX_FRAME_BYTES, encode};

/// The frames of a stream that arrives in pieces of this size, and whether it broke.
fn read(bytes: &[u8], piece: usize) -> (Vec<(Header, Vec<u8>)>, bool) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some((header, body))) => frames.push((header, body.to_vec())),
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
        }
    }
    (frames, false)
}

/// Any bytes are frames within bounds, or refused; how they are cut changes nothing.
pub(crate) fn stream(bytes: &[u8], piece: usize) {
    let (frames, broke) = read(bytes, piece);
    let whole = read(bytes, bytes.len());
    assert_eq!((&frames, broke), (&whole.0, whole.1), "a cut changed the meaning");
    let mut again = Vec::new();
    for (header, body) in &frames {
        assert!(body.len() <= MAX_FRAME_BYTES, "a body of {} bytes passed", body.len());
        assert_eq!(header.len, body.len(), "the header lies about its body");
        assert!(encode(header.channel, header.kind, body, &mut again).is_ok());
    }
    assert!(bytes.starts_with(&again), "what was read is not what was sent");
    assert!(again.len() >= frames.len() * HEADER_BYTES);
}
