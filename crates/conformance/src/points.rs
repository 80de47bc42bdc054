//! What sessions over a backend promise of their history: undo, fork, and snapshots that go out and in.

use crate::check::{Running, Stop, Verdict, fail, same};
use crate::layer_stage::{LayerPlace, LayerSubject};
use cofferdam_core::{Ending, Error, ErrorKind};
use cofferdam_session::{Session, SessionOrder, SessionReport, Sessions, Target, UndoOrder};
use std::path::PathBuf;
use tokio::time::timeout;

/// The most of the output of a command that is read.
const OUTPUT_BYTES: usize = 1 << 16;
/// How many bits of an exported snapshot are turned, one at a time.
const BITS: usize = 40;

/// One promise of sessions over a backend that keeps layers.
#[derive(Debug, Clone, Copy)]
pub struct PointCheck {
    /// Its stable name, as in `points.undo_gives_back`.
    pub name: &'static str,
    /// What is promised, as a sentence.
    pub promise: &'static str,
    /// Tries it.
    pub run: for<'a> fn(&'a mut PointStage) -> Running<'a>,
}

macro_rules! check {
    ($name:literal, $run:path, $promise:literal) => {
        PointCheck { name: $name, promise: $promise, run: |stage| Box::pin($run(stage)) }
    };
}

/// All checks of points, in the order of the document.
pub const POINTS: &[PointCheck] = &[
    check!(
        "points.undo_gives_back",
        undo_gives_back,
        "What a command did to files is undone, content, permissions, links and times, and done again by going forward."
    ),
    check!(
        "points.fork_is_apart",
        fork_is_apart,
        "A fork begins with the files of any point, and neither sees what the other does from then on."
    ),
    check!(
        "points.snapshot_is_restored",
        snapshot_is_restored,
        "A snapshot is what the workspace was when it was taken, whatever was done since, for the next command."
    ),
    check!(
        "points.export_comes_in_again",
        export_comes_in_again,
        "An exported snapshot is one of another session, and restored there the same files."
    ),
    check!(
        "points.damage_is_refused",
        damage_is_refused,
        "An exported snapshot of which a bit was turned, or the end is missing, is refused whole."
    ),
];

/// Makes one check, and clears away what it made.
pub async fn perform_points(check: &PointCheck, subject: &LayerSubject) -> Verdict {
    let mut stage = PointStage::new(subject.clone()).await?;
    let verdict = timeout(subject.patience, (check.run)(&mut stage)).await;
    let verdict = verdict
        .unwrap_or_else(|_| Err(Stop::Failed(format!("took longer than {:?}", subject.patience))));
    let cleared = stage.clear().await;
    // A failure to clear up never hides what the check itself found.
    verdict.and(cleared)
}

/// The sessions of one check, over one workspace.
pub struct PointStage {
    subject: LayerSubject,
    workspace: PathBuf,
    sessions: Sessions,
}

impl PointStage {
    async fn new(subject: LayerSubject) -> Result<Self, Stop> {
        let LayerPlace { workspace, .. } = subject.ground.place().map_err(Stop::Skipped)?;
        let place = subject.ground.sessions().map_err(Stop::Failed)?;
        let sessions = Sessions::open(&place, vec![subject.backend.clone()]).await?;
        Ok(Self { subject, workspace, sessions })
    }

    async fn session(&self) -> Result<Session, Stop> {
        let mut order = SessionOrder::new(self.subject.ground.spec(&self.workspace));
        order.idle_pause = None;
        Ok(self.sessions.create(&order).await?)
    }

    fn write(&self, path: &str, text: &str) -> Verdict {
        std::fs::write(self.workspace.join(path), text).map_err(in_words)
    }

    async fn snapshot(&self, of: &Session) -> Result<String, Stop> {
        Ok(self.sessions.snapshot(of.id(), None).await?.snapshot.to_string())
    }

    async fn exported(&self, of: &Session, name: &str) -> Result<Vec<u8>, Stop> {
        let export = self.sessions.export_snapshot(of.id(), name).await?;
        Ok(export.write(Vec::new()).await?)
    }

    async fn import(&self, to: &Session, bytes: Vec<u8>) -> Result<String, Error> {
        let imported = self.sessions.import_snapshot(to.id(), std::io::Cursor::new(bytes), None);
        Ok(imported.await?.snapshot.snapshot.to_string())
    }

    async fn clear(self) -> Verdict {
        let clearing = async {
            let workspace = self.workspace.to_str();
            let is_ours = |of: &SessionReport| of.workspace.as_deref() == workspace;
            let all = self.sessions.list(&Default::default()).await?;
            for session in all.into_iter().filter(is_ours) {
                let id = cofferdam_session::SessionId::new(session.id)?;
                self.sessions.delete(&id).await?;
            }
            Ok(())
        };
        let late = || Err(Stop::Failed("the sessions could not be removed in time".to_owned()));
        timeout(self.subject.patience, clearing).await.unwrap_or_else(|_| late())
    }
}

fn in_words(error: std::io::Error) -> Stop {
    Stop::Failed(error.to_string())
}

async fn ending(of: &Session, script: &str) -> Result<Ending, Stop> {
    let order = Session::order(["/bin/sh", "-ec", script])?;
    let output = of.exec(&order, OUTPUT_BYTES).await?;
    match output.status.ended {
        Some(ended) => Ok(ended.ending),
        None => Err(Stop::Failed(format!("{script:?} did not end"))),
    }
}

async fn run(of: &Session, script: &str) -> Verdict {
    same(script, &ending(of, script).await?, &Ending::Exited(0))
}

async fn undo(of: &Session, target: Target) -> Verdict {
    of.undo(&UndoOrder { target, dry_run: false, may_lose: false }).await?;
    Ok(())
}

/// Files of which everything is told by [`IS_MADE`].
const MAKE: &str = "printf mine >f; chmod 640 f; rm gone; mkdir -p n/d; printf new >n/d/a; \
     ln n/d/a n/b; ln -s f l; touch -d @1000000000 f";
const IS_MADE: &str = "test \"$(cat f n/d/a)\" = minenew; test \"$(stat -c %a-%Y f)\" = 640-1000000000; \
     test ! -e gone; test n/d/a -ef n/b; test \"$(readlink l)\" = f";
const IS_AS_BEFORE: &str = "test \"$(cat f)\" = real; test -e gone; test ! -e n; test ! -L l";

async fn with_files(stage: &PointStage) -> Result<Session, Stop> {
    stage.write("f", "real")?;
    stage.write("gone", "real")?;
    let session = stage.session().await?;
    run(&session, IS_AS_BEFORE).await?;
    Ok(session)
}

async fn undo_gives_back(stage: &mut PointStage) -> Verdict {
    let session = with_files(stage).await?;
    run(&session, MAKE).await?;
    run(&session, IS_MADE).await?;
    let made = session.history(100).await?.at.unwrap_or_default();
    run(&session, "rm -r n f l; printf other >gone").await?;
    undo(&session, Target::Back(1)).await?;
    run(&session, IS_MADE).await?;
    undo(&session, Target::Point(0)).await?;
    run(&session, IS_AS_BEFORE).await?;
    undo(&session, Target::Point(made)).await?;
    run(&session, IS_MADE).await?;
    let text = std::fs::read_to_string(stage.workspace.join("f")).map_err(in_words)?;
    same("the workspace", &text.as_str(), &"real")
}

async fn fork_is_apart(stage: &mut PointStage) -> Verdict {
    let session = with_files(stage).await?;
    run(&session, MAKE).await?;
    let made = session.history(100).await?.at.unwrap_or_default().to_string();
    run(&session, "printf later >f").await?;
    let now = stage.sessions.fork(session.id(), None, "now").await?;
    let earlier = stage.sessions.fork(session.id(), Some(&made), "earlier").await?;
    run(&earlier, IS_MADE).await?;
    run(&now, "test \"$(cat f)\" = later; printf fork >f; printf fork >only-fork").await?;
    run(&session, "test \"$(cat f)\" = later; test ! -e only-fork; printf parent >f").await?;
    run(&now, "test \"$(cat f)\" = fork").await?;
    run(&earlier, IS_MADE).await?;
    // A fork does not need where it came from.
    stage.sessions.delete(session.id()).await?;
    undo(&now, Target::Point(0)).await?;
    run(&now, "test \"$(cat f)\" = later; test n/d/a -ef n/b").await
}

async fn snapshot_is_restored(stage: &mut PointStage) -> Verdict {
    let session = with_files(stage).await?;
    run(&session, MAKE).await?;
    let snapshot = stage.snapshot(&session).await?;
    run(&session, "rm -r n f l; printf other >gone").await?;
    stage.sessions.restore(session.id(), &snapshot).await?;
    run(&session, IS_MADE).await?;
    stage.sessions.remove_snapshot(session.id(), &snapshot).await?;
    run(&session, IS_MADE).await?;
    match stage.sessions.restore(session.id(), &snapshot).await {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        other => fail(format!("a removed snapshot is restored: {other:?}")),
    }
}

async fn export_comes_in_again(stage: &mut PointStage) -> Verdict {
    let session = with_files(stage).await?;
    run(&session, MAKE).await?;
    let snapshot = stage.snapshot(&session).await?;
    let bytes = stage.subject.ground.carry(stage.exported(&session, &snapshot).await?);
    stage.sessions.delete(session.id()).await?;
    let other = stage.session().await?;
    run(&other, "printf here >f").await?;
    let imported = stage.import(&other, bytes).await?;
    run(&other, "test \"$(cat f)\" = here").await?;
    stage.sessions.restore(other.id(), &imported).await?;
    run(&other, IS_MADE).await
}

async fn damage_is_refused(stage: &mut PointStage) -> Verdict {
    let session = with_files(stage).await?;
    run(&session, MAKE).await?;
    let snapshot = stage.snapshot(&session).await?;
    let bytes = stage.exported(&session, &snapshot).await?;
    let step = bytes.len().div_ceil(BITS).max(1);
    // The last bit too, which is of the sum.
    let places = (0..bytes.len()).step_by(step).chain(bytes.len().checked_sub(1));
    for at in places {
        let damaged = stage.subject.ground.damage(bytes.clone(), at);
        if stage.import(&session, damaged).await.is_ok() {
            return fail(format!("one bit at {at} of {} is not seen", bytes.len()));
        }
    }
    for length in (0..bytes.len()).step_by(step) {
        let part = bytes.get(..length).unwrap_or_default().to_vec();
        if stage.import(&session, part).await.is_ok() {
            return fail(format!("{length} of {} bytes are enough", bytes.len()));
        }
    }
    let left = stage.sessions.snapshots(session.id()).await?.len();
    same("snapshots after what was refused", &left, &1)?;
    // What was refused is whole otherwise.
    stage.import(&session, bytes).await?;
    Ok(())
}
