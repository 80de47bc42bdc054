//! The tool about servers inside.

use crate::Outcome;
use crate::param::{Kind, Param};
use crate::scope::Missing;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    port: u16,
}

/// A port that is reached from outside.
#[derive(Serialize, JsonSchema)]
struct Exposed {
    /// The port inside.
    port: u16,
    /// Where it is reached.
    address: String,
    /// Whether somebody listened there when this was answered.
    listens: bool,
}

pub(super) const NAME: &str = "port_expose";

pub(super) const EXPOSE: Row = Row {
    name: NAME,
    title: "Show a server to the user",
    about: "Gives a port that a server in the sandbox listens on an address that the user can open, for \
            as long as this connection stands. The server may listen on the loopback address alone. \
            Start it with shell_start.",
    params: &[Param::required("port", Kind::Whole(1, 65_535), "The port inside.")],
    output: output_of::<Exposed>,
    conduct: Conduct::Of(Hints::SETTLES),
};

pub(super) async fn expose(call: Call<'_>) -> Result<Outcome> {
    let Arguments { port } = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?;
    let Some(ports) = call.ports else {
        return Err(Error::new(ErrorKind::Unsupported, "nobody can be shown a port here")
            .hint("Ask for what the port answers with a command inside."));
    };
    let address = ports.expose(&session, port).await?;
    let listens = match session.connect(port).await {
        Ok(_) => true,
        Err(error) if error.kind == ErrorKind::Unavailable => false,
        Err(error) => return Err(error),
    };
    let mut text = format!("Port {port} is reached at {address}");
    if !listens {
        text.push_str("\nNobody listens on it yet.");
    }
    Ok(Outcome::done(text, json!(Exposed { port, address, listens })))
}
