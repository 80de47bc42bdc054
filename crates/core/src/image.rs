//! Another root file system than the host's.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// An image that lies ready on this machine. What it says of how it is run stands below what a
/// caller says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// What tells it from all others: a digest, or the directory that it is.
    pub id: String,
    /// As somebody named it.
    pub name: String,
    /// Its layers, the uppermost first.
    pub layers: Vec<ImageLayer>,
    /// A directory that is held by a shared lock while somebody lies on it, which its layers do not tell: others
    /// may have the same. `None` where nobody removes the image by rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<PathBuf>,
    /// How it wants to be run.
    pub run: ImageRun,
}

/// One layer of an image: a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageLayer {
    /// The directory.
    pub tree: PathBuf,
    /// A directory that is held by a shared lock while the layer is used. `None` where nobody
    /// removes the layer by rule.
    pub hold: Option<PathBuf>,
}

/// How an image wants to be run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRun {
    /// What leads every command.
    pub entrypoint: Vec<String>,
    /// What follows where no command is given.
    pub command: Vec<String>,
    /// Variables, in order; the later wins.
    pub env: Vec<(String, String)>,
    /// Where commands start.
    pub cwd: Option<String>,
    /// Who commands are: a name or number, and perhaps a group.
    pub user: Option<String>,
    /// Who that is by number. `None` where it names nobody, its root, or somebody who is in none of its
    /// lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<ImageIds>,
}

/// A user of an image, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageIds {
    /// The user; never 0.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl ImageRun {
    /// Whether it asks for the image's root by name or number.
    pub fn is_root(&self) -> bool {
        let user = self.user.as_deref().unwrap_or_default();
        matches!(user.split(':').next(), Some("root" | "0"))
    }

    /// The user that it asks for, where nobody can tell who that is.
    pub fn unknown_user(&self) -> Option<&str> {
        let wished = self.user.as_deref().filter(|user| !user.is_empty());
        wished.filter(|_| !self.is_root() && self.ids.is_none())
    }

    /// Where its commands start, without empty names, if that is a plain path. The root is nobody's choice:
    /// who builds an image and names none gets it.
    pub fn start(&self) -> Option<String> {
        let cwd = self.cwd.as_deref()?;
        let names = || cwd.split('/').filter(|name| !name.is_empty());
        let is_plain = cwd.starts_with('/')
            && names().all(|name| !matches!(name, "." | ".."))
            && !cwd.contains('\0');
        let start: String = names().flat_map(|name| ["/", name]).collect();
        (is_plain && !start.is_empty()).then_some(start)
    }

    /// The words of a command: the entry point and what a caller gave, or else what the image has.
    /// A caller's own entry point leaves the image's command out.
    pub fn argv(&self, entrypoint: Option<&[OsString]>, given: &[OsString]) -> Vec<OsString> {
        let own = |words: &[String]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let lead = entrypoint.map_or_else(|| own(&self.entrypoint), <[_]>::to_vec);
        let rest = match given.is_empty() && entrypoint.is_none() {
            true => own(&self.command),
            false => given.to_vec(),
        };
        [lead, rest].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<T: for<'a> From<&'a str>>(text: &str) -> Vec<T> {
        text.split_whitespace().map(T::from).collect()
    }

    #[test]
    fn only_a_plain_path_below_the_root_is_where_commands_start() {
        for (path, start) in [
            ("/app", Some("/app")),
            ("/a/b/", Some("/a/b")),
            ("//a//b", Some("/a/b")),
            ("/", None),
            ("//", None),
            ("", None),
            ("app", None),
            ("/a/../../etc", None),
            ("/./a", None),
            ("/a\0b", None),
        ] {
            let run = ImageRun { cwd: Some(path.to_owned()), ..ImageRun::default() };
            assert_eq!(run.start().as_deref(), start, "{path:?}");
        }
    }

    #[test]
    fn a_caller_stands_above_the_image() {
        let run = ImageRun {
            entrypoint: words("/init --"),
            command: words("serve"),
            ..ImageRun::default()
        };
        for (entrypoint, given, argv) in [
            (None, "", "/init -- serve"),
            (None, "sh -c x", "/init -- sh -c x"),
            (Some("/bin/sh"), "", "/bin/sh"),
            (Some("/bin/sh"), "-c x", "/bin/sh -c x"),
            (Some(""), "env", "env"),
        ] {
            let entrypoint = entrypoint.map(words);
            assert_eq!(run.argv(entrypoint.as_deref(), &words(given)), words::<OsString>(argv));
        }
        assert!(ImageRun::default().argv(None, &[]).is_empty());
    }

    #[test]
    fn root_is_asked_for_by_name_or_number() {
        for (user, root) in [
            ("root", true),
            ("0", true),
            ("0:0", true),
            ("node", false),
            ("1000", false),
            ("", false),
        ] {
            let run = ImageRun { user: Some(user.to_owned()), ..ImageRun::default() };
            assert_eq!(run.is_root(), root, "{user}");
        }
    }
}
