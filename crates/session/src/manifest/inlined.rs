//! Manifests that say all by themselves, for those who read them elsewhere.

use super::load::{Provisions, Thing};
use super::{Checked, MANIFEST_VERSION, MAX_MANIFEST_ENTRIES, Manifest, ManifestEntry, Wanted};
use crate::lock::Locks;
use crate::places::Places;
use crate::staging::{self, Changes, Staging};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cofferdam_core::files::Content;
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The most bytes of all files of a manifest that says all by itself.
pub const MAX_INLINED_BYTES: u64 = 2 << 20;

impl Checked {
    /// The same with the bytes of every file in it. Files and directories that it copies from the host are
    /// read, relative to `base`, archives are unpacked and repositories cloned, below the state directory
    /// `state`, of which nothing stays. What is only of this host, as mounts, is refused.
    ///
    /// It is known as the manifest that it was made of, whatever the bytes are.
    pub fn inlined(self, base: &Path, state: &Path) -> Result<Manifest> {
        let is_mount = |(_, wanted): &(_, &Wanted)| matches!(wanted, Wanted::Mount { .. });
        if let Some((path, _)) = self.wanted.iter().find(is_mount) {
            return Err(refused(
                path,
                "mounts a directory of this machine, which a server does not see",
            )
            .hint("Name a workspace that its operator allows, or copy the directory."));
        }
        let known_as = Some(self.fingerprint.clone());
        let wanted = self.load(base)?;
        // ORDER: what is fetched is read before the directory is removed that it lies in.
        let (wanted, staging) = wanted.fetched(state)?;
        if wanted.things.len() > MAX_MANIFEST_ENTRIES {
            let what = format!(
                "the manifest brings more than the {MAX_MANIFEST_ENTRIES} names that are sent with it"
            );
            return Err(Error::new(ErrorKind::TooLarge, what).hint(AFTERWARDS));
        }
        let mut left = MAX_INLINED_BYTES;
        let entries =
            wanted.things.into_iter().map(|(path, thing)| entry(&path, &thing, &mut left));
        let entries = entries.collect::<Result<_>>()?;
        staging.map(Staging::remove).transpose()?;
        Ok(Manifest { version: MANIFEST_VERSION, known_as, entries })
    }

    /// The same, if it names nothing of any host.
    pub fn of_itself(self) -> Result<Self> {
        let is_of_a_host = |wanted: &Wanted| match wanted {
            Wanted::Bytes { .. } | Wanted::Directory { .. } | Wanted::Link { .. } => false,
            Wanted::HostFile { .. }
            | Wanted::HostDirectory { .. }
            | Wanted::Archive(_)
            | Wanted::Mount { .. }
            | Wanted::Repository(_) => true,
        };
        match self.wanted.iter().find(|(_, wanted)| is_of_a_host(wanted)) {
            None => Ok(self),
            Some((path, _)) => Err(refused(path, "names something that it does not hold itself")
                .hint("Give files with text or base64, directories and links.")),
        }
    }
}

impl Provisions {
    /// All that is wanted, with what had to be fetched lying in the directory beside it, if there is one.
    fn fetched(self, state: &Path) -> Result<(Self, Option<Staging>)> {
        let repositories: Vec<GuestPath> = self.repositories.keys().cloned().collect();
        if self.is_at_hand(&repositories) {
            return Ok((self, None));
        }
        let places = Places::open(state)?;
        let locks = Locks::new(places.locks());
        // What somebody else could not remove is no reason to fetch nothing.
        staging::sweep(&places, &locks, Changes::Remove).ok();
        let staging = Staging::make(&places, &locks)?;
        let fetched = self.fetch(&repositories, &staging.path(), &AtomicBool::new(false))?;
        Ok((fetched, Some(staging)))
    }
}

/// What is to be done with what is too much.
const AFTERWARDS: &str =
    "Send it with `cofferdam file upload` or `file import` once the sandbox is there.";

fn refused(path: &GuestPath, what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("the entry {path:?} of the manifest {what}"))
}

fn entry(path: &GuestPath, thing: &Thing, left: &mut u64) -> Result<ManifestEntry> {
    let name = text(path.as_bytes(), path)?;
    Ok(match thing {
        Thing::Directory { mode } => {
            ManifestEntry::Directory { path: name, mode: mode.map(|mode| format!("{mode:o}")) }
        }
        Thing::Link { target } => ManifestEntry::Link { path: name, target: text(target, path)? },
        Thing::File { content, mode } => {
            let bytes = read(path, content.content(), *left)?;
            *left = left.saturating_sub(bytes.len() as u64);
            let (text, base64) = shorter(bytes);
            let mode = Some(format!("{mode:o}"));
            ManifestEntry::File { path: name, text, base64, from: None, mode }
        }
    })
}

fn text(bytes: &[u8], path: &GuestPath) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| {
        refused(path, "has a name or target that is not UTF-8, and a server takes nothing else")
            .hint("Give it another name.")
    })
}

/// What a file holds, if there is room for it.
fn read(path: &GuestPath, content: Content, left: u64) -> Result<Vec<u8>> {
    let too_large = || {
        let what = format!(
            "the files of the manifest have more than the {MAX_INLINED_BYTES} bytes that are sent \
             with it, {path:?} among them"
        );
        Error::new(ErrorKind::TooLarge, what).hint(AFTERWARDS)
    };
    match content {
        Content::Nothing => Ok(Vec::new()),
        Content::Bytes(bytes) if bytes.len() as u64 <= left => Ok(bytes.to_vec()),
        Content::Later { open, bytes } if bytes <= left => {
            let failed = |cause| {
                Error::new(ErrorKind::Io, format!("read what the manifest wants at {path:?}"))
                    .source(cause)
            };
            let mut read = Vec::new();
            open().map_err(failed)?.take(bytes).read_to_end(&mut read).map_err(failed)?;
            Ok(read)
        }
        Content::Bytes(_) | Content::Later { .. } => Err(too_large()),
    }
}

/// Bytes as text or in base64, whichever is shorter in JSON.
fn shorter(bytes: Vec<u8>) -> (Option<String>, Option<String>) {
    let coded = BASE64_STANDARD.encode(&bytes);
    let text = String::from_utf8(bytes).ok();
    let is_short = |text: &String| {
        serde_json::to_string(text).is_ok_and(|written| written.len() <= coded.len() + 2)
    };
    match text.filter(is_short) {
        Some(text) => (Some(text), None),
        None => (None, Some(coded)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    fn checked(entries: serde_json::Value) -> Checked {
        let manifest: Manifest =
            serde_json::from_value(json!({ "version": 1, "entries": entries })).unwrap();
        manifest.check().unwrap()
    }

    fn place(name: &str) -> std::path::PathBuf {
        let base = std::env::temp_dir().join(format!("cofferdam-{name}-{}", std::process::id()));
        fs::create_dir_all(base.join("tree/d")).unwrap();
        base
    }

    #[test]
    fn files_and_directories_of_the_host_come_with_their_bytes() {
        let base = place("inlined");
        fs::write(base.join("tree/d/text"), "one\n").unwrap();
        fs::write(base.join("tree/bytes"), b"\xff\x00").unwrap();
        std::os::unix::fs::symlink("d/text", base.join("tree/link")).unwrap();
        let all = checked(json!([
            { "type": "copy", "path": "c", "from": "tree" },
            { "type": "file", "path": "f", "from": "tree/d/text", "mode": "600" },
            { "type": "directory", "path": "e" },
        ]));
        assert_eq!(all.clone().of_itself().unwrap_err().kind, ErrorKind::Unsupported);
        let known = all.fingerprint.clone();
        let inlined = all.clone().inlined(&base, &base.join("state")).unwrap();
        let expected = json!([
            { "type": "directory", "path": "c" },
            { "type": "file", "path": "c/bytes", "base64": "/wA=", "mode": "644" },
            { "type": "directory", "path": "c/d" },
            { "type": "file", "path": "c/d/text", "text": "one\n", "mode": "644" },
            { "type": "link", "path": "c/link", "target": "d/text" },
            { "type": "directory", "path": "e" },
            { "type": "file", "path": "f", "text": "one\n", "mode": "600" },
        ]);
        assert_eq!(serde_json::to_value(&inlined.entries).unwrap(), expected);
        // It says all by itself, and is known as the one that it was made of, whatever the bytes are.
        let again = inlined.check().unwrap().of_itself().unwrap();
        assert_eq!(again.fingerprint, known);
        fs::write(base.join("tree/d/text"), "two\n").unwrap();
        let other = all.inlined(&base, &base.join("state")).unwrap();
        assert_eq!(other.check().unwrap().fingerprint, known);
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn what_is_only_of_this_host_is_refused_by_name() {
        let base = place("refused");
        for entry in [
            json!({ "type": "mount", "path": "m", "from": "tree" }),
            json!({ "type": "archive", "path": "m", "from": "t.tgz" }),
            json!({ "type": "git", "path": "m", "url": "https://a.test/x" }),
        ] {
            assert!(checked(json!([entry])).of_itself().is_err(), "{entry}");
        }
        let mount = checked(json!([{ "type": "mount", "path": "m", "from": "tree" }]));
        let error = mount.inlined(&base, &base.join("state")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains("\"m\""), "{}", error.message);
        assert!(error.hint.as_ref().unwrap().contains("copy"), "{error:?}");
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn files_that_are_sent_with_a_manifest_have_a_limit() {
        let base = place("sent");
        let large = fs::File::create(base.join("tree/large")).unwrap();
        let copy = || checked(json!([{ "type": "copy", "path": "c", "from": "tree" }]));
        large.set_len(MAX_INLINED_BYTES).unwrap();
        let sent = copy().inlined(&base, &base.join("state")).unwrap();
        // It fits in a request.
        assert!(serde_json::to_vec(&sent).unwrap().len() < 3 << 20);
        large.set_len(MAX_INLINED_BYTES + 1).unwrap();
        assert_eq!(
            copy().inlined(&base, &base.join("state")).unwrap_err().kind,
            ErrorKind::TooLarge
        );
        large.set_len(MAX_INLINED_BYTES).unwrap();
        fs::write(base.join("tree/more"), "x").unwrap();
        assert_eq!(
            copy().inlined(&base, &base.join("state")).unwrap_err().kind,
            ErrorKind::TooLarge
        );
        fs::remove_dir_all(&base).unwrap();
    }
}
