//! Paths of a layer that somebody named.

use crate::{Session, SessionReport};
use cofferdam_core::{Error, ErrorKind, GuestPath, Result, is_at_or_below};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Session {
    /// The paths that somebody named: below the workspace, by its own path, by `/workspace`, or relative.
    /// None is left where one of them is the workspace itself.
    pub async fn scope(&self, paths: &[OsString]) -> Result<Vec<GuestPath>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let report = self.sessions().status(self.id()).await?;
        let mut scope = Vec::new();
        for path in paths {
            match below(&report, Path::new(path)).as_os_str().as_bytes() {
                b"" | b"." | b"./" => return Ok(Vec::new()),
                path => scope.push(GuestPath::new(path)?),
            }
        }
        Ok(scope)
    }

    /// Fails where the session has no change at or below one of these paths.
    pub async fn check_named(&self, scope: &[GuestPath]) -> Result<()> {
        if scope.is_empty() {
            return Ok(());
        }
        let changes = self.changes(scope).await?;
        let has = |root: &&GuestPath| changes.iter().any(|c| is_at_or_below(&c.path, root));
        match scope.iter().find(|root| !has(root)) {
            None => Ok(()),
            Some(path) => {
                let what = format!("the session changed nothing at {path:?}");
                Err(Error::new(ErrorKind::NotFound, what)
                    .hint("See what it changed with `cofferdam diff SESSION --stat`."))
            }
        }
    }
}

fn below<'p>(report: &SessionReport, path: &'p Path) -> &'p Path {
    let roots = ["/workspace", report.workspace.as_deref().unwrap_or("/workspace")];
    roots.into_iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path)
}
