//! What a manifest takes from outside of a directory.

use super::repository::Address;
use super::{Checked, Wanted};
use std::path::Path;

impl Checked {
    /// In words the first thing that it would take from outside of this directory, or with rights of the
    /// caller's; nothing where all is in it. Relative names are meant from `base`; the directory's own path leads
    /// over no link.
    pub fn reaches_out(&self, base: &Path, within: &Path) -> Option<String> {
        // What is not there is told when it is looked at.
        let is_out = |from: &Path| {
            base.join(from).canonicalize().is_ok_and(|found| !found.starts_with(within))
        };
        self.wanted.iter().find_map(|(path, wanted)| {
            let from = match wanted {
                Wanted::Bytes { .. } | Wanted::Directory { .. } | Wanted::Link { .. } => {
                    return None;
                }
                Wanted::HostFile { from, .. }
                | Wanted::HostDirectory { from }
                | Wanted::Mount { from } => from,
                Wanted::Archive(said) => &said.from,
                Wanted::Repository(repository) => match &repository.address {
                    Address::Directory(from) if repository.credential.is_none() => from,
                    Address::Directory(from) => {
                        return Some(format!("{path:?} takes {} with a token", from.display()));
                    }
                    Address::Web { url, .. } | Address::Ssh { url } => {
                        return Some(format!("{path:?} is fetched from {url}"));
                    }
                },
            };
            is_out(from).then(|| format!("{path:?} takes {}", from.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Manifest;
    use std::path::Path;

    fn told(entry: &str) -> Option<String> {
        let text = format!(r#"{{"version": 1, "entries": [{{"path": "p", {entry}}}]}}"#);
        let manifest: Manifest = serde_json::from_str(&text).unwrap();
        manifest.check().unwrap().reaches_out(Path::new("/usr/lib"), Path::new("/usr"))
    }

    #[test]
    fn what_is_outside_of_a_directory_or_on_a_server_is_told() {
        for inside in [
            r#""type": "file", "text": "x""#,
            r#""type": "directory""#,
            r#""type": "link", "target": "q""#,
            r#""type": "mount", "from": "../bin""#,
            r#""type": "copy", "from": "/usr/share""#,
            r#""type": "file", "from": "no-such-file""#,
        ] {
            assert_eq!(told(inside), None, "{inside}");
        }
        for (outside, word) in [
            (r#""type": "file", "from": "../../etc/passwd""#, "etc/passwd"),
            (r#""type": "mount", "from": "/etc""#, "/etc"),
            (r#""type": "copy", "from": "/etc""#, "/etc"),
            (r#""type": "archive", "from": "/etc/passwd""#, "/etc/passwd"),
            (r#""type": "git", "url": "https://example.com/a.git""#, "example.com"),
            (r#""type": "git", "url": "/etc""#, "/etc"),
        ] {
            assert!(told(outside).is_some_and(|told| told.contains(word)), "{outside}");
        }
    }
}
