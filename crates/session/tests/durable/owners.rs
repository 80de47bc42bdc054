//! Owners: what belongs to one does not exist for the other.

use crate::stage::{Stage, order, words};
use cofferdam_core::{ErrorKind, Part, ProcessId, Standard};
use cofferdam_session::{KeyRights, KeyScope, Quota, Session, Sessions};

async fn refused<T: std::fmt::Debug>(answer: impl Future<Output = cofferdam_core::Result<T>>) {
    assert_eq!(answer.await.unwrap_err().kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn nothing_of_another_owner_can_be_had_by_id() {
    let stage = Stage::new();
    let all = stage.open().await;
    let hers = all.for_owner("alice", Quota::default());
    let his = all.for_owner("bob", Quota::default());
    let own: Session = hers.create(&order("s")).await.unwrap();
    let started = own.start(&words(&["out=x"])).await.unwrap();
    own.wait(&started.id, None).await.unwrap();
    let id = own.id().clone();
    refused(his.find(id.as_str())).await;
    refused(his.find("s")).await;
    refused(his.find(&id.as_str()[..8])).await;
    refused(his.status(&id)).await;
    refused(his.pause(&id)).await;
    refused(his.resume(&id)).await;
    refused(his.stop(&id)).await;
    refused(his.extend(&id, std::time::Duration::from_secs(1))).await;
    refused(his.snapshots(&id)).await;
    refused(his.snapshot(&id, None)).await;
    refused(his.restore(&id, "1")).await;
    refused(his.fork(&id, None, "f")).await;
    assert!(!his.delete(&id).await.unwrap(), "there is nothing to delete");
    let stolen = his.session(id.clone());
    let part = Part { stream: Standard::Output, offset: 0, len: 10 };
    refused(stolen.execs()).await;
    refused(stolen.status(&started.id)).await;
    refused(stolen.read(&started.id, part)).await;
    refused(stolen.wait(&started.id, None)).await;
    refused(stolen.signal(&started.id, 9)).await;
    refused(stolen.start(&words(&["out=y"]))).await;
    refused(stolen.files().stat("x")).await;
    refused(stolen.changes(&[])).await;
    refused(stolen.history(10)).await;
    refused(stolen.input(&ProcessId::new("none").unwrap(), &cofferdam_core::ExecInput::Kill)).await;
    assert_eq!(his.events(Some(&id), 0).await.unwrap(), []);
    assert_eq!(his.list(&Default::default()).await.unwrap(), []);
    // The same succeeds for its owner, and for whoever sees all.
    for sees in [&hers, &all] {
        let own = sees.session(id.clone());
        assert_eq!(own.read(&started.id, part).await.unwrap().bytes, b"x");
        assert_eq!(own.execs().await.unwrap().len(), 1);
        assert!(!sees.events(Some(&id), 0).await.unwrap().is_empty());
        assert_eq!(sees.status(&id).await.unwrap().owner, "alice");
    }
    assert!(hers.delete(&id).await.unwrap());
}

#[tokio::test]
async fn who_sees_a_part_cannot_repair_the_whole() {
    let stage = Stage::new();
    let all = stage.open().await;
    all.create(&order("local")).await.unwrap();
    let part: Sessions = all.for_owner("a", Quota::default());
    assert_eq!(part.gc(false).await.unwrap_err().kind, ErrorKind::Denied);
    assert_eq!(part.repair().await.unwrap_err().kind, ErrorKind::Denied);
    assert_eq!(part.keys().await.unwrap_err().kind, ErrorKind::Denied);
    let rights = KeyRights { scopes: vec![KeyScope::Look], ..KeyRights::default() };
    assert_eq!(part.create_key("k", rights).await.unwrap_err().kind, ErrorKind::Denied);
    // What it does not see would have looked like nobody's.
    assert_eq!(stage.backend.alive().len(), 1);
    all.repair().await.unwrap();
    all.gc(false).await.unwrap();
    assert_eq!(stage.backend.alive().len(), 1);
}
