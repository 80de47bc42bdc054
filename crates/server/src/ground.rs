//! What the operator gives requests to stand on: they may narrow it and never widen it.

use crate::Images;
use cofferdam_core::{Error, ErrorKind, Result, Spec, Workspace};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What sandboxes of requests are made from.
#[derive(Debug, Clone)]
pub struct Ground {
    template: Spec,
    workspaces: Vec<PathBuf>,
    images: Vec<String>,
    source: Option<Arc<dyn Images>>,
}

impl Ground {
    /// A ground with this spec, from which requests take what they do not say, and these directories,
    /// absolute and without links, one of which a request may name as its workspace.
    ///
    /// No directory may lie in another: what writes the outer one could lead the path of the inner one
    /// elsewhere.
    pub fn new(template: Spec, workspaces: Vec<PathBuf>) -> Result<Self> {
        for (at, outer) in workspaces.iter().enumerate() {
            let inner =
                workspaces.iter().skip(at + 1).find(|other| lie_in_each_other(outer, other));
            if let Some(inner) = inner {
                let what = format!("{} and {} lie in each other", outer.display(), inner.display());
                return Err(Error::new(ErrorKind::Usage, what)
                    .hint("Name workspaces of which none lies in another."));
            }
        }
        let template = Spec { workspace: Workspace::Private, ..template };
        Ok(Self { template, workspaces, images: Vec::new(), source: None })
    }

    /// The same with other directories.
    pub fn with_workspaces(&self, workspaces: Vec<PathBuf>) -> Result<Self> {
        let Self { images, source, .. } = self.clone();
        Ok(Self { images, source, ..Self::new(self.template.clone(), workspaces)? })
    }

    /// The same with these images, one of which a request may name, from there.
    #[must_use]
    pub fn with_images(self, images: Vec<String>, source: Arc<dyn Images>) -> Self {
        Self { images, source: Some(source), ..self }
    }

    /// Where the image that a request names comes from, if it is one of those that it may.
    pub(crate) fn image(&self, named: &str) -> Result<Arc<dyn Images>> {
        match &self.source {
            Some(source) if self.images.iter().any(|image| image == named) => Ok(source.clone()),
            Some(_) | None => {
                Err(Error::new(ErrorKind::Denied, format!("{named:?} is no image of this server"))
                    .hint("Name an image that the operator allows with --allow-image."))
            }
        }
    }

    /// What a request begins with: a workspace of its own, and all else as the operator said.
    pub(crate) fn spec(&self) -> Spec {
        self.template.clone()
    }

    /// The directory that a request names, if it is one of those that it may.
    pub(crate) fn workspace(&self, named: &str) -> Result<PathBuf> {
        let found = self.workspaces.iter().find(|path| path.as_path() == Path::new(named));
        found.cloned().ok_or_else(|| {
            Error::new(ErrorKind::Denied, format!("{named:?} is no workspace of this caller"))
                .hint("Name a directory that the operator allows, or none for an empty one.")
        })
    }
}

fn lie_in_each_other(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::Caller;

    fn ground(paths: &[&str]) -> Result<Ground> {
        let template = Spec::new(Workspace::Private, Caller::default());
        Ground::new(template, paths.iter().map(PathBuf::from).collect())
    }

    #[test]
    fn a_request_names_a_workspace_exactly() {
        let ground = ground(&["/srv/a", "/srv/b"]).unwrap();
        assert_eq!(ground.workspace("/srv/b").unwrap(), PathBuf::from("/srv/b"));
        for other in ["/srv", "/srv/a/x", "/srv/a/../b", "/", "", "srv/a", "/srv/ab"] {
            assert_eq!(ground.workspace(other).unwrap_err().kind, ErrorKind::Denied, "{other}");
        }
    }

    #[test]
    fn no_workspace_lies_in_another() {
        assert!(ground(&["/srv/a", "/srv/ab"]).is_ok());
        for nested in [["/srv", "/srv/a"], ["/srv/a", "/srv"], ["/srv/a", "/srv/a"]] {
            assert_eq!(ground(&nested).unwrap_err().kind, ErrorKind::Usage, "{nested:?}");
        }
    }
}
