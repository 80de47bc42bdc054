//! What the workspace itself has, for who compares two earlier states of a layer over it.

use super::changes::state;
use super::content::{failed, hash};
use super::layer::Layer;
use super::look::{Kind, Seen, directory, names};
use super::walk::{MAX_LAYER_DEPTH, MAX_LAYER_ENTRIES};
use cofferdam_core::{Error, ErrorKind, GuestPath, Result, WorkspaceEntry, WorkspaceOrder};
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;

impl Layer {
    /// What the workspace has at and below the paths of an order.
    pub fn look_at_workspace(
        &self,
        order: &WorkspaceOrder,
    ) -> Result<BTreeMap<GuestPath, WorkspaceEntry>> {
        let mut looking =
            Looking { layer: self, order, most: MAX_LAYER_ENTRIES, found: BTreeMap::new() };
        for path in &order.at {
            looking.at(path)?;
        }
        for path in &order.below {
            looking.below(path)?;
        }
        Ok(looking.found)
    }
}

pub(super) struct Looking<'l> {
    pub(super) layer: &'l Layer,
    pub(super) order: &'l WorkspaceOrder,
    pub(super) most: usize,
    pub(super) found: BTreeMap<GuestPath, WorkspaceEntry>,
}

impl Looking<'_> {
    fn at(&mut self, path: &GuestPath) -> Result<()> {
        let found = self.layer.below(&self.layer.workspace, path.as_bytes(), path);
        match found.map_err(|errno| failed("look at", path, errno))? {
            Some((seen, file)) => self.push(path.clone(), &seen, &file),
            None => Ok(()),
        }
    }

    /// Lists all that is below a directory; what is mounted there is not entered.
    pub(super) fn below(&mut self, path: &GuestPath) -> Result<()> {
        let mut waiting = vec![path.clone()];
        while let Some(path) = waiting.pop() {
            let listed = |errno| failed("list", &path, errno);
            let found = directory(&self.layer.workspace, path.as_bytes()).map_err(listed)?;
            let Some(found) = found else { continue };
            let room = self.most.saturating_sub(self.found.len());
            // LIMIT: before all names of a huge directory are in memory.
            let all = names(&found, room).map_err(|errno| match errno {
                rustix::io::Errno::OVERFLOW => self.too_many(),
                errno => failed("list", &path, errno),
            })?;
            for name in all {
                let inner = child(&path, &name)?;
                let seen = self.layer.below(&found, &name, &inner);
                let seen = seen.map_err(|errno| failed("look at", &inner, errno))?;
                // What vanishes meanwhile is not there.
                let Some((seen, file)) = seen else { continue };
                if seen.kind == Kind::Directory {
                    waiting.push(inner.clone());
                }
                self.push(inner, &seen, &file)?;
            }
        }
        Ok(())
    }

    fn push(&mut self, path: GuestPath, seen: &Seen, file: &OwnedFd) -> Result<()> {
        if self.found.len() >= self.most {
            return Err(self.too_many());
        }
        let is_wanted = seen.kind == Kind::File && self.order.hashed.get(&path) == Some(&seen.size);
        let sha256 = match is_wanted {
            true => Some(hash(file).map_err(|errno| failed("read", &path, errno))?),
            false => None,
        };
        let identity = (seen.id.device, seen.id.inode);
        self.found.insert(path, WorkspaceEntry { state: state(seen), identity, sha256 });
        Ok(())
    }

    fn too_many(&self) -> Error {
        let what = format!("more than {} entries of the workspace are hidden or shown", self.most);
        Error::new(ErrorKind::TooLarge, what).hint("Name the paths that you want.")
    }
}

fn child(path: &GuestPath, name: &[u8]) -> Result<GuestPath> {
    let bytes = [path.as_bytes(), b"/", name].concat();
    let inner = GuestPath::new(&bytes).ok();
    inner.filter(|inner| inner.names().count() <= MAX_LAYER_DEPTH).ok_or_else(|| {
        let what = format!("{path:?} is deeper than {MAX_LAYER_DEPTH} levels or 4095 bytes");
        Error::new(ErrorKind::TooLarge, what).hint("Name other paths.")
    })
}
