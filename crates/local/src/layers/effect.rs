//! How a layer stands, for a later look to be compared with.

use super::changes::state;
use super::layer::Layer;
use super::look::{Kind, Seen};
use super::walk::{Pair, walk};
use cofferdam_core::{Below, Former, LayerLook, LayerMark, Result};

impl Layer {
    /// How it stands now. Costs what the layer holds, whatever the workspace
    /// holds; a copy holds all of it.
    pub fn look(&self) -> Result<LayerLook> {
        let mut found = LayerLook::default();
        for pair in walk(self, &[])?.into_iter().filter(|pair| !pair.untouched) {
            let mark = pair.upper.as_ref().map(|top| mark(&top.seen, below(&pair)));
            if let (None, Some(lower)) = (&mark, &pair.lower) {
                found.hidden.insert(pair.path.clone(), former(lower));
            }
            found.entries.insert(pair.path, mark);
        }
        Ok(found)
    }
}

fn former(lower: &Seen) -> Former {
    let kind = state(lower).kind;
    Former { kind, mode: lower.mode, size: lower.size, in_workspace: true }
}

fn mark(seen: &Seen, below: Below) -> LayerMark {
    LayerMark {
        kind: state(seen).kind,
        mode: seen.mode,
        size: seen.size,
        identity: (seen.id.device, seen.id.inode),
        changed_ns: seen.changed_ns,
        below,
    }
}

fn below(pair: &Pair) -> Below {
    let (Some(top), Some(lower)) = (&pair.upper, &pair.lower) else { return Below::Nothing };
    let seen = &top.seen;
    let is_same = seen.kind == lower.kind
        && seen.mode == lower.mode
        && match seen.kind {
            Kind::File => pair.same,
            Kind::Link => seen.target == lower.target,
            Kind::Directory => true,
            Kind::Fifo | Kind::Socket | Kind::Device | Kind::Mounted => {
                seen.device_number == lower.device_number
            }
        };
    if is_same { Below::Same } else { Below::Other }
}
