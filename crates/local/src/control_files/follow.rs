//! Where a path leads in a workspace, link by link.

use super::{Search, join, parent_of};
use rustix::fs::{AtFlags, FileType};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// How many links are followed, as the kernel does.
const MAX_LINKS: usize = 40;

/// Where a path leads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Led {
    /// The links of the workspace that it leads by. Each could be pointed elsewhere.
    pub(super) links: Vec<String>,
    /// The place in the workspace that it leads to, whether anything is there or not, by names none of
    /// which is a link. The empty path is the workspace itself. `None` where it leads elsewhere.
    pub(super) end: Option<String>,
}

impl Search<'_> {
    /// Follows a path that is meant from the directory `base`: one of the workspace, or of the host where it
    /// begins with a slash.
    pub(super) fn follow(&self, base: &str, text: &str) -> Led {
        if base.starts_with('/') && !text.starts_with('/') {
            return self.follow("", &format!("{base}/{text}"));
        }
        let mut led = Led::default();
        let mut names: VecDeque<String> = parts(base);
        names.extend(parts(text));
        let mut at = Some(String::new());
        if text.starts_with('/') {
            (at, names) = self.enter(Path::new(text));
        }
        while let (Some(directory), Some(name)) = (at.clone(), names.pop_front()) {
            if name == ".." && directory.is_empty() {
                // It may come back by another way.
                let rest: PathBuf = names.iter().collect();
                let above = self.root.parent().unwrap_or(Path::new("/"));
                (at, names) = self.enter(&above.join(rest));
                continue;
            }
            if name == ".." {
                at = Some(parent_of(&directory).to_owned());
                continue;
            }
            let path = join(&directory, &name);
            let Some(target) = self.target(&path) else {
                at = Some(path);
                continue;
            };
            led.links.push(path);
            let Ok(target) = String::from_utf8(target) else {
                // What cannot be named here may be anywhere.
                (at, names) = (Some(String::new()), VecDeque::new());
                continue;
            };
            if led.links.len() > MAX_LINKS {
                at = None;
            } else if target.starts_with('/') {
                let rest: PathBuf = names.iter().collect();
                (at, names) = self.enter(&Path::new(&target).join(rest));
            } else {
                for part in parts(&target).into_iter().rev() {
                    names.push_front(part);
                }
            }
        }
        led.end = at;
        led
    }

    /// Where a link of the workspace leads, by its text; `None` where there is none.
    fn target(&self, path: &str) -> Option<Vec<u8>> {
        let stat = rustix::fs::statat(self.workspace, path, AtFlags::SYMLINK_NOFOLLOW);
        let kind = stat.ok().map(|stat| FileType::from_raw_mode(stat.st_mode));
        if kind != Some(FileType::Symlink) {
            return None;
        }
        let text = rustix::fs::readlinkat(self.workspace, path, Vec::new()).ok()?;
        Some(text.into_bytes())
    }

    /// An absolute path: the workspace and what is left to go there; nothing where it leads elsewhere.
    /// Links outside of the workspace cannot be changed from inside, so that the kernel follows them.
    fn enter(&self, path: &Path) -> (Option<String>, VecDeque<String>) {
        let text = |path: &Path| parts(&path.to_string_lossy());
        if let Ok(below) = path.strip_prefix(&self.root) {
            return (Some(String::new()), text(below));
        }
        for above in path.ancestors() {
            let Ok(real) = above.canonicalize() else { continue };
            let Ok(below) = real.strip_prefix(&self.root) else { break };
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            return (Some(String::new()), text(below).into_iter().chain(text(rest)).collect());
        }
        (None, VecDeque::new())
    }
}

fn parts(path: &str) -> VecDeque<String> {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.map(str::to_owned).collect()
}
