//! The short rows: one spawn each, round robin.

use super::Outcome;
use super::measure::{Plan, Results, Row, Value, as_f64};
use super::programs::Ground;
use super::spawner::Spawner;

/// The bare spawn that everything is compared with.
pub(super) const BARE: &str = "bare";
/// The same of a program without a C library.
pub(super) const BARE_STATIC: &str = "bare-static";
/// bubblewrap with the same namespaces and view.
pub(super) const BWRAP: &str = "bwrap";
/// A sandbox for one command.
pub(super) const RUN: &str = "run";
/// The same with a program without a C library.
pub(super) const RUN_STATIC: &str = "run-static";
/// Sandboxes for one command each, a second, this many at a time.
pub(super) const RUN_RATES: [(&str, usize); 3] =
    [("run-rate-1", 1), ("run-rate-4", 4), ("run-rate-16", 16)];
/// The same with bubblewrap.
pub(super) const BWRAP_RATES: [(&str, usize); 3] =
    [("bwrap-rate-1", 1), ("bwrap-rate-4", 4), ("bwrap-rate-16", 16)];
/// Bytes through a default pipe.
pub(super) const STDOUT_BARE: &str = "stdout-bare";
/// Bytes through `cofferdam run`.
pub(super) const STDOUT_RUN: &str = "stdout-run";

/// One program to time, as one person.
struct Entry {
    id: &'static str,
    what: &'static str,
    base: &'static str,
    spawner: usize,
    argv: Vec<String>,
    samples: Vec<u64>,
    /// What the last spawn wrote.
    bytes: u64,
}

/// How many bytes a transfer writes, and its argument for `dd`.
const TRANSFER_BYTES: u64 = 1 << 30;
const TRANSFER: [&str; 5] = ["dd", "if=/dev/zero", "bs=64k", "count=16384", "status=none"];

/// Times every short row.
pub(super) fn measure(
    plan: &Plan,
    ground: &Ground,
    spawners: &mut [Spawner],
    results: &mut Results,
) -> Outcome<()> {
    let mut entries = Vec::new();
    for (index, spawner) in spawners.iter().enumerate() {
        entries.extend(spawns(index, spawner, ground));
    }
    rounds(plan.warm_up, plan.rounds, &mut entries, spawners)?;
    for entry in entries {
        let value = Value::times(entry.samples.clone());
        results.add(row(&entry, spawners, value));
    }
    let mut entries = Vec::new();
    for index in 0..spawners.len() {
        entries.extend(transfers(index, ground));
    }
    rounds(1, plan.transfers, &mut entries, spawners)?;
    for entry in entries {
        let Value::Time { p50_us, .. } = Value::times(entry.samples.clone()) else { continue };
        if entry.bytes < TRANSFER_BYTES {
            return Err(format!("{}: {} of {TRANSFER_BYTES} bytes arrived", entry.id, entry.bytes));
        }
        // Bytes in a microsecond are millions of bytes in a second.
        let value = Value::Throughput { mb_per_s: as_f64(TRANSFER_BYTES) / p50_us.max(1.0) };
        results.add(row(&entry, spawners, value));
    }
    Ok(())
}

/// Counts how many sandboxes for one command each pass in a second.
pub(super) fn measure_rates(
    plan: &Plan,
    ground: &Ground,
    spawners: &mut [Spawner],
    results: &mut Results,
) -> Outcome<()> {
    let argv = ["/bin/true".to_owned()];
    for spawner in spawners {
        let inside = run(ground, &argv);
        let bwrap = ground.bwrap(&spawner.workspace, &argv);
        let ours = RUN_RATES.iter().map(|(id, at_once)| (*id, *at_once, Some(&inside)));
        let theirs = BWRAP_RATES.iter().map(|(id, at_once)| (*id, *at_once, bwrap.as_ref()));
        for (id, at_once, argv) in ours.chain(theirs) {
            let Some(argv) = argv else { continue };
            let timing = spawner.time_many(argv, plan.rates, at_once)?;
            let done = (plan.rates / at_once * at_once) as u64;
            let per_s = as_f64(done) / as_f64(timing.ns.max(1)) * 1e9;
            let program = if argv == &inside { "cofferdam run" } else { "bwrap" };
            results.add(Row {
                id: id.to_owned(),
                who: spawner.who.to_owned(),
                what: format!("`{program}` of `/bin/true`, {at_once} at once"),
                base: None,
                value: Value::Rate { per_s },
            });
        }
    }
    Ok(())
}

fn row(entry: &Entry, spawners: &[Spawner], value: Value) -> Row {
    Row {
        id: entry.id.to_owned(),
        who: spawners.get(entry.spawner).map_or("host", |spawner| spawner.who).to_owned(),
        what: entry.what.to_owned(),
        base: Some(entry.base.to_owned()),
        value,
    }
}

/// Each round does every row once and begins with another one, so that a slow moment of the machine
/// falls on all rows alike and none always follows the same neighbour.
fn rounds(
    warm_up: usize,
    counted: usize,
    entries: &mut [Entry],
    spawners: &mut [Spawner],
) -> Outcome<()> {
    for round in 0..warm_up + counted {
        let shift = round % entries.len().max(1);
        entries.rotate_left(shift);
        for entry in entries.iter_mut() {
            let spawner = spawners.get_mut(entry.spawner).ok_or("a row without a spawner")?;
            let timing = spawner.time(&entry.argv)?;
            if round >= warm_up {
                entry.samples.push(timing.ns);
                entry.bytes = timing.bytes;
            }
        }
        entries.rotate_right(shift);
    }
    Ok(())
}

fn spawns(index: usize, spawner: &Spawner, ground: &Ground) -> Vec<Entry> {
    let entry = |id, what, base, argv| Entry {
        id,
        what,
        base,
        spawner: index,
        argv,
        samples: Vec::new(),
        bytes: 0,
    };
    let dynamic = vec!["/bin/true".to_owned()];
    let mut entries = vec![
        entry(BARE, "posix_spawn of `/bin/true`", BARE, dynamic.clone()),
        entry(RUN, "`cofferdam run -- /bin/true`", BARE, run(ground, &dynamic)),
    ];
    if let Some(argv) = ground.bwrap(&spawner.workspace, &dynamic) {
        entries.push(entry(BWRAP, "`bwrap` with the same namespaces and view", BARE, argv));
    }
    if let Some(program) = ground.static_program(&spawner.workspace) {
        let argv = vec![program];
        let inside = run(ground, &argv);
        entries.push(entry(BARE_STATIC, "posix_spawn of a static program", BARE_STATIC, argv));
        let what = "`cofferdam run` of the static program";
        entries.push(entry(RUN_STATIC, what, BARE_STATIC, inside));
    }
    entries
}

fn transfers(index: usize, ground: &Ground) -> Vec<Entry> {
    let argv = TRANSFER.map(str::to_owned).to_vec();
    let inside = run(ground, &argv);
    let entry = |id, what, argv| Entry {
        id,
        what,
        base: STDOUT_BARE,
        spawner: index,
        argv,
        samples: Vec::new(),
        bytes: 0,
    };
    vec![
        entry(STDOUT_BARE, "1 GiB through a default pipe", argv),
        entry(STDOUT_RUN, "1 GiB through `cofferdam run` into a default pipe", inside),
    ]
}

/// The argv that runs this one in a sandbox on the current directory.
pub(super) fn run(ground: &Ground, argv: &[String]) -> Vec<String> {
    let mut whole = vec![ground.program(), "run".to_owned(), "--".to_owned()];
    whole.extend_from_slice(argv);
    whole
}
