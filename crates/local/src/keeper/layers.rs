//! The layers of kept sandboxes, from outside of them.

use super::backend::KeptBackend;
use super::client::{Trouble, odd};
use super::talk::{Reply, Request};
use crate::backend::blocking;
use crate::cow::base::FOLDER;
use crate::layers::Layer;
use crate::placeholders::Standing;
use crate::state::StateDirectory;
use cofferdam_core::{
    Change, DiscardOrder, DurableBackend, Error, ErrorKind, Exchanged, KeptLayer, LayerExchange,
    MappedFiles, Result, SandboxRecord, SandboxStatus,
};
use std::time::Duration;

/// Opens the layer as nobody left it half done.
pub(super) fn open(kept: &KeptLayer, state: &StateDirectory) -> Result<Layer> {
    let Some(mut layer) = Layer::open(&kept.kept.join(FOLDER))? else {
        let what = format!("sandbox {} has no layer yet", kept.sandbox);
        return Err(Error::new(ErrorKind::Conflict, what)
            .hint("Run a command in the session first; it needs to have been made with --cow."));
    };
    layer.recover(state)?;
    let on = layer.lies_on();
    layer.pass_over(Standing::read(state, on)?);
    Ok(layer)
}

/// How long the processes of a sandbox may take to end.
const CLEARED_WITHIN: Duration = Duration::from_secs(20);

/// How long it may take to ask all processes of a sandbox what they have mapped.
const MAPPED_WITHIN: Duration = Duration::from_secs(10);

impl KeptBackend {
    /// As [`DurableBackend::mapped_files`].
    pub(super) async fn mapped_in(&self, sandbox: &SandboxRecord) -> MappedFiles {
        let asked = async {
            let mut call = self.call(sandbox, Request::Mapped, MAPPED_WITHIN).await?;
            let reply = call.reply().await?;
            call.over();
            Ok::<_, Trouble>(reply)
        };
        match asked.await {
            Ok(Reply::Mapped(Some(names))) => {
                let names = names.into_iter().map(|name| name.as_bytes().to_vec());
                MappedFiles::Known(names.collect())
            }
            // One that is kept by an older version does not know that, and hangs up.
            Ok(_) | Err(_) => MappedFiles::Any,
        }
    }

    /// As [`DurableBackend::exchange_layer`].
    pub(super) async fn exchange_under(
        &self,
        sandbox: &SandboxRecord,
        exchange: LayerExchange,
    ) -> Result<Exchanged> {
        let cleared = async {
            let mut call = self.call(sandbox, Request::ClearForLayer, CLEARED_WITHIN).await?;
            let reply = call.reply().await?;
            let Reply::Done = reply else { return Err(Trouble::from(odd(&sandbox.id, &reply))) };
            Ok(call)
        };
        // What one that is kept by an older version does not know it answers by hanging up.
        let Ok(mut call) = cleared.await else { return Ok(Exchanged::Refused(exchange)) };
        blocking(exchange).await?;
        let renewed = async {
            call.ask_again(Request::RenewLayer).await?;
            call.done().await
        };
        match renewed.await {
            Ok(()) => Ok(Exchanged::Lives),
            Err(_) => Ok(Exchanged::Ends),
        }
    }

    pub(super) async fn discard_from(
        &self,
        layer: &KeptLayer,
        order: &DiscardOrder,
    ) -> Result<Vec<Change>> {
        let found = self.find(&layer.sandbox).await?;
        if !order.dry_run && found.is_some_and(|found| found.status != SandboxStatus::Gone) {
            let what = format!("sandbox {} has its layer mounted", layer.sandbox);
            return Err(Error::new(ErrorKind::Conflict, what).hint("End the sandbox first."));
        }
        let (kept, order) = (layer.clone(), order.clone());
        self.on_disk(move |state| {
            let mut layer = open(&kept, state)?;
            let changes = layer.changes(&order.paths)?;
            if !order.dry_run {
                layer.discard(&order.paths)?;
            }
            Ok(changes)
        })
        .await
    }
}
