//! How somebody names an image.

use crate::remote::{Remote, says_version};
use crate::tar::Entries;
use cofferdam_archive::unpacked;
use cofferdam_core::{Error, ErrorKind, Result};
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// Ends of names of files, which without a tag are not taken for names in a registry.
const FILES: [&str; 6] = [".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".json"];

/// Where an image is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A directory in the layout of the Open Container Initiative, and one of its names.
    OciLayout {
        /// The directory.
        path: PathBuf,
        /// The name, where more than one image is in it.
        tag: Option<String>,
    },
    /// The same as one tar file.
    OciArchive {
        /// The file.
        path: PathBuf,
        /// The name, where more than one image is in it.
        tag: Option<String>,
    },
    /// A file as `docker save` writes it.
    DockerArchive {
        /// The file.
        path: PathBuf,
        /// The name, where more than one image is in it.
        tag: Option<String>,
    },
    /// A plain directory, which is used where it is.
    Directory(PathBuf),
    /// A root file system as one tar file, packed or not.
    Tar(PathBuf),
    /// An image of the store, by its id or the beginning of it.
    Stored(String),
    /// An image in a registry.
    Registry(Remote),
}

impl Reference {
    /// Reads `oci:DIR[:TAG]`, `oci-archive:FILE[:TAG]`, `docker-archive:FILE[:TAG]`, `dir:DIR`,
    /// `tar:FILE`, `sha256:ID`, `docker://NAME`, or a path or the name of an image in a registry. A
    /// relative path is one below `from`.
    ///
    /// What begins with `/`, `./` or `../` is a path. What else has a tag or a digest is a registry's,
    /// whatever lies there: no command can put a directory before the name of an image that somebody
    /// pinned. The rest is a path if there is one, and else a registry's.
    pub fn parse(text: &str, from: &Path) -> Result<Self> {
        if text.is_empty() || text.contains('\0') {
            return Err(unknown(text));
        }
        let Some((scheme, rest)) = text.split_once(':') else { return detect(text, from) };
        let with_tag = || {
            // A path may hold colons, and so may a name: the shortest path that is there counts.
            let is_there = |end: &usize| from.join(rest.get(..*end).unwrap_or_default()).exists();
            let colons = || rest.match_indices(':').map(|(place, _)| place);
            let end = match from.join(rest).exists() {
                true => None,
                false => colons().find(is_there).or_else(|| colons().next()),
            };
            match end.and_then(|end| rest.split_at_checked(end)) {
                Some((path, tag)) => (below(from, path), tag.get(1..).map(str::to_owned)),
                None => (below(from, rest), None),
            }
        };
        if rest.is_empty() {
            return Err(unknown(text));
        }
        match scheme {
            "oci" => {
                let (path, tag) = with_tag();
                Ok(Self::OciLayout { path, tag })
            }
            "oci-archive" => {
                let (path, tag) = with_tag();
                Ok(Self::OciArchive { path, tag })
            }
            "docker-archive" => {
                let (path, tag) = with_tag();
                Ok(Self::DockerArchive { path, tag })
            }
            "dir" => Ok(Self::Directory(below(from, rest))),
            "tar" => Ok(Self::Tar(below(from, rest))),
            "sha256" => Ok(Self::Stored(text.to_owned())),
            "docker" if rest.starts_with("//") => {
                Remote::parse(rest.get(2..).unwrap_or_default()).map(Self::Registry)
            }
            _ => detect(text, from),
        }
    }

    /// The file or directory, where it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::OciLayout { path, .. }
            | Self::OciArchive { path, .. }
            | Self::DockerArchive { path, .. }
            | Self::Directory(path)
            | Self::Tar(path) => Some(path),
            Self::Stored(_) | Self::Registry(_) => None,
        }
    }

    /// The name within it, where one is given.
    pub(crate) fn tag(&self) -> Option<&str> {
        match self {
            Self::OciLayout { tag, .. }
            | Self::OciArchive { tag, .. }
            | Self::DockerArchive { tag, .. } => tag.as_deref(),
            Self::Directory(_) | Self::Tar(_) | Self::Stored(_) | Self::Registry(_) => None,
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self {
            Self::OciLayout { .. } => "oci:",
            Self::OciArchive { .. } => "oci-archive:",
            Self::DockerArchive { .. } => "docker-archive:",
            Self::Directory(_) => "dir:",
            Self::Tar(_) => "tar:",
            Self::Stored(id) => return f.write_str(id),
            Self::Registry(remote) => return remote.fmt(f),
        };
        f.write_str(scheme)?;
        write!(f, "{}", self.path().unwrap_or(Path::new("")).display())?;
        self.tag().map_or(Ok(()), |tag| write!(f, ":{tag}"))
    }
}

/// A path in one spelling, for it is a name of the image as well: without `.`, and without `..` but where
/// what stands before that is no plain directory. What a link leads to is not beside the link.
fn below(from: &Path, text: &str) -> PathBuf {
    let is_directory =
        |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let mut path = PathBuf::new();
    for part in from.join(text).components() {
        let is_undone = part == Component::ParentDir
            && match path.components().next_back() {
                Some(Component::Normal(_)) => is_directory(&path),
                Some(Component::RootDir) => true,
                Some(Component::Prefix(_) | Component::CurDir | Component::ParentDir) | None => {
                    false
                }
            };
        match is_undone {
            // Above the root is the root, which has nothing to pop.
            true => drop(path.pop()),
            false => path.push(part),
        }
    }
    path
}

/// What a text without a scheme is.
fn detect(text: &str, from: &Path) -> Result<Reference> {
    let is_path = ["/", "./", "../"].iter().any(|lead| text.starts_with(lead));
    if !is_path && says_version(text) {
        return Remote::parse(text).map(Reference::Registry);
    }
    let path = below(from, text);
    let Ok(metadata) = std::fs::metadata(&path) else {
        // A file that is not there is no reason to tell a registry its name.
        let is_file = FILES.iter().any(|end| text.ends_with(end));
        return match Remote::parse(text) {
            Ok(remote) if !is_path && !is_file => Ok(Reference::Registry(remote)),
            Ok(_) | Err(_) => Err(unknown(text)),
        };
    };
    if metadata.is_dir() {
        return Ok(match path.join("oci-layout").is_file() {
            true => Reference::OciLayout { path, tag: None },
            false => Reference::Directory(path),
        });
    }
    if !metadata.is_file() {
        return Err(unknown(text));
    }
    Ok(match first_name(&path).as_deref() {
        Some("oci-layout" | "index.json" | "blobs" | "blobs/") => {
            Reference::OciArchive { path, tag: None }
        }
        Some("manifest.json" | "repositories") => Reference::DockerArchive { path, tag: None },
        Some(name) if is_docker_member(name) => Reference::DockerArchive { path, tag: None },
        Some(_) | None => Reference::Tar(path),
    })
}

/// The name of the first member of a tar file, packed or not. What `tar .` writes begins with the
/// directory itself, which says nothing.
fn first_name(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    let mut entries = Entries::new(unpacked(file).ok()?);
    let mut name = || {
        let name = String::from_utf8(entries.next_entry().ok()??.path).ok()?;
        Some(name.trim_start_matches("./").to_owned())
    };
    match name()?.as_str() {
        "" | "." => name(),
        first => Some(first.to_owned()),
    }
}

/// `docker save` begins with a directory or a file that is named after a digest.
fn is_docker_member(name: &str) -> bool {
    let lead = name.get(..64).unwrap_or_default();
    lead.len() == 64 && lead.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn unknown(text: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no image {text:?}")).hint(
        "Name an image as oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE, dir:DIR, tar:FILE, \
         sha256:ID, by a path, or as a registry has it: REPOSITORY:TAG.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Reference> {
        Reference::parse(text, Path::new("/from"))
    }

    #[test]
    fn a_reference_is_read_by_its_scheme_and_shown_as_it_is_read() {
        for (text, shown) in [
            ("oci:/images:v1", "oci:/images:v1"),
            ("oci:images", "oci:/from/images"),
            ("oci-archive:a.tar", "oci-archive:/from/a.tar"),
            ("docker-archive:/a.tar:busybox", "docker-archive:/a.tar:busybox"),
            ("dir:/root", "dir:/root"),
            ("tar:/a:b/c.tgz", "tar:/a:b/c.tgz"),
            ("sha256:12ab", "sha256:12ab"),
        ] {
            let read = parse(text).unwrap();
            assert_eq!(read.to_string(), shown);
            assert_eq!(parse(shown).unwrap(), read);
        }
    }

    #[test]
    fn a_path_has_one_spelling_wherever_it_is_named_from() {
        let ground = std::env::temp_dir().join(format!("cofferdam-spelt-{}", std::process::id()));
        let (a, b, far) = (ground.join("a"), ground.join("b"), ground.join("far/deep"));
        for directory in [&a, &b, &far] {
            std::fs::create_dir_all(directory).unwrap();
        }
        std::os::unix::fs::symlink(&far, a.join("link")).unwrap();
        let shown = |text: &str, from: &Path| Reference::parse(text, from).unwrap().to_string();
        let one = format!("tar:{}", a.join("x.tar").display());
        for (text, from) in [
            ("tar:x.tar", &a),
            ("tar:./x.tar", &a),
            ("tar:../a//x.tar", &a),
            ("tar:../a/./x.tar", &b),
            ("tar:../b/../a/x.tar", &b),
            (&*format!("tar:/../{}/../a/x.tar", b.display()), &b),
        ] {
            assert_eq!(shown(text, from), one, "{text}");
        }
        let dir = format!("dir:{}", a.display());
        for text in [".", "./", "../a", "dir:../b/../a/"] {
            assert_eq!(shown(text, &a), dir, "{text}");
        }
        let layout = format!("oci:{}:v1", a.display());
        assert_eq!(shown("oci:../a:v1", &b), layout);
        // What stands before the dots may be a link, or not be there: then they are not undone.
        for text in ["link/../x.tar", "none/../x.tar", "none/../../x.tar"] {
            let kept = format!("tar:{}", a.join(text).display());
            assert_eq!(shown(&format!("tar:{text}"), &a), kept);
        }
        std::fs::remove_dir_all(ground).unwrap();
    }

    #[test]
    fn what_names_nothing_is_an_error_that_says_what_may_be_named() {
        for text in ["", "oci:", "dir:", "/nothing/here", "a\0b"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::NotFound, "{text:?}");
            assert!(error.hint.unwrap().contains("oci:DIR"));
        }
    }

    #[test]
    fn what_a_tar_file_holds_is_seen_behind_the_directory_that_it_begins_with() {
        use crate::tar::tests::Written;
        let here = std::env::temp_dir().join(format!("cofferdam-first-{}", std::process::id()));
        std::fs::create_dir_all(&here).unwrap();
        let digits = format!("./{}/", "0a".repeat(32));
        for (first, scheme) in [
            ("./blobs/", "oci-archive:"),
            ("./index.json", "oci-archive:"),
            ("./oci-layout", "oci-archive:"),
            ("./manifest.json", "docker-archive:"),
            (&*digits, "docker-archive:"),
            ("./etc/", "tar:"),
        ] {
            for lead in [Some("./"), Some("."), None] {
                let tar = Written::default();
                let tar = lead.into_iter().fold(tar, |tar, lead| tar.directory(lead, 0o755));
                let tar = match first.ends_with('/') {
                    true => tar.directory(first, 0o755),
                    false => tar.file(first, b"{}"),
                };
                std::fs::write(here.join("x.tar"), tar.done()).unwrap();
                let read = Reference::parse("x.tar", &here).unwrap().to_string();
                assert!(read.starts_with(scheme), "{lead:?} {first}: {read}");
            }
        }
        // One that holds nothing but itself.
        let empty = Written::default().directory("./", 0o755).done();
        std::fs::write(here.join("x.tar"), empty).unwrap();
        assert!(matches!(Reference::parse("x.tar", &here), Ok(Reference::Tar(_))));
        std::fs::remove_dir_all(here).unwrap();
    }

    #[test]
    fn a_name_in_a_registry_is_told_from_a_path() {
        let here = std::env::temp_dir().join(format!("cofferdam-names-{}", std::process::id()));
        for name in ["debian", "debian:12", "a/b"] {
            std::fs::create_dir_all(here.join(name)).unwrap();
        }
        let shown = |text: &str| Reference::parse(text, &here).map(|read| read.to_string());
        for (text, expected) in [
            ("debian:12", "docker.io/library/debian:12"),
            ("docker://debian", "docker.io/library/debian:latest"),
            ("docker://tar:1", "docker.io/library/tar:1"),
            ("alpine", "docker.io/library/alpine:latest"),
            ("localhost:5000/x", "localhost:5000/x:latest"),
        ] {
            assert_eq!(shown(text).unwrap(), expected);
            assert_eq!(shown(expected).unwrap(), expected);
        }
        for text in ["debian", "./debian:12", "a/b"] {
            assert!(shown(text).unwrap().starts_with("dir:/"), "{text}");
        }
        for text in ["system.tar", "./alpine", "/alpine:1"] {
            assert_eq!(shown(text).unwrap_err().kind, ErrorKind::NotFound, "{text}");
        }
        assert_eq!(shown("Debian:12").unwrap_err().kind, ErrorKind::Usage);
        std::fs::remove_dir_all(here).unwrap();
    }
}
