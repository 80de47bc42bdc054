//! Runs the checks.

use crate::check::{ALL, Check, Stop, Verdict};
use crate::layer_stage::LayerSubject;
use crate::layers::{LAYERS, perform_layers};
use crate::points::{POINTS, perform_points};
use crate::stage::Stage;
use crate::subject::Subject;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::timeout;

/// Makes one check, and clears away what it made.
pub async fn perform(check: &Check, subject: &Subject) -> Verdict {
    let mut stage = Stage::new(subject.clone());
    let verdict = timeout(subject.patience, (check.run)(&mut stage)).await;
    let verdict = verdict
        .unwrap_or_else(|_| Err(Stop::Failed(format!("took longer than {:?}", subject.patience))));
    let cleared = stage.clear().await;
    // A failure to clear up never hides what the check itself found.
    verdict.and(cleared)
}

/// What was skipped, by name.
type Skips = Arc<Mutex<BTreeMap<&'static str, String>>>;

/// One check as a trial, which notes in `skips` why it was skipped.
fn trial<F>(
    name: &'static str,
    skips: &Skips,
    perform: impl FnOnce() -> F + Send + 'static,
) -> Trial
where
    F: Future<Output = Verdict>,
{
    let skips = Arc::clone(skips);
    Trial::ignorable_test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| Failed::from(error.to_string()))?;
        match runtime.block_on(perform()) {
            Ok(()) => Ok(Completion::Completed),
            Err(Stop::Failed(reason)) => Err(Failed::from(reason)),
            Err(Stop::Skipped(reason)) => {
                let mut skips = skips.lock().unwrap_or_else(PoisonError::into_inner);
                skips.insert(name, reason.clone());
                Ok(Completion::ignored_with(reason))
            }
        }
    })
}

fn noted_trials(subject: &Subject, skips: &Skips) -> Vec<Trial> {
    let all = ALL.iter().map(|check| {
        let subject = subject.clone();
        trial(check.name, skips, move || async move { perform(check, &subject).await })
    });
    all.collect()
}

/// The checks as trials of a test program.
pub fn trials(subject: &Subject) -> Vec<Trial> {
    noted_trials(subject, &Skips::default())
}

/// The whole of a test program: understands the usual arguments, runs the suite, and compares what
/// was skipped with the file, unless only a part was asked for.
pub fn main(subject: Subject) -> ExitCode {
    let skips = Skips::default();
    let trials = noted_trials(&subject, &skips);
    conclude((&subject.name, subject.skips.as_deref()), trials, &skips)
}

/// The same of the checks of layers.
pub fn main_of_layers(subject: LayerSubject) -> ExitCode {
    let skips = Skips::default();
    let trials = LAYERS.iter().map(|check| {
        let subject = subject.clone();
        trial(check.name, &skips, move || async move { perform_layers(check, &subject).await })
    });
    let trials = trials.collect();
    conclude((&subject.name, subject.skips.as_deref()), trials, &skips)
}

/// The same of the checks of points.
pub fn main_of_points(subject: LayerSubject) -> ExitCode {
    let skips = Skips::default();
    let trials = POINTS.iter().map(|check| {
        let subject = subject.clone();
        trial(check.name, &skips, move || async move { perform_points(check, &subject).await })
    });
    let trials = trials.collect();
    conclude((&subject.name, subject.skips.as_deref()), trials, &skips)
}

fn conclude(
    (name, directory): (&str, Option<&Path>),
    trials: Vec<Trial>,
    skips: &Skips,
) -> ExitCode {
    let arguments = Arguments::from_args();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let is_whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    if conclusion.has_failed() {
        return ExitCode::FAILURE;
    }
    let Some(directory) = directory.filter(|_| is_whole) else {
        return ExitCode::SUCCESS;
    };
    let mut found = String::new();
    for (name, reason) in skips.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        found.push_str(name);
        found.push_str(": ");
        found.push_str(reason);
        found.push('\n');
    }
    match compare(&directory.join(format!("{name}.txt")), &found) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Compares a text with a file, or writes the file where `BLESS=1`.
fn compare(path: &Path, found: &str) -> Result<(), String> {
    if std::env::var_os("BLESS").is_some_and(|bless| bless == "1") {
        return std::fs::write(path, found)
            .map_err(|error| format!("{} cannot be written: {error}", path.display()));
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected == found {
        return Ok(());
    }
    Err(format!(
        "what was skipped differs from {}.\nexpected:\n{expected}found:\n{found}\
         If that is right, run the tests with BLESS=1.",
        path.display()
    ))
}
