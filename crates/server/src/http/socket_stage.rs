//! A WebSocket over a pipe in memory, for tests.

use axum::body::Body;
use axum::{Router, extract::Request};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tower::ServiceExt;

/// How much waits between both ends.
pub(super) const PIPE_BYTES: usize = 64 << 10;

/// The caller's end of the WebSocket that these routes have at `/`, once it stands.
pub(super) async fn shaken(routes: Router) -> DuplexStream {
    let (mut near, far) = duplex(PIPE_BYTES);
    tokio::spawn(async move {
        let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
            routes.clone().oneshot(request.map(Body::new))
        });
        let served = http1::Builder::new().serve_connection(TokioIo::new(far), service);
        served.with_upgrades().await.ok();
    });
    let head = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    near.write_all(head.as_bytes()).await.unwrap();
    let mut answered = Vec::new();
    while !answered.ends_with(b"\r\n\r\n") {
        answered.push(near.read_u8().await.unwrap());
    }
    assert!(answered.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answered));
    near
}
