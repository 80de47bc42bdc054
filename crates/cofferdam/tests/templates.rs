//! A sandbox that is copied from a template is the same as one that is built from nothing, and what a
//! template is made from may change.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the functions beside the tests are of tests too"
)]

mod ground;

use cofferdam::{Backend, LocalBackend, Preparation, Sandbox, prepared_backend};
use ground::{Ground, await_ends, descendants, hold, until};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};

const ALL: [Preparation; 3] = [Preparation::Nothing, Preparation::Tree, Preparation::Next];

/// One test at a time, because all processes of this program are counted.
async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

/// What a command sees and may do, apart from numbers that differ from one sandbox to the next.
const LOOK: &str = r#"
    id; umask; pwd; echo "$HOME"; env | sort
    grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups|Umask|SigBlk|SigIgn)' /proc/self/status
    for at in / /dev /dev/pts /etc /home /run /tmp /var /var/tmp /var/empty "$HOME" /workspace; do
        echo "$at:"; ls -A "$at" | while read -r name; do stat -c '%A %n' "$at/$name"; done
    done
    cat /etc/passwd /etc/group /etc/hosts /etc/hostname /proc/sys/kernel/hostname
    cat /proc/sys/user/max_user_namespaces /proc/net/dev | grep -v bytes | cut -c1-8
    ls /proc | grep -E '^[0-9]+$' | head -n 1
    cat /proc/cmdline /proc/keys /proc/kallsyms 2>&1 | wc -c
    cat /proc/1/cmdline 2>&1 | tr -d '\0'
    ulimit -a
    for at in / /etc /usr /dev /home /proc /proc/sys /var /var/empty /workspace /tmp "$HOME" /dev/shm \
        "$PWD" "$PWD/.git" "$PWD/.git/hooks" "$PWD/.git/config" "$PWD/.." "$PWD/../.."; do
        if touch "$at/new" 2>/dev/null; then echo "writes $at"; rm -f "$at/new"; fi
    done
    mount -t tmpfs none /tmp 2>/dev/null && echo mounts
    umount /proc 2>/dev/null && echo unmounts
    unshare -U true 2>/dev/null && echo unshares
    ls -A "$PWD/.." "$PWD/../.."
    readlink /proc/self/ns/net >/dev/null && cat /proc/net/unix | wc -l
"#;

struct Seen {
    look: String,
    /// The uppermost mount at each place: its options and its kind.
    mounts: BTreeMap<String, (String, String)>,
}

async fn look(sandbox: &Sandbox) -> Seen {
    let output = sandbox.exec(["sh", "-c", LOOK]).await.unwrap();
    let look = String::from_utf8_lossy(&output.stdout).into_owned();
    let output = sandbox.exec(["cat", "/proc/self/mountinfo"]).await.unwrap();
    let mut mounts = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let kind = words.iter().position(|word| *word == "-").unwrap() + 1;
        mounts.insert(words[4].to_owned(), (words[5].to_owned(), words[kind].to_owned()));
    }
    Seen { look, mounts }
}

fn prepared(ground: &Ground, preparation: Preparation) -> Arc<LocalBackend> {
    let state = ground.place.join(format!("state-{preparation:?}"));
    Arc::new(prepared_backend(state, preparation))
}

/// A ground below a first name that nothing private is at, so that a way leads to it.
fn ground_at_the_end_of_a_way(name: &str) -> Option<Ground> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let places = [Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))), home];
    places.into_iter().flatten().find_map(|place| {
        let place = place.join(format!("cofferdam-{name}-{}", std::process::id()));
        std::fs::create_dir(&place).ok()?;
        std::fs::create_dir_all(place.join("workspace/.git/hooks")).unwrap();
        Some(Ground { place })
    })
}

async fn compare(ground: &Ground) {
    let mut seen = Vec::new();
    for preparation in ALL {
        let backend = prepared(ground, preparation);
        // The first one starts what the second is copied from.
        for _ in 0..2 {
            let sandbox = ground.builder(&backend).create().await.unwrap();
            seen.push((preparation, look(&sandbox).await));
            sandbox.destroy().await.unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    let (_, built) = &seen[0];
    assert!(built.look.contains("uid=1000"), "{}", built.look);
    for (preparation, copied) in &seen {
        assert_eq!(copied.look, built.look, "{preparation:?}");
        for (place, mount) in &built.mounts {
            let found = copied.mounts.get(place);
            assert_eq!(found, Some(mount), "{preparation:?} at {place}");
        }
        for (place, (options, kind)) in &copied.mounts {
            let is_way = kind == "tmpfs" && options.starts_with("ro,nosuid,nodev");
            assert!(built.mounts.contains_key(place) || is_way, "{preparation:?} at {place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_like_one_that_is_built() {
    let _alone = alone().await;
    compare(&Ground::new("alike")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_whose_workspace_has_a_way_is_like_one_that_is_built() {
    let _alone = alone().await;
    match ground_at_the_end_of_a_way("way") {
        Some(ground) => compare(&ground).await,
        None => println!("skipped: no directory beside the private ones can be written"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_battery_finds_no_more_in_a_copy() {
    let _alone = alone().await;
    let ground = Ground::new("attacked");
    let mut found = Vec::new();
    for preparation in ALL {
        let backend = prepared(&ground, preparation);
        let spec = ground.builder(&backend).spec().unwrap();
        // What is attacked is what is made for the second and later ones.
        ground.builder(&backend).create().await.unwrap().destroy().await.unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        found.push(backend.probe(&spec).await.unwrap());
        // A way leads to what is shown of a home directory, whatever that is called.
        let tools = ground.builder(&backend).caller(cofferdam::current_caller()).spec().unwrap();
        assert_eq!(backend.probe(&tools).await.unwrap(), found[0], "{preparation:?}");
    }
    assert_eq!(found[0].basis, cofferdam::Basis::Probed);
    assert!(found.iter().all(|enforced| *enforced == found[0]), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_of_one_template_share_nothing() {
    let _alone = alone().await;
    let ground = Ground::new("apart");
    let backend = prepared(&ground, Preparation::Next);
    let one = ground.builder(&backend).env("MINE", "one").create().await.unwrap();
    let script = "echo secret >/tmp/file && echo secret >~/file && echo secret >/dev/shm/file";
    assert_eq!(one.exec(["sh", "-c", script]).await.unwrap().ending.exit_code(), 0);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let two = ground.builder(&backend).create().await.unwrap();
    let script = "env; ls -A /tmp ~ /dev/shm; for kind in user mnt pid net ipc uts cgroup; do \
                  readlink /proc/self/ns/$kind; done";
    let mut said = Vec::new();
    for sandbox in [&one, &two] {
        let output = sandbox.exec(["sh", "-c", script]).await.unwrap();
        said.push(String::from_utf8(output.stdout).unwrap());
    }
    let [one_said, two_said] = said.try_into().unwrap();
    assert!(one_said.contains("MINE=one") && one_said.contains("file"), "{one_said}");
    assert!(!two_said.contains("MINE") && !two_said.contains("file"), "{two_said}");
    let namespaces = |said: &str| -> Vec<String> {
        said.lines().filter(|line| line.contains(":[")).map(str::to_owned).collect()
    };
    let (ours, theirs) = (namespaces(&one_said), namespaces(&two_said));
    assert_eq!(ours.len(), 7, "{one_said}");
    assert!(ours.iter().all(|namespace| !theirs.contains(namespace)), "{ours:?} {theirs:?}");
    one.destroy().await.unwrap();
    two.destroy().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn any_process_of_a_template_may_be_killed() {
    let _alone = alone().await;
    let ground = Ground::new("bereft");
    let backend = ground.backend();
    let before = ground.left("bereft");
    let processes = || descendants(std::process::id());
    for number in 0..3 {
        ground.builder(&backend).create().await.unwrap().destroy().await.unwrap();
        let mut all = Vec::new();
        // Twice the same, for one that is just ending counts as well.
        until("all are there", || {
            let before = std::mem::replace(&mut all, processes());
            all.len() == 3 && all == before
        });
        let victim = all[number];
        let held = hold(&[victim]);
        let victim = rustix::process::Pid::from_raw(victim.cast_signed()).unwrap();
        rustix::process::kill_process(victim, rustix::process::Signal::KILL).unwrap();
        await_ends(&held);
        let sandbox = ground.builder(&backend).create().await.unwrap();
        assert_eq!(sandbox.exec(["true"]).await.unwrap().ending.exit_code(), 0);
        sandbox.destroy().await.unwrap();
    }
    drop(backend);
    assert_eq!(processes(), [0; 0]);
    assert_eq!(ground.left("bereft"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_mounted_on_the_host_makes_another_template() {
    let _alone = alone().await;
    if !rustix::process::geteuid().is_root() {
        println!("skipped: mounting needs root");
        return;
    }
    let ground = Ground::new("mounted");
    let place = ground.place.join("place");
    std::fs::create_dir(&place).unwrap();
    let backend = prepared(&ground, Preparation::Next);
    ground.builder(&backend).create().await.unwrap().destroy().await.unwrap();
    let first = descendants(std::process::id());
    let mount = |program: &str, words: &[&str]| {
        assert!(Command::new(program).args(words).arg(&place).status().unwrap().success());
    };
    mount("mount", &["-t", "tmpfs", "none"]);
    let sandbox = ground.builder(&backend).read(&place).create().await;
    mount("umount", &[]);
    sandbox.unwrap().destroy().await.unwrap();
    until("the old one is gone", || {
        descendants(std::process::id()).iter().all(|now| !first.contains(now))
    });
}
