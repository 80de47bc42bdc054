//! From the state that a patch leads to, to the changes that lead there.

use super::PatchRefusalKind;
use super::make::Refused;
use super::plan::State;
use super::section::{Action, Section};
use super::tree::{Change, Node};
use cofferdam_core::{Error, ErrorKind, GuestPath};
use std::collections::BTreeSet;

/// The longest target of a link, in bytes.
const MAX_TARGET_BYTES: usize = 4095;

/// The changes in an order in which each can be done, or which sections make them impossible.
pub(super) fn settle(
    state: &State<'_>,
    sections: &[Section],
) -> Result<Vec<Change>, Vec<(usize, Refused)>> {
    let mut refused = Vec::new();
    let mut all = Changes::default();
    let renamed = renamed(state, sections, &mut all.renames);
    for (path, touched) in &state.now {
        let before = state.tree.get(path).filter(|node| node.content().is_some());
        if touched.node.as_ref() == before || renamed.contains(path) {
            continue;
        }
        let Some(node) = &touched.node else {
            all.removals.push(Change::Remove { path: path.clone() });
            continue;
        };
        match allowed(state, path, node) {
            Ok(directories) => {
                all.directories.extend(directories);
                all.put(path, before, node);
            }
            Err(reason) => refused.push((touched.section, reason)),
        }
    }
    if refused.is_empty() { Ok(all.in_order()) } else { Err(refused) }
}

#[derive(Default)]
struct Changes {
    renames: Vec<Change>,
    removals: Vec<Change>,
    directories: BTreeSet<GuestPath>,
    writes: Vec<Change>,
}

impl Changes {
    fn put(&mut self, path: &GuestPath, before: Option<&Node>, node: &Node) {
        let path = path.clone();
        self.writes.push(match node {
            Node::File { content, executable } => {
                if before.is_some_and(
                    |before| matches!(before, Node::File { content: same, .. } if same == content),
                ) {
                    Change::SetExecutable { path, executable: *executable }
                } else {
                    Change::Write { path, content: content.clone(), executable: *executable }
                }
            }
            Node::Link { target } => Change::Link { path, target: target.clone() },
            // Nothing that a patch makes.
            Node::Directory { .. } | Node::Other => return,
        });
    }

    /// ORDER: renames while what they leave and find is as it was; then what goes, so that names are
    /// free; then what comes.
    fn in_order(self) -> Vec<Change> {
        // The innermost directory first: a path sorts behind those that it lies in.
        let directories = self.directories.into_iter().rev();
        let directories = directories.map(|path| Change::RemoveDirectory { path });
        let all = self.renames.into_iter().chain(self.removals).chain(directories);
        all.chain(self.writes).collect()
    }
}

/// The files that only get another name, of which nothing else is said: both of their paths.
fn renamed<'p>(
    state: &'p State<'_>,
    sections: &'p [Section],
    renames: &mut Vec<Change>,
) -> BTreeSet<&'p GuestPath> {
    let mut renamed = BTreeSet::new();
    for (at, section) in sections.iter().enumerate() {
        let Action::Rename { from, to } = &section.action else { continue };
        let (Some(left), Some(put)) = (state.now.get(from), state.now.get(to)) else { continue };
        let alone = left.section == at && put.section == at && left.node.is_none();
        let same = put.node.is_some() && state.tree.get(from) == put.node.as_ref();
        let free = |path: &GuestPath| match state.tree.get(path) {
            Some(Node::File { .. } | Node::Link { .. } | Node::Other) => false,
            Some(Node::Directory { .. }) | None => true,
        };
        let way = state.tree.get(to).is_none() && to.ancestors().all(|above| free(&above));
        let link = matches!(put.node, Some(Node::Link { .. }));
        if alone && same && way && !link && state.open_way(to).is_ok() {
            renames.push(Change::Rename { from: from.clone(), to: to.clone() });
            renamed.extend([from, to]);
        }
    }
    renamed
}

/// Whether this can stand there in the end, and which directories make room for it.
fn allowed(state: &State<'_>, path: &GuestPath, node: &Node) -> Result<Vec<GuestPath>, Refused> {
    state.open_way(path)?;
    if let Node::Link { target } = node {
        good_target(path, target)?;
    }
    let Some(Node::Directory { below }) = state.tree.get(path) else { return Ok(Vec::new()) };
    let wrong = |what: String| Err((PatchRefusalKind::Exists, what));
    let Some(below) = below else { return wrong(format!("{path:?} is a directory")) };
    if let Some(left) =
        below.iter().find(|below| state.node(below).is_some() || !state.now.contains_key(*below))
    {
        return wrong(format!("{path:?} is a directory that holds {left:?}"));
    }
    let inside = |above: &GuestPath| above.as_bytes().len() > path.as_bytes().len();
    let directories = below.iter().flat_map(|below| below.ancestors().filter(inside));
    Ok(directories.chain([path.clone()]).collect())
}

/// Refuses a link that would lead out of the workspace, by its text.
pub(crate) fn good_link(path: &GuestPath, target: &[u8]) -> Result<(), Error> {
    good_target(path, target).map_err(|(_, what)| {
        Error::new(ErrorKind::PathEscape, what).hint("Let links lead to what is in the workspace.")
    })
}

/// A link leads to something in the workspace, by its text.
fn good_target(path: &GuestPath, target: &[u8]) -> Result<(), Refused> {
    let bad = |what: &str| Err((PatchRefusalKind::BadLink, format!("the link {path:?} {what}")));
    if target.is_empty() || target.contains(&0) || target.len() > MAX_TARGET_BYTES {
        return bad("would have a target that no link can have");
    }
    if target.starts_with(b"/") {
        return bad("would lead to an absolute path");
    }
    let mut depth = path.names().count() - 1;
    for name in target.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return bad("would lead out of the workspace"),
            },
            _ => depth += 1,
        }
    }
    Ok(())
}
