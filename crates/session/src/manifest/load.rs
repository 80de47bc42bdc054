//! What a manifest names on the host, looked at.

use super::{Checked, Wanted, wrong};
use crate::patch::good_link;
use cofferdam_core::files::{Content, MAX_CARRIED_BYTES, MAX_CARRY_DEPTH};
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most files, directories and links of all copied directories.
pub(super) const MAX_COPIED: usize = 50_000;

/// Everything that a manifest wants in a workspace, with where it comes from.
#[derive(Debug, Clone)]
pub struct Provisions {
    pub(crate) fingerprint: String,
    pub(super) things: BTreeMap<GuestPath, Thing>,
}

/// One thing that is wanted.
#[derive(Debug, Clone)]
pub(super) enum Thing {
    File { content: Source, mode: u32 },
    Directory,
    Link { target: Vec<u8> },
}

/// Where the bytes of a file come from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Bytes(Arc<[u8]>),
    Host { path: PathBuf, bytes: u64 },
}

impl Source {
    pub(super) fn content(&self) -> Content {
        match self {
            Self::Bytes(bytes) => Content::Bytes(Arc::clone(bytes)),
            Self::Host { path, bytes } => Content::Host { path: path.clone(), bytes: *bytes },
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Host { bytes, .. } => *bytes,
        }
    }
}

impl Checked {
    /// Looks at what is named on the host, relative to `base`. Files are read when they are carried.
    pub fn load(self, base: &Path) -> Result<Provisions> {
        let mut loading = Loading { things: BTreeMap::new(), copied: 0, bytes: 0 };
        for (path, wanted) in self.wanted {
            match wanted {
                Wanted::Bytes { bytes, mode } => {
                    let content = Source::Bytes(Arc::from(bytes));
                    loading.add(path, Thing::File { content, mode })?;
                }
                Wanted::HostFile { from, mode } => {
                    let from = base.join(from);
                    // What it leads to is meant, as with every file that a person names.
                    let stat = fs::metadata(&from).map_err(|e| unseen(&from, e))?;
                    loading.add(path.clone(), file(&path, from, &stat, mode)?)?;
                }
                Wanted::Directory => loading.add(path, Thing::Directory)?,
                Wanted::Link { target } => loading.add(path, Thing::Link { target })?,
                Wanted::HostDirectory { from } => loading.copy(path, base.join(from))?,
            }
        }
        Ok(Provisions { fingerprint: self.fingerprint, things: loading.things })
    }
}

struct Loading {
    things: BTreeMap<GuestPath, Thing>,
    copied: usize,
    bytes: u64,
}

impl Loading {
    fn add(&mut self, path: GuestPath, thing: Thing) -> Result<()> {
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
    fn copy(&mut self, top: GuestPath, from: PathBuf) -> Result<()> {
        let stat = fs::metadata(&from).map_err(|e| unseen(&from, e))?;
        if !stat.is_dir() {
            return Err(wrong(&top, &format!("copies {}, which is no directory", from.display())));
        }
        self.add(top.clone(), Thing::Directory)?;
        let mut left = vec![(top, from)];
        while let Some((above, directory)) = left.pop() {
            for entry in fs::read_dir(&directory).map_err(|e| unseen(&directory, e))? {
                let entry = entry.map_err(|e| unseen(&directory, e))?;
                let (name, from) = (entry.file_name(), entry.path());
                let path = GuestPath::new([above.as_bytes(), name.as_bytes()].join(&b'/'))?;
                let stat = fs::symlink_metadata(&from).map_err(|e| unseen(&from, e))?;
                self.copied += 1;
                if self.copied > MAX_COPIED || path.names().count() > MAX_CARRY_DEPTH {
                    let what = format!(
                        "copied directories hold more than {MAX_COPIED} names, or lie more than \
                         {MAX_CARRY_DEPTH} deep"
                    );
                    return Err(Error::new(ErrorKind::TooLarge, what).hint("Copy less."));
                }
                if stat.is_dir() {
                    self.add(path.clone(), Thing::Directory)?;
                    left.push((path, from));
                } else if stat.is_symlink() {
                    let target = fs::read_link(&from).map_err(|e| unseen(&from, e))?;
                    let target = target.as_os_str().as_bytes().to_vec();
                    good_link(&path, &target)?;
                    self.add(path, Thing::Link { target })?;
                } else {
                    self.add(path.clone(), file(&path, from, &stat, None)?)?;
                }
            }
        }
        Ok(())
    }
}

fn file(path: &GuestPath, from: PathBuf, stat: &Metadata, mode: Option<u32>) -> Result<Thing> {
    if !stat.is_file() {
        return Err(wrong(path, &format!("copies {}, which is no regular file", from.display())));
    }
    let usual = if stat.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
    let content = Source::Host { path: from, bytes: stat.len() };
    Ok(Thing::File { content, mode: mode.unwrap_or(usual) })
}

fn unseen(path: &Path, error: std::io::Error) -> Error {
    let is = |kind| error.kind() == kind;
    let kind = if is(std::io::ErrorKind::NotFound) {
        ErrorKind::NotFound
    } else if is(std::io::ErrorKind::PermissionDenied) {
        ErrorKind::Denied
    } else {
        ErrorKind::Io
    };
    Error::new(kind, format!("look at {} for the manifest", path.display())).source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Manifest, ManifestEntry};

    #[test]
    fn copied_directories_have_limits() {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let base = place.join(format!("cofferdam-manifest-{}", std::process::id()));
        let copy = |from: &str| {
            let entry = ManifestEntry::Copy { path: "c".to_owned(), from: from.into() };
            let manifest = Manifest { version: 1, entries: vec![entry] };
            manifest.check().unwrap().load(&base).map(|provisions| provisions.count())
        };
        fs::create_dir_all(base.join("many")).unwrap();
        for at in 0..MAX_COPIED {
            fs::write(base.join(format!("many/{at}")), "").unwrap();
        }
        assert_eq!(copy("many").unwrap(), MAX_COPIED + 1);
        fs::write(base.join("many/one-more"), "").unwrap();
        assert_eq!(copy("many").unwrap_err().kind, ErrorKind::TooLarge);
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
