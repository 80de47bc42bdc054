//! Bytes that come in pieces, passed on in whole lines.

use cofferdam_core::{Error, Result};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

/// A line of more bytes is passed on in pieces. HOSTILE: a server may be anybody, and a line without an end.
const WHOLE_LINE_BYTES: usize = 16 << 20;

/// Takes bytes, and passes whole lines on.
pub(super) struct Lines<'a> {
    each: &'a mut (dyn FnMut(&[u8]) -> Result<()> + Send),
    begun: Vec<u8>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(each: &'a mut (dyn FnMut(&[u8]) -> Result<()> + Send)) -> Self {
        Self { each, begun: Vec::new() }
    }

    /// Passes on what has no line end.
    pub(super) fn end(self) -> Result<()> {
        if self.begun.is_empty() { Ok(()) } else { (self.each)(&self.begun) }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (whole, begun) = bytes.split_at(whole);
        if !whole.is_empty() {
            self.begun.extend_from_slice(whole);
            (self.each)(&std::mem::take(&mut self.begun))?;
        }
        self.begun.extend_from_slice(begun);
        if self.begun.len() > WHOLE_LINE_BYTES {
            (self.each)(&std::mem::take(&mut self.begun))?;
        }
        Ok(())
    }
}

impl AsyncWrite for Lines<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let taken = self.take(bytes).map(|()| bytes.len());
        Poll::Ready(taken.map_err(|error: Error| io::Error::other(error)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_passed_on_whole_and_once() {
        let text = b"one\ntwo\n\nthree";
        for cut in 1..=text.len() {
            let mut pieces = Vec::new();
            let mut each = |bytes: &[u8]| {
                pieces.push(bytes.to_vec());
                Ok(())
            };
            let mut lines = Lines::new(&mut each);
            for piece in text.chunks(cut) {
                lines.take(piece).unwrap();
            }
            lines.end().unwrap();
            assert_eq!(pieces.concat(), text);
            let (last, whole) = pieces.split_last().unwrap();
            assert_eq!(last, b"three");
            assert!(whole.iter().all(|piece| piece.ends_with(b"\n")), "{cut}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_kept() {
        let (mut passed, mut most) = (0, 0);
        let mut each = |bytes: &[u8]| {
            passed += bytes.len();
            most = most.max(bytes.len());
            Ok(())
        };
        let piece = vec![b'x'; 1 << 20];
        let mut lines = Lines::new(&mut each);
        (0..40).for_each(|_| lines.take(&piece).unwrap());
        assert!(lines.begun.len() <= WHOLE_LINE_BYTES);
        lines.end().unwrap();
        assert_eq!(passed, 40 << 20);
        assert!(most <= WHOLE_LINE_BYTES + piece.len(), "{most}");
    }
}
