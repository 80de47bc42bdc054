//! `cofferdam mcp` with a server: its tools, over standard input and output of this machine.

use super::mcp::ServeArgs;
use crate::door::{refuse_if, sandbox};
use crate::listen::{ENDING, Listening};
use crate::{exit, sessions};
use cofferdam_client::{Client, Messages};
use cofferdam_core::Result;
use cofferdam_mcp::bridge::{self, Answers, Far, Sent};
use cofferdam_session::objects::SandboxWish;
use cofferdam_tools::PackName;

/// Passes the messages of one connection on to the server.
pub(super) fn perform(args: &ServeArgs) -> Result<u8> {
    refuse_options(args)?;
    sessions::there(async |client| {
        let mut signals = Listening::to(&ENDING)?;
        let stop = async {
            signals.next().await;
        };
        let streams = (tokio::io::stdin(), tokio::io::stdout());
        bridge::serve(Server(client.clone()), streams, stop).await.map(|()| exit::DONE)
    })
}

/// Refuses what says which sandbox there is, and what it may do: the server says that, and every call which.
pub(super) fn refuse_options(args: &ServeArgs) -> Result<()> {
    let named = "every call names its sandbox";
    let is_other = args.pack.is_some_and(|pack| pack != PackName::Cofferdam);
    refuse_if(is_other, "--pack", "it serves Cofferdam's own tools by this protocol")?;
    refuse_if(args.name.is_some(), "--name", named)?;
    refuse_if(args.keep, "--keep", "sandboxes there stay until they are removed")?;
    refuse_if(args.manifest.is_some(), "--manifest", named)?;
    // Some are refused by their names, and none is left.
    let is_said = sandbox(None, &args.session, None)? != SandboxWish::default();
    refuse_if(is_said, "an option of sandboxes", "those of tools are as its operator says")
}

/// A server, as a bridge needs it.
#[derive(Clone)]
struct Server(Client);

struct Said(Messages);

impl Far for Server {
    type Answers = Said;

    async fn send(&self, Sent { body, heads }: Sent) -> Result<Said> {
        self.0.message(body, &heads).await.map(Said)
    }
}

impl Answers for Said {
    fn session(&self) -> Option<&str> {
        self.0.session()
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        self.0.next().await
    }
}
