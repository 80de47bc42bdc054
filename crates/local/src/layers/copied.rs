//! Both sides of a layer that is a copy of its workspace, path by path.
//!
//! What is as it was copied was left alone. What the workspace has and the copy has not was removed, if
//! it was there to be copied, or landed; otherwise somebody else made it, and it is no change of the sandbox.

use super::content::{failed, same};
use super::listing::Listing;
use super::look::{Kind, Seen, directory, look, names};
use super::walk::{MAX_LAYER_ENTRIES, Pair, Top, Waiting, Walk, listing_failed};
use cofferdam_core::{GuestPath, Result};
use rustix::fd::OwnedFd;
use std::collections::BTreeSet;

impl Walk<'_> {
    /// One directory of the copy.
    pub(super) fn copied(&mut self, listing: &Listing, path: Option<&GuestPath>) -> Result<()> {
        let bytes = path.map_or(&b""[..], GuestPath::as_bytes);
        let at = |errno| listing_failed(path, errno);
        let Some(upper) = directory(&self.layer.upper, bytes).map_err(at)? else { return Ok(()) };
        let lower = directory(&self.layer.workspace, bytes).map_err(at)?;
        let mine = names(&upper, MAX_LAYER_ENTRIES).map_err(at)?;
        for name in &mine {
            if let Some(path) = self.child(path, name)? {
                self.copied_entry(listing, path, name, (&upper, lower.as_ref()))?;
            }
        }
        let Some(lower) = lower else { return Ok(()) };
        let mine: BTreeSet<Vec<u8>> = mine.into_iter().collect();
        let theirs = names(&lower, MAX_LAYER_ENTRIES).map_err(at)?;
        for name in theirs.iter().filter(|name| !mine.contains(*name)) {
            let Some(path) = self.child(path, name)? else { continue };
            let found = self.layer.below(&lower, name, &path);
            let found = found.map_err(|errno| failed("look at", &path, errno))?;
            if let (true, Some((lower, _))) = (self.layer.has_had(path.as_bytes()), found) {
                self.gone(path, lower)?;
            }
        }
        Ok(())
    }

    fn copied_entry(
        &mut self,
        listing: &Listing,
        path: GuestPath,
        name: &[u8],
        (upper, lower): (&OwnedFd, Option<&OwnedFd>),
    ) -> Result<()> {
        let at = |errno| failed("look at", &path, errno);
        let Some((seen, file)) = look(upper, name).map_err(at)? else { return Ok(()) };
        let was = listing.get(path.as_bytes());
        let untouched = listing.is_untouched(path.as_bytes(), &seen);
        let is_directory = seen.kind == Kind::Directory;
        if untouched && !is_directory {
            return Ok(());
        }
        let lower = lower
            .map(|lower| self.layer.below(lower, name, &path))
            .transpose()
            .map_err(at)?
            .flatten();
        let both_files = |lower: &Seen| lower.kind == Kind::File && seen.kind == Kind::File;
        let same = match &lower {
            Some((lower, other)) if both_files(lower) && lower.size == seen.size => {
                same(&file, other).map_err(|errno| failed("compare", &path, errno))?
            }
            Some(_) | None => false,
        };
        let lower = lower.map(|(lower, _)| lower);
        if is_directory {
            self.waiting.push(Waiting::Copied(Some(path.clone())));
        } else if lower.as_ref().is_some_and(|lower| lower.kind == Kind::Directory) {
            self.waiting.push(Waiting::Lower(path.clone()));
        }
        let copied = was.is_some_and(|was| was.kind.is_some());
        let upper = Some(Top { seen, opaque: false, copied });
        self.push(Pair { path, upper, lower, same, untouched, made_of: None, of_unknown: false })
    }
}
