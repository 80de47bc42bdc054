//! How a tunnel ends, over a pipe in memory.

use super::tunnel::{MAX_TUNNEL_MESSAGE_BYTES, carry};
use crate::http::Counts;
use crate::http::socket_stage::{PIPE_BYTES, shaken};
use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::routing::get;
use cofferdam_core::PortStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, copy, duplex, split};

/// The caller's end of a tunnel that stands, to a port that says again what it hears.
async fn tunnel() -> DuplexStream {
    let answer = async |upgrade: WebSocketUpgrade| {
        let (port, inside) = duplex(PIPE_BYTES);
        tokio::spawn(async move {
            let (mut hears, mut says) = split(inside);
            copy(&mut hears, &mut says).await
        });
        let counted = Counts::default().take("", 1).unwrap();
        let upgrade = upgrade.max_frame_size(MAX_TUNNEL_MESSAGE_BYTES);
        upgrade.on_upgrade(async move |socket| carry(socket, PortStream::over(port), counted).await)
    };
    let routes: Router = Router::new().route("/", get(answer));
    shaken(routes).await
}

/// One short frame, masked with nothing.
fn frame(first: u8, bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | u8::try_from(bytes.len()).unwrap(), 0, 0, 0, 0];
    frame.extend_from_slice(bytes);
    frame
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_ends_with_a_close_on_both_sides() {
    // The head of a frame of one byte more than there may be.
    let length = u64::try_from(MAX_TUNNEL_MESSAGE_BYTES + 1).unwrap();
    let long = [&[0x82, 0xff][..], &length.to_be_bytes(), &[0; 4]].concat();
    for (said, code) in [
        (frame(0x88, &1000_u16.to_be_bytes()), 1000_u16),
        (frame(0x83, b"x"), 1002),
        (frame(0x81, b"\xff"), 1007),
        (long, 1009),
    ] {
        let mut near = tunnel().await;
        // The control: what is said before comes back.
        near.write_all(&frame(0x82, b"ping")).await.unwrap();
        let mut echo = [0; 6];
        near.read_exact(&mut echo).await.unwrap();
        assert_eq!(&echo, b"\x82\x04ping");
        near.write_all(&said).await.unwrap();
        let mut told = Vec::new();
        near.read_to_end(&mut told).await.unwrap();
        assert!(told.len() >= 4 && told[0] == 0x88, "{code}: {told:?}");
        assert_eq!(u16::from_be_bytes([told[2], told[3]]), code, "{told:?}");
    }
}
