//! Answers that hold something until they were taken, or given up.

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// How much of an answer is given to its connection at once. That lets go of an answer whose last piece it has, though
/// nobody took any of it yet; what it has is therefore little.
const PIECE_BYTES: usize = 32 << 10;

/// The answer, whose body drops `held` with itself.
pub(crate) fn holding<T: Unpin + Send + 'static>(response: Response, held: T) -> Response {
    response.map(|body| Body::new(Holding { body, rest: Bytes::new(), _held: held }))
}

struct Holding<T> {
    body: Body,
    /// What was not given yet of a piece that was too long.
    rest: Bytes,
    _held: T,
}

impl<T: Unpin> HttpBody for Holding<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        match hint.exact() {
            Some(exact) => hint.set_exact(exact + rest),
            None => hint.set_lower(hint.lower() + rest),
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use std::sync::Arc;

    #[tokio::test]
    async fn what_is_held_is_held_until_the_last_piece() {
        let (held, text) = (Arc::new(()), "x".repeat(2 * PIECE_BYTES + 1));
        let answer = holding(Response::new(Body::from(text.clone())), held.clone());
        assert_eq!(answer.body().size_hint().exact(), Some(text.len() as u64));
        let mut pieces = answer.into_body().into_data_stream();
        let mut lengths = Vec::new();
        while let Some(piece) = pieces.next().await {
            lengths.push(piece.unwrap().len());
            assert_eq!(Arc::strong_count(&held), 2);
        }
        assert_eq!(lengths, [PIECE_BYTES, PIECE_BYTES, 1]);
        drop(pieces);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
