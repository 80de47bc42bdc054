//! The repositories and archives of a manifest: which are missing, and what comes of fetching them.

use super::git::Bounds;
use super::host::{Named, unseen};
use super::load::{Loading, Provisions, Source, Thing};
use super::provide::in_the_way;
use super::repository::Repository;
use crate::apply::name;
use cofferdam_core::{ErrorKind, Files, GuestPath, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Says in a clone's `.git` what it was cloned from. It comes and goes with the clone.
const MARK: &str = ".git/cofferdam";

impl Provisions {
    /// The repositories that are not there. One that was brought before stays as it has become.
    pub(crate) async fn missing(&self, files: &Files) -> Result<Vec<GuestPath>> {
        let mut missing = Vec::new();
        for (path, repository) in &self.repositories {
            let mark = mark(path)?;
            // HOSTILE: a command can write it too, and then lacks what it said it had.
            let limit = repository.fingerprint.len() as u64;
            if files
                .read(name(&mark), limit)
                .await
                .is_ok_and(|is| is == repository.fingerprint.as_bytes())
            {
                continue;
            }
            match files.stat(name(path)).await {
                Ok(_) => return Err(in_the_way(path)),
                Err(error) if error.kind == ErrorKind::NotFound => missing.push(path.clone()),
                Err(error) => return Err(error),
            }
        }
        Ok(missing)
    }

    /// Whether all that is wanted can be brought without being fetched.
    pub(crate) fn is_at_hand(&self, missing: &[GuestPath]) -> bool {
        missing.is_empty() && self.archives.is_empty()
    }

    /// All that is wanted, with these repositories, which are cloned into an empty directory, and with
    /// what the archives hold.
    pub(crate) fn fetch(
        &self,
        missing: &[GuestPath],
        stage: &Path,
        stopped: &AtomicBool,
    ) -> Result<Self> {
        let mut loading = Loading::again(self)?;
        let wanted = missing.iter().filter_map(|path| self.repositories.get_key_value(path));
        for (number, (path, repository)) in wanted.enumerate() {
            let stage = stage.join(number.to_string());
            let tree = repository.clone_to(&stage, Bounds::USUAL, stopped)?;
            let named = Named::open(&tree).map_err(|errno| unseen(&tree, errno))?;
            loading.copy(path.clone(), &tree, &named)?;
            loading.add(mark(path)?, marked(repository))?;
        }
        for (path, archive) in &self.archives {
            loading.unpack(path.clone(), archive.check(stage, stopped)?)?;
        }
        Ok(loading.provisions(self.fingerprint.clone()))
    }
}

fn mark(path: &GuestPath) -> Result<GuestPath> {
    GuestPath::new([path.as_bytes(), MARK.as_bytes()].join(&b'/'))
}

fn marked(repository: &Repository) -> Thing {
    let content = Source::Bytes(Arc::from(repository.fingerprint.as_bytes()));
    Thing::File { content, mode: 0o644 }
}
