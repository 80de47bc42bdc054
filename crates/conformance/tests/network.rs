//! Every check of the way out can fail, every fault is found, and the fake without one passes.
#![expect(clippy::unwrap_used, reason = "the functions beside the tests are of tests too")]

use cofferdam_conformance::{
    NETWORK, NetworkGround, NetworkSubject, Stop, Verdict, perform_network,
};
use cofferdam_core::fake::{FakeDurable, NetworkFault};
use cofferdam_core::{Caller, Profile, Spec, Workspace};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// Which fault which check finds.
const FOUND: &[(NetworkFault, &str)] = &[
    (NetworkFault::ShowsTheFirst, "network.rules_are_shown"),
    (NetworkFault::ChangesNothing, "network.rules_hold_from_the_next_connection"),
    (NetworkFault::TakesAnyVersion, "network.versions_follow"),
    (NetworkFault::OpensAnyway, "network.no_way_out_gets_none"),
    (NetworkFault::ForgetsConnections, "network.connections_are_written_down"),
];

struct Played;

impl NetworkGround for Played {
    fn spec(&self) -> Result<Spec, String> {
        let mut spec = Spec::new(Workspace::Private, Caller::default());
        spec.profile = Profile::RepoWrite;
        Ok(spec)
    }

    fn connect(&self, port: u16) -> Vec<OsString> {
        vec![format!("connect=host.cofferdam.internal:{port}").into()]
    }
}

async fn verdict(name: &str, fault: Option<NetworkFault>) -> Verdict {
    let check = NETWORK.iter().find(|check| check.name == name).unwrap();
    let backend = FakeDurable::new();
    if let Some(fault) = fault {
        backend.network_fault(fault);
    }
    let subject = NetworkSubject {
        name: "fake".to_owned(),
        backend: Arc::new(backend),
        ground: Arc::new(Played),
        patience: Duration::from_secs(60),
    };
    perform_network(check, &subject).await
}

#[tokio::test]
async fn every_fault_of_the_way_out_is_found_by_its_check() {
    for (fault, name) in FOUND {
        let verdict = verdict(name, Some(*fault)).await;
        assert!(matches!(verdict, Err(Stop::Failed(_))), "{fault:?} passes {name}: {verdict:?}");
    }
}

#[tokio::test]
async fn a_backend_that_decides_by_the_rules_passes_every_check_of_the_way_out() {
    for check in NETWORK {
        assert_eq!(verdict(check.name, None).await, Ok(()), "{}", check.name);
    }
}

#[test]
fn every_check_of_the_way_out_can_fail_and_every_fault_is_named() {
    let named: BTreeSet<&str> = FOUND.iter().map(|(_, name)| *name).collect();
    assert_eq!(named, NETWORK.iter().map(|check| check.name).collect());
    let found: BTreeSet<NetworkFault> = FOUND.iter().map(|(fault, _)| *fault).collect();
    assert_eq!(found, BTreeSet::from(NetworkFault::ALL));
}
