//! Records that others damaged, began to write, or look at just now.

use super::tests::{Ground, layer};
use cofferdam_core::ErrorKind;
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

#[test]
fn an_id_of_too_few_digits_is_told_how_many_it_needs() {
    let ground = Ground::new("digits");
    std::fs::write(ground.0.join("a.tar"), layer("a")).unwrap();
    let (image, _held) = ground.open("tar:a.tar").unwrap();
    let store = ground.store();
    let digits = image.id.strip_prefix("sha256:").unwrap();
    let hint = |name: &str| {
        let error = store.find(name).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{name}");
        error.hint.unwrap()
    };
    for short in [&digits[..1], &digits[..3], &format!("sha256:{}", &digits[..3]), "sha256:"] {
        assert!(hint(short).contains("at least 4 digits"), "{short}");
        let removal = store.remove(short, &BTreeSet::new()).unwrap_err();
        assert!(removal.hint.unwrap().contains("mean one image"), "{short}");
    }
    // Controls: what is no id, an id that nothing has, and enough digits.
    assert!(!hint("zz").contains("digits"));
    assert!(!hint(&"0".repeat(64)).contains("digits"));
    assert!(store.find(&digits[..4]).is_ok());
}

#[test]
fn what_is_ready_by_its_name_waits_for_nobody_and_reads_no_other_record() {
    let ground = Ground::new("ready");
    for name in ["a", "b"] {
        std::fs::write(ground.0.join(name), layer(name)).unwrap();
    }
    let (image, _held) = ground.open("tar:a").unwrap();
    let damaged = ground.0.join("state/images/records/0a1b.json");
    std::fs::write(&damaged, "no record").unwrap();
    let store = ground.store();
    let writes = store.alone_at_records().unwrap();
    let (told, hears) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| told.send(ground.open("tar:a").map(|(again, _held)| again.id)));
        let again = hears.recv_timeout(std::time::Duration::from_secs(20));
        // Whoever waits for it must not keep the test from its end.
        drop(writes);
        assert_eq!(again.unwrap().unwrap(), image.id);
    });
    // Control: a name that is new is looked for in the others.
    assert!(ground.open("tar:b").is_err());
}
