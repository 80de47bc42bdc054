//! Images for sandboxes of the library.

use crate::state_home;
use cofferdam_core::{Error, ErrorKind, Image, Result};
use cofferdam_image::{Reference, Silent, Store};
use cofferdam_local::state::StateDirectory;

/// Makes an image ready for [`Builder::image`](crate::Builder::image): `oci:DIR[:TAG]`,
/// `oci-archive:FILE[:TAG]`, `docker-archive:FILE[:TAG]`, `dir:DIR`, `tar:FILE`, `sha256:ID`, or a path,
/// which is looked at, or the name of an image that `cofferdam image pull` pulled. Registries are not asked.
///
/// Its layers are unpacked once, below the state directory, and shared by all who use them. The call
/// blocks until that is done. A link on the way to the image is followed: name no path that a command
/// of a sandbox could have made.
pub fn open_image(reference: &str) -> Result<Image> {
    let here = std::env::current_dir()
        .map_err(|cause| Error::new(ErrorKind::Io, "find the current directory").source(cause))?;
    let reference = Reference::parse(reference, &here)?;
    let state = StateDirectory::open(&state_home()?)?;
    let (image, _held) = Store::open(state.path())?.open_image(&reference, &mut Silent)?;
    Ok(image)
}
