//! Every check of layers and of points can fail, every fault is found, and one who has none passes.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the functions beside the tests are of tests too"
)]

mod plain;

use cofferdam_conformance::{
    LAYERS, LayerGround, LayerPlace, LayerSubject, POINTS, Stop, Verdict, perform_layers,
    perform_points,
};
use cofferdam_core::{Caller, Spec, Workspace};
use plain::{Fault, Plain};
use std::collections::BTreeSet;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Which fault which check finds.
const FOUND: &[(Fault, &str)] = &[
    (Fault::WritesThrough, "layers.changes_are_told"),
    (Fault::ScopeIgnored, "layers.changes_are_told"),
    (Fault::RemovalsForgotten, "layers.changes_are_told"),
    (Fault::LinksFollowed, "layers.both_sides_are_read"),
    (Fault::SidesExchanged, "layers.both_sides_are_read"),
    (Fault::DryRunLands, "layers.apply_lands_what_is_asked"),
    (Fault::PartIsAll, "layers.apply_lands_what_is_asked"),
    (Fault::ConflictsLand, "layers.apply_keeps_conflicts"),
    (Fault::HooksLand, "layers.control_files_land_by_name"),
    (Fault::DiesWithSandbox, "layers.outlive_their_sandbox"),
    (Fault::DiscardsAlive, "layers.discard_forgets"),
    (Fault::DiscardsAll, "layers.discard_forgets"),
];

/// A fault of whoever brings an exported snapshot from one session to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bringing {
    /// Damages it though it should not.
    Damages,
    /// Damages nothing though it should, which is as if nobody looked at sums.
    Spares,
}

/// Which fault which check of points finds.
const FOUND_OF_POINTS: &[(Option<Fault>, Option<Bringing>, &str)] = &[
    (Some(Fault::BeginsAnew), None, "points.undo_gives_back"),
    (Some(Fault::LayersShared), None, "points.fork_is_apart"),
    (Some(Fault::OldComesBack), None, "points.snapshot_is_restored"),
    (None, Some(Bringing::Damages), "points.export_comes_in_again"),
    (None, Some(Bringing::Spares), "points.damage_is_refused"),
];

/// Directories that go with it.
struct Place {
    path: PathBuf,
    count: AtomicU32,
    bringing: Option<Bringing>,
}

impl Place {
    fn new(name: &str, bringing: Option<Bringing>) -> Self {
        let name = format!("cofferdam-layers-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self { path, count: AtomicU32::new(0), bringing }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.path).ok();
    }
}

impl LayerGround for Place {
    fn place(&self) -> Result<LayerPlace, String> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let make = |name: &str| {
            let path = self.path.join(format!("{name}-{number}"));
            std::fs::create_dir(&path).map(|()| path).map_err(|error| error.to_string())
        };
        Ok(LayerPlace { workspace: make("workspace")?, kept: make("kept")? })
    }

    fn sessions(&self) -> Result<PathBuf, String> {
        let path = self.path.join("sessions");
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map(|()| path).map_err(|error| error.to_string())
    }

    fn spec(&self, workspace: &Path) -> Spec {
        Spec::new(Workspace::CopyOnWrite(workspace.to_owned()), Caller::default())
    }

    fn carry(&self, mut exported: Vec<u8>) -> Vec<u8> {
        if self.bringing == Some(Bringing::Damages) {
            let middle = exported.len() / 2;
            exported[middle] ^= 1;
        }
        exported
    }

    fn damage(&self, mut exported: Vec<u8>, at: usize) -> Vec<u8> {
        if self.bringing != Some(Bringing::Spares) {
            exported[at] ^= 1;
        }
        exported
    }
}

async fn verdict(name: &str, fault: Option<Fault>) -> Verdict {
    let check = LAYERS.iter().find(|check| check.name == name).unwrap();
    let place = Place::new(&format!("{}-{fault:?}", name.replace('.', "-")), None);
    let subject = LayerSubject::new("plain", Arc::new(Plain::new(fault)), Arc::new(place));
    perform_layers(check, &subject).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_of_layers_is_found_by_its_check() {
    for (fault, name) in FOUND {
        let verdict = verdict(name, Some(*fault)).await;
        assert!(matches!(verdict, Err(Stop::Failed(_))), "{fault:?} passes {name}: {verdict:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_that_copies_passes_every_check_of_layers() {
    for check in LAYERS {
        assert_eq!(verdict(check.name, None).await, Ok(()), "{}", check.name);
    }
}

async fn verdict_of_points(
    name: &str,
    (fault, bringing): (Option<Fault>, Option<Bringing>),
) -> Verdict {
    let check = POINTS.iter().find(|check| check.name == name).unwrap();
    let place = format!("{}-{fault:?}-{bringing:?}", name.replace('.', "-"));
    let place = Place::new(&place, bringing);
    let subject = LayerSubject::new("plain", Arc::new(Plain::new(fault)), Arc::new(place));
    perform_points(check, &subject).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_of_points_is_found_by_its_check() {
    for (fault, bringing, name) in FOUND_OF_POINTS {
        let verdict = verdict_of_points(name, (*fault, *bringing)).await;
        let is_found = matches!(verdict, Err(Stop::Failed(_)));
        assert!(is_found, "{fault:?} {bringing:?} passes {name}: {verdict:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_that_copies_passes_every_check_of_points() {
    for check in POINTS {
        assert_eq!(verdict_of_points(check.name, (None, None)).await, Ok(()), "{}", check.name);
    }
}

#[test]
fn every_check_of_layers_can_fail_and_every_fault_is_named() {
    let named: BTreeSet<&str> = FOUND.iter().map(|(_, name)| *name).collect();
    assert_eq!(named, LAYERS.iter().map(|check| check.name).collect());
    let points: BTreeSet<&str> = FOUND_OF_POINTS.iter().map(|(_, _, name)| *name).collect();
    assert_eq!(points, POINTS.iter().map(|check| check.name).collect());
    let mut found: BTreeSet<Fault> = FOUND.iter().map(|(fault, _)| *fault).collect();
    found.extend(FOUND_OF_POINTS.iter().filter_map(|(fault, ..)| *fault));
    assert_eq!(found, BTreeSet::from(Fault::ALL));
}
