//! How somebody names an image.

use crate::tar::Entries;
use cofferdam_archive::unpacked;
use cofferdam_core::{Error, ErrorKind, Result};
use std::fmt;
use std::path::{Path, PathBuf};

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
}

impl Reference {
    /// Reads `oci:DIR[:TAG]`, `oci-archive:FILE[:TAG]`, `docker-archive:FILE[:TAG]`, `dir:DIR`,
    /// `tar:FILE`, `sha256:ID`, or a path, which is looked at. A relative path is one below `from`.
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
                Some((path, tag)) => (from.join(path), tag.get(1..).map(str::to_owned)),
                None => (from.join(rest), None),
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
            "dir" => Ok(Self::Directory(from.join(rest))),
            "tar" => Ok(Self::Tar(from.join(rest))),
            "sha256" => Ok(Self::Stored(text.to_owned())),
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
            Self::Stored(_) => None,
        }
    }

    /// The name within it, where one is given.
    pub(crate) fn tag(&self) -> Option<&str> {
        match self {
            Self::OciLayout { tag, .. }
            | Self::OciArchive { tag, .. }
            | Self::DockerArchive { tag, .. } => tag.as_deref(),
            Self::Directory(_) | Self::Tar(_) | Self::Stored(_) => None,
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
        };
        f.write_str(scheme)?;
        write!(f, "{}", self.path().unwrap_or(Path::new("")).display())?;
        self.tag().map_or(Ok(()), |tag| write!(f, ":{tag}"))
    }
}

/// What a path without a scheme is.
fn detect(text: &str, from: &Path) -> Result<Reference> {
    let path = from.join(text);
    let Ok(metadata) = std::fs::metadata(&path) else {
        return Err(match looks_like_a_registry(text) {
            true => Error::new(
                ErrorKind::Unsupported,
                format!("image {text} is not on this machine, and registries are not asked"),
            )
            .hint(format!(
                "Fetch it with another tool, for instance `skopeo copy docker://{text} oci:DIR`, \
                 and name oci:DIR."
            )),
            false => unknown(text),
        });
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

/// The name of the first member of a tar file, packed or not.
fn first_name(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    let entry = Entries::new(unpacked(file).ok()?).next_entry().ok()??;
    let name = String::from_utf8(entry.path).ok()?;
    Some(name.trim_start_matches("./").to_owned())
}

/// `docker save` begins with a directory or a file that is named after a digest.
fn is_docker_member(name: &str) -> bool {
    let lead = name.get(..64).unwrap_or_default();
    lead.len() == 64 && lead.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn looks_like_a_registry(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"./:@_-".contains(&byte);
    !text.starts_with(['/', '.']) && text.bytes().all(plain)
}

fn unknown(text: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no image {text:?}")).hint(
        "Name an image as oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE, dir:DIR, tar:FILE, \
         sha256:ID, or by a path.",
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
    fn what_names_nothing_is_an_error_that_says_what_may_be_named() {
        for text in ["", "oci:", "dir:", "/nothing/here", "a\0b"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::NotFound, "{text:?}");
            assert!(error.hint.unwrap().contains("oci:DIR"));
        }
    }

    #[test]
    fn a_registry_is_not_asked_and_the_error_says_so() {
        for text in ["debian:12", "ghcr.io/a/b:c@sha256:00", "localhost:5000/x"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unsupported, "{text}");
            assert!(error.hint.unwrap().contains("skopeo"), "{text}");
        }
    }
}
