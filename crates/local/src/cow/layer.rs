//! The layer of a kept sandbox: made once, and found again by every sandbox that comes after.

use super::base::{Base, FOLDER, LayerOwner, UPPER, WORK, Xattrs, now_ns};
use crate::host::HostFacts;
use crate::view::{Found, Place, Shown, View, find_listed};
use cofferdam_core::{Error, ErrorKind, Result, Spec, Workspace};
use cofferdam_wire::plan::{Access, Owner};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::path::Path;

/// The folder's permission bits. A sandbox of the host's root goes through it as somebody else; the
/// directory above lets nobody in.
const FOLDER_MODE: u32 = 0o711;

/// Makes sure that there is a layer where this spec needs one that stays. Does nothing otherwise, and
/// changes nothing of one that is there.
///
/// ORDER: what the layer lies on is on disk before the layer can be written to.
pub(crate) fn ensure(spec: &Spec, kept: Option<&Path>) -> Result<()> {
    let (Workspace::CopyOnWrite(workspace), Some(kept)) = (&spec.workspace, kept) else {
        return Ok(());
    };
    let failed = |errno| io("make the layer in", kept, errno);
    let above = open(CWD, kept).map_err(failed)?;
    let folder = made(above.as_fd(), FOLDER, FOLDER_MODE, None).map_err(failed)?;
    let found = find_listed(workspace, "workspace")?;
    let owner = owner(&found);
    if Base::read(&folder)?.is_none() {
        let (device, inode) = found.identity();
        let (uid, gid) = owner;
        let base = Base {
            workspace: found.path.clone(),
            device,
            inode,
            made_ns: now_ns(),
            xattrs: Xattrs::User,
            owner: LayerOwner { uid, gid },
        };
        base.write(&folder)?;
    }
    made(folder.as_fd(), UPPER, found.mode(), Some(owner)).map_err(failed)?;
    made(folder.as_fd(), WORK, 0o700, Some(owner)).map_err(failed)?;
    rustix::fs::fsync(&folder).and_then(|()| rustix::fs::fsync(&above)).map_err(failed)
}

/// Looks at the layer of this view's workspace: the directory that holds `upper` and `work`. `None`
/// where there is none that stays.
///
/// Fails where the workspace is not the directory any more that the layer lies on.
pub(crate) fn look(view: &View, kept: Option<&Path>, facts: &HostFacts) -> Result<Option<Shown>> {
    let (Some((path, _)), Some(kept)) = (view.workspace.beside(), kept) else { return Ok(None) };
    let folder = find_listed(&kept.join(FOLDER), "the layer")?;
    let opened =
        open(CWD, Path::new(&folder.path)).map_err(|errno| io("open the layer in", kept, errno))?;
    let damaged = || Error::new(ErrorKind::Io, format!("the layer in {} is damaged", folder.path));
    let base = Base::read(&opened)?.ok_or_else(damaged)?;
    let now = view.places.iter().find_map(|place| match place {
        Place::Shown(shown) if shown.path == path => shown.identity,
        Place::Shown(_) | Place::Private { .. } => None,
    });
    if base.workspace != path || now != Some((base.device, base.inode)) {
        let was = &base.workspace;
        let what = format!("workspace {path} is not the directory {was} any more that it was");
        return Err(Error::new(ErrorKind::Conflict, what).hint(
            "Put the old directory back in its place; or remove the session, and with it what it \
             changed.",
        ));
    }
    let LayerOwner { uid, gid } = base.owner;
    Ok(Some(Shown {
        source: folder.path.clone(),
        path: path.to_owned(),
        access: Access::ReadWrite,
        owner: if facts.is_root() { Owner::Mapped { uid, gid } } else { Owner::Same },
        identity: Some(folder.identity()),
        why: "what is written to the workspace, on disk, so that it outlives the sandbox"
            .to_owned(),
    }))
}

/// Who owns what the layer gains: as root the owner of the workspace, because it is mounted so.
fn owner(workspace: &Found) -> (u32, u32) {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if uid.is_root() { workspace.owner() } else { (uid.as_raw(), gid.as_raw()) }
}

/// A directory that gets its name when it is whole. One that is there is kept as it is.
fn made(
    above: BorrowedFd<'_>,
    name: &str,
    mode: u32,
    owner: Option<(u32, u32)>,
) -> rustix::io::Result<OwnedFd> {
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
    if let Some((uid, gid)) = owner {
        rustix::fs::fchown(&directory, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    rustix::fs::fchmod(&directory, Mode::from(mode))?;
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
    use cofferdam_core::Caller;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

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
        let layer = found().unwrap().unwrap();
        assert_eq!(layer.source, kept.join(FOLDER).to_str().unwrap());
        std::fs::rename(&workspace, workspace.with_extension("old")).unwrap();
        std::fs::create_dir(&workspace).unwrap();
        // One that exists is not made for another directory.
        ensure(&spec, Some(&kept)).unwrap();
        let error = found().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert!(error.message.contains(workspace.to_str().unwrap()), "{error}");
        std::fs::remove_dir(&workspace).unwrap();
        std::fs::rename(workspace.with_extension("old"), &workspace).unwrap();
        assert!(found().is_ok());
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
