//! Searches as a server takes them.

use cofferdam_core::files::{ByteString, EntryKind};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_search::{Case, Glob, Grep, Scope, Want};
use cofferdam_session::objects::{CaseWish, GlobWish, GrepWish, KindWish, ScopeWish, TellWish};
use cofferdam_session::text_or_base64;

/// Names that are looked for.
pub(super) fn names(order: &Glob) -> Result<GlobWish> {
    let place = match order.scope.paths.as_slice() {
        [] => None,
        [one] => Some(one),
        _ => {
            let what = "a server looks for names in one directory at a time";
            return Err(
                Error::new(ErrorKind::Unsupported, what).hint("Ask for one after the other.")
            );
        }
    };
    let place = place.map(|place| text_or_base64(place.as_bytes().to_vec()));
    let (path, path_base64) = place.unwrap_or_default();
    Ok(GlobWish {
        patterns: order.patterns.clone(),
        path,
        path_base64,
        ignore_case: order.ignore_case,
        kinds: order.kinds.iter().copied().map(kind).collect(),
        limit: order.max_matches,
        scope: scope(&order.scope),
    })
}

/// Lines that are looked for.
pub(super) fn lines(order: &Grep) -> GrepWish {
    let (paths, paths_base64): (Vec<_>, Vec<_>) = order.scope.paths.iter().map(named).unzip();
    GrepWish {
        patterns: order.patterns.clone(),
        paths: paths.into_iter().flatten().collect(),
        paths_base64: paths_base64.into_iter().flatten().collect(),
        fixed_strings: order.fixed,
        word: order.word,
        case: match order.case {
            Case::Sensitive => CaseWish::Sensitive,
            Case::Insensitive => CaseWish::Insensitive,
            Case::Smart => CaseWish::Smart,
        },
        before: order.before,
        after: order.after,
        tell: match order.want {
            Want::Lines => TellWish::Lines,
            Want::Count => TellWish::Count,
            Want::Name => TellWish::Name,
        },
        binary_as_text: order.binary_as_text,
        max_count: order.max_matches_of_one,
        limit: order.max_matches,
        max_file_bytes: Some(order.max_file_bytes),
        scope: scope(&order.scope),
    }
}

fn named(path: &ByteString) -> (Option<String>, Option<String>) {
    text_or_base64(path.as_bytes().to_vec())
}

fn scope(scope: &Scope) -> ScopeWish {
    ScopeWish {
        hidden: scope.hidden,
        no_ignore: scope.ignored,
        include: scope.include.clone(),
        exclude: scope.exclude.clone(),
    }
}

fn kind(kind: EntryKind) -> KindWish {
    match kind {
        EntryKind::File => KindWish::File,
        EntryKind::Directory => KindWish::Directory,
        EntryKind::Link => KindWish::Link,
        EntryKind::Fifo => KindWish::Fifo,
        EntryKind::Socket => KindWish::Socket,
        EntryKind::Device => KindWish::Device,
    }
}
