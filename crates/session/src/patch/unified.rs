//! Unified diffs, of git and of `diff -u`, with whatever stands around them.

use super::hunk_text::{combined, hunk, is_file_head};
use super::names::{self, Prefix, Said, Time};
use super::section::{Action, Content, Hunk, Modes, Place, Section, Side};
use super::text::{PatchText, wrong};
use super::tree::{Executable, FileMode};
use cofferdam_core::{Error, ErrorKind, Result};

/// The most sections of a patch.
pub const MAX_PATCH_FILES: usize = 10_000;
/// The most hunks of a patch.
pub const MAX_PATCH_HUNKS: usize = 100_000;

/// A section whose names are not looked at yet.
#[derive(Default)]
struct Draft {
    line: usize,
    head: Option<names::Common>,
    old: Option<Said>,
    new: Option<Said>,
    moved: Option<Moved>,
    moved_from: Option<Vec<u8>>,
    moved_to: Option<Vec<u8>>,
    created: Option<FileMode>,
    deleted: Option<FileMode>,
    modes: Modes,
    hunks: Vec<Hunk>,
    is_git: IsGit,
    begins_step: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moved {
    Renamed,
    Copied,
}

/// Whether a section begins with `diff --git`.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum IsGit {
    #[default]
    No,
    Yes,
}

/// Every section of the text, in order.
pub(super) fn sections(text: &PatchText) -> Result<Vec<Section>> {
    let drafts = drafts(text)?;
    // A patch that names one file without a prefix uses none, so that `b/x` beside `/dev/null` is it.
    let plain = |draft: &Draft| matches!(draft.common(), Some(both) if both.prefix == Prefix::None);
    let prefix = if drafts.iter().any(plain) { Prefix::None } else { Prefix::OnePart };
    drafts.into_iter().map(|draft| draft.section(prefix)).collect()
}

fn drafts(text: &PatchText) -> Result<Vec<Draft>> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut hunks = 0;
    let mut begins_step = false;
    let mut at = 0;
    while let Some(line) = text.line(at) {
        if line.starts_with(b"diff --git ") || is_plain_head(text, at) {
            let (mut draft, next) = draft(text, at)?;
            draft.begins_step = std::mem::take(&mut begins_step);
            hunks += draft.hunks.len();
            drafts.push(draft);
            if drafts.len() > MAX_PATCH_FILES || hunks > MAX_PATCH_HUNKS {
                return Err(too_many());
            }
            at = next;
            continue;
        }
        refused(text, at)?;
        begins_step |= is_mail(line);
        at += 1;
    }
    Ok(drafts)
}

pub(super) fn too_many() -> Error {
    let what =
        format!("the patch has more than {MAX_PATCH_FILES} files or {MAX_PATCH_HUNKS} hunks");
    Error::new(ErrorKind::Usage, what).hint("Split the patch.")
}

/// `---` and `+++` below each other; a rule of hyphens in a text is none.
fn is_plain_head(text: &PatchText, at: usize) -> bool {
    let both = text.starts_with(at, b"--- ") && text.starts_with(at + 1, b"+++ ");
    both || is_file_head(text, at)
}

/// The first line of a mail of `git format-patch`: another commit, made on what is before it.
fn is_mail(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From ") else { return false };
    rest.split(|byte| *byte == b' ')
        .next()
        .is_some_and(|id| matches!(id.len(), 40 | 64) && id.iter().all(u8::is_ascii_hexdigit))
}

/// What would be lost if it were taken for a text around the diffs.
fn refused(text: &PatchText, at: usize) -> Result<()> {
    let line = text.line(at).unwrap_or_default();
    let unsupported = |what: &str| Err(wrong(ErrorKind::Unsupported, at, what));
    if line.starts_with(b"diff --cc ") || line.starts_with(b"diff --combined ") {
        return Err(combined(at));
    }
    if line.starts_with(b"@@@ -") {
        return Err(combined(at));
    }
    if line.starts_with(b"@@ -") {
        return Err(wrong(ErrorKind::Usage, at, "a hunk without a file")
            .hint("Put lines with --- and +++ and the file's name before it."));
    }
    if line.starts_with(b"Binary files ") && line.ends_with(b" differ") {
        return binary(at, line);
    }
    if line == b"GIT binary patch" {
        return binary(at, line);
    }
    if line.starts_with(b"*** ") && text.starts_with(at + 1, b"--- ") {
        return unsupported("context diffs cannot be applied")
            .map_err(|error| error.hint("Make a unified diff, with diff -u."));
    }
    if line == b"*** Begin Patch" {
        return Err(wrong(ErrorKind::Usage, at, "an envelope begins behind a diff")
            .hint("Apply them one after the other."));
    }
    if is_submodule(line) {
        return unsupported("submodules cannot be patched");
    }
    Ok(())
}

fn binary<T>(at: usize, what: &[u8]) -> Result<T> {
    let what = format!("binary patches cannot be applied ({})", String::from_utf8_lossy(what));
    Err(wrong(ErrorKind::Unsupported, at, &what).hint("Write the file as a whole."))
}

/// As `git diff --submodule=log` writes it: `Submodule PATH 0123456..89abcde`.
fn is_submodule(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"Submodule ") else { return false };
    rest.split(|byte| *byte == b' ').any(|word| {
        let hexadecimal =
            word.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'.' || *byte == b':');
        word.len() > 8 && hexadecimal && word.windows(2).any(|two| two == b"..")
    })
}

/// The section that begins here, and the line behind it.
fn draft(text: &PatchText, begin: usize) -> Result<(Draft, usize)> {
    let mut draft = Draft { line: begin + 1, ..Draft::default() };
    let mut at = begin;
    if let Some(head) = text.line(at).and_then(|line| line.strip_prefix(b"diff --git ")) {
        draft.head = names::of_git_head(head);
        draft.is_git = IsGit::Yes;
        at += 1;
        while let Some(line) = text.line(at)
            && draft.take_git_line(line, at)?
        {
            at += 1;
        }
    }
    if is_plain_head(text, at) {
        draft.old = Some(said(text, at)?);
        draft.new = Some(said(text, at + 1)?);
        at += 2;
        loop {
            let next = (at..).find(|at| !text.is_blank(*at)).unwrap_or(at);
            if !text.starts_with(next, b"@@") {
                break;
            }
            let (hunk, behind) = hunk(text, next)?;
            draft.hunks.push(hunk);
            at = behind;
        }
        if draft.hunks.is_empty() {
            return Err(wrong(ErrorKind::Usage, begin, "no hunk follows the names of a file")
                .hint("Begin each hunk with a line like @@ -1,3 +1,4 @@."));
        }
    }
    Ok((draft, at))
}

fn said(text: &PatchText, at: usize) -> Result<Said> {
    let name = text.line(at).and_then(|line| line.get(4..)).unwrap_or_default();
    names::said(name).map_err(|what| wrong(ErrorKind::Usage, at, what))
}

/// A mode as git writes it. Any other permissions would become those of one of the two files, and
/// nobody would know.
fn mode(digits: &[u8], at: usize) -> Result<FileMode> {
    match digits.trim_ascii_end() {
        b"100644" => Ok(FileMode::File(Executable::No)),
        b"100755" => Ok(FileMode::File(Executable::Yes)),
        b"120000" => Ok(FileMode::Link),
        b"160000" => Err(wrong(ErrorKind::Unsupported, at, "submodules cannot be patched")
            .hint("Leave the submodule out, with git diff --ignore-submodules.")),
        other => Err(other_mode(other, at)),
    }
}

fn other_mode(digits: &[u8], at: usize) -> Error {
    let bits = std::str::from_utf8(digits).ok().and_then(|text| u32::from_str_radix(text, 8).ok());
    let is_of_file = bits.is_some_and(|bits| matches!(bits & !0o7777, 0o100_000 | 0o120_000));
    let said = String::from_utf8_lossy(digits);
    match is_of_file {
        true => wrong(ErrorKind::Unsupported, at, &format!("a patch cannot set mode {said}")),
        false => wrong(ErrorKind::Usage, at, &format!("{said:?} is no mode of a file")),
    }
    .hint(
        "Write 100644, 100755 for a file that can be executed, or 120000 for a link, and set other \
         permissions behind the patch.",
    )
}

impl Draft {
    /// Takes a line between `diff --git` and the first hunk in. False for one that is none of them.
    fn take_git_line(&mut self, line: &[u8], at: usize) -> Result<bool> {
        let name =
            |name: &[u8]| names::whole(name).map_err(|what| wrong(ErrorKind::Usage, at, what));
        if let Some(digits) = line.strip_prefix(b"old mode ") {
            self.modes.old = Some(mode(digits, at)?);
        } else if let Some(digits) = line.strip_prefix(b"new mode ") {
            self.modes.new = Some(mode(digits, at)?);
        } else if let Some(digits) = line.strip_prefix(b"new file mode ") {
            self.created = Some(mode(digits, at)?);
        } else if let Some(digits) = line.strip_prefix(b"deleted file mode ") {
            self.deleted = Some(mode(digits, at)?);
        } else if let Some(from) = line.strip_prefix(b"rename from ") {
            self.moved = Some(Moved::Renamed);
            self.moved_from = Some(name(from)?);
        } else if let Some(to) = line.strip_prefix(b"rename to ") {
            self.moved = Some(Moved::Renamed);
            self.moved_to = Some(name(to)?);
        } else if let Some(from) = line.strip_prefix(b"copy from ") {
            self.moved = Some(Moved::Copied);
            self.moved_from = Some(name(from)?);
        } else if let Some(to) = line.strip_prefix(b"copy to ") {
            self.moved = Some(Moved::Copied);
            self.moved_to = Some(name(to)?);
        } else if let Some(index) = line.strip_prefix(b"index ") {
            // It ends with a mode where the mode does not change.
            if let Some(space) = index.iter().position(|byte| *byte == b' ') {
                let same = mode(index.get(space + 1..).unwrap_or_default(), at)?;
                self.modes = Modes { old: Some(same), new: Some(same) };
            }
        } else if line == b"GIT binary patch" || line.starts_with(b"Binary files ") {
            let named = self.head.as_ref().map(|head| head.name.as_slice());
            return binary(at, named.or(self.moved_to.as_deref()).unwrap_or(line));
        } else {
            let similar = [b"similarity index ".as_slice(), b"dissimilarity index "];
            return Ok(similar.iter().any(|head| line.starts_with(head)));
        }
        Ok(true)
    }

    /// The file that both names mean, if there are two.
    fn common(&self) -> Option<names::Common> {
        if let Some(head) = &self.head {
            return Some(head.clone());
        }
        let old = self.old.as_ref()?.name.as_deref()?;
        let new = self.new.as_ref()?.name.as_deref()?;
        names::common_or_kept(old, new)
    }

    fn wrong(&self, what: &str) -> Error {
        wrong(ErrorKind::Usage, self.line - 1, what)
    }

    fn section(self, prefix: Prefix) -> Result<Section> {
        let action = self.action(prefix).map_err(|mut error| {
            if !error.message.starts_with("line ") {
                error.message = format!("line {} of the patch: {}", self.line, error.message);
            }
            error
        })?;
        let mut modes = self.modes;
        match (&action, self.created, self.deleted) {
            (Action::Create(_), mode, _) => modes = Modes { old: None, new: mode.or(modes.new) },
            (Action::Delete(..), _, mode) => modes = Modes { old: mode.or(modes.old), new: None },
            _ => {}
        }
        let changes_kind = |old: FileMode, new| (old == FileMode::Link) != (new == FileMode::Link);
        if modes.old.zip(modes.new).is_some_and(|(old, new)| changes_kind(old, new)) {
            return Err(self.wrong("a mode turns a file into a link, or a link into a file"));
        }
        let moved = matches!(action, Action::Rename { .. } | Action::Copy { .. });
        let changes_mode = self.modes.old != self.modes.new;
        let empty = self.created.is_some() || self.deleted.is_some();
        if self.hunks.is_empty() && !moved && !changes_mode && !empty {
            return Err(self.wrong("nothing is said about what changes in the file"));
        }
        let (line, begins_step) = (self.line, self.begins_step);
        Ok(Section { line, action, modes, hunks: self.hunks, begins_step })
    }

    fn action(&self, prefix: Prefix) -> Result<Action> {
        let said = [self.created.is_some(), self.deleted.is_some(), self.moved.is_some()];
        if said.into_iter().filter(|said| *said).count() > 1 {
            let what = "a file is either made, removed, renamed or copied, and not two of them";
            return Err(self.wrong(what));
        }
        if let Some(moved) = self.moved {
            let (Some(from), Some(to)) = (&self.moved_from, &self.moved_to) else {
                return Err(self.wrong("one of the two names of a rename or copy is missing"));
            };
            self.agrees(&self.old, from)?;
            self.agrees(&self.new, to)?;
            let (from, to) = (names::path(from)?, names::path(to)?);
            return match moved {
                _ if from == to => Err(self.wrong("a file is renamed or copied to itself")),
                Moved::Renamed => Ok(Action::Rename { from, to }),
                Moved::Copied => Ok(Action::Copy { from, to }),
            };
        }
        let name = self.name(prefix)?;
        if self.head.is_some() {
            self.agrees(&self.old, &name)?;
            self.agrees(&self.new, &name)?;
        }
        let path = names::path(&name)?;
        let is_nothing =
            |said: &Option<Said>| said.as_ref().is_some_and(|said| said.name.is_none());
        if self.created.is_some()
            || is_nothing(&self.old)
            || self.is_dated_zero(&self.old, Side::New)
        {
            return Ok(Action::Create(path));
        }
        if self.deleted.is_some()
            || is_nothing(&self.new)
            || self.is_dated_zero(&self.new, Side::Old)
        {
            return Ok(Action::Delete(path, Content::Said));
        }
        Ok(Action::Modify(path))
    }

    /// Readers look at one name and programs at another, so both have to mean the same file.
    fn agrees(&self, said: &Option<Said>, name: &[u8]) -> Result<()> {
        let said = said.as_ref().and_then(|said| said.name.as_deref());
        match said.is_none_or(|said| names::is_of(said, name)) {
            true => Ok(()),
            false => Err(self.wrong("the names in the head and behind --- and +++ disagree")),
        }
    }

    fn name(&self, prefix: Prefix) -> Result<Vec<u8>> {
        if let Some(both) = self.common() {
            return Ok(both.name);
        }
        let old = self.old.as_ref().and_then(|said| said.name.as_deref());
        let new = self.new.as_ref().and_then(|said| said.name.as_deref());
        match (old, new) {
            (Some(old), None) => Ok(names::lone(old, b"a/", prefix)),
            (None, Some(new)) => Ok(names::lone(new, b"b/", prefix)),
            (Some(_), Some(_)) => Err(self
                .wrong("the two names mean different files")
                .hint("Give both the same name, or say rename from and rename to as git does.")),
            (None, None) => Err(self.wrong("it is not clear which file is meant")),
        }
    }

    /// `diff -N` writes a missing file as one from the beginning of time, with nothing in it.
    fn is_dated_zero(&self, said: &Option<Said>, lines: Side) -> bool {
        let zero = said.as_ref().is_some_and(|said| said.time == Time::Zero);
        let [hunk] = self.hunks.as_slice() else { return false };
        let Place::Line { old, new } = hunk.place else { return false };
        let index = if lines == Side::New { old } else { new };
        let all = hunk.lines.iter().all(|line| line.side == lines);
        zero && self.is_git == IsGit::No && index == 0 && all
    }
}
