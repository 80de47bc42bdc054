//! The seam to images: what the command line asks of the store, and what a person sees meanwhile.

use crate::config::ImageWish;
use crate::sessions;
use cofferdam_core::{Image, Result, Spec};
use cofferdam_image::{Event, Held, Progress, Reference, Store};
use cofferdam_local::view::refuse_planted;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeSet;
use std::path::Path;

/// Makes the image ready that somebody named for a sandbox of this spec.
pub(crate) fn open(wish: &ImageWish, state: &Path, spec: &Spec) -> Result<(Image, Held)> {
    let reference = Reference::parse(&wish.reference, &wish.from)?;
    // HOSTILE: a command may have put a link to the caller's own files where its image was.
    if let Some(path) = reference.path() {
        refuse_planted(path, "image", spec)?;
    }
    store(state)?.open_image(&reference, &mut Bar::new())
}

/// Makes an image ready for later, telling how far it is.
pub(crate) fn import(
    wish: &ImageWish,
    state: &Path,
    progress: &mut dyn Progress,
) -> Result<(Image, Held)> {
    let reference = Reference::parse(&wish.reference, &wish.from)?;
    store(state)?.open_image(&reference, progress)
}

/// The store of a state directory, which is made where it is not there.
pub(crate) fn store(state: &Path) -> Result<Store> {
    let state = cofferdam_local::state::StateDirectory::open(state)?;
    Store::open(state.path())
}

/// Ids of the images that sessions lie on, asleep or lost ones too.
pub(crate) fn of_sessions() -> Result<BTreeSet<String>> {
    sessions::as_they_are(async |sessions| {
        let all = sessions.list(&Default::default()).await?;
        Ok(all.into_iter().filter_map(|session| session.image_id).collect())
    })
}

/// A bar on standard error, if that is a terminal.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// One that is not drawn yet.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self(bar)
    }
}

impl Progress for Bar {
    fn tell(&mut self, event: Event) {
        match event {
            Event::Waiting { layer: _ } => {
                self.0.set_message("another process unpacks this layer");
                self.0.tick();
            }
            Event::Unpacking { layer: _, number, of, read_bytes, total_bytes } => {
                self.0.set_message(format!("layer {number} of {of}"));
                self.0.set_length(total_bytes);
                self.0.set_position(read_bytes);
            }
            Event::Unpacked { .. } => self.0.set_position(0),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
