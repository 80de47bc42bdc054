//! What `cofferdam file` prints for people.

use crate::moment::timestamp;
use crate::render;
use cofferdam_session::objects::FileEntry;
use cofferdam_session::text_or_quoted;

/// Entries for people, a line each.
pub(super) fn table(entries: &[FileEntry]) -> String {
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    render::table(&rows)
}

fn row(entry: &FileEntry) -> Vec<String> {
    let mut path = text_or_quoted(entry.path.as_deref(), entry.path_base64.as_deref());
    if let Some(target) = &entry.target {
        path.push_str(" -> ");
        path.push_str(target);
    }
    vec![
        entry.kind.clone(),
        entry.mode.clone(),
        entry.size.to_string(),
        timestamp(u64::try_from(entry.modified_ms).unwrap_or(0)),
        render::plain(&path).into_owned(),
    ]
}
