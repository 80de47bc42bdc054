//! Hostile layers, and somebody hostile in the workspace: nothing outside changes.

use super::stage::{Stage, Way, overlays, path, shown, tree, ways};
use cofferdam_core::ErrorKind;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

/// Somebody exchanges a directory of the workspace for a link to the outside, as fast as it goes, while
/// changes land below it.
#[test]
fn a_directory_that_becomes_a_link_leads_nothing_out() {
    for way in ways() {
        let workspace = "mkdir -p d/e; for i in $(seq 30); do printf x >d/e/x$i; done";
        let stage = Stage::new("attack-swap", way, workspace);
        stage.inside("cd d/e; for i in $(seq 30); do printf $i >x$i; printf n >n$i; done");
        std::fs::create_dir(stage.elsewhere().join("e")).unwrap();
        for round in 1..=30 {
            std::fs::write(stage.elsewhere().join(format!("e/x{round}")), "precious").unwrap();
        }
        let outside = tree(&stage.elsewhere());
        let (mut landed, mut refused) = (0, 0);
        let over = AtomicBool::new(false);
        let count = std::thread::scope(|scope| {
            let attacker = scope.spawn(|| swap(&stage, &over));
            for round in 1..=30 {
                let names = [format!("d/e/x{round}"), format!("d/e/n{round}")];
                match stage.try_apply(&[&names[0], &names[1]]) {
                    Ok(report) if report.kept.is_empty() => landed += 1,
                    Ok(_) | Err(_) => refused += 1,
                }
            }
            over.store(true, Ordering::Relaxed);
            attacker.join().unwrap()
        });
        assert_eq!(tree(&stage.elsewhere()), outside);
        println!("{count} swaps, {landed} landed, {refused} did not");
        assert!(count > 30 && refused > 0, "the attack had its chances");
        // The control: one who follows the link writes outside.
        stage.outside("mv d d-real; ln -s ../outside d; printf evil >d/e/x1");
        assert_ne!(tree(&stage.elsewhere()), outside);
    }
}

/// Exchanges `d` for a link and back until it is over, and says how often.
fn swap(stage: &Stage, over: &AtomicBool) -> usize {
    let (real, link) = (stage.workspace().join("d"), stage.elsewhere().with_extension("link"));
    symlink(stage.elsewhere(), &link).unwrap();
    let mut count = 0;
    while !over.load(Ordering::Relaxed) || count % 2 == 1 {
        let cwd = rustix::fs::CWD;
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        count += usize::from(rustix::fs::renameat_with(cwd, &real, cwd, &link, flags).is_ok());
    }
    count
}

#[test]
fn a_link_in_the_place_of_a_file_is_replaced_and_not_followed() {
    for way in ways() {
        let stage = Stage::new("attack-link", way, "printf a >a; mkdir d; printf x >d/x");
        std::fs::write(stage.elsewhere().join("precious"), "precious").unwrap();
        std::fs::write(stage.elsewhere().join("x"), "precious").unwrap();
        let outside = tree(&stage.elsewhere());
        stage.inside("printf s >a; printf s >d/x");
        stage.outside("rm a; ln -s ../outside/precious a; rm -r d; ln -s ../outside d");
        let kept: Vec<String> = stage.apply(&[]).kept.iter().map(shown).collect();
        // An overlay brings the directory on the way too.
        let expected = if way == Way::Copy { 2 } else { 3 };
        assert_eq!(kept.len(), expected, "{kept:?}");
        assert_eq!(tree(&stage.elsewhere()), outside);
        // The control: what lands by way of the shell goes out.
        stage.outside("printf s >d/x");
        assert_ne!(tree(&stage.elsewhere()), outside);
    }
}

#[test]
fn links_of_the_layer_land_as_links_and_are_not_read_through() {
    for way in ways() {
        let stage = Stage::new("attack-through", way, "mkdir d; printf x >d/x");
        let secret = stage.elsewhere().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        stage.inside(&format!("ln -s {} l; rm -r d; ln -s ../outside d", secret.display()));
        stage.apply(&[]);
        stage.assert_landed();
        let content = stage.layer().file(cofferdam_core::Side::After, &path("d/secret"), 100);
        assert_eq!(content.unwrap_err().kind, ErrorKind::NotFound);
        let content = stage.layer().file(cofferdam_core::Side::After, &path("l"), 100);
        assert_eq!(content.unwrap_err().kind, ErrorKind::NotAFile);
        // The control: through the link it is there.
        assert_eq!(std::fs::read(stage.workspace().join("l")).unwrap(), b"secret");
    }
}

#[test]
fn a_pipe_that_somebody_waits_at_is_not_opened() {
    for way in ways() {
        let stage = Stage::new("attack-pipe", way, "printf p >pipe; printf a >a");
        stage.inside("rm pipe; mkfifo pipe; printf s >a");
        let pipe = stage.cow().join("upper/pipe");
        let reader = std::thread::spawn(move || std::fs::read(pipe));
        let report = stage.apply(&[]);
        let kept: Vec<String> = report.kept.iter().map(shown).collect();
        assert_eq!(kept, ["m pipe (special)"]);
        assert_eq!(stage.real()["a"].1, b"s", "the control: a file lands");
        assert!(!reader.is_finished(), "nobody came to the other end");
        std::fs::write(stage.cow().join("upper/pipe"), "end").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"end");
    }
}

#[test]
fn a_file_that_grows_while_it_lands_is_whole_or_refused() {
    for way in ways() {
        let stage = Stage::new("attack-grows", way, "");
        stage.inside("printf start >log");
        let log = stage.cow().join("upper/log");
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
                for _ in 0..20_000 {
                    std::io::Write::write_all(&mut file, &[b'x'; 64]).unwrap();
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            for _ in 0..8 {
                if let Err(error) = stage.try_apply(&[]) {
                    assert_eq!(error.kind, ErrorKind::Conflict, "{}", error.chain());
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        // The control: once it stands still it lands.
        stage.apply(&[]);
        let landed = std::fs::read(stage.workspace().join("log")).unwrap();
        assert_eq!(landed, std::fs::read(&log).unwrap());
        assert_eq!(stage.real().len(), 1, "no stage is left");
    }
}

#[test]
fn names_that_no_terminal_and_no_text_knows_land_as_they_are() {
    for way in ways() {
        let stage = Stage::new("attack-names", way, "");
        stage.inside(
            "printf 1 >\"$(printf 'new\\nline')\"; printf 2 >\"$(printf '\\033[2J')\"; printf 3 >-rf
             printf 4 >\"$(printf 'caf\\351')\"; mkdir ' '; printf 5 >' /...'; printf 6 >'*'",
        );
        let report = stage.apply(&[]);
        assert_eq!((report.applied.len(), report.kept.len()), (7, 0));
        stage.assert_landed();
    }
}

#[test]
fn a_file_by_reference_is_refused() {
    for way in overlays() {
        let stage = Stage::new("attack-reference", way, "printf a >a; mkdir d");
        stage.inside("printf s >a; printf s >d/new");
        let prefix = way.prefix();
        for (name, file) in [("metacopy", "a"), ("redirect", "d")] {
            let place = stage.cow().join("upper").join(file);
            let name = format!("{prefix}.overlay.{name}");
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(&place, &name, b"/etc", flags).unwrap();
            let error = stage.layer().changes(&[]).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unsupported, "{file}");
            rustix::fs::removexattr(&place, &name).unwrap();
        }
        assert_eq!(stage.shown(), ["m a", "a d/new"], "the control");
    }
}
