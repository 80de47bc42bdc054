//! `cofferdam image`.

mod lines;
mod pull;

use crate::config::ImageWish;
use crate::surroundings::Surroundings;
use crate::{exit, images, render, report};
use clap::{Args, Subcommand};
use cofferdam_core::{ErrorKind, Image, Result};
use cofferdam_image::{ImageReport, PulledFrom, Reference, Removed, Store};
pub(crate) use lines::ImageEvent;
use lines::Lines;
use pull::PullArgs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How many digits of an id are shown.
const SHORT_ID: usize = 19;

/// Works on images: root file systems for --image that lie ready, unpacked once for all.
///
/// Example: cofferdam image ls
#[derive(Debug, Args)]
#[command(subcommand_required = true, disable_help_subcommand = true)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ImageArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: ImageVerb,
}

/// What to do with images.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageVerb {
    /// Lists the images that lie ready, the newest first.
    ///
    /// Example: cofferdam image ls
    Ls(ListArgs),
    /// Makes an image ready, which --image does by itself, and prints its id.
    ///
    /// Takes what --image takes. With --json it prints an event a line while it unpacks, and the image
    /// in the last line.
    ///
    /// Example: cofferdam image import oci:images/debian
    Import(NamedArgs),
    /// Pulls an image from a registry, or what its tag means now, and prints its id.
    ///
    /// REFERENCE is written as for docker: debian:12, HOST:PORT/REPOSITORY:TAG, NAME@sha256:DIGITS.
    /// Every part is checked against its digest; a layer that lies there is not downloaded again, and an
    /// interrupted pull goes on where it stopped. Credentials are those of `docker login` and
    /// `podman login`: $REGISTRY_AUTH_FILE, $DOCKER_CONFIG/config.json, ~/.docker/config.json,
    /// $XDG_RUNTIME_DIR/containers/auth.json, the first that knows the registry, with their helpers.
    /// HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR are honoured. With --json it prints an
    /// event a line, and the image in the last line.
    ///
    /// Example: cofferdam image pull debian:12
    Pull(PullArgs),
    /// Says what an image is made of, how it wants to be run, and what of it was left out.
    ///
    /// Example: cofferdam image inspect sha256:12ab
    Inspect(NamedArgs),
    /// Removes an image that no session and no sandbox uses, and the layers that no other one has.
    ///
    /// Example: cofferdam image rm sha256:12ab
    Rm(NamedArgs),
    /// Removes all images that no session and no sandbox uses.
    ///
    /// Example: cofferdam image gc
    Gc(ListArgs),
}

/// Of verbs that name nothing.
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ListArgs {
    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Of verbs that name an image.
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct NamedArgs {
    /// The image: a reference, or the beginning of an id.
    #[arg(value_name = "IMAGE")]
    pub(crate) image: String,
    /// Prints JSON on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// An image as `image ls`, `image inspect` and `image import` print it with `--json`. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImageShown {
    /// What tells it from all others.
    pub(crate) id: String,
    /// What it was asked for as.
    pub(crate) names: Vec<String>,
    /// Where it was pulled from, the latest last; empty for one that was not.
    pub(crate) pulled: Vec<PulledShown>,
    /// Bytes of all its layers.
    pub(crate) bytes: u64,
    /// Whether a sandbox lies on it now.
    pub(crate) in_use: bool,
    /// When it came, in seconds since 1970.
    pub(crate) imported_s: u64,
    /// What leads every command.
    pub(crate) entrypoint: Vec<String>,
    /// The command where none is given.
    pub(crate) command: Vec<String>,
    /// Variables, as NAME=VALUE.
    pub(crate) env: Vec<String>,
    /// Where commands start; null for the workspace.
    pub(crate) cwd: Option<String>,
    /// Who commands are to be; null for its root.
    pub(crate) user: Option<String>,
    /// Its layers, the lowest first.
    pub(crate) layers: Vec<LayerShown>,
}

/// Where an image was pulled from. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PulledShown {
    /// The registry and the repository.
    pub(crate) repository: String,
    /// The tag that meant it; null where it was asked for by digest.
    pub(crate) tag: Option<String>,
    /// The digest that the tag meant, of a manifest or of a list of them.
    pub(crate) digest: String,
    /// The digest of the image's own manifest.
    pub(crate) manifest: String,
    /// What it is for.
    pub(crate) platform: String,
    /// When it was pulled, in seconds since 1970.
    pub(crate) pulled_s: u64,
}

/// A layer of an image. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LayerShown {
    /// The digest of what it unpacks to.
    pub(crate) diff_id: String,
    /// Bytes of its files.
    pub(crate) bytes: u64,
    /// How many entries it has.
    pub(crate) entries: u64,
    /// Devices and pipes that were not made, and the first of their names.
    pub(crate) left_out: u64,
    /// The first of their names.
    pub(crate) left_out_names: Vec<String>,
    /// Entries whose set-id bits were dropped.
    pub(crate) set_ids_dropped: u64,
    /// Extended attributes that were dropped.
    pub(crate) attributes_dropped: u64,
    /// Entries of other owners than user and group 0, which belong to one owner here.
    pub(crate) other_owners: u64,
}

/// What `image ls --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImageList {
    /// The images, the newest first.
    pub(crate) images: Vec<ImageShown>,
}

/// What `image rm` and `image gc` print with `--json`. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImagesRemoved {
    /// Ids of images.
    pub(crate) images: Vec<String>,
    /// Digests of layers.
    pub(crate) layers: Vec<String>,
}

/// Does it.
pub(super) fn perform(args: &ImageArgs) -> Result<u8> {
    let surroundings = Surroundings::of_this_process();
    let state = surroundings.state_directory()?;
    match &args.verb {
        ImageVerb::Ls(args) => list(&images::store(&state)?.list()?, args.json)?,
        ImageVerb::Import(args) => {
            let from = surroundings.directory()?.to_owned();
            let wish = ImageWish { reference: args.image.clone(), from };
            import(&wish, &surroundings, args.json)?;
        }
        ImageVerb::Pull(args) => pull::perform(args, &surroundings)?,
        ImageVerb::Inspect(args) => {
            let store = images::store(&state)?;
            let shown = shown(store.find(&named(&args.image, &surroundings, &store))?);
            match args.json {
                true => render::print_json(&shown)?,
                false => render::print_text(&inspected(&shown))?,
            }
        }
        ImageVerb::Rm(args) => {
            let store = images::store(&state)?;
            let name = named(&args.image, &surroundings, &store);
            let removed = store.remove(&name, &images::of_sessions()?)?;
            tell(removed, args.json)?;
        }
        ImageVerb::Gc(args) => {
            let removed = images::store(&state)?.collect(&images::of_sessions()?)?;
            tell(removed, args.json)?;
        }
    }
    Ok(exit::DONE)
}

/// An image by the name that it was given: relative paths begin here, as they did then.
fn named(text: &str, surroundings: &Surroundings, store: &Store) -> String {
    // One that is there twice is there.
    let is_there = |name: &str| match store.find(name) {
        Ok(_) => true,
        Err(error) => error.kind != ErrorKind::NotFound,
    };
    match surroundings.directory().and_then(|here| Reference::parse(text, here)) {
        Ok(reference) if is_there(&reference.to_string()) => reference.to_string(),
        // What could be in a registry may as well be the beginning of an id.
        Ok(Reference::Registry(_)) | Err(_) => text.to_owned(),
        // An image is known by what it is listed as, whatever the path would be called today.
        Ok(_) if is_there(text) => text.to_owned(),
        Ok(reference) => reference.to_string(),
    }
}

fn import(wish: &ImageWish, surroundings: &Surroundings, is_json: bool) -> Result<()> {
    let (image, held) = match is_json {
        true => images::import(wish, surroundings, &mut Lines)?,
        false => images::import(wish, surroundings, &mut images::Bar::new())?,
    };
    // Nobody lies on it yet.
    drop(held);
    if image.id.starts_with("dir:") {
        report::note("a plain directory is used where it is, so nothing was imported");
    }
    print(&image, &surroundings.state_directory()?, is_json)
}

/// Prints the id of an image that is ready, or the whole of it.
fn print(image: &Image, state: &Path, is_json: bool) -> Result<()> {
    if !is_json {
        return render::print_text(&format!("{}\n", render::plain(&image.id)));
    }
    match images::store(state)?.find(&image.id) {
        Ok(found) => render::print_json(&shown(found)),
        // One that is used where it is has no record.
        Err(_) => render::print_json(&serde_json::json!({ "id": image.id })),
    }
}

fn list(images: &[ImageReport], is_json: bool) -> Result<()> {
    let images: Vec<ImageShown> = images.iter().cloned().map(shown).collect();
    if is_json {
        return render::print_json(&ImageList { images });
    }
    let titles = ["ID", "SIZE", "LAYERS", "IN USE", "DIGEST", "NAMES"].map(str::to_owned);
    let mut rows = vec![titles.to_vec()];
    rows.extend(images.iter().map(|image| {
        let id = image.id.get(..SHORT_ID).unwrap_or(&image.id).to_owned();
        let names = render::plain(&image.names.join(" ")).into_owned();
        let in_use = if image.in_use { "yes" } else { "no" };
        let digest = image.pulled.last().map_or("-", |pulled| &pulled.digest);
        let digest = digest.get(..SHORT_ID).unwrap_or(digest).to_owned();
        let (bytes, layers) = (size(image.bytes), image.layers.len().to_string());
        vec![id, bytes, layers, in_use.to_owned(), digest, names]
    }));
    render::print_text(&render::table(&rows))
}

fn inspected(image: &ImageShown) -> String {
    let mut lines = vec![format!("id: {}", image.id)];
    lines.extend(image.names.iter().map(|name| format!("name: {name}")));
    lines.extend(image.pulled.iter().map(|pulled| {
        let PulledShown { repository, tag, digest, platform, .. } = pulled;
        let tag = tag.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
        format!("pulled: {repository}{tag}, {digest}, {platform}")
    }));
    lines.push(format!("entry point: {}", words(&image.entrypoint)));
    lines.push(format!("command: {}", words(&image.command)));
    lines.push(format!("working directory: {}", image.cwd.as_deref().unwrap_or("-")));
    lines.push(format!("user: {}", image.user.as_deref().unwrap_or("-")));
    lines.extend(image.env.iter().map(|variable| format!("variable: {variable}")));
    for layer in &image.layers {
        lines.push(format!("layer: {}, {}", layer.diff_id, size(layer.bytes)));
        let dropped = [
            (layer.left_out, "devices or pipes were not made"),
            (layer.set_ids_dropped, "set-id bits were dropped"),
            (layer.attributes_dropped, "extended attributes were dropped"),
            (layer.other_owners, "entries have another owner than they said"),
        ];
        let told = dropped.iter().filter(|(count, _)| *count > 0);
        lines.extend(told.map(|(count, what)| format!("  {count} {what}")));
    }
    let plain = lines.iter().map(|line| format!("{}\n", render::plain(line)));
    plain.collect()
}

fn words(words: &[String]) -> String {
    if words.is_empty() { "-".to_owned() } else { words.join(" ") }
}

/// In powers of 1024, rounded up to what a person can read.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let unit = UNITS.iter().find(|(unit, _)| bytes >= *unit);
    unit.map_or_else(
        || bytes.to_string(),
        |(unit, name)| format!("{}{name}", bytes.div_ceil(*unit)),
    )
}

fn tell(removed: Removed, is_json: bool) -> Result<()> {
    let Removed { images, layers } = removed;
    match is_json {
        true => render::print_json(&ImagesRemoved { images, layers }),
        false => render::print_text(&images.iter().map(|id| format!("{id}\n")).collect::<String>()),
    }
}

fn pulled_shown(pulled: PulledFrom) -> PulledShown {
    let PulledFrom { repository, tag, digest, manifest, platform, pulled_s } = pulled;
    let (digest, manifest) = (digest.to_string(), manifest.to_string());
    PulledShown { repository, tag, digest, manifest, platform, pulled_s }
}

fn shown(report: ImageReport) -> ImageShown {
    let ImageReport { image, layers, bytes, in_use } = report;
    ImageShown {
        id: image.id.to_string(),
        names: image.names,
        pulled: image.pulled.into_iter().map(pulled_shown).collect(),
        bytes,
        in_use,
        imported_s: image.imported_s,
        entrypoint: image.run.entrypoint,
        command: image.run.command,
        env: image.run.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        cwd: image.run.cwd,
        user: image.run.user,
        layers: layers
            .into_iter()
            .map(|layer| LayerShown {
                diff_id: layer.diff_id.to_string(),
                bytes: layer.tally.bytes,
                entries: layer.tally.entries,
                left_out: layer.tally.left_out,
                left_out_names: layer.tally.left_out_names,
                set_ids_dropped: layer.tally.set_ids,
                attributes_dropped: layer.tally.attributes,
                other_owners: layer.tally.other_owners,
            })
            .collect(),
    }
}
