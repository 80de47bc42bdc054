//! The published schemas are those of the program.

use crate::harness::{Place, compare};

const OBJECTS: [&str; 61] = [
    "config",
    "check",
    "result",
    "error",
    "probe",
    "progress",
    "explain",
    "doctor",
    "wrap",
    "key",
    "key-created",
    "keys",
    "secret",
    "secrets",
    "secret-key",
    "session",
    "sessions",
    "exec",
    "execs",
    "log",
    "log-part",
    "event",
    "events",
    "removal",
    "gc",
    "history",
    "undo",
    "port",
    "network",
    "connections",
    "metrics",
    "permission",
    "permissions",
    "policy-tested",
    "policy-learned",
    "snapshot",
    "snapshots",
    "snapshot-exported",
    "snapshot-imported",
    "image",
    "images",
    "images-removed",
    "image-event",
    "file-content",
    "file-entry",
    "file-list",
    "file-done",
    "file-patch",
    "file-edit",
    "file-window",
    "manifest",
    "changes",
    "applied",
    "discarded",
    "file-contents",
    "file-copied",
    "file-imported",
    "file-names",
    "file-matches",
    "file-event",
    "mcp-installed",
];

#[test]
fn published_schemas_are_those_of_the_program() {
    let place = Place::new("schemas");
    for object in OBJECTS {
        let said = place.run(&format!("config schema {object}"));
        assert_eq!(said.code, 0, "{}", said.stderr);
        compare(&format!("../../docs/schema/{object}.json"), &said.stdout);
    }
    assert_eq!(place.run("config schema").stdout, place.run("config schema config").stdout);
}

#[test]
fn every_published_schema_has_an_object() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let object = name.strip_suffix(".json").unwrap();
        assert!(OBJECTS.contains(&object), "{name}");
    }
}
