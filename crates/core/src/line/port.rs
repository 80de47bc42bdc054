//! Connections to ports inside that a guest is asked for on its line.

use crate::line::channel::Line;
use crate::line::slot::Accepts;
use crate::{Error, ErrorKind, PortLink, PortStream, Result};
use cofferdam_wire::message::{Hello, HostOpens, PORTS_SINCE, Port};
use std::os::unix::net::UnixStream;

/// Asks for a connection and waits until somebody inside has taken it.
///
/// The pair is made here, so that what comes from inside is bytes alone and no descriptor.
pub(super) async fn connect(line: &Line, hello: &Hello, port: u16) -> Result<PortStream> {
    let refused = |what| Err(Error::new(ErrorKind::Unsupported, what));
    if line.descriptors().is_none() {
        return refused("this sandbox is reached by a stream that carries no descriptors");
    }
    if hello.generation < PORTS_SINCE {
        return refused("what is inside this sandbox is too old to connect to ports");
    }
    let (ours, theirs) = UnixStream::pair().map_err(|e| {
        Error::new(ErrorKind::Io, "make a connection to a port of the sandbox").source(e)
    })?;
    // The answer comes over the connection; nothing may come on the channel.
    let channel = line.open_channel(Accepts::Nothing)?;
    channel.send_message(&HostOpens::Port(Port { port }), vec![theirs.into()]).await?;
    PortLink::new(ours, None, port)?.connected().await
}
