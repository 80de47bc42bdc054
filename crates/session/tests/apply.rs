//! Patches and edits over a file service in memory that fails, lies late, or changes under them.
#![expect(clippy::unwrap_used, reason = "the functions beside the tests are of tests too")]

use async_trait::async_trait;
use cofferdam_core::fake::FakeBackend;
use cofferdam_core::files::{Body, FileService, Remove, Reply, Request};
use cofferdam_core::{
    Backend, Caller, Error, ErrorKind, Files, NoGate, Result, SandboxId, Spec, Workspace,
};
use cofferdam_session::edit::{Edit, Places};
use cofferdam_session::patch::PatchOutcome;
use cofferdam_session::{Doing, PatchOptions, Way, apply_patch, edit_file};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::io::AsyncReadExt;

/// What happens to requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mishap {
    /// The worker dies before it does anything.
    DiesBefore,
    /// The worker dies when all is done, before it says so.
    DiesAfter,
    /// Somebody writes just before.
    Overtaken,
    /// The n-th request of all fails.
    Fails(usize),
}

/// Files with a mishap.
struct Unlucky {
    files: Files,
    mishap: Mishap,
    calls: AtomicUsize,
    died: AtomicBool,
}

fn gone() -> Error {
    Error::new(ErrorKind::Unavailable, "the file worker is gone")
}

#[async_trait]
impl FileService for Unlucky {
    async fn call(&self, request: &Request, body: Body<'_>) -> Result<Reply> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let inner = self.files.service();
        match (self.mishap, request) {
            (Mishap::Fails(at), _) if at == call => Err(gone()),
            (Mishap::DiesBefore, Request::Carry(_)) if !self.died.swap(true, Ordering::Relaxed) => {
                if let Body::Source(source) = body {
                    source.read_to_end(&mut Vec::new()).await.unwrap();
                }
                Err(gone())
            }
            (Mishap::DiesAfter, Request::Carry(_)) => {
                inner.call(request, body).await?;
                Err(gone())
            }
            (Mishap::Overtaken, Request::Carry(_)) => {
                self.files.write("b", b"theirs\n").await?;
                inner.call(request, body).await
            }
            _ => inner.call(request, body).await,
        }
    }

    async fn open(&self) -> Result<()> {
        Ok(())
    }
}

const CONTENTS: [(&str, &str); 3] = [("a", "one\n"), ("b", "two\n"), ("c", "three\n")];

const PATCH: &str = "\
diff --git a/a b/a
--- a/a
+++ b/a
@@ -1 +1 @@
-one
+ONE
diff --git a/b b/new/b
rename from b
rename to new/b
diff --git a/c b/c
deleted file mode 100644
--- a/c
+++ /dev/null
@@ -1 +0,0 @@
-three
";

async fn files() -> Files {
    let backend = FakeBackend::new();
    let spec = Spec::new(Workspace::Private, Caller::default());
    let id = SandboxId::new("apply").unwrap();
    let record = backend.create(&id, &spec).await.unwrap();
    let guest = backend.open(&record, Arc::new(NoGate)).await.unwrap();
    let files = guest.files().await.unwrap();
    for (name, text) in CONTENTS {
        files.write(name, text.as_bytes()).await.unwrap();
    }
    files
}

async fn unlucky(files: &Files, mishap: Mishap) -> (Files, Arc<Unlucky>) {
    let (calls, died) = (AtomicUsize::new(0), AtomicBool::new(false));
    let service = Arc::new(Unlucky { files: files.clone(), mishap, calls, died });
    (Files::new(Arc::clone(&service) as Arc<dyn FileService>), service)
}

async fn is_unchanged(files: &Files) {
    for (name, text) in CONTENTS {
        assert_eq!(files.read(name, 99).await.unwrap(), text.as_bytes(), "{name}");
    }
    assert_eq!(files.stat("new").await.unwrap_err().kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn a_patch_is_applied_planned_and_taken_back() {
    let files = files().await;
    let dry = PatchOptions { doing: Doing::DryRun, way: Way::Forward };
    let said = apply_patch(&files, PATCH.as_bytes(), dry).await.unwrap();
    assert_eq!((said.changed, said.report.outcome), (false, PatchOutcome::Fits));
    is_unchanged(&files).await;
    let said = apply_patch(&files, PATCH.as_bytes(), PatchOptions::default()).await.unwrap();
    assert!(said.changed);
    assert_eq!(files.read("new/b", 99).await.unwrap(), b"two\n");
    assert_eq!(files.read("a", 99).await.unwrap(), b"ONE\n");
    assert_eq!(files.stat("c").await.unwrap_err().kind, ErrorKind::NotFound);
    let back = PatchOptions { doing: Doing::Real, way: Way::Reverse };
    apply_patch(&files, PATCH.as_bytes(), back).await.unwrap();
    // The directory that was made for it stays, empty.
    files.remove(&remove("new")).await.unwrap();
    is_unchanged(&files).await;
}

#[tokio::test]
async fn whichever_request_fails_nothing_is_changed() {
    let files = files().await;
    let mut at = 0;
    loop {
        let (flaky, service) = unlucky(&files, Mishap::Fails(at)).await;
        let said = apply_patch(&flaky, PATCH.as_bytes(), PatchOptions::default()).await;
        if service.calls.load(Ordering::Relaxed) <= at {
            assert!(said.unwrap().changed);
            break;
        }
        let error = said.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        is_unchanged(&files).await;
        at += 1;
    }
    assert!(at > 6, "{at}");
}

#[tokio::test]
async fn what_became_of_it_is_found_out_and_never_guessed() {
    let files = files().await;
    let (flaky, _) = unlucky(&files, Mishap::DiesBefore).await;
    let error = apply_patch(&flaky, PATCH.as_bytes(), PatchOptions::default()).await.unwrap_err();
    assert!(error.message.ends_with("nothing was changed"), "{}", error.message);
    is_unchanged(&files).await;
    let (flaky, _) = unlucky(&files, Mishap::DiesAfter).await;
    let error = apply_patch(&flaky, PATCH.as_bytes(), PatchOptions::default()).await.unwrap_err();
    assert!(error.message.contains("it is not known"), "{}", error.message);
    assert_eq!(files.read("new/b", 99).await.unwrap(), b"two\n");
}

#[tokio::test]
async fn a_file_that_changes_between_look_and_change_is_a_conflict() {
    let files = files().await;
    let (flaky, _) = unlucky(&files, Mishap::Overtaken).await;
    let error = apply_patch(&flaky, PATCH.as_bytes(), PatchOptions::default()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict, "{error:?}");
    assert_eq!(files.read("b", 99).await.unwrap(), b"theirs\n");
    assert_eq!(files.read("a", 99).await.unwrap(), b"one\n");
    let edit = Edit { old: b"theirs".to_vec(), new: b"mine".to_vec(), places: Places::Only };
    files.write("b", b"theirs, really\n").await.unwrap();
    let error = edit_file(&flaky, "b", std::slice::from_ref(&edit), Doing::Real).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict, "{error:?}");
    assert_eq!(files.read("b", 99).await.unwrap(), b"theirs\n");
    // The control.
    assert!(edit_file(&files, "b", &[edit], Doing::Real).await.unwrap().changed);
    assert_eq!(files.read("/workspace/b", 99).await.unwrap(), b"mine\n");
}

#[tokio::test]
async fn a_directory_with_too_many_names_makes_no_room_for_a_file() {
    let files = files().await;
    let text = "diff --git a/d/0 b/d/0\ndeleted file mode 100644\n--- a/d/0\n+++ /dev/null\n\
                @@ -1 +0,0 @@\n-x\n\
                diff --git a/d b/d\nnew file mode 100644\n--- /dev/null\n+++ b/d\n\
                @@ -0,0 +1 @@\n+a file now\n";
    let refusal = async || {
        let said = apply_patch(&files, text.as_bytes(), PatchOptions::default()).await.unwrap();
        said.report.files.into_iter().find_map(|file| file.refusal).map(|why| why.message)
    };
    for at in 0..10_001 {
        files.write(format!("d/{at}"), b"x\n").await.unwrap();
    }
    assert_eq!(refusal().await.as_deref(), Some("\"d\" is a directory"));
    files.remove(&remove("d/10000")).await.unwrap();
    assert!(refusal().await.unwrap().contains("holds"));
    // The control.
    files.remove(&Remove { recursive: true, ..remove("d") }).await.unwrap();
    files.write("d/0", b"x\n").await.unwrap();
    assert_eq!(refusal().await, None);
    assert_eq!(files.read("d", 99).await.unwrap(), b"a file now\n");
}

fn remove(path: &str) -> Remove {
    Remove { path: path.into(), recursive: false }
}
