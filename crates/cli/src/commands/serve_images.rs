//! Images that requests to `cofferdam serve` may lie on.

use crate::images::{Asking, PullPolicy, ready};
use crate::surroundings::Surroundings;
use cofferdam_core::{Error, ErrorKind, Image, Result};
use cofferdam_image::{Reference, Silent};
use cofferdam_server::{HeldImage, Images, Pull};
use std::collections::BTreeMap;

/// Images of registries and of the store, with the credentials of this user.
#[derive(Debug)]
pub(super) struct Opened {
    /// What each name means, found out once: what comes to lie in a directory later changes nothing.
    references: BTreeMap<String, Reference>,
    asking: Asking,
    surroundings: Surroundings,
}

impl Opened {
    /// The images of these names. A path is refused: a sandbox could put another thing there.
    pub(super) fn new(named: &[String], asking: Asking) -> Result<Self> {
        let surroundings = Surroundings::of_this_process();
        let mut references = BTreeMap::new();
        for name in named {
            let reference = Reference::parse(name, surroundings.directory()?)?;
            if reference.path().is_some() {
                let what = format!(
                    "{name} is a path, and requests lie on images of a registry or of the store"
                );
                return Err(Error::new(ErrorKind::Usage, what).hint(
                    "Import it with `cofferdam image import`, and allow the sha256:ID of it.",
                ));
            }
            references.insert(name.clone(), reference);
        }
        Ok(Self { references, asking, surroundings })
    }
}

impl Images for Opened {
    fn open(&self, named: &str, pull: Option<Pull>) -> Result<(Image, HeldImage)> {
        let reference = self.references.get(named).ok_or_else(|| {
            Error::new(ErrorKind::Denied, format!("{named:?} is no image of this server"))
        })?;
        let policy = match pull {
            None => self.asking.policy,
            Some(Pull::Never) => PullPolicy::Never,
            Some(_) if self.asking.policy == PullPolicy::Never => {
                let what = "this server pulls no image";
                return Err(Error::new(ErrorKind::Denied, what).hint("Leave pull out."));
            }
            Some(Pull::Missing) => PullPolicy::Missing,
            Some(Pull::Always) => PullPolicy::Always,
        };
        let asking = Asking { policy, ..self.asking.clone() };
        let (image, held) = ready(reference, &asking, &self.surroundings, &mut Silent)?;
        Ok((image, Box::new(held)))
    }
}
