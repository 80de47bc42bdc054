//! A workspace whose names are held: protected control files, and places that something is mounted on.

use crate::control_files::{self, AbsentName, ControlFiles, Nature, PinnedName};
use crate::pin_watch::{PinWatch, identities};
use crate::placeholders::{Identity, Placeholders};
use crate::state::StateDirectory;
use crate::view::{Mounted, View, WorkspaceView, missing_on_the_way};
use cofferdam_core::{Error, ErrorKind, Result, SensitiveWrites, Spec};
use cofferdam_guestd::apply::LostPin;
use cofferdam_wire::plan::Access;
use rustix::fs::{AtFlags, FileType};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A workspace of which a sandbox holds names.
#[derive(Debug)]
pub(crate) struct GuardedWorkspace {
    /// Its host path.
    path: String,
    placeholders: Placeholders,
    /// The control files, where they are protected.
    control: Option<ControlFiles>,
    mounts: Vec<Mounted>,
    /// What is watched on the host, parents first.
    names: Vec<PinnedName>,
    /// What those names were.
    identities: BTreeMap<String, Option<Identity>>,
}

/// The workspace whose control files have to be protected.
pub(crate) fn protected_path<'a>(spec: &Spec, view: &'a View) -> Option<&'a str> {
    let protects = spec.sensitive_writes == SensitiveWrites::Protected
        && spec.profile.writes_workspace()
        && spec.workspace.written().is_some();
    path(view).filter(|_| protects)
}

fn path(view: &View) -> Option<&str> {
    match &view.workspace {
        WorkspaceView::Directory(directory) => Some(&directory.path),
        WorkspaceView::Private => None,
    }
}

/// Makes something stand at every name that is held and absent. `None` where no name is held on the host:
/// what lies under a layer needs nothing.
pub(crate) fn guard(
    spec: &Spec,
    view: &View,
    state: &StateDirectory,
) -> Result<Option<GuardedWorkspace>> {
    let protected = protected_path(spec, view);
    let lands = spec.workspace.written().is_some();
    let mounts = if lands { view.mounts.clone() } else { Vec::new() };
    let held = path(view).filter(|_| protected.is_some() || !mounts.is_empty());
    let Some(path) = held else { return Ok(None) };
    // ORDER: a share in the placeholders first, so that none found now vanishes by another's end.
    let placeholders = Placeholders::hold(state, Path::new(path))?;
    let control = protected.map(|_| control_files::find(placeholders.directory())).transpose()?;
    let control = match control {
        None => None,
        Some(found) => {
            let unmade = placeholders.make(&found.absent)?;
            Some(found.without(unmade))
        }
    };
    let names = names(control.as_ref(), &mounts);
    let mut guarded = GuardedWorkspace {
        path: path.to_owned(),
        placeholders,
        control,
        mounts,
        names,
        identities: BTreeMap::new(),
    };
    guarded.make_room()?;
    guarded.identities = identities(guarded.placeholders.directory(), &guarded.names)?;
    Ok(Some(guarded))
}

/// Everything that is watched, parents first. The way to a mount is not held, or nothing could be brought
/// beside it by a rename: where it is moved, the mount is made again.
fn names(control: Option<&ControlFiles>, mounts: &[Mounted]) -> Vec<PinnedName> {
    let mut names = BTreeMap::new();
    for mounted in mounts {
        let ends = mounted.below.match_indices('/').map(|(end, _)| end);
        let above = ends.filter_map(|end| mounted.below.get(..end));
        names.extend(above.map(|above| (above.to_owned(), Access::ReadWrite)));
        names.insert(mounted.below.clone(), Access::ReadOnly);
    }
    names.extend(pins(control).map(|pin| (pin.path.clone(), pin.access)));
    names.into_iter().map(|(path, access)| PinnedName { path, access }).collect()
}

fn pins(control: Option<&ControlFiles>) -> impl Iterator<Item = &PinnedName> {
    control.into_iter().flat_map(|control| &control.pins)
}

impl GuardedWorkspace {
    /// The control files as they were, where they are protected.
    pub(crate) fn control(&self) -> Option<&ControlFiles> {
        self.control.as_ref()
    }

    /// Starts to watch the names.
    pub(crate) fn watch(&self) -> Result<PinWatch> {
        PinWatch::new(self.placeholders.directory(), &self.names)
    }

    /// Names that are not what they were at first.
    pub(crate) fn changed(&self) -> Result<Vec<String>> {
        let now = identities(self.placeholders.directory(), &self.names)?;
        let changed = self.identities.iter().filter(|(path, was)| now.get(*path) != Some(*was));
        Ok(changed.map(|(path, _)| path.clone()).collect())
    }

    /// Makes a placeholder for every name that has vanished.
    pub(crate) fn renew(&self) -> Result<()> {
        if let Some(before) = &self.control {
            let mut now = control_files::find(self.placeholders.directory())?;
            // What has no pin gains nothing: a repository that was made during the run, for one.
            let pins: BTreeSet<&str> = before.pins.iter().map(|pin| pin.path.as_str()).collect();
            now.absent.retain(|name| pins.contains(name.path.as_str()));
            self.placeholders.make(&now.absent)?;
        }
        self.make_room()
    }

    /// Makes directories to mount on where there are none.
    fn make_room(&self) -> Result<()> {
        for mounted in &self.mounts {
            let missing = missing_on_the_way(&self.path, &mounted.below)?;
            let absent = |path| AbsentName { path, nature: Nature::MountPoint };
            let absent: Vec<AbsentName> = missing.into_iter().map(absent).collect();
            let unmade = self.placeholders.make(&absent)?;
            let directory = self.placeholders.directory();
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let stat = rustix::fs::statat(directory, mounted.below.as_str(), flags);
            let is_there =
                stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
            if !is_there {
                let why =
                    unmade.exposed.first().map_or("it cannot be written there", |name| &name.why);
                let what =
                    format!("no directory to mount on can be made at {}: {why}", mounted.path);
                return Err(Error::new(ErrorKind::Denied, what)
                    .hint("Make it yourself, or mount elsewhere."));
            }
        }
        Ok(())
    }

    /// What has to be mounted again inside for these names, in a workspace that is shown at `places`.
    pub(crate) fn lost(&self, changed: &[String], places: &[&String]) -> Vec<LostPin> {
        let lost = |name: &String| {
            let mounted = self.mounts.iter().find(|mounted| mounted.below == *name);
            let pin = pins(self.control.as_ref()).find(|pin| pin.path == *name);
            match (mounted, pin) {
                (Some(mounted), _) => Some((Access::ReadOnly, Some(mounted.place.clone()))),
                (None, Some(pin)) => Some((pin.access, None)),
                (None, None) => None,
            }
        };
        let lost = changed.iter().filter_map(|name| Some((name, lost(name)?)));
        lost.flat_map(|(name, (access, from))| {
            let at = move |place: &&String| LostPin {
                path: format!("{place}/{name}"),
                access,
                from: from.clone(),
            };
            places.iter().map(at)
        })
        .collect()
    }

    /// Where it is on the host.
    pub(crate) fn path(&self) -> &String {
        &self.path
    }

    /// Gives up the names. Answers the control files that appeared, and what could not be removed.
    pub(crate) fn leave(self) -> (Vec<String>, Option<Error>) {
        let directory = rustix::io::fcntl_dupfd_cloexec(self.placeholders.directory(), 3);
        let left = self.placeholders.remove().err();
        // ORDER: after the placeholders are gone, which are no news.
        let appeared = match (self.control, directory) {
            (Some(before), Ok(directory)) => control_files::appeared(&before, &directory),
            (_, _) => Ok(Vec::new()),
        };
        // HOSTILE: what was made inside may be what no look succeeds at.
        let untold =
            |error: Error| vec![format!("(the workspace cannot be looked at: {})", error.chain())];
        (appeared.unwrap_or_else(untold), left)
    }
}
