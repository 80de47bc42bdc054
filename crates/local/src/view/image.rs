//! The root file system that an image brought.

use super::lookup::{Found, find_listed};
use super::secrets::Secrets;
use super::written::Written;
use super::{Shown, workspace};
use crate::host::HostFacts;
use cofferdam_core::{Error, ErrorKind, Image, Result, Spec};
use cofferdam_wire::plan::{Access, Overlay};
use std::path::Path;

/// An image, as far as a plan needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageView {
    /// As the caller named it.
    pub name: String,
    /// Its layers, uppermost first.
    pub layers: Vec<Shown>,
    /// Where what is written to it lands.
    pub upper: Upper,
}

/// Where what is written to an image lands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upper {
    /// In the private space, gone with the sandbox.
    Private,
    /// In a directory of the host, so that it outlives the sandbox.
    Kept(Shown),
}

/// Looks at its layers.
pub(super) fn look(
    image: &Image,
    spec: &Spec,
    facts: &HostFacts,
    secrets: &Secrets,
    written: &Written,
) -> Result<ImageView> {
    if image.layers.is_empty() || image.layers.len() > Overlay::MOST_LAYERS {
        let (found, most) = (image.layers.len(), Overlay::MOST_LAYERS);
        let what = format!("image {} has {found} layers, not 1 to {most}", image.name);
        return Err(Error::new(ErrorKind::Unsupported, what).hint("Join its layers to fewer."));
    }
    let mut layers = Vec::with_capacity(image.layers.len());
    for layer in &image.layers {
        let found = match &layer.hold {
            Some(_) => find_listed(&layer.tree, "a layer of the image")?,
            None => plain_directory(&layer.tree, spec, secrets, written)?,
        };
        layers.push(shown(&found, facts));
    }
    Ok(ImageView { name: image.name.clone(), layers, upper: Upper::Private })
}

/// A directory that is used where it is. Commands see all of it, whoever may read it on the host: so
/// what no sandbox may write, it may not stand on either.
fn plain_directory(
    path: &Path,
    spec: &Spec,
    secrets: &Secrets,
    written: &Written,
) -> Result<Found> {
    let found = written.find_listed(path, "image")?;
    if !found.is_directory() {
        return Err(super::usage(
            format!("image {} is not a directory", found.path),
            "Name a tar file as tar:FILE.",
        ));
    }
    workspace::refuse_to_write(&found, "image", spec, secrets)?;
    Ok(found)
}

fn shown(found: &Found, facts: &HostFacts) -> Shown {
    Shown {
        source: found.path.clone(),
        path: "/".to_owned(),
        access: Access::ReadOnly,
        owner: workspace::owner(found, facts),
        identity: Some(found.identity()),
        why: "a layer of the image".to_owned(),
    }
}
