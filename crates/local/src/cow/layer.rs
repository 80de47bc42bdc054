//! The layer of a kept sandbox: made once, and found again by every sandbox that comes after.

use super::base::{Base, FOLDER, LayerOwner, UPPER, WORK, Xattrs, changes_of_tree_until_ns};
use super::passing;
use super::tier::{Making, choose};
use super::view::shown;
use crate::host::HostFacts;
use crate::layers;
use crate::placeholders::Standing;
use crate::state::StateDirectory;
use crate::view::{
    Found, Place as ViewPlace, Shown, View, find_listed, find_workspace, look as look_at_all,
};
use cofferdam_core::{Error, ErrorKind, LayerNote, Result, Spec, Workspace};
use cofferdam_wire::plan::{Access, Owner};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Timestamps, Uid};
use rustix::io::Errno;
use std::path::Path;

/// The folder's permission bits. A sandbox of the host's root goes through it as somebody else; the
/// directory above lets nobody in.
const FOLDER_MODE: u32 = 0o711;
/// A copy until it is whole.
const FRESH_UPPER: &str = ".upper";

/// Makes sure that there is a layer where this spec needs one that stays. Does nothing otherwise, and
/// changes nothing of one that is there. Says whether there was none.
///
/// ORDER: what the layer lies on is on disk before the layer can be written to.
pub(crate) fn ensure(spec: &Spec, kept: Option<&Path>, state: &StateDirectory) -> Result<bool> {
    let (Workspace::CopyOnWrite(workspace), Some(kept)) = (&spec.workspace, kept) else {
        return Ok(false);
    };
    let facts = HostFacts::gather();
    if facts.obstacle().is_some() {
        // A layer that nobody could see. Whoever plans the sandbox says so.
        return Ok(false);
    }
    let place = Place::open(kept)?;
    let found = find_workspace(workspace)?;
    let base = Base::read(&place.folder)?;
    let making = match &base {
        Some(base) if base.copied.is_some() => return place.has_copy(kept).map(|()| false),
        Some(_) => Making::Overlay,
        None => choose(spec, &facts, workspace, Some(kept))?,
    };
    match making {
        Making::Copy(why) => place.copy((spec, state), &facts, &found, why)?,
        Making::Overlay => place.overlay(&found, base.is_none())?,
    }
    place.settle(kept)?;
    Ok(base.is_none())
}

/// Makes sure that the layer in this folder has what the kernel works in, which goes with what it notes there
/// for the layer that was.
pub(crate) fn ensure_work(folder: &Path) -> Result<()> {
    let failed = |errno| io("make the layer in", folder, errno);
    let opened = open(CWD, folder).map_err(failed)?;
    let damaged =
        || Error::new(ErrorKind::Io, format!("the layer in {} is damaged", folder.display()));
    let LayerOwner { uid, gid } = Base::read(&opened)?.ok_or_else(damaged)?.owner;
    let work = New { owner: Some((uid, gid)), ..New::of(0o700) };
    made(opened.as_fd(), WORK, work).map(drop).map_err(failed)
}

/// Makes a copy in the place of an overlay that the kernel refuses and that nobody ever saw.
pub(crate) fn copy_instead(
    spec: &Spec,
    kept: &Path,
    why: String,
    state: &StateDirectory,
) -> Result<()> {
    let Workspace::CopyOnWrite(workspace) = &spec.workspace else { return Ok(()) };
    let place = Place::open(kept)?;
    let found = find_workspace(workspace)?;
    place.copy((spec, state), &HostFacts::gather(), &found, Some(why))?;
    place.settle(kept)
}

/// Where the layer of a kept sandbox is made.
struct Place {
    above: OwnedFd,
    folder: OwnedFd,
}

impl Place {
    fn open(kept: &Path) -> Result<Self> {
        let failed = |errno| io("make the layer in", kept, errno);
        let above = open(CWD, kept).map_err(failed)?;
        let folder = made(above.as_fd(), FOLDER, New::of(FOLDER_MODE)).map_err(failed)?;
        // Whoever made it for us, as a fork does.
        rustix::fs::fchmod(&folder, Mode::from(FOLDER_MODE)).map_err(failed)?;
        Ok(Self { above, folder })
    }

    fn overlay(&self, found: &Found, is_new: bool) -> Result<()> {
        let failed = |errno| io("make the layer of", Path::new(&found.path), errno);
        if is_new {
            base(found, changes_of_tree_until_ns(found.changed_ns())).write(&self.folder)?;
        }
        let owner = owner(found);
        // It stands for the workspace itself, of which nothing is changed yet.
        let upper = New { owner: Some(owner), times: Some(found.times()), ..New::of(found.mode()) };
        made(self.folder.as_fd(), UPPER, upper).map_err(failed)?;
        let work = New { owner: Some(owner), ..New::of(0o700) };
        made(self.folder.as_fd(), WORK, work).map_err(failed)?;
        Ok(())
    }

    /// ORDER: the copy and its listing are there before anything says that they are. What one left who
    /// died in the middle is removed.
    fn copy(
        &self,
        (spec, state): (&Spec, &StateDirectory),
        facts: &HostFacts,
        found: &Found,
        why: Option<String>,
    ) -> Result<()> {
        // What is no workspace is not copied first.
        look_at_all(spec, facts)?;
        let failed = |errno| io("make a copy of", Path::new(&found.path), errno);
        let clear = |name: &str| layers::remove_tree(&self.folder, name.as_bytes());
        [WORK, UPPER, FRESH_UPPER].into_iter().try_for_each(clear).map_err(failed)?;
        let (device, inode) = found.identity();
        let workspace = layers::open_workspace(&found.path, device, inode)?;
        let made_ns = changes_of_tree_until_ns(found.changed_ns());
        let placeholders = Standing::read(state, (device, inode))?;
        let source = (&workspace, &placeholders);
        let copied = match layers::copy_whole(source, &self.folder, FRESH_UPPER) {
            Ok(copied) => copied,
            Err(error) => {
                // The error that made this necessary is the one to tell.
                let _ = clear(FRESH_UPPER);
                return Err(error);
            }
        };
        rustix::fs::renameat(&self.folder, FRESH_UPPER, &self.folder, UPPER).map_err(failed)?;
        Base { copied: Some(passing::note(&copied, why)), ..base(found, made_ns) }
            .write(&self.folder)
    }

    /// A copy that is not there is no empty one.
    fn has_copy(&self, kept: &Path) -> Result<()> {
        match open(&self.folder, UPPER) {
            Ok(_) => Ok(()),
            Err(errno) => Err(io("open the copy of the workspace in", kept, errno)),
        }
    }

    fn settle(&self, kept: &Path) -> Result<()> {
        rustix::fs::fsync(&self.folder)
            .and_then(|()| rustix::fs::fsync(&self.above))
            .map_err(|errno| io("make the layer in", kept, errno))
    }
}

fn base(found: &Found, made_ns: u64) -> Base {
    let ((device, inode), (uid, gid)) = (found.identity(), owner(found));
    Base {
        workspace: found.path.clone(),
        device,
        inode,
        made_ns,
        xattrs: Xattrs::User,
        owner: LayerOwner { uid, gid },
        copied: None,
    }
}

/// The layer of a sandbox that is kept.
pub(crate) enum Kept {
    /// The directory that holds `upper` and `work`.
    Overlay(Shown),
    /// The copy.
    Copy(Shown, LayerNote),
}

/// Looks at the layer of this view's workspace. `None` where there is none that stays.
///
/// Fails where the workspace is not the directory any more that the layer lies on.
pub(crate) fn look(view: &View, kept: Option<&Path>, facts: &HostFacts) -> Result<Option<Kept>> {
    let (Some((path, _)), Some(kept)) = (view.workspace.beside(), kept) else { return Ok(None) };
    if facts.obstacle().is_some() {
        return Ok(None);
    }
    let folder = find_listed(&kept.join(FOLDER), "the layer")?;
    let opened =
        open(CWD, Path::new(&folder.path)).map_err(|errno| io("open the layer in", kept, errno))?;
    let damaged = || Error::new(ErrorKind::Io, format!("the layer in {} is damaged", folder.path));
    let base = Base::read(&opened)?.ok_or_else(damaged)?;
    let there = view.places.iter().filter_map(ViewPlace::shown).find(|there| there.path == path);
    let now = there.and_then(|there| there.identity);
    if base.workspace != path || now != Some((base.device, base.inode)) {
        let was = &base.workspace;
        let what = format!("workspace {path} is not the directory {was} any more that it was");
        return Err(Error::new(ErrorKind::Conflict, what).hint(
            "Put the old directory back in its place; or remove the session, and with it what it \
             changed.",
        ));
    }
    let LayerOwner { uid, gid } = base.owner;
    if let Some(note) = base.copied {
        let copy = find_listed(&kept.join(FOLDER).join(UPPER), "the copy of the workspace")?;
        return Ok(Some(Kept::Copy(shown(&copy, view, (uid, gid), facts), note)));
    }
    Ok(Some(Kept::Overlay(Shown {
        source: folder.path.clone(),
        path: path.to_owned(),
        access: Access::ReadWrite,
        owner: if facts.is_root() { Owner::Mapped { uid, gid } } else { Owner::Same },
        identity: Some(folder.identity()),
        why: "what is written to the workspace, on disk, so that it outlives the sandbox"
            .to_owned(),
    })))
}

/// Who owns what the layer gains: as root the owner of the workspace, because it is mounted so.
fn owner(workspace: &Found) -> (u32, u32) {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if uid.is_root() { workspace.owner() } else { (uid.as_raw(), gid.as_raw()) }
}

/// What a directory is like that is made.
struct New {
    mode: u32,
    owner: Option<(u32, u32)>,
    times: Option<Timestamps>,
}

impl New {
    fn of(mode: u32) -> Self {
        Self { mode, owner: None, times: None }
    }
}

/// A directory that gets its name when it is whole. One that is there is kept as it is.
fn made(above: BorrowedFd<'_>, name: &str, new: New) -> rustix::io::Result<OwnedFd> {
    match open(above, name) {
        Err(Errno::NOENT) => {}
        other => return other,
    }
    let fresh = format!(".{name}");
    match rustix::fs::unlinkat(above, &*fresh, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    rustix::fs::mkdirat(above, &*fresh, Mode::RWXU)?;
    let directory = open(above, &*fresh)?;
    if let Some((uid, gid)) = new.owner {
        rustix::fs::fchown(&directory, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    rustix::fs::fchmod(&directory, Mode::from(new.mode))?;
    if let Some(times) = &new.times {
        rustix::fs::futimens(&directory, times)?;
    }
    rustix::fs::renameat(above, &*fresh, above, name)?;
    Ok(directory)
}

fn open(at: impl AsFd, path: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, path, flags, Mode::empty())
}

fn io(what: &str, path: &Path, errno: Errno) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {}", path.display()))
        .source(std::io::Error::from(errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;
    use crate::view::look as look_at;
    use cofferdam_core::{Caller, LayerChoice};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::process::Command;

    fn ensure(spec: &Spec, kept: Option<&Path>) -> Result<bool> {
        let state = TestDirectory::new("layer-state");
        super::ensure(spec, kept, &StateDirectory::open(&state.path().join("s")).unwrap())
    }

    fn spec(workspace: &Path) -> Spec {
        Spec::new(Workspace::CopyOnWrite(workspace.to_owned()), Caller::default())
    }

    /// A workspace and an empty directory beside it.
    fn ground(name: &str) -> (TestDirectory, std::path::PathBuf, std::path::PathBuf) {
        let directory = TestDirectory::new(name);
        let root = directory.path().canonicalize().unwrap();
        let (workspace, kept) = (root.join("w"), root.join("kept"));
        std::fs::create_dir(&workspace).unwrap();
        std::fs::create_dir(&kept).unwrap();
        (directory, workspace, kept)
    }

    #[test]
    fn a_layer_is_made_once_and_found_again() {
        let (_directory, workspace, kept) = ground("layer");
        std::fs::set_permissions(&workspace, std::fs::Permissions::from_mode(0o750)).unwrap();
        ensure(&spec(&workspace), Some(&kept)).unwrap();
        let folder = open(CWD, kept.join(FOLDER)).unwrap();
        let base = Base::read(&folder).unwrap().unwrap();
        assert_eq!(base.workspace, workspace.to_str().unwrap());
        let real = std::fs::metadata(&workspace).unwrap();
        assert_eq!((base.device, base.inode), (real.dev(), real.ino()));
        let upper = kept.join("cow/upper");
        assert_eq!(std::fs::metadata(&upper).unwrap().mode() & 0o7777, 0o750);
        assert_eq!(std::fs::metadata(&upper).unwrap().uid(), real.uid());
        // What the sandbox made of it stays.
        std::fs::set_permissions(&upper, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(upper.join("f"), "x").unwrap();
        std::fs::create_dir(kept.join("cow/.work")).unwrap();
        ensure(&spec(&workspace), Some(&kept)).unwrap();
        assert_eq!(Base::read(&folder).unwrap(), Some(base));
        assert_eq!(std::fs::metadata(&upper).unwrap().mode() & 0o7777, 0o700);
        assert!(upper.join("f").exists());
    }

    #[test]
    fn a_workspace_that_was_replaced_is_refused_and_the_same_one_is_not() {
        let (_directory, workspace, kept) = ground("layer-replaced");
        let facts = HostFacts::gather();
        let spec = spec(&workspace);
        ensure(&spec, Some(&kept)).unwrap();
        let found = || look(&look_at(&spec, &facts).unwrap(), Some(&kept), &facts);
        let Kept::Overlay(layer) = found().unwrap().unwrap() else { panic!("an overlay") };
        assert_eq!(layer.source, kept.join(FOLDER).to_str().unwrap());
        std::fs::rename(&workspace, workspace.with_extension("old")).unwrap();
        std::fs::create_dir(&workspace).unwrap();
        // One that exists is not made for another directory.
        ensure(&spec, Some(&kept)).unwrap();
        let error = found().err().unwrap();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert!(error.message.contains(workspace.to_str().unwrap()), "{error}");
        std::fs::remove_dir(&workspace).unwrap();
        std::fs::rename(workspace.with_extension("old"), &workspace).unwrap();
        assert!(found().is_ok());
    }

    #[test]
    fn a_copy_is_whole_or_made_anew_and_never_taken_for_an_empty_one() {
        let (_directory, workspace, kept) = ground("layer-copy");
        if HostFacts::gather().obstacle().is_some() {
            return;
        }
        std::fs::write(workspace.join("f"), "real").unwrap();
        let spec = Spec { layer: LayerChoice::Copy, ..spec(&workspace) };
        // As one leaves it who died in the middle: there is no base yet.
        std::fs::create_dir_all(kept.join("cow/.upper/half")).unwrap();
        std::fs::create_dir_all(kept.join("cow/upper/old")).unwrap();
        assert!(ensure(&spec, Some(&kept)).unwrap());
        let upper = kept.join("cow/upper");
        let names = |directory: &Path| -> Vec<_> {
            let mut all: Vec<_> =
                std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name()).collect();
            all.sort();
            all
        };
        assert_eq!(names(&upper), ["f"]);
        assert_eq!(names(&kept.join("cow")), ["base.json", "listing", "upper"]);
        // What the sandbox made of it stays.
        std::fs::write(upper.join("f"), "mine").unwrap();
        assert!(!ensure(&spec, Some(&kept)).unwrap());
        let facts = HostFacts::gather();
        let found = look(&look_at(&spec, &facts).unwrap(), Some(&kept), &facts).unwrap().unwrap();
        let Kept::Copy(shown, note) = found else { panic!("a copy") };
        assert_eq!(
            (shown.source.as_str(), shown.path.as_str()),
            (upper.to_str().unwrap(), workspace.to_str().unwrap())
        );
        assert_eq!((note.why, note.left_out), (None, Vec::new()));
        assert_eq!(std::fs::read(upper.join("f")).unwrap(), b"mine");
        std::fs::rename(&upper, kept.join("lost")).unwrap();
        assert_eq!(ensure(&spec, Some(&kept)).unwrap_err().kind, ErrorKind::Io);
        assert!(!upper.exists());
    }

    /// What is mounted there goes with this.
    struct Mounted(std::path::PathBuf);

    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).status();
        }
    }

    /// An ext4 whose files have no time below a second, where it can be made.
    fn whole_seconds(directory: &Path) -> Option<Mounted> {
        let (image, at) = (directory.join("image"), directory.join("mounted"));
        std::fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
        std::fs::create_dir(&at).unwrap();
        let does = |program: &str, words: &[&str], last: &[&Path]| {
            // An ordinary user's PATH may lack where such tools are.
            let path = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";
            let mut command = Command::new("env");
            command.arg(format!("PATH={path}")).arg(program).args(words).args(last);
            let output = command.output();
            output.is_ok_and(|output| output.status.success())
        };
        let is_there = does("mkfs.ext4", &["-q", "-I", "128"], &[&image])
            && does("mount", &["-o", "loop"], &[&image, &at]);
        is_there.then_some(Mounted(at))
    }

    #[test]
    fn what_is_changed_within_a_second_is_news_where_times_are_whole_seconds() {
        let directory = TestDirectory::new("layer-seconds");
        let root = directory.path().canonicalize().unwrap();
        let Some(mounted) = whole_seconds(&root) else {
            println!("skipped: no ext4 can be mounted here");
            return;
        };
        let workspace = mounted.0.join("w");
        for (choice, kept) in [
            (LayerChoice::Auto, root.join("kept")),
            // Then the copy has no finer times either.
            (LayerChoice::Copy, mounted.0.join("kept")),
        ] {
            std::fs::create_dir_all(&workspace).unwrap();
            std::fs::create_dir(&kept).unwrap();
            let both = |f: &str, g: &str, at: &Path| {
                std::fs::write(at.join("f"), f).unwrap();
                std::fs::write(at.join("g"), g).unwrap();
            };
            let upper = kept.join("cow/upper");
            let told = || {
                let layer = layers::Layer::open(&kept.join(FOLDER)).unwrap().unwrap();
                let changes = layer.changes(&[]).unwrap().into_iter();
                changes.map(|change| change.standing.name()).collect::<Vec<_>>()
            };
            both("real", "real", &workspace);
            ensure(&Spec { layer: choice, ..spec(&workspace) }, Some(&kept)).unwrap();
            both("mine", "mine", &upper);
            std::fs::write(workspace.join("f"), "host").unwrap();
            assert_eq!(told(), ["changed", "lands"], "{choice:?}");
            let mut layer = layers::Layer::open(&kept.join(FOLDER)).unwrap().unwrap();
            layer.discard(&[]).unwrap();
            both("more", "more", &upper);
            std::fs::write(workspace.join("g"), "host").unwrap();
            assert_eq!(told().len(), 2, "{choice:?}: {:?}", told());
            if choice != LayerChoice::Copy {
                assert_eq!(told(), ["lands", "changed"], "{choice:?}");
            }
        }
    }

    #[test]
    fn what_is_no_workspace_is_not_copied() {
        let (directory, _, kept) = ground("layer-no-workspace");
        if HostFacts::gather().obstacle().is_some() {
            return;
        }
        let home = directory.path().canonicalize().unwrap();
        let mut spec = Spec { layer: LayerChoice::Copy, ..spec(&home) };
        spec.caller.home = Some(home.clone());
        assert_eq!(ensure(&spec, Some(&kept)).unwrap_err().kind, ErrorKind::Denied);
        assert!(!kept.join("cow/upper").exists());
    }

    #[test]
    fn nothing_is_made_where_no_layer_stays() {
        let (_directory, workspace, kept) = ground("layer-none");
        let plain = Spec::new(Workspace::Directory(workspace.clone()), Caller::default());
        ensure(&plain, Some(&kept)).unwrap();
        ensure(&spec(&workspace), None).unwrap();
        assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 0);
    }
}
