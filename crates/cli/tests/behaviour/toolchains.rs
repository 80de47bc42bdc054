//! Toolchains and their caches: what the host has is found, what is fetched stays inside.

use crate::place::{PYTHON, Place, SOON, Said, everyone, outcome, skipped};
use crate::way_out::server;
use std::path::Path;
use std::process::Command;

/// Where tools keep what they fetched, below the person's home.
const CACHES: [&str; 4] = [
    ".cargo/registry/cache/r",
    ".cargo/registry/index/r",
    ".cargo/git/db/r",
    "go/pkg/mod/cache/download/r",
];

/// What each of them is asked: whether what is there is found, and what happens to what is added, put in the
/// place of something, and removed.
const USE: &str = "for cache in $CACHES; do cd $cache && cat old; \
    (echo new >new && echo poison >old && cat new old && rm old && mkdir more) 2>/dev/null || echo closed; done";
const USED: &str = "host\nnew\npoison\n";
const READ: &str = "host\nclosed\n";

/// Makes them, with something in each.
fn caches(place: &Place) -> String {
    let home = place.base.join("home");
    let paths = CACHES.map(|name| home.join(name).to_str().unwrap().to_owned()).join(" ");
    let make = format!(
        "mkdir -p {home}/.cargo/bin; for cache in {paths}; do \
         mkdir -p $cache && echo host >$cache/old || exit 1; done",
        home = home.display()
    );
    let made = outcome(place.host("sh").args(["-c", &make]), SOON);
    assert!(made.status.success(), "{made:?}");
    paths
}

/// Somebody who has these caches says this to the program.
fn say(place: &Place, words: &[&str]) -> Said {
    outcome(&mut with_caches(place, place.cofferdam(words)), SOON)
}

fn with_caches(place: &Place, mut command: Command) -> Command {
    let home = place.base.join("home");
    let path = format!("{}/.cargo/bin:/usr/bin:/bin", home.display());
    command.env("HOME", &home).env("CARGO_HOME", home.join(".cargo")).env("PATH", path);
    command.env("GOMODCACHE", home.join("go/pkg/mod"));
    command
}

/// All that is in them, with every time but that of reading.
fn state(place: &Place) -> String {
    let look = "find .cargo go -printf '%p %y %m %U %s %T@ %C@ %i\\n' | sort; \
                find .cargo go -type f | sort | xargs cat";
    let home = place.base.join("home");
    let said = outcome(place.host("sh").args(["-c", look]).current_dir(home), SOON);
    assert!(said.status.success() && said.text().contains("go/pkg/mod"), "{said:?}");
    said.text()
}

fn script(caches: &str) -> String {
    format!("CACHES='{caches}'; {USE}")
}

#[test]
fn what_is_fetched_is_the_sandboxes_own_and_what_the_host_has_is_found() {
    everyone(|place| {
        let (port, script) = (server().to_string(), script(&caches(place)));
        let before = state(place);
        let out = ["run", "--profile", "repo-write", "--allow-host-port", &port, "--shell"];
        let used = say(place, &[&out[..], &[&script]].concat());
        assert_eq!(used.text(), USED.repeat(CACHES.len()), "as {}: {used:?}", place.uid());
        assert_eq!(state(place), before, "as {}: the host's cache is as it was", place.uid());
        let again = say(place, &[&out[..], &[&script]].concat());
        assert_eq!(again.text(), used.text(), "nothing of one run is in the next");
        // What holds the way to a mount in place lists it twice.
        let layers = "grep -oE '(registry/cache|registry/index|git/db|pkg/mod) overlay ' \
                      /proc/self/mounts | sort -u | wc -l; ls -d /.layers-*/* 2>/dev/null";
        let mounts = say(place, &[&out[..], &[layers]].concat());
        assert_eq!(mounts.text(), "4\n", "no layer is anywhere else: {mounts:?}");
        // Where nothing can be fetched nothing is mounted.
        let without = ["run", "--profile", "repo-write", "--shell"];
        let mounts = say(place, &[&without[..], &[layers]].concat());
        assert_eq!(mounts.text(), "0\n", "{mounts:?}");
        let read = say(place, &[&without[..], &[&script]].concat());
        assert_eq!(read.text(), READ.repeat(CACHES.len()), "{read:?}");
        assert_eq!(state(place), before);
        // The control: the same does change it where it is not held.
        let mut bare = place.host("sh");
        let bare = outcome(bare.args(["-c", &script]), SOON);
        assert_eq!(bare.text(), USED.repeat(CACHES.len()), "{bare:?}");
        assert_ne!(state(place), before);
    });
}

#[test]
fn a_session_keeps_what_it_fetched_over_a_pause_and_a_fork_begins_with_the_hosts_cache() {
    everyone(|place| {
        let (port, caches) = (server().to_string(), caches(place));
        let before = state(place);
        let create = ["create", "--name", "s", "--profile", "repo-write", "--cow"];
        let said = say(place, &[&create[..], &["--allow-host-port", &port]].concat());
        assert_eq!(said.code(), Some(0), "{said:?}");
        let used = say(place, &["exec", "s", "--shell", &script(&caches)]);
        assert_eq!(used.text(), USED.repeat(CACHES.len()), "as {}: {used:?}", place.uid());
        place.says(&["pause", "s"], 0);
        place.says(&["resume", "s"], 0);
        let look =
            format!("for cache in {caches}; do ls $cache; done | sort | uniq -c | tr -s ' '");
        let ls = |name: &str| say(place, &["exec", name, "--shell", &look]).text();
        assert_eq!(ls("s"), " 4 more\n 4 new\n");
        let forked = say(place, &["fork", "s", "t"]);
        assert_eq!(forked.code(), Some(0), "{forked:?}");
        assert_eq!(ls("t"), " 4 old\n");
        assert_eq!(state(place), before, "the host's cache is as it was");
    });
}

#[test]
fn explain_says_of_each_cache_where_it_is_written() {
    everyone(|place| {
        caches(place);
        let cache = place.base.join("home/go/pkg/mod");
        let under = format!("{} under a layer", cache.display());
        let words = ["explain", "--profile", "repo-write", "--egress", "a.test:443", "--", "true"];
        let open = say(place, &words).text();
        assert!(open.contains(&under), "{open}");
        assert!(open.contains("cannot be changed from inside"), "{open}");
        assert!(open.contains("the gate is outside of the sandbox"), "{open}");
        let closed = say(place, &["explain", "--profile", "repo-write", "--", "true"]).text();
        assert!(closed.contains(cache.to_str().unwrap()) && !closed.contains(&under), "{closed}");
        assert!(!closed.contains("the gate is outside"), "{closed}");
    });
}

/// A file system that is stacked as deep as the kernel allows, which can be no layer any more; then the
/// program, with the rights of the person alone.
const STACKED: &str = r#"
import ctypes, os, sys
base, *words = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
def mount(kind, place, options):
    if libc.mount(b"none", place.encode(), kind, 0, options.encode()):
        sys.exit(f"no stack: mount {place}: {os.strerror(ctypes.get_errno())}")
space, lower = os.path.join(base, "space"), os.path.join(base, "home/go/pkg/mod")
os.mkdir(space)
mount(b"tmpfs", space, "mode=755")
for depth in "12":
    upper, work, top = (os.path.join(space, name + depth) for name in ("upper", "work", "top"))
    for directory in (upper, work, top):
        os.mkdir(directory)
    mount(b"overlay", top, f"userxattr,lowerdir={lower},upperdir={upper},workdir={work}")
    lower = top
os.environ["GOMODCACHE"] = lower
os.execvp("setpriv", ["setpriv", "--ambient-caps=-all", "--inh-caps=-all", "--", *words])
"#;

#[test]
fn where_the_kernel_makes_no_layer_a_cache_is_read_as_before() {
    everyone(|place| {
        if place.is_root() || !Path::new(PYTHON).exists() {
            return skipped("stack", "root has no such file system, or there is no Python");
        }
        caches(place);
        let port = server().to_string();
        let script = "cd $GOMODCACHE/cache/download/r && cat old; echo new 2>/dev/null >new || \
                      echo closed; ls -d /.layers-*/* 2>/dev/null; echo done";
        let mut command = place.host("unshare");
        command.args(["--user", "--map-current-user", "--keep-caps", "--mount", "--", PYTHON]);
        command.args(["-c", STACKED, place.base.to_str().unwrap(), place.program(), "run"]);
        command.args(["--profile", "repo-write", "--allow-host-port", &port, "--shell", script]);
        let said = outcome(&mut with_caches(place, command), SOON);
        if said.stderr.contains("no stack: ") {
            return skipped("stack", said.stderr.trim());
        }
        assert_eq!(said.text(), "host\nclosed\ndone\n", "{said:?}");
    });
}

#[test]
fn a_toolchain_that_was_unpacked_anywhere_works_and_what_lies_beside_others_stays_hidden() {
    everyone(|place| {
        let home = place.base.join("home");
        let make = "mkdir -p tc/bin tc/lib/rustlib bin lib .ssh && echo said >tc/lib/rustlib/it && \
            printf '#!/bin/sh\\ncat ${0%%/bin/tool}/lib/rustlib/it\\n' >tc/bin/tool && \
            printf '#!/bin/sh\\necho mine\\n' >bin/mine && chmod 755 tc/bin/tool bin/mine && \
            echo secret | tee tc/secret lib/it >.ssh/id";
        let made = outcome(place.host("sh").args(["-c", make]).current_dir(&home), SOON);
        assert!(made.status.success(), "{made:?}");
        let at = home.display();
        let path = format!("{at}/tc/bin:{at}/bin:/usr/bin:/bin");
        let script = format!(
            "tool; mine; cat {at}/tc/secret {at}/lib/it {at}/.ssh/id 2>/dev/null; \
             (echo x >{at}/tc/lib/rustlib/it) 2>/dev/null || echo closed"
        );
        let words = ["run", "--profile", "repo-write", "--shell", &script];
        let inside = outcome(place.cofferdam(&words).env("HOME", &home).env("PATH", &path), SOON);
        assert_eq!(inside.text(), "said\nmine\nclosed\n", "as {}: {inside:?}", place.uid());
        let bare = outcome(place.host("sh").args(["-c", &script]).env("PATH", &path), SOON);
        assert_eq!(bare.text(), "said\nmine\nsecret\nsecret\nsecret\n", "{bare:?}");
    });
}

/// A link that one run puts on `PATH` must not show its target to the next run of another workspace.
#[test]
fn a_link_that_a_run_plants_on_the_path_shows_nothing_to_a_run_elsewhere() {
    everyone(|place| {
        let make = "mkdir -p venv/bin sub ../other ../private/papers && touch venv/pyvenv.cfg && \
                    echo '#!/bin/sh' >venv/bin/tool && chmod 755 venv/bin/tool && \
                    echo private >../private/papers/diary";
        let made = outcome(place.host("sh").args(["-c", make]), SOON);
        assert!(made.status.success(), "{made:?}");
        let (venv, other) = (place.workspace.join("venv"), place.base.join("other"));
        let say = |at: &Path, words: &[&str]| {
            let mut command = place.cofferdam(words);
            let path = format!("{}/bin:/usr/bin:/bin", venv.display());
            command
                .env("VIRTUAL_ENV", &venv)
                .env("PATH", path)
                .env("HOME", place.base.join("home"));
            outcome(command.current_dir(at), SOON)
        };
        // The control: what is no link is shown elsewhere.
        let said = say(&other, &["run", "--", "tool"]);
        assert_eq!(said.code(), Some(0), "as {}: {said:?}", place.uid());
        let plant = "mv venv/bin venv/b && ln -s ../../private venv/bin";
        let planted = say(&place.workspace, &["run", "--shell", plant]);
        assert_eq!(planted.code(), Some(0), "{planted:?}");
        let diary = place.base.join("private/papers/diary");
        let read = ["run", "--", "cat", diary.to_str().unwrap()];
        for at in [&other, &place.workspace.join("sub"), &place.workspace] {
            let said = say(at, &read);
            assert_eq!((said.code(), said.text().as_str()), (Some(1), ""), "{at:?}: {said:?}");
        }
        let explained = say(&other, &["explain"]).text();
        assert!(explained.contains("venv/bin, which an earlier command"), "{explained}");
        // The control: listed, it is shown.
        let private = place.base.join("private");
        let listed = [&["run", "--read", private.to_str().unwrap()], &read[1..]].concat();
        assert_eq!(say(&other, &listed).text(), "private\n");
    });
}
