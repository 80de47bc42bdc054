//! Edits in a file of TOML that keep everything else, comments included.

use super::{Entry, is_remote, malformed, other};
use cofferdam_core::Result;
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

/// The table of all servers.
const SERVERS: &str = "mcp_servers";

pub(super) fn edited(file: &Path, text: &str, entry: &Entry) -> Result<String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let at = error.span().map_or(0, |span| span.start);
        malformed(file, error.message(), text, at)
    })?;
    let no_table = |name: &str| {
        other(file, &format!("{name} is no table"), "Make it a table, or name another file.")
    };
    let servers = document.entry(SERVERS).or_insert_with(|| {
        let mut table = Table::new();
        // Only its tables get a head.
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut().ok_or_else(|| no_table(SERVERS))?;
    if servers.get(&entry.name).is_none() {
        servers.insert(&entry.name, Item::Table(Table::new()));
    }
    let name = format!("{SERVERS}.{}", entry.name);
    let server = servers.get_mut(&entry.name).and_then(Item::as_table_like_mut);
    let server = server.ok_or_else(|| no_table(&name))?;
    if server.contains_key("url") {
        return Err(is_remote(file, &entry.name));
    }
    set(server, "command", value(&entry.command));
    set(server, "args", value(entry.args.iter().collect::<Array>()));
    Ok(document.to_string())
}

/// Sets a value unless it is that already, written in whatever way.
fn set(table: &mut dyn TableLike, key: &str, wanted: Item) {
    let has = table.get(key);
    if has.is_some_and(|has| plain(has) == plain(&wanted)) {
        return;
    }
    table.insert(key, wanted);
}

/// A value without the blanks and comments around it.
fn plain(item: &Item) -> Option<Vec<Option<&str>>> {
    match item.as_array() {
        Some(array) => Some(array.iter().map(toml_edit::Value::as_str).collect()),
        None => item.as_str().map(|text| vec![Some(text), None]),
    }
}
