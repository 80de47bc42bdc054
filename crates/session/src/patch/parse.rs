//! From the text of a patch to what it says.

use super::section::{Direction, Hunk, Patch, Section};
use super::text::{PatchText, wrong};
use super::{PatchFormat, envelope, unified};
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use std::collections::BTreeSet;

/// How many bytes all paths may have that have to be looked up for a patch.
pub const MAX_PATCH_PATH_BYTES: usize = 32 << 20;

impl Patch {
    /// Understands a patch, or says which line of it is not understood and why.
    ///
    /// What cannot be applied at all is refused here by name: binary patches, submodules, combined
    /// and context diffs, paths that leave the workspace or lie in `.git`.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let text = PatchText::new(text)?;
        let mut at = 0;
        while let Some(line) = text.line(at) {
            if envelope::begins(&text, at) || line.starts_with(b"diff --git ") {
                break;
            }
            if line.starts_with(b"--- ") && text.starts_with(at + 1, b"+++ ") {
                break;
            }
            at += 1;
        }
        let (format, sections) = if envelope::begins(&text, at) {
            (PatchFormat::Envelope, envelope::sections(&text, at)?)
        } else {
            (PatchFormat::Unified, unified::sections(&text)?)
        };
        if sections.is_empty() {
            let what = "the patch changes no file";
            return Err(Error::new(ErrorKind::Usage, what)
                .hint("Send a unified diff, or an envelope that begins with *** Begin Patch."));
        }
        let patch = Self { text: text.bytes, format, direction: Direction::Forward, sections };
        patch.has_few_paths()?;
        Ok(patch)
    }

    /// Whoever applies the patch has to look all of its paths up.
    fn has_few_paths(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        let mut bytes = 0;
        for path in self.sections.iter().flat_map(Section::paths) {
            for path in path.ancestors().chain([path.clone()]) {
                let length = path.as_bytes().len();
                bytes += if seen.insert(path) { length } else { 0 };
            }
            if bytes > MAX_PATCH_PATH_BYTES {
                let what = format!(
                    "the paths that have to be looked up have more than {MAX_PATCH_PATH_BYTES} bytes"
                );
                return Err(Error::new(ErrorKind::Usage, what).hint("Split the patch."));
            }
        }
        Ok(())
    }

    /// The patch that takes back what this one does. Reversed again, it is this one.
    ///
    /// A deletion that does not say what it deletes, as in an envelope, cannot be taken back.
    pub fn reversed(mut self) -> Result<Self> {
        let begins: Vec<bool> = self.sections.iter().map(|section| section.begins_step).collect();
        for section in &mut self.sections {
            section.action = section.action.clone().reversed().ok_or_else(|| {
                let what = "a deletion that does not say what it deletes cannot be taken back";
                wrong(ErrorKind::Unsupported, section.line - 1, what)
            })?;
            std::mem::swap(&mut section.modes.old, &mut section.modes.new);
            section.hunks.iter_mut().for_each(Hunk::reverse);
        }
        // A section that had the end of a step before it has the beginning of one there now.
        for (section, begins) in
            self.sections.iter_mut().zip(begins.into_iter().skip(1).chain([false]))
        {
            section.begins_step = begins;
        }
        self.sections.reverse();
        self.direction = self.direction.reversed();
        Ok(self)
    }

    /// Every path whose state has to be known: the files that it names, and the directories above
    /// them.
    pub fn paths(&self) -> BTreeSet<GuestPath> {
        let mut paths = BTreeSet::new();
        for path in self.sections.iter().flat_map(Section::paths) {
            paths.extend(path.ancestors());
            paths.insert(path.clone());
        }
        paths
    }

    /// The paths of [`paths`](Self::paths) of which, if they are directories, the content has to be
    /// known too: a file takes their place.
    pub fn directories(&self) -> BTreeSet<GuestPath> {
        let named: Vec<&GuestPath> = self.sections.iter().flat_map(Section::paths).collect();
        let above: BTreeSet<GuestPath> = named.iter().flat_map(|path| path.ancestors()).collect();
        named.into_iter().filter(|path| above.contains(*path)).cloned().collect()
    }
}
