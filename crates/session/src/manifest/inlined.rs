//! Manifests that say all by themselves, for those who read them elsewhere.

use super::load::Thing;
use super::{Checked, MANIFEST_VERSION, Manifest, ManifestEntry, Wanted};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cofferdam_core::files::Content;
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use std::io::Read;
use std::path::Path;

/// The most bytes of all files of a manifest that says all by itself.
pub const MAX_INLINED_BYTES: u64 = 512 << 10;

impl Checked {
    /// The same with the bytes of every file in it. Files and directories that it copies from the host are
    /// read, relative to `base`; what is only of this host, as mounts, archives and repositories, is refused.
    pub fn inlined(self, base: &Path) -> Result<Manifest> {
        for (path, wanted) in &self.wanted {
            let (what, hint) = match wanted {
                Wanted::Mount { .. } => (
                    "mounts a directory of this machine, which a server does not see",
                    "Name a workspace that its operator allows, or copy the directory.",
                ),
                Wanted::Archive(_) => (
                    "unpacks an archive of this machine, which a server does not see",
                    "Send it with `cofferdam file import` once the sandbox is there.",
                ),
                Wanted::Repository(_) => (
                    "clones a repository, which a server does for nobody",
                    "Clone it inside, as by --init 'git clone URL'.",
                ),
                Wanted::Bytes { .. }
                | Wanted::HostFile { .. }
                | Wanted::Directory
                | Wanted::Link { .. }
                | Wanted::HostDirectory { .. } => continue,
            };
            return Err(refused(path, what).hint(hint));
        }
        let mut left = MAX_INLINED_BYTES;
        let things = self.load(base)?.things;
        let entries = things.into_iter().map(|(path, thing)| entry(&path, &thing, &mut left));
        Ok(Manifest { version: MANIFEST_VERSION, entries: entries.collect::<Result<_>>()? })
    }

    /// The same, if it names nothing of any host.
    pub fn of_itself(self) -> Result<Self> {
        let is_of_a_host = |wanted: &Wanted| match wanted {
            Wanted::Bytes { .. } | Wanted::Directory | Wanted::Link { .. } => false,
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

fn refused(path: &GuestPath, what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("the entry {path:?} of the manifest {what}"))
}

fn entry(path: &GuestPath, thing: &Thing, left: &mut u64) -> Result<ManifestEntry> {
    let name = text(path.as_bytes(), path)?;
    Ok(match thing {
        Thing::Directory { .. } => ManifestEntry::Directory { path: name },
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
        Error::new(ErrorKind::TooLarge, what)
            .hint("Send large files with `cofferdam file upload` or `file import` afterwards.")
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
        let inlined = all.inlined(&base).unwrap();
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
        // It says all by itself.
        inlined.check().unwrap().of_itself().unwrap();
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn what_is_only_of_this_host_is_refused_by_name() {
        let base = place("refused");
        for (entry, hint) in [
            (json!({ "type": "mount", "path": "m", "from": "tree" }), "copy"),
            (json!({ "type": "archive", "path": "m", "from": "t.tgz" }), "file import"),
            (json!({ "type": "git", "path": "m", "url": "https://a.test/x" }), "git clone"),
        ] {
            let error = checked(json!([entry])).inlined(&base).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unsupported, "{entry}");
            assert!(error.message.contains("\"m\""), "{}", error.message);
            assert!(error.hint.as_ref().unwrap().contains(hint), "{error:?}");
            assert!(checked(json!([entry])).of_itself().is_err());
        }
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn files_that_are_sent_with_a_manifest_have_a_limit() {
        let base = place("sent");
        let large = fs::File::create(base.join("tree/large")).unwrap();
        let copy = || checked(json!([{ "type": "copy", "path": "c", "from": "tree" }]));
        large.set_len(MAX_INLINED_BYTES).unwrap();
        let sent = copy().inlined(&base).unwrap();
        // It fits in a request of a mebibyte.
        assert!(serde_json::to_vec(&sent).unwrap().len() < 1_000_000);
        large.set_len(MAX_INLINED_BYTES + 1).unwrap();
        assert_eq!(copy().inlined(&base).unwrap_err().kind, ErrorKind::TooLarge);
        large.set_len(MAX_INLINED_BYTES).unwrap();
        fs::write(base.join("tree/more"), "x").unwrap();
        assert_eq!(copy().inlined(&base).unwrap_err().kind, ErrorKind::TooLarge);
        fs::remove_dir_all(&base).unwrap();
    }
}
