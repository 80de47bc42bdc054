//! From the name of an image in a registry to one that lies ready.

use super::fetch::{Blob, Fetch, Registry, Stop, of_fetch};
use super::layers::{Packed, Place};
use super::record::{ImageRecord, PulledFrom};
use super::removal::Removed;
use super::{Held, Store};
use crate::blobs::{check, name_of};
use crate::described::{self, Described, LayerSource, MAX_INDEX_DEPTH, bounded};
use crate::digest::Digest;
use crate::document::{Descriptor, Index};
use crate::limits::{MAX_DOCUMENT_BYTES, MAX_IMAGE_PACKED_BYTES, MAX_LAYERS, MAX_PACKED_BYTES};
use crate::platform::{Platform, choose};
use crate::progress::{Event, Progress};
use crate::remote::Remote;
use cofferdam_core::{Error, ErrorKind, Image, Result};
use rustix::fd::OwnedFd;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How often somebody is told how far downloads are.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// What a registry answers: a manifest or a list of them.
#[derive(Debug, Deserialize)]
struct Answer {
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

/// What a name means in a registry.
struct Resolved {
    digest: Digest,
    manifest: Digest,
    config: Descriptor,
    layers: Vec<Descriptor>,
}

impl Store {
    /// An image of a registry that lies ready, as it was when it was pulled last; `None` where it was
    /// not, or is not whole.
    pub fn pulled(&self, remote: &Remote, platform: &Platform) -> Result<Option<(Image, Held)>> {
        let (repository, platform) = (remote.name(), platform.to_string());
        let is_meant = |pulled: &PulledFrom| {
            let is_version = match &remote.digest {
                Some(digest) => pulled.digest == *digest || pulled.manifest == *digest,
                None => pulled.tag == remote.tag,
            };
            is_version && pulled.repository == repository && pulled.platform == platform
        };
        let records = self.records()?;
        let known = records
            .iter()
            .find(|record| record.pulled.iter().any(is_meant) && self.is_whole(record));
        known.map(|record| self.hold(record, remote.to_string())).transpose()
    }

    /// Asks a registry what a name means now, and makes that ready. What is there already is not
    /// downloaded again, and an interrupted download goes on.
    pub fn pull(
        &self,
        remote: &Remote,
        platform: &Platform,
        registry: &dyn Registry,
        progress: &mut dyn Progress,
    ) -> Result<(Image, Held)> {
        let name = remote.to_string();
        self.pull_named(remote, platform, registry, progress).map_err(|error| {
            let is_named = error.message.contains(&name);
            let lead = if is_named { String::new() } else { format!("pull {name}: ") };
            Error { message: format!("{lead}{}", error.message), ..error }
        })
    }

    fn pull_named(
        &self,
        remote: &Remote,
        platform: &Platform,
        registry: &dyn Registry,
        progress: &mut dyn Progress,
    ) -> Result<(Image, Held)> {
        let resolved = resolve(remote, platform, registry)?;
        let (reference, digest) = (remote.to_string(), resolved.digest.to_string());
        progress.tell(Event::Resolved { reference, digest });
        bound(&resolved)?;
        let Resolved { digest, manifest, config, layers } = resolved;
        let document = registry.document(&config.digest, config.size)?;
        check(&config.digest, &Digest::of(&document))?;
        let places = layers.into_iter().map(|layer| described::Place {
            name: name_of(&layer.digest),
            packed: Some(layer.digest),
            size: Some(layer.size),
        });
        let described = described::described(&document, config.digest, places.collect(), platform)?;
        let packed: BTreeSet<Digest> =
            described.layers.iter().filter_map(|layer| layer.packed.clone()).collect();
        let (mut record, _held) = match self.record(described.id.hex())? {
            Some(known) if self.is_whole(&known) => (known, Vec::new()),
            _ => self.fetched(described, registry, progress)?,
        };
        // What an earlier pull had unpacked before it stopped is not asked for again, and lies there packed.
        self.sweep_all(|name| {
            of_fetch(name).is_some_and(|hex| packed.iter().any(|one| one.hex() == hex))
        })?;
        let now = self.new_record(record.id.clone(), Vec::new(), record.run.clone());
        let tag = if remote.digest.is_some() { None } else { remote.tag.clone() };
        let from = PulledFrom {
            repository: remote.name(),
            tag,
            digest,
            manifest,
            platform: platform.to_string(),
            pulled_s: now.imported_s,
        };
        self.write_pulled(&mut record, from, remote)?;
        self.hold(&record, remote.to_string())
    }

    /// Downloads what is missing, and unpacks each layer as soon as it and those below it are there.
    fn fetched(
        &self,
        described: Described,
        registry: &dyn Registry,
        progress: &mut dyn Progress,
    ) -> Result<(ImageRecord, Vec<OwnedFd>)> {
        let Described { id, run, layers } = described;
        let fetches = self.fetches(&layers, progress)?;
        let blobs = fetches.iter().enumerate().map(|(number, fetch)| {
            let (digest, size) = (fetch.digest.clone(), fetch.size);
            Ok(Blob { number, digest, size, file: fetch.file()?, passed: &fetch.passed })
        });
        let blobs = blobs.collect::<Result<Vec<_>>>()?;
        let (told, arrivals) = channel();
        let stop = Stop::default();
        let held = std::thread::scope(|scope| {
            let tell = move |number, outcome| drop(told.send((number, outcome)));
            let stop_here = &stop;
            // A thread, because the registry waits while this one unpacks. It ends within the scope.
            let downloads = scope.spawn(move || registry.download(blobs, stop_here, &tell));
            let mut arrived = Arrived::new(&fetches, arrivals);
            let held = self.unpack_arrived(&layers, &mut arrived, progress);
            stop.stop();
            match (held, downloads.join()) {
                (Ok(_), Err(_)) => Err(Error::new(ErrorKind::Io, "download the layers")),
                (held, _) => held,
            }
        });
        let goes_on = |error: &Error| {
            let kinds = [ErrorKind::Unavailable, ErrorKind::TimedOut, ErrorKind::Io];
            kinds.contains(&error.kind)
        };
        if held.as_ref().err().is_none_or(|error| !goes_on(error)) {
            fetches.iter().try_for_each(|fetch| self.discard(fetch))?;
        }
        if held.as_ref().is_err_and(|error| !goes_on(error)) {
            // Layers below one that is refused belong to nothing.
            self.remove_layers(&mut Removed::default())?;
        }
        let held = held?;
        let layers = layers.into_iter().map(|layer| layer.diff_id).collect();
        Ok((self.new_record(id, layers, run), held))
    }

    fn unpack_arrived(
        &self,
        layers: &[LayerSource],
        arrived: &mut Arrived<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Vec<OwnedFd>> {
        let mut held = Vec::with_capacity(layers.len());
        for (position, layer) in layers.iter().enumerate() {
            let place = Place { number: position + 1, of: layers.len() };
            let fetch = match &layer.packed {
                Some(packed) => arrived.wait(packed, progress)?,
                None => None,
            };
            let open = || match fetch {
                Some(fetch) => {
                    let bytes = fetch.len();
                    Ok(Packed { content: Box::new(fetch.file()?), bytes })
                }
                None => Err(Error::new(ErrorKind::Unavailable, "a layer was just removed")
                    .hint("Pull the image again.")),
            };
            held.push(self.ensure_layer(layer, open, place, progress)?);
        }
        Ok(held)
    }

    /// Writes down where it came from. A tag means one image of a platform, and no longer another.
    fn write_pulled(
        &self,
        record: &mut ImageRecord,
        from: PulledFrom,
        remote: &Remote,
    ) -> Result<()> {
        let is_moved = |known: &PulledFrom| {
            let is_same =
                (&known.repository, &known.platform) == (&from.repository, &from.platform);
            is_same && from.tag.is_some() && known.tag == from.tag
        };
        let _alone = self.alone_at_records()?;
        let name = remote.to_string();
        let is_ours = from.platform == Platform::host().to_string();
        for mut other in self.records()? {
            let before = other.clone();
            if other.id != record.id {
                other.pulled.retain(|known| !is_moved(known));
                other.names.retain(|known| *known != name || !is_ours);
            }
            if other != before {
                self.replace_record(&other)?;
            }
        }
        if let Some(known) = self.record(record.id.hex())? {
            *record = known;
        }
        let is_again = |known: &PulledFrom| {
            let (mut known, mut from) = (known.clone(), from.clone());
            (known.pulled_s, from.pulled_s) = (0, 0);
            known == from
        };
        record.pulled.retain(|known| !is_moved(known) && !is_again(known));
        record.pulled.push(from);
        // The name alone means the image of this machine's platform.
        if is_ours && !record.names.contains(&name) {
            record.names.push(name);
        }
        record.bound();
        self.replace_record(record)
    }
}

/// Which downloads are there already.
struct Arrived<'a> {
    fetches: &'a [Fetch],
    is_there: Vec<bool>,
    arrivals: Receiver<(usize, Result<()>)>,
    told_bytes: u64,
}

impl<'a> Arrived<'a> {
    fn new(fetches: &'a [Fetch], arrivals: Receiver<(usize, Result<()>)>) -> Self {
        Self { fetches, is_there: vec![false; fetches.len()], arrivals, told_bytes: 0 }
    }

    /// Waits for one. `None` where it was not missing.
    fn wait(&mut self, packed: &Digest, progress: &mut dyn Progress) -> Result<Option<&'a Fetch>> {
        let Some(number) = self.fetches.iter().position(|fetch| fetch.digest == *packed) else {
            return Ok(None);
        };
        while !self.is_there.get(number).copied().unwrap_or(true) {
            match self.arrivals.recv_timeout(TELL_EVERY) {
                Ok((arrived, outcome)) => {
                    outcome?;
                    self.note(arrived, progress);
                }
                Err(RecvTimeoutError::Timeout) => self.tell(progress),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new(ErrorKind::Io, format!("download {packed}")));
                }
            }
        }
        Ok(self.fetches.get(number))
    }

    fn note(&mut self, number: usize, progress: &mut dyn Progress) {
        if let Some(is_there) = self.is_there.get_mut(number) {
            *is_there = true;
        }
        self.tell(progress);
        if let Some(fetch) = self.fetches.get(number) {
            let (layer, bytes) = (fetch.digest.to_string(), fetch.size);
            let resumed_bytes = fetch.resumed_bytes;
            progress.tell(Event::Downloaded { layer, bytes, resumed_bytes });
        }
    }

    fn tell(&mut self, progress: &mut dyn Progress) {
        let passed = |fetch: &Fetch| fetch.passed.load(Ordering::Relaxed);
        let read_bytes: u64 = self.fetches.iter().map(passed).sum();
        if read_bytes != self.told_bytes {
            self.told_bytes = read_bytes;
            let total_bytes = self.fetches.iter().map(|fetch| fetch.size).sum();
            let layers = self.fetches.len();
            progress.tell(Event::Downloading { layers, read_bytes, total_bytes });
        }
    }
}

/// What a name means in a registry, and each document on the way verified.
fn resolve(remote: &Remote, platform: &Platform, registry: &dyn Registry) -> Result<Resolved> {
    let mut bytes = registry.manifest(remote.version())?;
    let digest = Digest::of(&bytes);
    if let Some(pinned) = &remote.digest {
        check(pinned, &digest)?;
    }
    let mut manifest = digest.clone();
    // LIMIT: a list of lists that never ends.
    for _ in 0..=MAX_INDEX_DEPTH {
        let answer: Answer = serde_json::from_slice(&bytes).map_err(|error| no_manifest(&error))?;
        match (answer.config, answer.layers, answer.manifests) {
            (Some(config), Some(layers), None) => {
                return Ok(Resolved { digest, manifest, config, layers });
            }
            (None, None, Some(manifests)) => {
                let all = bounded(Index { manifests })?;
                let chosen = choose(&all.iter().collect::<Vec<_>>(), platform)?;
                bytes = registry.manifest(chosen.digest.as_str())?;
                manifest = Digest::of(&bytes);
                check(&chosen.digest, &manifest)?;
            }
            // HOSTILE: what is both would be one thing here and another one elsewhere.
            _ => return Err(neither()),
        }
    }
    let what = "the image's lists stand in one another too deeply";
    Err(Error::new(ErrorKind::TooLarge, what).hint("Name the digest of one image of the list."))
}

fn no_manifest(error: &serde_json::Error) -> Error {
    // The text of the cause may hold what the registry answered.
    let what = format!("the registry's answer is no manifest: line {} of it", error.line());
    Error::new(ErrorKind::Protocol, what)
        .hint("Check the name of the registry, and whether something else answers in its place.")
}

fn neither() -> Error {
    let what = "the registry's answer is neither one manifest nor one list of them";
    Error::new(ErrorKind::Unsupported, what).hint(
        "Push the image anew with a tool that writes OCI manifests, or Docker's of version 2.",
    )
}

/// Fails where more would be downloaded than is believed.
fn bound(resolved: &Resolved) -> Result<()> {
    let too_large = |what: String| {
        Err(Error::new(ErrorKind::TooLarge, what).hint("Use an image with other layers."))
    };
    let layers = &resolved.layers;
    if layers.len() > MAX_LAYERS {
        return too_large(format!("the image has {} layers, not 1 to {MAX_LAYERS}", layers.len()));
    }
    if resolved.config.size > MAX_DOCUMENT_BYTES {
        return too_large(format!("its configuration has more than {MAX_DOCUMENT_BYTES} bytes"));
    }
    if layers.iter().any(|layer| layer.size > MAX_PACKED_BYTES) {
        return too_large(format!("a layer of it has more than {MAX_PACKED_BYTES} packed bytes"));
    }
    if layers.iter().map(|layer| layer.size).sum::<u64>() > MAX_IMAGE_PACKED_BYTES {
        let most = MAX_IMAGE_PACKED_BYTES;
        return too_large(format!("its layers have more than {most} packed bytes together"));
    }
    Ok(())
}

/// What is said where a registry would have to be asked.
pub(super) fn not_pulled(remote: &Remote) -> Error {
    Error::new(ErrorKind::NotFound, format!("image {remote} was not pulled yet"))
        .hint(format!("Run `cofferdam image pull {remote}`."))
}
