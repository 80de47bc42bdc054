//! Runs the checks.

use crate::check::{ALL, Check, Stop, Verdict};
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

/// The checks as trials, which note in `skips` what they skip.
fn noted_trials(subject: &Subject, skips: &Skips) -> Vec<Trial> {
    ALL.iter()
        .map(|check| {
            let (subject, skips) = (subject.clone(), Arc::clone(skips));
            Trial::ignorable_test(check.name, move || {
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(2)
                    .enable_all()
                    .build()
                    .map_err(|error| Failed::from(error.to_string()))?;
                match runtime.block_on(perform(check, &subject)) {
                    Ok(()) => Ok(Completion::Completed),
                    Err(Stop::Failed(reason)) => Err(Failed::from(reason)),
                    Err(Stop::Skipped(reason)) => {
                        let mut skips = skips.lock().unwrap_or_else(PoisonError::into_inner);
                        skips.insert(check.name, reason.clone());
                        Ok(Completion::ignored_with(reason))
                    }
                }
            })
        })
        .collect()
}

/// The checks as trials of a test program.
pub fn trials(subject: &Subject) -> Vec<Trial> {
    noted_trials(subject, &Skips::default())
}

/// The whole of a test program: understands the usual arguments, runs the suite, and compares what
/// was skipped with the file, unless only a part was asked for.
pub fn main(subject: Subject) -> ExitCode {
    let arguments = Arguments::from_args();
    let skips = Skips::default();
    let conclusion = libtest_mimic::run(&arguments, noted_trials(&subject, &skips));
    let is_whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    if conclusion.has_failed() {
        return ExitCode::FAILURE;
    }
    let Some(directory) = subject.skips.as_ref().filter(|_| is_whole) else {
        return ExitCode::SUCCESS;
    };
    let mut found = String::new();
    for (name, reason) in skips.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        found.push_str(name);
        found.push_str(": ");
        found.push_str(reason);
        found.push('\n');
    }
    match compare(&directory.join(format!("{}.txt", subject.name)), &found) {
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
