//! A place of one test's own: a state directory, and what is pulled into it.

use cofferdam_core::{Error, Image, Result};
use cofferdam_image::{Event, Platform, Progress, Remote, Store};
use cofferdam_registry::{Limits, Places, Repository, Trust};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// A state directory that goes with the test.
pub(crate) struct Ground {
    pub(crate) path: PathBuf,
    pub(crate) places: Places,
    pub(crate) limits: Limits,
    pub(crate) trust: Trust,
}

/// Limits that a test does not wait long for, and that a busy machine does not break.
fn limits() -> Limits {
    Limits { pause: Duration::from_millis(1), attempts: 3, ..Limits::default() }
}

impl Ground {
    pub(crate) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("cofferdam-pull-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self { path, places: Places::default(), limits: limits(), trust: Trust::default() }
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.path).unwrap()
    }

    pub(crate) fn pull(&self, name: &str) -> Result<(Image, Vec<Event>)> {
        self.pull_for(name, &Platform::host())
    }

    pub(crate) fn pull_for(&self, name: &str, platform: &Platform) -> Result<(Image, Vec<Event>)> {
        let remote = Remote::parse(name)?;
        let (places, limits) = (self.places.clone(), self.limits.clone());
        let repository = Repository::new(&remote, places, &self.trust, limits)?;
        let mut events = Events(Vec::new());
        let (image, _held) = self.store().pull(&remote, platform, &repository, &mut events)?;
        Ok((image, events.0))
    }

    /// Pulls what must be refused, and shows that nothing is left of it.
    pub(crate) fn refuses(&self, name: &str) -> Error {
        let error = self.pull(name).map(|(image, _)| image).unwrap_err();
        assert_eq!(self.left(), (0, 0, 0), "{name}: {error:?}");
        error
    }

    /// How many layers, records and downloads there are.
    pub(crate) fn left(&self) -> (usize, usize, usize) {
        let count = |name: &str| {
            let path = self.path.join("images").join(name);
            std::fs::read_dir(path).map_or(0, Iterator::count)
        };
        (count("layers"), count("records"), count("staging"))
    }

    pub(crate) fn collect(&self) {
        self.store().collect(&BTreeSet::new()).unwrap();
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Everything that was told.
struct Events(Vec<Event>);

impl Progress for Events {
    fn tell(&mut self, event: Event) {
        self.0.push(event);
    }
}

/// The content of a file of an image.
pub(crate) fn content(image: &Image, name: &str) -> Vec<u8> {
    let paths = image.layers.iter().map(|layer| layer.tree.join(name));
    std::fs::read(paths.into_iter().find(|path| path.exists()).unwrap()).unwrap()
}

/// Bytes that no two numbers have in common.
pub(crate) fn bytes(number: u8, len: usize) -> Vec<u8> {
    (0..len).map(|place| number ^ u8::try_from(place * 7 % 251).unwrap()).collect()
}

/// The architecture of this machine, as images call it.
pub(crate) fn architecture() -> String {
    Platform::host().architecture
}
