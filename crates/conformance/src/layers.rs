//! What becomes of what a copy-on-write sandbox changed.

use crate::check::{Running, Stop, Verdict, fail, same};
use crate::layer_stage::{LayerStage, LayerSubject, shown};
use cofferdam_core::{ApplyReport, Ending, ErrorKind, Side};
use tokio::time::timeout;

/// One promise of a backend that keeps layers.
#[derive(Debug, Clone, Copy)]
pub struct LayerCheck {
    /// Its stable name, as in `layers.changes_are_told`.
    pub name: &'static str,
    /// What is promised, as a sentence.
    pub promise: &'static str,
    /// Tries it.
    pub run: for<'a> fn(&'a mut LayerStage) -> Running<'a>,
}

macro_rules! check {
    ($name:literal, $run:path, $promise:literal) => {
        LayerCheck { name: $name, promise: $promise, run: |stage| Box::pin($run(stage)) }
    };
}

/// All checks of layers, in the order of the document.
pub const LAYERS: &[LayerCheck] = &[
    check!(
        "layers.changes_are_told",
        changes_are_told,
        "What differs from the workspace is told, and nothing else, everywhere or at the paths that are asked for."
    ),
    check!(
        "layers.both_sides_are_read",
        both_sides_are_read,
        "A file is read as the workspace has it and as the layer has it, within a limit, and through no link."
    ),
    check!(
        "layers.apply_lands_what_is_asked",
        apply_lands_what_is_asked,
        "What is asked for lands and is no change any more; a dry run says the same and does nothing."
    ),
    check!(
        "layers.apply_keeps_conflicts",
        apply_keeps_conflicts,
        "What somebody else changed in the workspace meanwhile stays as they made it, and is told."
    ),
    check!(
        "layers.control_files_land_by_name",
        control_files_land_by_name,
        "Git hooks and the like land only where they are named."
    ),
    check!(
        "layers.outlive_their_sandbox",
        outlive_their_sandbox,
        "A layer is as it was when its sandbox is gone, and the next one goes on with it."
    ),
    check!(
        "layers.discard_forgets",
        discard_forgets,
        "What is discarded is as in the workspace again, and the rest stays; under a living sandbox nothing is."
    ),
];

/// Makes one check, and clears away what it made.
pub async fn perform_layers(check: &LayerCheck, subject: &LayerSubject) -> Verdict {
    let mut stage = LayerStage::new(subject.clone())?;
    let verdict = timeout(subject.patience, (check.run)(&mut stage)).await;
    let verdict = verdict
        .unwrap_or_else(|_| Err(Stop::Failed(format!("took longer than {:?}", subject.patience))));
    let cleared = stage.clear().await;
    // A failure to clear up never hides what the check itself found.
    verdict.and(cleared)
}

async fn changes_are_told(stage: &mut LayerStage) -> Verdict {
    for path in ["f", "same", "gone", "d/x"] {
        stage.write(path, "real")?;
    }
    let sandbox = stage.sandbox().await?;
    same("changes of nothing", &stage.changes(&sandbox, &[]).await?, &Vec::new())?;
    let script = "printf mine >f; printf real >same; rm gone; mkdir n; printf new >n/a; ln -s f l";
    stage.run(&sandbox, script).await?;
    let all = lines(&["m f", "r gone", "a l", "a n", "a n/a"]);
    same("changes", &stage.changes(&sandbox, &[]).await?, &all)?;
    same("changes below n", &stage.changes(&sandbox, &["n"]).await?, &lines(&["a n", "a n/a"]))?;
    same("changes at d", &stage.changes(&sandbox, &["d"]).await?, &Vec::new())?;
    same("the workspace", &stage.read("f").as_deref(), &Some("real"))?;
    same("what was removed", &stage.is_there("gone"), &true)
}

async fn both_sides_are_read(stage: &mut LayerStage) -> Verdict {
    stage.write("f", "real")?;
    let sandbox = stage.sandbox().await?;
    stage.run(&sandbox, "printf mine >f; ln -s /etc/passwd l").await?;
    let before = stage.content(&sandbox, (Side::Before, "f"), 100).await;
    same("before", &before, &Ok(b"real".to_vec()))?;
    let after = stage.content(&sandbox, (Side::After, "f"), 4).await;
    same("after", &after, &Ok(b"mine".to_vec()))?;
    let after = stage.content(&sandbox, (Side::After, "f"), 3).await;
    same("a longer file", &after, &Err(ErrorKind::TooLarge))?;
    let link = stage.content(&sandbox, (Side::After, "l"), 1 << 20).await;
    same("a link", &link, &Err(ErrorKind::NotAFile))?;
    let missing = stage.content(&sandbox, (Side::Before, "l"), 100).await;
    same("what is not there", &missing, &Err(ErrorKind::NotFound))
}

fn lines(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn kept(report: &ApplyReport) -> Vec<String> {
    report.kept.iter().map(shown).collect()
}

fn applied(report: &ApplyReport) -> Vec<String> {
    report.applied.iter().map(shown).collect()
}

async fn apply_lands_what_is_asked(stage: &mut LayerStage) -> Verdict {
    stage.write("f", "real")?;
    stage.write("gone", "real")?;
    let sandbox = stage.sandbox().await?;
    stage.run(&sandbox, "printf mine >f; rm gone; mkdir n; printf new >n/a; ln -s f l").await?;
    let all = lines(&["m f", "r gone", "a l", "a n", "a n/a"]);
    let planned = stage.apply(&sandbox, &[], true).await?;
    same("a dry run", &applied(&planned), &all)?;
    same("after a dry run", &stage.read("f").as_deref(), &Some("real"))?;
    let part = stage.apply(&sandbox, &["f"], false).await?;
    same("a part", &applied(&part), &lines(&["m f"]))?;
    same("what landed", &stage.read("f").as_deref(), &Some("mine"))?;
    same("what was not asked for", &stage.is_there("n"), &false)?;
    let rest = stage.apply(&sandbox, &[], false).await?;
    same("the rest", &applied(&rest), &lines(&["r gone", "a l", "a n", "a n/a"]))?;
    same("a new file", &stage.read("n/a").as_deref(), &Some("new"))?;
    same("a link", &stage.read("l").as_deref(), &Some("mine"))?;
    same("what was removed", &stage.is_there("gone"), &false)?;
    same("changes afterwards", &stage.changes(&sandbox, &[]).await?, &Vec::new())?;
    stage.run(&sandbox, "test \"$(cat f)\" = mine; printf again >f").await?;
    stage.apply(&sandbox, &[], false).await?;
    same("what changed once more", &stage.read("f").as_deref(), &Some("again"))
}

async fn apply_keeps_conflicts(stage: &mut LayerStage) -> Verdict {
    stage.write("f", "real")?;
    stage.write("g", "real")?;
    let sandbox = stage.sandbox().await?;
    stage.run(&sandbox, "printf mine >f; printf mine >g; printf mine >n").await?;
    stage.write("f", "theirs")?;
    stage.write("n", "theirs")?;
    let report = stage.apply(&sandbox, &[], false).await?;
    let expected = lines(&["m f (changed)", "m n (changed)"]);
    same("what is kept", &kept(&report), &expected)?;
    same("somebody else's", &stage.read("f").as_deref(), &Some("theirs"))?;
    same("somebody else's new file", &stage.read("n").as_deref(), &Some("theirs"))?;
    same("control: another one", &stage.read("g").as_deref(), &Some("mine"))
}

async fn control_files_land_by_name(stage: &mut LayerStage) -> Verdict {
    stage.write(".git/HEAD", "ref: refs/heads/main")?;
    stage.write(".git/hooks/sample", "")?;
    let sandbox = stage.sandbox().await?;
    let script = "printf x >.git/hooks/pre-commit; printf x >.envrc; printf x >f";
    stage.run(&sandbox, script).await?;
    let report = stage.apply(&sandbox, &[], false).await?;
    let expected = ["a .envrc (protected)", "a .git/hooks/pre-commit (protected)"];
    same("what is kept", &kept(&report), &lines(&expected))?;
    for path in [".envrc", ".git/hooks/pre-commit"] {
        same(path, &stage.is_there(path), &false)?;
    }
    same("control: another file", &stage.is_there("f"), &true)?;
    stage.apply(&sandbox, &[".git"], false).await?;
    same("below what was named", &stage.is_there(".git/hooks/pre-commit"), &false)?;
    stage.apply(&sandbox, &[".git/hooks/pre-commit"], false).await?;
    same("what was named", &stage.is_there(".git/hooks/pre-commit"), &true)
}

async fn outlive_their_sandbox(stage: &mut LayerStage) -> Verdict {
    stage.write("f", "real")?;
    let first = stage.sandbox().await?;
    stage.run(&first, "printf mine >f; printf new >n").await?;
    let all = lines(&["m f", "a n"]);
    stage.destroy(&first).await?;
    same("changes of one that is gone", &stage.changes(&first, &[]).await?, &all)?;
    let next = stage.sandbox().await?;
    stage.run(&next, "test \"$(cat f n)\" = minenew").await?;
    same("changes of the next", &stage.changes(&next, &[]).await?, &all)
}

async fn discard_forgets(stage: &mut LayerStage) -> Verdict {
    for path in ["f", "g", "gone"] {
        stage.write(path, "real")?;
    }
    let first = stage.sandbox().await?;
    stage.run(&first, "printf mine >f; printf mine >g; rm gone; printf new >n").await?;
    let all = lines(&["m f", "m g", "r gone", "a n"]);
    match stage.discard(&first, &["f"]).await {
        Err(error) if error.kind == ErrorKind::Conflict => {}
        other => return fail(format!("under a living sandbox: {other:?}")),
    }
    same("what was refused", &stage.changes(&first, &[]).await?, &all)?;
    stage.destroy(&first).await?;
    same("a part", &stage.discard(&first, &["f", "gone"]).await?, &lines(&["m f", "r gone"]))?;
    same("what is left", &stage.changes(&first, &[]).await?, &lines(&["m g", "a n"]))?;
    let next = stage.sandbox().await?;
    let seen = stage.ending(&next, "test \"$(cat f g gone n)\" = realminerealnew").await?;
    same("what the next sees", &seen, &Ending::Exited(0))?;
    stage.destroy(&next).await?;
    stage.discard(&next, &[]).await?;
    same("after all was dropped", &stage.changes(&next, &[]).await?, &Vec::new())?;
    same("the workspace", &stage.read("g").as_deref(), &Some("real"))
}
