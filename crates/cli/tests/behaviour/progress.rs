//! How far something is, from the first second on.

use crate::place::{Place, SOON, ended, everyone, started};
use crate::schema::is_valid;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// An empty archive: two blocks of zeros.
const ARCHIVE: [u8; 1024] = [0; 1024];

/// `file import` of an archive of which the rest comes when `pause` is over; what it says on standard
/// error.
fn slow_import(place: &Place, more: &[&str], pause: Duration) -> String {
    let mut command = place.cofferdam(&[&["file", "import", "s"], more].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = started(&mut command);
    let mut input = child.stdin.take().unwrap();
    input.write_all(&ARCHIVE[..512]).unwrap();
    std::thread::sleep(pause);
    input.write_all(&ARCHIVE[512..]).unwrap();
    drop(input);
    let said = ended(child, SOON);
    assert_eq!(said.code(), Some(0), "{said:?}");
    said.stderr
}

#[test]
fn what_takes_longer_than_a_second_is_told_by_events() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let told = slow_import(place, &["--json"], Duration::from_secs(3));
        let events: Vec<Value> =
            told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(!events.is_empty());
        for event in &events {
            is_valid(place, "progress", event);
            let said = ["event", "doing", "unit"].map(|key| event[key].as_str());
            assert_eq!(said, [Some("progress"), Some("import"), Some("bytes")]);
            assert!(event["elapsed_ms"].as_u64() >= Some(1000), "{event}");
        }
        // Nobody asked for objects, and nobody looks.
        assert_eq!(slow_import(place, &[], Duration::from_secs(2)), "");
    });
}
