//! What is said to a connection that is refused.

use crate::admit::Refusal;
use crate::limits::Limits;
use cofferdam_core::policy::{Asked, Decision};
use std::fmt::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a refusal is in HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Malformed,
    Denied,
    Late,
    TooLarge,
    Failed,
    FailedLate,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::Malformed => "400 Bad Request",
            Self::Denied => "403 Forbidden",
            Self::Late => "408 Request Timeout",
            Self::TooLarge => "431 Request Header Fields Too Large",
            Self::Failed => "502 Bad Gateway",
            Self::FailedLate => "504 Gateway Timeout",
        }
    }

    /// The status of a refusal.
    pub(crate) fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Denied(_) => Self::Denied,
            Refusal::Failed { is_late: false, .. } => Self::Failed,
            Refusal::Failed { is_late: true, .. } => Self::FailedLate,
        }
    }
}

/// Why there is no connection, for who asked: what was asked for, the rule, the line that would allow
/// it.
pub(crate) fn explained(asked: &Asked, refusal: &Refusal) -> String {
    match refusal {
        Refusal::Denied(decision) => denied(asked, decision),
        Refusal::Failed { reason, .. } => format!("{asked} was not reached: {reason}\n"),
    }
}

fn denied(asked: &Asked, decision: &Decision) -> String {
    let mut text = format!("{asked} is denied");
    // Writing to a string cannot fail.
    if let Some(reason) = &decision.reason {
        let _ = write!(text, ": {reason}");
    }
    if let Some(remedy) = &decision.remedy {
        let _ = write!(text, "\nallow it with: {remedy}");
    }
    text.push('\n');
    text
}

/// A whole answer of HTTP.
pub(crate) fn http(status: Status, text: &str) -> Vec<u8> {
    let body = format!("cofferdam: {text}");
    format!(
        "HTTP/1.1 {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
        Connection: close\r\n\r\n{body}",
        status.line(),
        body.len()
    )
    .into_bytes()
}

/// Says these last words, and waits a little for the other side to have read them: a connection that is
/// closed with bytes unread takes them back.
pub(crate) async fn farewell(mut stream: TcpStream, words: &[u8], limits: &Limits) {
    let said = async {
        stream.write_all(words).await?;
        stream.shutdown().await?;
        let mut rest = [0; 4096];
        let mut left = limits.head_bytes;
        while left > 0 {
            let read = stream.read(&mut rest).await?;
            if read == 0 {
                break;
            }
            left = left.saturating_sub(read);
        }
        Ok::<(), std::io::Error>(())
    };
    let _ = tokio::time::timeout(limits.farewell_time, said).await;
}

/// Breaks a connection off, so that the other side learns that this was no end.
pub(crate) fn reset(stream: TcpStream) {
    let _ = stream.set_zero_linger();
    drop(stream);
}
