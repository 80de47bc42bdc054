//! A body that is a secret, of which as little as possible stays in memory.

use super::error::Problem;
use super::extract::{JSON_BODY_TIME, too_slow, unkeyed};
use super::keyed;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use cofferdam_core::secret::{MAX_SECRET_BYTES, SecretValue};
use cofferdam_core::{Error, ErrorKind, Result};
use futures_util::StreamExt;
use zeroize::{Zeroize, Zeroizing};

/// A secret's value, as the body of a request.
///
/// It is read into memory that is overwritten when it is dropped, and that never moves. Each piece that comes
/// is overwritten as soon as it is read, where nobody else holds it.
// LIMIT: what the connection's buffer for reading holds is not ours to overwrite: pieces are parts of it as
// long as hyper uses it. It is freed with the connection, or written over by the next requests.
#[derive(Debug)]
pub(super) struct SecretBody(pub(super) SecretValue);

impl<S: Send + Sync> FromRequest<S> for SecretBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        match tokio::time::timeout(JSON_BODY_TIME, read(request.into_body())).await {
            Ok(Err(error)) if keyed::revoked(&error).is_some() => Err(unkeyed()),
            Ok(bytes) => Ok(Self(SecretValue::new(bytes?)?)),
            Err(_) => Err(too_slow()),
        }
    }
}

async fn read(body: Body) -> Result<Zeroizing<Vec<u8>>> {
    // All the room that it can need: what grows leaves copies behind.
    let mut value = Zeroizing::new(Vec::with_capacity(MAX_SECRET_BYTES));
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|e| {
            let error = Error::new(ErrorKind::Usage, "the body broke off").source(e);
            error.hint("Send the whole body, as long as its head says.")
        })?;
        let fits = piece.len() <= MAX_SECRET_BYTES.saturating_sub(value.len());
        if fits {
            value.extend_from_slice(&piece);
        }
        let _ = overwritten(piece);
        if !fits {
            let what = format!("the value is longer than {MAX_SECRET_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what)
                .hint("Keep large files encrypted, and only their key as a secret."));
        }
    }
    Ok(value)
}

/// The memory of a piece, with nothing in it any more; `None` where somebody else holds it, too.
fn overwritten(piece: Bytes) -> Option<impl AsRef<[u8]>> {
    let mut memory = piece.try_into_mut().ok()?;
    memory.as_mut().zeroize();
    Some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    async fn of(pieces: Vec<Result<&'static [u8], io::Error>>) -> Result<Zeroizing<Vec<u8>>> {
        let pieces = pieces.into_iter().map(|piece| piece.map(Bytes::from_static));
        read(Body::from_stream(futures_util::stream::iter(pieces))).await
    }

    #[test]
    fn a_piece_is_overwritten_unless_somebody_else_holds_it() {
        let piece = Bytes::from(b"hunter22".to_vec());
        let held = piece.clone();
        assert!(overwritten(piece).is_none(), "control");
        assert_eq!(&*held, b"hunter22");
        assert_eq!(overwritten(held).unwrap().as_ref(), [0; 8]);
    }

    #[tokio::test]
    async fn a_secret_comes_whole_and_in_memory_that_did_not_move() {
        let value = of(vec![Ok(b"hun"), Ok(b"ter"), Ok(b"22")]).await.unwrap();
        assert_eq!(&**value, b"hunter22");
        assert!(value.capacity() >= MAX_SECRET_BYTES);
        let most: &[u8] = &[b'x'; MAX_SECRET_BYTES];
        assert_eq!(of(vec![Ok(most)]).await.unwrap().len(), MAX_SECRET_BYTES);
        let error = of(vec![Ok(most), Ok(b"x")]).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge);
        let error = of(vec![Ok(b"hunter22"), Err(io::Error::other("gone"))]).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage, "half a secret is none");
    }
}
