//! The documents of an image, as far as they are used. The rest of them is not looked at.
//!
//! Structures of our own, because nine fields are read: the published crate for them brings builders,
//! getters and four further packages.

use crate::digest::Digest;
use cofferdam_core::{Error, ErrorKind, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::collections::BTreeMap;

/// Where a list of manifests is, or one of its kinds.
pub(crate) const KINDS_OF_INDEX: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

/// The annotation that holds a name.
const NAME: &str = "org.opencontainers.image.ref.name";

/// The same as `containerd` writes it: with the registry.
const FULL_NAME: &str = "io.containerd.image.name";

/// A list of images.
#[derive(Debug, Deserialize)]
pub(crate) struct Index {
    pub(crate) manifests: Vec<Descriptor>,
}

/// What is elsewhere, by its content.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    pub(crate) platform: Option<Platform>,
}

/// Where an image runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Platform {
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) variant: Option<String>,
}

/// What an image is made of.
#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
}

/// How an image is run, and what its layers are when they are unpacked.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Configuration {
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) config: Option<Running>,
    pub(crate) rootfs: RootFileSystem,
}

/// The layers, the lowest first.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RootFileSystem {
    #[serde(default)]
    pub(crate) diff_ids: Vec<Digest>,
}

/// How an image is run.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Running {
    #[serde(default)]
    pub(crate) user: Option<String>,
    #[serde(default)]
    pub(crate) env: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) entrypoint: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) cmd: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) working_dir: Option<String>,
}

/// One image of an archive as `docker save` writes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Saved {
    pub(crate) config: String,
    #[serde(default)]
    pub(crate) repo_tags: Option<Vec<String>>,
    pub(crate) layers: Vec<String>,
}

impl Descriptor {
    /// Whether it is a list and not an image.
    pub(crate) fn is_index(&self) -> bool {
        KINDS_OF_INDEX.contains(&self.media_type.as_str())
    }

    /// The names that it is known by.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        [NAME, FULL_NAME]
            .into_iter()
            .filter_map(|key| self.annotations.get(key))
            .map(String::as_str)
    }

    /// Whether it is known by this name, or by one that ends with it as a tag.
    pub(crate) fn is_called(&self, tag: &str) -> bool {
        self.names().any(|name| is_called(name, tag)) || self.digest.as_str() == tag
    }
}

/// `v1` calls `v1` and `busybox:v1`; `busybox:v1` calls `docker.io/library/busybox:v1`.
pub(crate) fn is_called(name: &str, tag: &str) -> bool {
    name.strip_suffix(tag).is_some_and(|lead| lead.is_empty() || lead.ends_with([':', '/']))
}

/// Reads one. `what` names it for people.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        let wrong = match bytes.trim_ascii() {
            b"" => "is empty".to_owned(),
            _ => match error.classify() {
                Category::Syntax | Category::Eof | Category::Io => "is no JSON".to_owned(),
                Category::Data => "is JSON and no such document".to_owned(),
            },
        };
        Error::new(ErrorKind::NotAFile, format!("read {what} of the image: it {wrong}"))
            .hint(
                "Write the image anew, as with `skopeo copy`, and check it with `skopeo inspect`.",
            )
            .source(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_called_by_its_end() {
        for (name, tag, called) in [
            ("v1", "v1", true),
            ("docker.io/library/busybox:v1", "v1", true),
            ("docker.io/library/busybox:v1", "busybox:v1", true),
            ("docker.io/library/busybox:v1", "box:v1", false),
            ("v11", "1", false),
        ] {
            assert_eq!(is_called(name, tag), called, "{name} {tag}");
        }
    }

    #[test]
    fn what_is_not_used_may_be_anything() {
        let text = br#"{"config":{"Env":null,"Labels":{"a":"b"},"Cmd":["sh"]},
            "history":[{}],"rootfs":{"type":"layers","diff_ids":[]}}"#;
        let read: Configuration = read(text, "the configuration").unwrap();
        assert_eq!(read.config.unwrap().cmd.unwrap(), ["sh"]);
    }

    #[test]
    fn a_document_that_is_malformed_is_an_error_that_names_it() {
        for (text, wrong) in [
            (&b"{}"[..], "is JSON and no such document"),
            (b"[", "is no JSON"),
            (b"<html>", "is no JSON"),
            (b" \n", "is empty"),
            (br#"{"manifests":[{"digest":"sha256:../..","size":1}]}"#, "no such document"),
        ] {
            let error = read::<Index>(text, "index.json").unwrap_err();
            let what = &error.message;
            assert!(what.contains("index.json of the image") && what.contains(wrong), "{what}");
        }
    }
}
