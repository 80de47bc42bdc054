//! What of its order a sandbox's first process holds.

use crate::stage::{Stage, sandbox_id};
use cofferdam::{Deadlines, DurableBackend, Ending, SandboxOrder};
use std::os::unix::fs::FileExt;

/// Whether this text lies anywhere in a process's memory. `None` where nobody lets us look.
fn holds(pid: u32, text: &str) -> Option<bool> {
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    // The kernel's own pages are not for this.
    let lines = maps.lines().filter(|line| !line.contains("[v"));
    let mut found = false;
    for (range, rest) in lines.map(|line| line.split_once(' ').unwrap()) {
        if rest.starts_with('r') {
            let (start, end) = range.split_once('-').unwrap();
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            let mut bytes = vec![0; usize::try_from(number(end) - number(start)).unwrap()];
            memory.read_exact_at(&mut bytes, number(start)).unwrap();
            found |= bytes.windows(text.len()).any(|window| window == text.as_bytes());
        }
    }
    Some(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_process_holds_nothing_of_the_order() {
    let stage = Stage::new("kept-memory");
    let secret = |name: &str| format!("{name}-{:x}-of-the-order", std::process::id());
    let (own, callers) = (secret("own"), secret("callers"));
    let mut spec = stage.spec();
    spec.env.insert("KEPT_OWN".into(), own.clone().into());
    spec.caller.env.insert("KEPT_CALLERS".into(), callers.clone().into());
    let order = SandboxOrder {
        spec,
        owner: String::new(),
        deadlines: Deadlines::default(),
        home: None,
        kept: None,
    };
    let record = stage.backend.create(&sandbox_id("kept-memory"), &order).await.unwrap();
    let (keeper, first, _) = stage.processes();
    match (holds(keeper, &own), holds(first, &own), holds(first, &callers)) {
        (Some(control), Some(has_own), Some(has_callers)) => {
            assert!(control, "the one who starts commands knows their variables");
            assert!(!has_own && !has_callers, "{has_own} {has_callers}");
        }
        _ => println!("skipped: root: nobody else may look into a process that is not dumpable"),
    }
    // The control of the control: a command gets the variable.
    let says = crate::stage::exec("says", "echo $KEPT_OWN");
    assert_eq!(stage.run(&record, &says).await, Ending::Exited(0));
    assert_eq!(stage.output(&record, "says").await, format!("{own}\n"));
    stage.end(&record).await;
}
