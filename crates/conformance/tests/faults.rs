//! Every check can fail, and every fault is found.

use cofferdam_conformance::{ALL, Check, FakeFixture, Stop, Subject, Verdict, document, perform};
use cofferdam_core::fake::{FakeBackend, Fault};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Which fault which check finds. One fault may break more than one promise.
const FOUND: &[(Fault, &str)] = &[
    (Fault::CreateFails, "life.crash_after_create_is_found"),
    (Fault::CreateHangs, "life.five_at_once_are_five"),
    (Fault::LosesReply, "life.crash_after_create_is_found"),
    (Fault::SandboxIdReused, "life.same_id_is_a_conflict"),
    (Fault::SharesSandboxes, "life.five_at_once_are_five"),
    (Fault::DestroyFailsOnce, "life.destroy_twice"),
    (Fault::DestroyNotRepeatable, "life.destroy_twice"),
    (Fault::DestroyDoesNothing, "life.gone_is_gone"),
    (Fault::ListForgets, "life.crash_after_create_is_found"),
    (Fault::ProbeLies, "policy.probe_agrees_with_create"),
    (Fault::UnenforcedStarts, "policy.refuse_beats_degrade"),
    (Fault::WayOutIgnored, "policy.unsupported_is_said_beforehand"),
    (Fault::TerminalPretended, "policy.unsupported_is_said_beforehand"),
    (Fault::WritesReadOnly, "policy.read_only_refuses_writes"),
    (Fault::LayerLands, "policy.copy_on_write_lands_beside"),
    (Fault::LayerUnseen, "policy.copy_on_write_lands_beside"),
    (Fault::WrongExitCode, "exec.nonzero_is_not_an_error"),
    (Fault::SignalHidden, "exec.signal_is_told_apart"),
    (Fault::NotStartedHidden, "exec.not_started_says_why"),
    (Fault::RunsTwice, "exec.same_id_runs_once"),
    (Fault::MergesStreams, "exec.stdout_and_stderr_stay_apart"),
    (Fault::DropsBytes, "exec.bytes_survive"),
    (Fault::OutputUncounted, "exec.output_past_the_cap_is_counted"),
    (Fault::PartialOutputLost, "exec.partial_output_survives_timeout"),
    (Fault::TimeoutIgnored, "exec.timeout_kills_the_tree"),
    (Fault::LeaksChildren, "exec.timeout_kills_the_tree"),
    (Fault::WaitsForChildren, "exec.background_child_does_not_delay"),
    (Fault::StdinOpen, "exec.stdin_closed_unless_asked"),
    (Fault::SlowReaderBlocksAll, "streams.slow_reader_stops_nobody"),
    (Fault::ResizeLost, "tty.resize_arrives"),
    (Fault::MemoryCauseHidden, "limits.memory_names_its_cause"),
    (Fault::PidsUnlimited, "limits.fork_bomb_contained"),
    (Fault::HostPidVisible, "escape.host_pid_invisible"),
    (Fault::HostFileReadable, "escape.host_file_unreadable"),
    (Fault::EnvironmentLeaks, "escape.environment_is_clean"),
    (Fault::FilesDropBytes, "files.bytes_survive"),
    (Fault::FilesApart, "files.commands_see_them"),
    (Fault::FilesOverwrite, "files.conditions_hold"),
    (Fault::FilesCarryPart, "files.carry_is_whole"),
    (Fault::FilesCarryStale, "files.carry_looks_first"),
    (Fault::FilesRemoveAgain, "files.remove_twice"),
    (Fault::FilesOneStopsAll, "files.many_at_once"),
    (Fault::FilesCopyForgetsLinks, "files.trees_are_copied"),
    (Fault::FilesApart, "files.names_are_found"),
    (Fault::FilesDropBytes, "files.lines_are_found"),
    (Fault::FilesApart, "files.archives_are_made"),
    (Fault::FilesDropBytes, "files.archives_are_whole"),
    (Fault::FilesWatchSplitsNames, "files.watch_tells_changes"),
    (Fault::FilesWatchMissesNew, "files.watch_enters_new_directories"),
    (Fault::FilesWatchOutlives, "files.watch_ends_with_its_sandbox"),
    (Fault::PathsLeave, "paths.dotdot_refused"),
    (Fault::LinksLeadOut, "paths.symlink_out_refused"),
    (Fault::PortsDropBytes, "ports.bytes_survive"),
    (Fault::PortsOpenAnyway, "ports.nobody_listens_is_said"),
    (Fault::PortsOfHost, "ports.are_of_the_sandbox"),
];

async fn verdict(check: &Check, backend: FakeBackend) -> Verdict {
    // The fake needs no time but what a check itself lets pass.
    let patience = Duration::from_secs(5);
    let subject = Subject::new("fake", Arc::new(backend), Arc::new(FakeFixture)).patience(patience);
    perform(check, &subject).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_is_found_by_its_check() {
    let mut tasks = Vec::new();
    for (fault, name) in FOUND {
        let check = *ALL.iter().find(|check| check.name == *name).unwrap();
        tasks.push(tokio::spawn(async move {
            let verdict = verdict(&check, FakeBackend::new().fault(*fault)).await;
            assert!(
                matches!(verdict, Err(Stop::Failed(_))),
                "{fault:?} passes {name}: {verdict:?}"
            );
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[test]
fn every_check_can_fail_and_every_fault_is_named() {
    let named: BTreeSet<&str> = FOUND.iter().map(|(_, name)| *name).collect();
    let checks: BTreeSet<&str> = ALL.iter().map(|check| check.name).collect();
    assert_eq!(named, checks);
    let found: BTreeSet<Fault> = FOUND.iter().map(|(fault, _)| *fault).collect();
    assert_eq!(found, BTreeSet::from(Fault::ALL));
}

#[test]
fn the_document_lists_every_check() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    if std::env::var_os("BLESS").is_some_and(|bless| bless == "1") {
        std::fs::write(&path, document()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == document(), "docs/conformance.md is old; run this test with BLESS=1");
}
