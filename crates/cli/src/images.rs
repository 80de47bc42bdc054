//! The seam to images: what the command line asks of the store, and what a person sees meanwhile.

use crate::choice::Choice;
use crate::config::ImageWish;
use crate::meter::Meter;
use crate::surroundings::Surroundings;
use crate::{places, sessions, verb};
use cofferdam_core::{Error, ErrorKind, Image, Result, Spec, Step, Unit};
use cofferdam_image::{Event, Held, Platform, Progress, Reference, Remote, Store};
use cofferdam_local::view::refuse_planted;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// When a registry is asked for an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum PullPolicy {
    /// Where it was not pulled yet.
    #[default]
    Missing,
    /// Each time.
    Always,
    /// Not at all.
    Never,
}

impl Choice for PullPolicy {
    const WHAT: &'static str = "answer";
    const ALL: &'static [Self] = &[Self::Missing, Self::Always, Self::Never];

    fn named(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

/// How registries are asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asking {
    /// When.
    pub(crate) policy: PullPolicy,
    /// Which may be asked without encryption.
    pub(crate) insecure: Vec<String>,
}

/// Makes the image ready that somebody named for a sandbox of this spec.
pub(crate) fn open(
    wish: &ImageWish,
    asking: &Asking,
    surroundings: &Surroundings,
    spec: &Spec,
) -> Result<(Image, Held)> {
    let reference = Reference::parse(&wish.reference, &wish.from)?;
    // HOSTILE: a command may have put a link to the caller's own files where its image was.
    if let Some(path) = reference.path() {
        refuse_planted(path, "image", spec)?;
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    match verb::glance(&words).json {
        true => ready(&reference, asking, surroundings, &mut Events(None)),
        false => ready(&reference, asking, surroundings, &mut Bar::new()),
    }
}

/// Makes an image ready for later, telling how far it is.
pub(crate) fn import(
    wish: &ImageWish,
    surroundings: &Surroundings,
    progress: &mut dyn Progress,
) -> Result<(Image, Held)> {
    let reference = Reference::parse(&wish.reference, &wish.from)?;
    // HOSTILE: as above, and every sandbox that lies on it later would see it.
    if let Some(path) = reference.path() {
        refuse_doubted(path, surroundings)?;
    }
    ready(&reference, &Asking::default(), surroundings, progress)
}

/// Fails where the way to an image passes a link that a command of any workspace may have made.
///
/// LIMIT: it is opened by its name afterwards. What is not there is for others to refuse.
fn refuse_doubted(path: &Path, surroundings: &Surroundings) -> Result<()> {
    match path.canonicalize() {
        Ok(end) => places::refuse_doubted("the image", path, &end, surroundings),
        Err(_) => Ok(()),
    }
}

/// Makes an image ready.
pub(crate) fn ready(
    reference: &Reference,
    asking: &Asking,
    surroundings: &Surroundings,
    progress: &mut dyn Progress,
) -> Result<(Image, Held)> {
    match reference {
        Reference::Registry(remote) => {
            of_registry(remote, &Platform::host(), asking, surroundings, progress)
        }
        Reference::OciLayout { .. }
        | Reference::OciArchive { .. }
        | Reference::DockerArchive { .. }
        | Reference::Directory(_)
        | Reference::Tar(_)
        | Reference::Stored(_) => {
            store(&surroundings.state_directory()?)?.open_image(reference, progress)
        }
    }
}

/// An image of a registry, for a platform.
pub(crate) fn of_registry(
    remote: &Remote,
    platform: &Platform,
    asking: &Asking,
    surroundings: &Surroundings,
    progress: &mut dyn Progress,
) -> Result<(Image, Held)> {
    let store = store(&surroundings.state_directory()?)?;
    let known = match asking.policy {
        // What a digest means does not change.
        PullPolicy::Always if remote.digest.is_none() => None,
        PullPolicy::Always | PullPolicy::Missing | PullPolicy::Never => {
            store.pulled(remote, platform)?
        }
    };
    match (known, asking.policy) {
        (Some(known), _) => Ok(known),
        (None, PullPolicy::Never) => {
            let what = format!("image {remote} was not pulled yet, and --pull is never");
            Err(Error::new(ErrorKind::NotFound, what)
                .hint(format!("Run `cofferdam image pull {remote}`.")))
        }
        (None, PullPolicy::Missing | PullPolicy::Always) => {
            pull(&store, remote, platform, (asking, surroundings), progress)
        }
    }
}

/// Asks the registry, with the credentials of the caller. Its threads have ended when this returns, so
/// that a sandbox can be forked.
#[cfg(feature = "pull")]
fn pull(
    store: &Store,
    remote: &Remote,
    platform: &Platform,
    (asking, surroundings): (&Asking, &Surroundings),
    progress: &mut dyn Progress,
) -> Result<(Image, Held)> {
    use cofferdam_registry::{Limits, Places, Repository, Trust};
    let places = Places::of(&surroundings.variables, surroundings.home.as_deref());
    let trust = Trust { insecure: asking.insecure.clone() };
    let repository = Repository::new(remote, places, &trust, Limits::default())?;
    store.pull(remote, platform, &repository, progress)
}

/// This program was built without a client of registries.
#[cfg(not(feature = "pull"))]
fn pull(
    _store: &Store,
    remote: &Remote,
    _platform: &Platform,
    _how: (&Asking, &Surroundings),
    _progress: &mut dyn Progress,
) -> Result<(Image, Held)> {
    let what = format!("image {remote} is in a registry, and this program was built without pull");
    Err(Error::new(ErrorKind::Unsupported, what).hint(format!(
        "Fetch it with another tool, for instance `skopeo copy docker://{remote} oci:DIR`, and name \
         oci:DIR."
    )))
}

/// The store of a state directory, which is made where it is not there.
pub(crate) fn store(state: &Path) -> Result<Store> {
    let state = cofferdam_local::state::StateDirectory::open(state)?;
    Store::open(state.path())
}

/// What the images are called, and the ids of those without a name, for completion. Makes nothing.
pub(crate) fn names() -> Result<Vec<String>> {
    let state = Surroundings::of_this_process().state_directory()?;
    if !state.join("images").is_dir() {
        return Ok(Vec::new());
    }
    let all = store(&state)?.list()?;
    let named =
        all.into_iter().map(|report| report.image).map(|image| match image.names.is_empty() {
            true => vec![image.id.to_string()],
            false => image.names,
        });
    Ok(named.flatten().collect())
}

/// Ids of the images that sessions lie on, asleep or lost ones too.
pub(crate) fn of_sessions() -> Result<BTreeSet<String>> {
    sessions::as_they_are(async |sessions| {
        let all = sessions.list(&Default::default()).await?;
        Ok(all.into_iter().filter_map(|session| session.image_id).collect())
    })
}

/// Events on standard error, once there is something to wait for.
// ORDER: its thread has ended when this is gone, so that a sandbox can be forked.
struct Events(Option<Meter>);

impl Progress for Events {
    fn tell(&mut self, event: Event) {
        let (Event::Downloading { read_bytes, total_bytes, .. }
        | Event::Unpacking { read_bytes, total_bytes, .. }) = event
        else {
            return;
        };
        let meter = self.0.get_or_insert_with(|| Meter::start("image", true));
        let (done, total) = (read_bytes, Some(total_bytes));
        meter.progress().tell(Step { done, total, unit: Unit::Bytes });
    }
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
                self.0.set_message("another process makes this layer ready");
                self.0.tick();
            }
            Event::Resolved { .. } | Event::Downloaded { .. } => {}
            Event::Downloading { layers, read_bytes, total_bytes } => {
                self.0.set_message(format!("downloading {layers} layers"));
                self.0.set_length(total_bytes);
                self.0.set_position(read_bytes);
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
