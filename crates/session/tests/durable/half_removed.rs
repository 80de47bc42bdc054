//! A session whose removal was begun and failed.

use crate::stage::Stage;
use cofferdam_core::fake::{Call, Mishap};
use cofferdam_core::{Caller, ErrorKind, Spec, Workspace};
use cofferdam_session::{SessionOrder, Target, UndoOrder};

#[tokio::test]
async fn who_comes_to_a_session_whose_removal_failed_makes_nothing_of_it_again() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let workspace = stage.state.join("project");
    std::fs::create_dir_all(&workspace).unwrap();
    let mut order =
        SessionOrder::new(Spec::new(Workspace::CopyOnWrite(workspace.clone()), Caller::default()));
    order.checkpoints = false;
    for undoes in [true, false] {
        let session = sessions.create(&order).await.unwrap();
        let id = session.id().clone();
        stage.backend.mishap(Call::Destroy, 1, Mishap::FailBefore);
        sessions.delete(&id).await.unwrap_err();
        let refused = if undoes {
            let order = UndoOrder { target: Target::Back(1), dry_run: false, may_lose: false };
            session.undo(&order).await.map(drop)
        } else {
            sessions.snapshot(&id, None).await.map(drop)
        };
        assert_eq!(refused.unwrap_err().kind, ErrorKind::NotFound);
        assert!(!stage.state.join("kept").join(id.as_str()).exists());
        stage.assert_empty();
    }
}
