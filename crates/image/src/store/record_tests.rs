//! Records that others damaged, began to write, or look at just now.

use super::tests::{Ground, layer};
use std::collections::BTreeSet;

#[test]
fn a_record_that_a_killed_import_began_to_write_goes_with_the_next_opening() {
    let ground = Ground::new("unwritten");
    std::fs::write(ground.0.join("a.tar"), layer("a")).unwrap();
    ground.open("tar:a.tar").unwrap();
    let images = ground.0.join("state/images");
    let left = ["records", "seen"].map(|place| images.join(place).join("0a1b.new-4711-0"));
    for path in &left {
        std::fs::write(path, "{\"form").unwrap();
    }
    let store = ground.store();
    assert!(left.iter().all(|path| !path.exists()), "the next opening removes them");
    assert_eq!(store.list().unwrap().len(), 1, "records that are whole stay");
    // Control: what somebody writes now stays until it is written.
    let writes = store.alone_at_records().unwrap();
    for path in &left {
        std::fs::write(path, "{\"form").unwrap();
    }
    ground.store();
    assert!(left.iter().all(|path| path.exists()));
    drop(writes);
    ground.store().collect(&BTreeSet::new()).unwrap();
    assert!(left.iter().all(|path| !path.exists()));
}
