//! Asking about the changes of a session behind a server.

use super::{Asking, Shown, Wanted, permissions};
use crate::door::{Chosen, There};
use cofferdam_client::Sandbox;
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use cofferdam_session::objects::{HunkText, LayerHunks, MAX_WHOLE_BYTES};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Asks for each change at these paths, or for all. What is chosen is told the server by what was shown.
pub(super) async fn chosen(
    session: &There,
    paths: &[OsString],
    asking: &mut Asking,
) -> Result<Option<Chosen>> {
    let mut chosen = Vec::new();
    for (path, change) in changes(session.sandbox(), paths).await? {
        let parts = match asking.about(&shown(&path, &change)?)? {
            Wanted::Nothing => continue,
            Wanted::Whole => None,
            Wanted::Parts(wanted) => {
                let numbered = wanted.iter().enumerate();
                Some(numbered.filter(|(_, wanted)| **wanted).map(|(number, _)| number).collect())
            }
        };
        let path = OsStr::from_bytes(path.as_bytes());
        chosen.push(Sandbox::chosen_wish(path, &change.sha256, parts));
    }
    Ok((!chosen.is_empty()).then_some(Chosen::There(chosen)))
}

/// The changes in the order of paths. A server is asked for one path at a time.
async fn changes(sandbox: &Sandbox, paths: &[OsString]) -> Result<BTreeMap<GuestPath, LayerHunks>> {
    let mut all = BTreeMap::new();
    let mut asked: Vec<Option<&OsStr>> = paths.iter().map(|path| Some(path.as_os_str())).collect();
    if asked.is_empty() {
        asked.push(None);
    }
    for path in asked {
        let told = sandbox.hunks_with_texts(path).await?.changes;
        if let Some(path) = path.filter(|_| told.is_empty()) {
            let what = format!("the session changed nothing at {path:?}");
            return Err(Error::new(ErrorKind::NotFound, what)
                .hint("See what it changed with `cofferdam diff SESSION --stat`."));
        }
        for one in told {
            all.insert(one.change.change()?.path, one);
        }
    }
    Ok(all)
}

fn shown(path: &GuestPath, told: &LayerHunks) -> Result<Shown> {
    let change = told.change.change()?;
    let text = match &told.whole {
        Some(text) => text.bytes()?,
        None if told.hunks.is_empty() => {
            let what = format!("# it is longer than the {MAX_WHOLE_BYTES} bytes that are shown\n");
            what.into_bytes()
        }
        None => Vec::new(),
    };
    Ok(Shown {
        path: path.clone(),
        kind: change.kind,
        standing: change.standing,
        parts: told.hunks.iter().map(HunkText::bytes).collect::<Result<_>>()?,
        text,
        permissions: permissions(&change),
    })
}
