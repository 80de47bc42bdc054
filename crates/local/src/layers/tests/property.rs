//! Any tree, and anything that a sandbox does with it.

use super::stage::{Stage, ways};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

const NAMES: [&str; 5] = ["a", "b", "c", "a-b", "\u{e4} 'q\" "];

fn any_path() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&NAMES[..]), 1..4)
        .prop_map(|names| names.join("/"))
}

/// One line of shell, which may fail.
fn any_deed() -> impl Strategy<Value = String> {
    let quoted = |path: &str| format!("'{}'", path.replace('\'', "'\\''"));
    let path = move || any_path().prop_map(move |path| quoted(&path));
    let number = 0..4_u8;
    let mode = proptest::sample::select(&["644", "600", "755", "444"][..]);
    let directory_mode = proptest::sample::select(&["755", "700", "777", "1777"][..]);
    prop_oneof![
        4 => (path(), number).prop_map(|(p, n)| format!("printf 'line {n}\\nmore\\n' >{p}")),
        1 => path().prop_map(|p| format!("true >{p}")),
        1 => path().prop_map(|p| format!("printf more >>{p}")),
        3 => path().prop_map(|p| format!("mkdir -p {p}")),
        2 => path().prop_map(|p| format!("rm -rf {p}")),
        1 => path().prop_map(|p| format!("rm -rf {p}; mkdir {p}")),
        2 => (path(), path()).prop_map(|(p, q)| format!("mv -T {p} {q}")),
        2 => (path(), path()).prop_map(|(p, q)| format!("ln {p} {q}")),
        1 => (path(), path()).prop_map(|(p, q)| format!("rm -f {q}; ln -sT {p} {q}")),
        1 => (path(), mode).prop_map(|(p, m)| format!("test -d {p} || chmod {m} {p}")),
        1 => (path(), directory_mode).prop_map(|(p, m)| format!("test -f {p} || chmod {m} {p}/.")),
        1 => (path(), path()).prop_map(|(p, q)| format!("cp -a {p} {q}")),
    ]
}

fn any_script(most: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(any_deed(), 0..most).prop_map(|deeds| {
        deeds.iter().map(|deed| format!("{{ {deed}; }} 2>/dev/null || :\n")).collect()
    })
}

#[test]
fn any_workspace_becomes_what_the_sandbox_saw() {
    for way in ways() {
        let failures = FileFailurePersistence::Off;
        let config = Config {
            cases: 64,
            failure_persistence: Some(Box::new(failures)),
            ..Config::default()
        };
        let changed = std::cell::Cell::new(0);
        let mut runner = TestRunner::new(config);
        let scripts = (any_script(24), any_script(16), any_script(6));
        let run = runner.run(&scripts, |(workspace, work, more)| {
            // A name that goes changes the others of its file, which are conflicts then.
            let workspace = workspace.replace("{ ln '", "{ : '");
            let stage = Stage::new("property", way, &workspace);
            for script in [&work, &more] {
                stage.inside(script);
                let report = stage.apply(&[]);
                prop_assert_eq!(report.kept, []);
                stage.assert_landed();
                prop_assert_eq!(stage.shown(), [""; 0]);
                changed.set(changed.get() + u32::from(!report.applied.is_empty()));
            }
            Ok(())
        });
        run.unwrap();
        assert!(changed.get() > 30, "{}", changed.get());
    }
}
