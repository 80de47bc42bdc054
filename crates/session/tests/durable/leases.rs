//! Sessions whose time is over while somebody goes on with them.

use crate::stage::{Stage, order, words};
use cofferdam_core::ErrorKind;
use cofferdam_session::EnsuredHow;
use std::time::Duration;

#[tokio::test]
async fn a_session_whose_time_is_over_is_made_anew_and_never_woken() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut order = order("a");
    order.ttl = Some(Duration::from_secs(1));
    let first = sessions.ensure(&order).await.unwrap().session;
    // As its keeper does then.
    let ends = async || {
        tokio::time::sleep(Duration::from_millis(1100)).await;
        stage.backend.alive().iter().for_each(|id| stage.backend.vanish(id));
    };
    ends().await;
    let refused = first.start(&words(&["true"])).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NotFound);
    assert!(refused.message.contains("the end of its time (ttl)"), "{refused}");
    stage.assert_empty();
    let second = sessions.ensure(&order).await.unwrap();
    assert_eq!(second.how, EnsuredHow::Created);
    ends().await;
    let third = sessions.ensure(&order).await.unwrap();
    assert_eq!(third.how, EnsuredHow::Created);
    assert_ne!(third.session.id(), second.session.id());
    assert_eq!(sessions.status(third.session.id()).await.unwrap().incarnation, 1);
}
