//! What a fake sandbox does as a real one.

use super::FakeBackend;
use crate::{
    Backend, Caller, Command, Ending, ErrorKind, Guest, NoGate, ProcessId, SandboxId,
    SandboxRecord, Spec, Workspace,
};
use std::sync::Arc;

async fn stand(backend: &FakeBackend) -> (SandboxRecord, Arc<dyn Guest>) {
    let spec = Spec::new(Workspace::Private, Caller::default());
    let record = backend.create(&SandboxId::new("s").unwrap(), &spec).await.unwrap();
    let guest = backend.open(&record, Arc::new(NoGate)).await.unwrap();
    (record, guest)
}

fn command(argv: &[&str]) -> Command {
    Command::new(ProcessId::new("p").unwrap(), argv)
}

#[tokio::test]
async fn nothing_of_it_goes_on_after_its_end() {
    let backend = FakeBackend::new();
    let (record, guest) = stand(&backend).await;
    let files = guest.files().await.unwrap();
    files.write("a", b"x").await.unwrap();
    let mut process = guest.spawn(&command(&["sleep=60000"])).await.unwrap();
    backend.destroy(&record).await.unwrap();
    assert_eq!(process.events.recv().await, None, "nobody knows how it would have ended");
    assert_eq!(files.read("a", 10).await.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(files.write("a", b"y").await.unwrap_err().kind, ErrorKind::Unavailable);
    assert!(files.watch(&Default::default()).await.is_err());
}

#[tokio::test]
async fn a_command_starts_where_a_real_one_would() {
    let backend = FakeBackend::new();
    let (_record, guest) = stand(&backend).await;
    assert_eq!(guest.spawn(&command(&[])).await.unwrap_err().kind, ErrorKind::Usage);
    for (cwd, code) in [(".", 0), ("./", 0), ("/workspace/.", 0), ("/", 125), ("inner", 125)] {
        let command = Command { cwd: Some(cwd.into()), ..command(&["exit=0"]) };
        let output = guest.run(&command, 100).await.unwrap();
        assert_eq!(output.ending.exit_code(), code, "{cwd}");
    }
    let output = guest.run(&command(&["exit=3"]), 100).await.unwrap();
    assert_eq!(output.ending, Ending::Exited(3));
}
