//! What a manifest names on the host, looked at.

use super::archived::Archive;
use super::host::{HostFile, Named, unseen};
use super::mounted::{self, MAX_MOUNTS};
use super::repository::Repository;
use super::{Checked, Wanted, wrong};
use crate::patch::good_link;
use cofferdam_archive::{Archived, ArchivedFile, Checked as CheckedArchive};
use cofferdam_core::files::{Content, MAX_CARRIED_BYTES, MAX_CARRY_DEPTH};
use cofferdam_core::{Error, ErrorKind, GuestPath, HostMount, Result};
use rustix::fs::{FileType, Stat};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The most files, directories and links of all copied directories and archives.
pub(super) const MAX_COPIED: usize = 50_000;
/// The most things of the host that a manifest names. Each is held open.
pub(super) const MAX_NAMED: usize = 500;

/// Everything that a manifest wants in a workspace, with where it comes from.
#[derive(Debug, Clone)]
pub struct Provisions {
    pub(crate) fingerprint: String,
    pub(super) things: BTreeMap<GuestPath, Thing>,
    /// What is fetched when it is brought.
    pub(super) repositories: BTreeMap<GuestPath, Repository>,
    /// What is unpacked when it is brought.
    pub(super) archives: BTreeMap<GuestPath, Archive>,
    /// What a sandbox of the session is shown.
    pub(crate) mounts: Vec<HostMount>,
    copied: usize,
}

/// One thing that is wanted.
#[derive(Debug, Clone)]
pub(super) enum Thing {
    File { content: Source, mode: u32 },
    Directory { mode: Option<u32> },
    Link { target: Vec<u8> },
}

/// Where the bytes of a file come from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Bytes(Arc<[u8]>),
    Host(HostFile),
    Archived(ArchivedFile),
}

impl Source {
    pub(super) fn content(&self) -> Content {
        match self {
            Self::Bytes(bytes) => Content::Bytes(Arc::clone(bytes)),
            Self::Host(file) => file.content(),
            Self::Archived(file) => file.content(),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Host(file) => file.bytes,
            Self::Archived(file) => file.len(),
        }
    }
}

impl Provisions {
    /// The directories of the host that it wants shown.
    pub fn mounts(&self) -> &[HostMount] {
        &self.mounts
    }
}

impl Checked {
    /// Looks at what is named on the host, relative to `base`. Files are read when they are carried.
    pub fn load(self, base: &Path) -> Result<Provisions> {
        let is_named = |wanted: &&Wanted| {
            matches!(
                wanted,
                Wanted::HostFile { .. }
                    | Wanted::HostDirectory { .. }
                    | Wanted::Archive(_)
                    | Wanted::Mount { .. }
                    | Wanted::Repository(_)
            )
        };
        if self.wanted.values().filter(is_named).count() > MAX_NAMED {
            let what = format!("the manifest names more than {MAX_NAMED} things of the host");
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Copy a directory instead."));
        }
        let mut loading = Loading::default();
        // Whoever can put a link on the way to the manifest can write the manifest.
        let real = base.canonicalize().unwrap_or_else(|_| base.to_owned());
        let (mut repositories, mut archives) = (BTreeMap::new(), BTreeMap::new());
        let mut mounts = Vec::new();
        for (path, wanted) in self.wanted {
            match wanted {
                Wanted::Bytes { bytes, mode } => {
                    let content = Source::Bytes(Arc::from(bytes));
                    loading.add(path, Thing::File { content, mode })?;
                }
                Wanted::HostFile { from, mode } => {
                    let from = real.join(from);
                    let named = Named::open_named(&from, "the file")?;
                    let stat = named.look().map_err(|e| unseen(&from, e))?;
                    let file = file(&path, &from, (named.file(&[], &stat), &stat), mode)?;
                    loading.add(path, file)?;
                }
                Wanted::Directory { mode } => loading.add(path, Thing::Directory { mode })?,
                Wanted::Link { target } => loading.add(path, Thing::Link { target })?,
                Wanted::HostDirectory { from } => {
                    let from = real.join(from);
                    let named = Named::open_named(&from, "the copied directory")?;
                    loading.copy(path, &from, &named)?;
                }
                Wanted::Archive(said) => {
                    let archive = said.find(&path, &real)?;
                    archives.insert(path, archive);
                }
                Wanted::Mount { from } => mounts.push(mounted::find(path, &from, (base, &real))?),
                Wanted::Repository(mut repository) => {
                    repository.address = repository.address.below(&real);
                    repository.address.refuse_planted()?;
                    repositories.insert(path, repository);
                }
            }
        }
        if mounts.len() > MAX_MOUNTS {
            let what = format!("the manifest mounts more than {MAX_MOUNTS} directories");
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Mount one above them."));
        }
        let provisions = loading.provisions(self.fingerprint);
        Ok(Provisions { repositories, archives, mounts, ..provisions })
    }
}

#[derive(Debug, Default)]
pub(super) struct Loading {
    things: BTreeMap<GuestPath, Thing>,
    copied: usize,
    bytes: u64,
}

impl Loading {
    /// What was looked at before counts.
    pub(super) fn again(all: &Provisions) -> Result<Self> {
        let mut loading = Self { copied: all.copied, ..Self::default() };
        for (path, thing) in &all.things {
            loading.add(path.clone(), thing.clone())?;
        }
        Ok(loading)
    }

    /// All of it, with nothing more to fetch.
    pub(super) fn provisions(self, fingerprint: String) -> Provisions {
        Provisions {
            fingerprint,
            things: self.things,
            repositories: BTreeMap::new(),
            archives: BTreeMap::new(),
            mounts: Vec::new(),
            copied: self.copied,
        }
    }

    pub(super) fn add(&mut self, path: GuestPath, thing: Thing) -> Result<()> {
        if let Thing::File { content, .. } = &thing {
            self.bytes = self.bytes.saturating_add(content.len());
        }
        if self.bytes > MAX_CARRIED_BYTES {
            let what =
                format!("the files of the manifest have more than {MAX_CARRIED_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Leave some out."));
        }
        self.things.insert(path, thing);
        Ok(())
    }

    /// A directory of the host with all that is in it. No link in it is followed.
    pub(super) fn copy(&mut self, top: GuestPath, from: &Path, named: &Named) -> Result<()> {
        let seen = |errno| unseen(from, errno);
        let own = named.look().map_err(seen)?;
        if FileType::from_raw_mode(own.st_mode) != FileType::Directory {
            return Err(wrong(&top, &format!("copies {}, which is no directory", from.display())));
        }
        self.add(top.clone(), copied_directory(&own))?;
        let mut left = vec![(top, Vec::new())];
        while let Some((above, directory)) = left.pop() {
            for (name, stat) in named.list(&directory).map_err(seen)? {
                let way = [directory.as_slice(), &name].join(&b'/');
                let path = GuestPath::new([above.as_bytes(), &name].join(&b'/'))?;
                self.count(&path)?;
                let thing = match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory => {
                        left.push((path.clone(), way));
                        copied_directory(&stat)
                    }
                    FileType::Symlink => {
                        let target = named.target(&way).map_err(seen)?;
                        good_link(&path, &target)?;
                        Thing::Link { target }
                    }
                    FileType::RegularFile
                    | FileType::Fifo
                    | FileType::Socket
                    | FileType::CharacterDevice
                    | FileType::BlockDevice
                    | FileType::Unknown => {
                        file(&path, from, (named.file(&way, &stat), &stat), None)?
                    }
                };
                self.add(path, thing)?;
            }
        }
        Ok(())
    }

    /// All that an archive holds.
    pub(super) fn unpack(&mut self, top: GuestPath, archive: CheckedArchive) -> Result<()> {
        self.add(top.clone(), Thing::Directory { mode: None })?;
        for (below, member) in archive.into_members() {
            let path = GuestPath::new([top.as_bytes(), below.as_bytes()].join(&b'/'))?;
            self.count(&path)?;
            let thing = match member {
                Archived::File { file, mode } => {
                    Thing::File { content: Source::Archived(file), mode }
                }
                Archived::Directory { mode } => Thing::Directory { mode },
                Archived::Link { target } => {
                    good_link(&path, &target)?;
                    Thing::Link { target }
                }
            };
            self.add(path, thing)?;
        }
        Ok(())
    }

    fn count(&mut self, path: &GuestPath) -> Result<()> {
        self.copied += 1;
        if self.copied <= MAX_COPIED && path.names().count() <= MAX_CARRY_DEPTH {
            return Ok(());
        }
        let what = format!(
            "copied directories and archives hold more than {MAX_COPIED} names, or lie more than \
             {MAX_CARRY_DEPTH} deep"
        );
        Err(Error::new(ErrorKind::TooLarge, what).hint("Bring less."))
    }
}

fn file(
    path: &GuestPath,
    from: &Path,
    (file, stat): (HostFile, &Stat),
    mode: Option<u32>,
) -> Result<Thing> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        let what = format!("would copy what is no regular file from {}", from.display());
        return Err(wrong(path, &what));
    }
    let usual = if stat.st_mode & 0o100 == 0 { 0o644 } else { 0o755 };
    let usual = as_closed(usual, stat);
    Ok(Thing::File { content: Source::Host(file), mode: mode.unwrap_or(usual) })
}

/// What others may not read where it comes from they may not read as a copy.
fn as_closed(usual: u32, stat: &Stat) -> u32 {
    usual & (stat.st_mode | 0o700)
}

fn copied_directory(stat: &Stat) -> Thing {
    const USUAL: u32 = 0o755;
    let mode = as_closed(USUAL, stat);
    Thing::Directory { mode: (mode != USUAL).then_some(mode) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Manifest, ManifestEntry};
    use cofferdam_archive::MAX_ARCHIVE_BYTES;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn place(name: &str) -> std::path::PathBuf {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let base = place.join(format!("cofferdam-{name}-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        base
    }

    fn load(base: &Path, entries: Vec<ManifestEntry>) -> Result<Provisions> {
        Manifest { version: 1, known_as: None, entries }.check().unwrap().load(base)
    }

    #[test]
    fn a_link_that_is_put_in_the_way_of_a_copy_is_not_followed() {
        let base = place("copied");
        fs::create_dir_all(base.join("from/d")).unwrap();
        fs::write(base.join("from/d/file"), "inside!").unwrap();
        fs::create_dir(base.join("secret")).unwrap();
        fs::write(base.join("secret/file"), "outside").unwrap();
        let entry = |path: &str| ManifestEntry::Copy { path: path.to_owned(), from: "from".into() };
        let loaded = load(&base, vec![entry("c")]).unwrap();
        let file = loaded.things.get(&GuestPath::new("c/d/file").unwrap()).unwrap().clone();
        let Thing::File { content: Source::Host(file), .. } = file else { panic!("{file:?}") };
        // The control: it is what it was.
        let mut text = String::new();
        file.open().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "inside!");
        fs::rename(base.join("from/d"), base.join("from/away")).unwrap();
        symlink(base.join("secret"), base.join("from/d")).unwrap();
        assert_eq!(fs::read_to_string(base.join("from/d/file")).unwrap(), "outside");
        assert!(file.open().is_err());
        // Looked at anew, the link is a link, and leads out.
        assert_eq!(load(&base, vec![entry("c")]).unwrap_err().kind, ErrorKind::PathEscape);
        // What a person names may not be a link either.
        symlink("secret/file", base.join("named")).unwrap();
        let named = |from: &str| ManifestEntry::File {
            path: "f".to_owned(),
            text: None,
            base64: None,
            from: Some(from.into()),
            mode: None,
        };
        assert!(load(&base, vec![named("named")]).is_err());
        assert!(load(&base, vec![named("secret/file")]).is_ok());
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn no_entry_follows_a_link_that_an_earlier_command_may_have_planted() {
        let base = place("planted");
        for directory in ["ws/conf", "ws/real/data", "private/data", "own"] {
            fs::create_dir_all(base.join(directory)).unwrap();
        }
        for above in ["ws/real", "private"] {
            fs::write(base.join(above).join("data/file"), "text").unwrap();
        }
        symlink("../private", base.join("ws/d")).unwrap();
        symlink("real", base.join("ws/stays")).unwrap();
        let entries = |above: &str| {
            let file = Some(format!("{above}/data/file").into());
            [
                ManifestEntry::Copy { path: "a".to_owned(), from: format!("{above}/data").into() },
                ManifestEntry::Mount { path: "a".to_owned(), from: format!("{above}/data").into() },
                ManifestEntry::File {
                    path: "a".to_owned(),
                    text: None,
                    base64: None,
                    from: file,
                    mode: None,
                },
                ManifestEntry::Archive {
                    path: "a".to_owned(),
                    from: format!("{above}/data/file").into(),
                    strip_components: 0,
                    sha256: None,
                },
                repository(&format!("{above}/data")),
            ]
        };
        let absolute = base.join("ws/d").to_str().unwrap().to_owned();
        // Whatever workspace the session has, and wherever in the project the manifest lies.
        for (at, above) in [("ws", "d"), ("ws/conf", "../d"), ("own", &absolute)] {
            for entry in entries(above) {
                let shown = format!("{at} {entry:?}");
                let error = load(&base.join(at), vec![entry]).unwrap_err();
                assert_eq!(error.kind, ErrorKind::Denied, "{shown}: {error:?}");
                let words = "ws/d, which an earlier command in a sandbox may have made";
                assert!(error.message.contains(words), "{shown}: {error:?}");
                assert!(error.hint.unwrap().contains("Remove the link"), "{shown}");
            }
        }
        // The control: without a link, and through one that leads to what is beside it.
        for above in ["real", "stays"] {
            for entry in entries(above) {
                let shown = format!("{entry:?}");
                assert!(load(&base.join("ws"), vec![entry]).is_ok(), "{shown}");
            }
        }
        fs::remove_dir_all(&base).unwrap();
    }

    fn repository(url: &str) -> ManifestEntry {
        let url = if url.starts_with('/') { url.to_owned() } else { format!("./{url}") };
        let entry = serde_json::json!({ "type": "git", "path": "a", "url": url });
        serde_json::from_value(entry).unwrap()
    }

    #[test]
    fn what_is_closed_to_others_is_closed_as_a_copy() {
        let base = place("closed");
        fs::create_dir_all(base.join("from/closed")).unwrap();
        fs::create_dir_all(base.join("from/open")).unwrap();
        for (name, mode) in [("key", 0o600), ("tool", 0o750), ("text", 0o664), ("kept", 0o444)] {
            fs::write(base.join("from").join(name), "").unwrap();
            fs::set_permissions(base.join("from").join(name), PermissionsExt::from_mode(mode))
                .unwrap();
        }
        fs::set_permissions(base.join("from/closed"), PermissionsExt::from_mode(0o700)).unwrap();
        fs::set_permissions(base.join("from/open"), PermissionsExt::from_mode(0o775)).unwrap();
        let entry = ManifestEntry::Copy { path: "c".to_owned(), from: "from".into() };
        let loaded = load(&base, vec![entry]).unwrap();
        let mode = |name: &str| match loaded.things.get(&GuestPath::new(name).unwrap()).unwrap() {
            Thing::File { mode, .. } => Some(*mode),
            Thing::Directory { mode } => *mode,
            other => panic!("{other:?}"),
        };
        // What is open stays as it would be where it is checked out.
        assert_eq!(
            [mode("c/text"), mode("c/kept"), mode("c/open")],
            [Some(0o644), Some(0o644), None]
        );
        assert_eq!(
            [mode("c/key"), mode("c/tool"), mode("c/closed")],
            [Some(0o600), Some(0o750), Some(0o700)]
        );
    }

    #[test]
    fn copied_directories_have_limits() {
        let base = place("limits");
        let entry = |path: &str, from: &str| ManifestEntry::Copy {
            path: path.to_owned(),
            from: from.into(),
        };
        let copy =
            |from: &str| load(&base, vec![entry("c", from)]).map(|provisions| provisions.count());
        fs::create_dir(base.join("none")).unwrap();
        let several =
            |count| (0..count).map(|at| entry(&format!("{at}"), "none")).collect::<Vec<_>>();
        assert_eq!(load(&base, several(MAX_NAMED)).unwrap().count(), MAX_NAMED);
        let error = load(&base, several(MAX_NAMED + 1)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge);
        fs::create_dir_all(base.join("many")).unwrap();
        for at in 0..MAX_COPIED {
            fs::write(base.join(format!("many/{at}")), "").unwrap();
        }
        assert_eq!(copy("many").unwrap(), MAX_COPIED + 1);
        fs::write(base.join("many/one-more"), "").unwrap();
        assert_eq!(copy("many").unwrap_err().kind, ErrorKind::TooLarge);
        let mount = |at: usize| ManifestEntry::Mount { path: format!("{at}"), from: "none".into() };
        let mounts = |count| load(&base, (0..count).map(mount).collect());
        assert_eq!(mounts(MAX_MOUNTS).unwrap().mounts().len(), MAX_MOUNTS);
        assert_eq!(mounts(MAX_MOUNTS + 1).unwrap_err().kind, ErrorKind::TooLarge);
        let archive = || ManifestEntry::Archive {
            path: "a".to_owned(),
            from: "packed".into(),
            strip_components: 0,
            sha256: None,
        };
        let packed = fs::File::create(base.join("packed")).unwrap();
        packed.set_len(MAX_ARCHIVE_BYTES).unwrap();
        assert_eq!(load(&base, vec![archive()]).unwrap().count(), 1);
        packed.set_len(MAX_ARCHIVE_BYTES + 1).unwrap();
        assert_eq!(load(&base, vec![archive()]).unwrap_err().kind, ErrorKind::TooLarge);
        let deep = base.join("deep").join("d/".repeat(MAX_CARRY_DEPTH - 1));
        fs::create_dir_all(&deep).unwrap();
        assert_eq!(copy("deep").unwrap(), MAX_CARRY_DEPTH);
        fs::create_dir(deep.join("d")).unwrap();
        assert_eq!(copy("deep").unwrap_err().kind, ErrorKind::TooLarge);
        fs::create_dir(base.join("large")).unwrap();
        let large = fs::File::create(base.join("large/file")).unwrap();
        large.set_len(MAX_CARRIED_BYTES).unwrap();
        assert_eq!(copy("large").unwrap(), 2);
        large.set_len(MAX_CARRIED_BYTES + 1).unwrap();
        assert_eq!(copy("large").unwrap_err().kind, ErrorKind::TooLarge);
        fs::remove_dir_all(&base).unwrap();
    }
}
