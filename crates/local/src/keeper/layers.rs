//! The layers of kept sandboxes, from outside of them.

use super::backend::KeptBackend;
use crate::cow::base::FOLDER;
use crate::layers::Layer;
use crate::state::StateDirectory;
use cofferdam_core::{
    Change, DiscardOrder, DurableBackend, Error, ErrorKind, KeptLayer, Result, SandboxStatus,
};

/// Opens the layer as nobody left it half done.
pub(super) fn open(kept: &KeptLayer, state: &StateDirectory) -> Result<Layer> {
    let Some(mut layer) = Layer::open(&kept.kept.join(FOLDER))? else {
        let what = format!("sandbox {} has no layer yet", kept.sandbox);
        return Err(Error::new(ErrorKind::Conflict, what)
            .hint("Run a command in the session first; it needs to have been made with --cow."));
    };
    layer.recover(state)?;
    Ok(layer)
}

impl KeptBackend {
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
