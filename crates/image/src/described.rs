//! What an image is, before any of its layers is looked at.

use crate::blobs::{Blobs, check, name_of};
use crate::digest::Digest;
use crate::document::{
    self, Configuration, Descriptor, Index, Manifest, Running, Saved, is_called,
};
use crate::limits::{MAX_LAYERS, MAX_MANIFESTS};
use crate::platform::{self, Platform};
use cofferdam_core::{Error, ErrorKind, ImageRun, Result};

/// How deep lists of images may stand in one another.
pub(crate) const MAX_INDEX_DEPTH: usize = 4;

/// An image: what it is called by content, and its layers, the lowest first.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) id: Digest,
    pub(crate) run: ImageRun,
    pub(crate) layers: Vec<LayerSource>,
}

/// Where a layer is, packed or not, and what it unpacks to.
#[derive(Debug, Clone)]
pub(crate) struct LayerSource {
    pub(crate) diff_id: Digest,
    /// Its name among the blobs.
    pub(crate) name: String,
    /// The digest of it as it lies there, where that was said.
    pub(crate) packed: Option<Digest>,
    /// How long it is, where that was said.
    pub(crate) size: Option<u64>,
}

/// An image of the layout of the Open Container Initiative.
pub(crate) fn of_layout(blobs: &Blobs, tag: Option<&str>) -> Result<Described> {
    let index: Index = document::read(&blobs.document("index.json")?, "index.json")?;
    let manifest = find(blobs, index, tag)?;
    let what = format!("the manifest {}", manifest.digest);
    let manifest: Manifest = document::read(&blobs.verified(&manifest)?, &what)?;
    let configuration = blobs.verified(&manifest.config)?;
    let layers = manifest.layers.into_iter().map(|layer| Place {
        name: name_of(&layer.digest),
        packed: Some(layer.digest),
        size: Some(layer.size),
    });
    described(&configuration, manifest.config.digest, layers.collect(), &Platform::host())
}

/// An image of an archive as `docker save` writes it. Its layers are named by the configuration alone.
pub(crate) fn of_saved(blobs: &Blobs, tag: Option<&str>) -> Result<Described> {
    let saved: Vec<Saved> = document::read(&blobs.document("manifest.json")?, "manifest.json")?;
    let names = |one: &Saved| one.repo_tags.clone().unwrap_or_default();
    let all: Vec<String> = saved.iter().flat_map(names).collect();
    let wanted =
        |one: &Saved| tag.is_none_or(|tag| names(one).iter().any(|name| is_called(name, tag)));
    let mut found = saved.into_iter().filter(wanted);
    let one = match (found.next(), found.next()) {
        (Some(one), None) => one,
        (None, _) => return Err(no_such_image(tag, &all)),
        (Some(_), Some(_)) => return Err(several(&all)),
    };
    let configuration = blobs.document(&one.config)?;
    let id = Digest::of(&configuration);
    // The name of the configuration is its digest, in one of two ways of writing.
    if let Some(promised) = digest_of_name(&one.config) {
        check(&promised, &id)?;
    }
    let place = |name| Place { name, packed: None, size: None };
    described(&configuration, id, one.layers.into_iter().map(place).collect(), &Platform::host())
}

/// `<digits>.json`, or `blobs/sha256/<digits>`.
fn digest_of_name(name: &str) -> Option<Digest> {
    let name = name.strip_prefix("blobs/sha256/").unwrap_or(name);
    format!("sha256:{}", name.strip_suffix(".json").unwrap_or(name)).parse().ok()
}

/// Where one layer lies.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) packed: Option<Digest>,
    pub(crate) size: Option<u64>,
}

/// An image by its configuration and by where its layers lie.
pub(crate) fn described(
    configuration: &[u8],
    id: Digest,
    places: Vec<Place>,
    wanted: &Platform,
) -> Result<Described> {
    let Configuration { architecture, os, config, rootfs } =
        document::read(configuration, "the configuration")?;
    platform::check(&os, &architecture, wanted)?;
    if places.len() != rootfs.diff_ids.len() {
        let what = format!(
            "the image has {} layers, and its configuration knows {}",
            places.len(),
            rootfs.diff_ids.len()
        );
        return Err(Error::new(ErrorKind::NotAFile, what).hint("Write the image anew."));
    }
    if places.is_empty() || places.len() > MAX_LAYERS {
        let what = format!("the image has {} layers, not 1 to {MAX_LAYERS}", places.len());
        return Err(Error::new(ErrorKind::TooLarge, what).hint("Use an image with other layers."));
    }
    let running = config.unwrap_or_default();
    refuse_nul(&running)?;
    let layers = rootfs.diff_ids.into_iter().zip(places);
    let source =
        |(diff_id, Place { name, packed, size })| LayerSource { diff_id, name, packed, size };
    Ok(Described { id, run: run_of(running), layers: layers.map(source).collect() })
}

/// Fails where a word holds a zero byte: no program can be given it.
fn refuse_nul(running: &Running) -> Result<()> {
    let Running { user, env, entrypoint, cmd, working_dir } = running;
    let lists = [("Env", env), ("Entrypoint", entrypoint), ("Cmd", cmd)];
    let lists = lists.map(|(name, list)| (name, list.as_deref().unwrap_or_default()));
    let words = [("User", user), ("WorkingDir", working_dir)];
    let words = words.map(|(name, word)| (name, word.as_slice()));
    let is_bad = |(_, list): &(&str, &[String])| list.iter().any(|word| word.contains('\0'));
    match lists.into_iter().chain(words).find(is_bad) {
        None => Ok(()),
        Some((name, _)) => {
            let what = format!("read the configuration of the image: {name} holds a NUL byte");
            let hint = "Write the image anew without it: no program can be given one.";
            Err(Error::new(ErrorKind::NotAFile, what).hint(hint))
        }
    }
}

fn run_of(running: Running) -> ImageRun {
    let pair = |text: String| text.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned()));
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    ImageRun {
        entrypoint: running.entrypoint.unwrap_or_default(),
        command: running.cmd.unwrap_or_default(),
        env: running.env.unwrap_or_default().into_iter().filter_map(pair).collect(),
        cwd: some(running.working_dir),
        user: some(running.user),
        // The layers are not there yet.
        ids: None,
    }
}

/// The one manifest that is meant.
fn find(blobs: &Blobs, index: Index, tag: Option<&str>) -> Result<Descriptor> {
    let mut index = bounded(index)?;
    let names = names(&index);
    if let Some(tag) = tag {
        index.retain(|one| one.is_called(tag));
        if index.is_empty() {
            return Err(no_such_image(Some(tag), &names));
        }
    }
    for _ in 0..MAX_INDEX_DEPTH {
        let chosen = match &index[..] {
            [only] if only.is_index() => only.clone(),
            [] => return Err(no_such_image(None, &names)),
            // Several names of one image are no choice.
            all if tag.is_none()
                && !is_one(all)
                && all.iter().all(|one| one.platform.is_none()) =>
            {
                return Err(several(&names));
            }
            all => platform::choose(&all.iter().collect::<Vec<_>>(), &Platform::host())?.clone(),
        };
        if !chosen.is_index() {
            return Ok(chosen);
        }
        index = bounded(document::read(&blobs.verified(&chosen)?, "a list of images")?)?;
    }
    let what = "the image's lists stand in one another too deeply";
    Err(Error::new(ErrorKind::NotAFile, what).hint("Write the image anew."))
}

pub(crate) fn bounded(index: Index) -> Result<Vec<Descriptor>> {
    if index.manifests.len() > MAX_MANIFESTS {
        let what = format!("the index lists more than {MAX_MANIFESTS} images");
        return Err(Error::new(ErrorKind::TooLarge, what));
    }
    Ok(index.manifests)
}

fn is_one(all: &[Descriptor]) -> bool {
    all.windows(2).all(|pair| matches!(pair, [a, b] if a.digest == b.digest))
}

fn names(index: &[Descriptor]) -> Vec<String> {
    let name =
        |one: &Descriptor| one.names().next().map_or_else(|| one.digest.to_string(), str::to_owned);
    index.iter().map(name).collect()
}

fn no_such_image(tag: Option<&str>, names: &[String]) -> Error {
    let what = match tag {
        Some(tag) => format!("there is no image {tag:?} in it; there is {}", listed(names)),
        None => "there is no image in it".to_owned(),
    };
    Error::new(ErrorKind::NotFound, what).hint("Name one that is in it after a colon.")
}

fn several(names: &[String]) -> Error {
    let what = format!("there is more than one image in it: {}", listed(names));
    Error::new(ErrorKind::Usage, what).hint("Name one of them after a colon, as in oci:DIR:NAME.")
}

fn listed(names: &[String]) -> String {
    match names.get(..20) {
        Some(first) if names.len() > 20 => format!("{}, and more", first.join(", ")),
        _ => names.join(", "),
    }
}
