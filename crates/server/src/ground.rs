//! What the operator gives requests to stand on: they may narrow it and never widen it.

use crate::Images;
use cofferdam_core::{Error, ErrorKind, Result, Spec, Workspace};
use cofferdam_session::lie_in_each_other;
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

    /// The same with other directories, none of which lies in one of these or around it.
    pub fn with_workspaces(&self, workspaces: Vec<PathBuf>) -> Result<Self> {
        let nested = |one: &Path, other: &Path| one != other && lie_in_each_other(one, other);
        for outer in &self.workspaces {
            if let Some(inner) = workspaces.iter().find(|inner| nested(inner, outer)) {
                let what = format!("{} and {} lie in each other", outer.display(), inner.display());
                return Err(Error::new(ErrorKind::Denied, what)
                    .hint("The operator has to name workspaces of which none lies in another."));
            }
        }
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

    /// The directories that a request may name.
    pub(crate) fn workspaces(&self) -> &[PathBuf] {
        &self.workspaces
    }

    /// The directory that a request names, if it is one of those that it may.
    pub(crate) fn workspace(&self, named: &str) -> Result<PathBuf> {
        let found = self.workspaces.iter().find(|path| path.as_path() == Path::new(named));
        let found = found.ok_or_else(|| {
            Error::new(ErrorKind::Denied, format!("{named:?} is no workspace of this caller"))
                .hint("Name a directory that the operator allows, or none for an empty one.")
        })?;
        // Without links when it was named, and somebody may have put one there since.
        if found.canonicalize().is_ok_and(|now| now != *found) {
            let what = format!("{named:?} leads elsewhere by now");
            return Err(Error::new(ErrorKind::Denied, what)
                .hint("The operator has to put the directory back in the place of the link."));
        }
        Ok(found.clone())
    }
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
        for same in ["/srv/b", "/srv/b/", "/srv//b", "/srv/./b"] {
            assert_eq!(ground.workspace(same).unwrap(), PathBuf::from("/srv/b"), "{same}");
        }
        for other in ["/srv", "/srv/a/x", "/srv/a/../b", "/", "", "srv/a", "/srv/ab"] {
            assert_eq!(ground.workspace(other).unwrap_err().kind, ErrorKind::Denied, "{other}");
        }
    }

    #[test]
    fn a_workspace_that_became_a_link_is_none() {
        let place = std::env::temp_dir().join(format!("cofferdam-ground-{}", std::process::id()));
        let (real, named) = (place.join("real"), place.join("named"));
        std::fs::create_dir_all(&real).unwrap();
        std::fs::create_dir_all(&named).unwrap();
        let (real, named) = (real.canonicalize().unwrap(), named.canonicalize().unwrap());
        let ground = ground(&[named.to_str().unwrap()]).unwrap();
        assert_eq!(ground.workspace(named.to_str().unwrap()).unwrap(), named, "the control");
        std::fs::remove_dir(&named).unwrap();
        std::os::unix::fs::symlink(&real, &named).unwrap();
        let refused = ground.workspace(named.to_str().unwrap()).unwrap_err();
        std::fs::remove_dir_all(&place).unwrap();
        assert_eq!(refused.kind, ErrorKind::Denied);
    }

    #[test]
    fn no_workspace_of_a_key_lies_in_one_of_the_operators() {
        let ground = ground(&["/srv/a"]).unwrap();
        let with = |path: &str| ground.with_workspaces(vec![PathBuf::from(path)]);
        assert!(with("/srv/a").is_ok() && with("/srv/b").is_ok());
        for nested in ["/srv", "/srv/a/b"] {
            assert_eq!(with(nested).unwrap_err().kind, ErrorKind::Denied, "{nested}");
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
