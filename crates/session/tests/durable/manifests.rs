//! What a session's workspace is to hold from its beginning.

use crate::stage::{Stage, order};
use cofferdam_core::fake::{Call, Mishap};
use cofferdam_core::{ErrorKind, Workspace};
use cofferdam_session::manifest::{Manifest, ManifestEntry, Provisions};
use cofferdam_session::{InitCommand, ManifestState, SessionOrder};
use std::path::Path;
use std::sync::Arc;

fn provisions(text: &str) -> Arc<Provisions> {
    let file = ManifestEntry::File {
        path: "a/b".to_owned(),
        text: Some(text.to_owned()),
        base64: None,
        from: None,
        mode: None,
    };
    let link = ManifestEntry::Link { path: "c".to_owned(), target: "a/b".to_owned() };
    let manifest = Manifest { version: 1, known_as: None, entries: vec![file, link] };
    Arc::new(manifest.check().unwrap().load(Path::new("/nowhere")).unwrap())
}

fn wanted(stage: &Stage, name: &str, text: &str) -> SessionOrder {
    let mut order = order(name);
    order.spec.workspace = Workspace::Directory(stage.state.clone());
    order.manifest = Some(provisions(text));
    order
}

#[tokio::test]
async fn a_manifest_is_brought_once_and_before_the_init_commands() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut order = wanted(&stage, "a", "one");
    order.init = vec![InitCommand::shell("tick=one")];
    let session = sessions.create(&order).await.unwrap();
    let files = session.files();
    assert_eq!(files.read("c", 9).await.unwrap(), b"one");
    let status = sessions.status(session.id()).await.unwrap();
    assert_eq!(status.manifest, Some(ManifestState::Done));
    let kinds = stage.kinds(&sessions, session.id()).await;
    let place = |kind: &str| kinds.iter().position(|one| one == kind).unwrap();
    assert!(place("files_provided") < place("init_completed"), "{kinds:?}");
    // What was changed since stays.
    files.write("a/b", b"theirs").await.unwrap();
    sessions.ensure(&order).await.unwrap();
    assert_eq!(files.read("a/b", 9).await.unwrap(), b"theirs");
    let other = sessions.ensure(&wanted(&stage, "a", "two")).await.unwrap_err();
    assert_eq!(other.kind, ErrorKind::Conflict, "{other:?}");
    let without = crate::stage::order("b");
    sessions.create(&without).await.unwrap();
    let mut late = wanted(&stage, "b", "one");
    late.spec = without.spec;
    assert!(sessions.ensure(&late).await.is_err());
    order.manifest = None;
    sessions.ensure(&order).await.unwrap();
}

#[tokio::test]
async fn a_session_whose_files_cannot_be_brought_is_not_made() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    for at in 1..=2 {
        stage.backend.mishap(Call::Files, 1, Mishap::FailBefore);
        let order = wanted(&stage, "a", "one");
        let failed = match at {
            1 => sessions.create(&order).await.map(drop),
            _ => sessions.ensure(&order).await.map(drop),
        };
        assert!(failed.is_err());
        assert!(sessions.list(&Default::default()).await.unwrap().is_empty());
        stage.assert_empty();
    }
    sessions.create(&wanted(&stage, "a", "one")).await.unwrap();
}

#[tokio::test]
async fn a_workspace_that_is_gone_with_its_sandbox_has_no_manifest() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut order = wanted(&stage, "a", "one");
    order.spec.workspace = Workspace::Private;
    assert_eq!(sessions.create(&order).await.unwrap_err().kind, ErrorKind::Usage);
}
