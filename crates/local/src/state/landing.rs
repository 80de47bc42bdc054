//! Records of changes that land in a workspace, one for each layer.

use super::{ATTEMPTS, Hold, Owners, Record, StateDirectory, SweepReport, io};
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::io::Errno;

/// Leads the name of such a record; device and inode of the layer's folder follow.
pub(super) const LANDING: &str = "landing-";

impl StateDirectory {
    /// Begins a record of changes that land. Two at once of one layer are a conflict; what one that
    /// died left half done is finished or undone first.
    pub(crate) fn record_landing(&self, layer: &str) -> Result<Record> {
        let name = format!("{LANDING}{layer}");
        for _ in 0..ATTEMPTS {
            match self.claim(&name, Hold::Alone) {
                Ok(Some(record)) => return Ok(record),
                Ok(None) => {}
                Err(Errno::EXIST) => self.settle_landing(layer)?,
                Err(e) => return Err(io("record what lands in", &self.path, e)),
            }
        }
        Err(Error::new(ErrorKind::Unavailable, format!("the record {name} keeps vanishing")))
    }

    /// Finishes or undoes what one left half done who died while changes of a layer landed.
    pub(crate) fn settle_landing(&self, layer: &str) -> Result<()> {
        let name = format!("{LANDING}{layer}");
        let failed = |e| io(&format!("open the record {name} in"), &self.path, e);
        let Some(record) = self.record(&name).map_err(failed)? else { return Ok(()) };
        match record.owners() {
            Owners::Gone => Ok(()),
            Owners::None => self.settle(record, &mut SweepReport::default()),
            Owners::Some => {
                let what = "changes of this layer are landing just now";
                Err(Error::new(ErrorKind::Conflict, what).hint("Try again."))
            }
        }
    }
}
