use super::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A directory with a repository `own` and another one, `other`, in which a secret is committed.
struct Ground(PathBuf);

impl Ground {
    fn new(name: &str, init: &str) -> Self {
        let base =
            std::env::temp_dir().join(format!("cofferdam-own-{name}-{}", std::process::id()));
        fs::remove_dir_all(&base).ok();
        fs::create_dir_all(&base).unwrap();
        let ground = Self(base);
        ground.host(&format!(
            "for name in own other; do git init -q -b main {init} $name; echo $name >$name/a; \
             git -C $name add a; git -C $name commit -qm $name; done"
        ));
        ground
    }

    /// A script of the person's. It must succeed.
    fn host(&self, script: &str) {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(&self.0).env("GIT_CONFIG_GLOBAL", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
        }
        assert!(command.status().unwrap().success(), "{script}");
    }

    fn git(&self, below: &str) -> PathBuf {
        self.0.join("own/.git").join(below)
    }

    fn copy_in(&self, room: Room) -> Result<PathBuf> {
        let to = self.0.join("copy");
        fs::remove_dir_all(&to).ok();
        let stopped = AtomicBool::new(false);
        let time = Duration::from_secs(60);
        let waiting = Waiting { time, stopped: &stopped, began: Instant::now() };
        copy(&self.0.join("own"), &to, room, waiting).map(|()| to)
    }

    fn copy(&self) -> Result<PathBuf> {
        self.copy_in(Room::USUAL)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn no_link_and_no_pipe_of_a_repository_is_followed_or_waited_for() {
    let ground = Ground::new("planted", "");
    ground.host("git -C other gc -q; git -C own gc -q; git -C own tag -a -m t t");
    let pack = fs::read_dir(ground.git("objects/pack")).unwrap().next().unwrap().unwrap();
    let pack = format!("objects/pack/{}", pack.file_name().to_str().unwrap());
    let names = ["HEAD", "config", "packed-refs", "shallow", "objects/aa", "objects/pack", &pack];
    for name in names.into_iter().chain(["refs/heads", "refs/heads/x", "refs/tags/t"]) {
        let (there, aside) = (ground.git(name), ground.0.join("aside"));
        let is_moved = fs::rename(&there, &aside).is_ok();
        symlink(ground.0.join("other/.git").join(name), &there).unwrap();
        let said = ground.copy().unwrap_err();
        assert!(said.message.contains(name) && said.message.contains("leads elsewhere"), "{said}");
        fs::remove_file(&there).unwrap();
        rustix::fs::mkfifoat(CWD, &there, rustix::fs::Mode::RWXU).unwrap();
        let said = ground.copy().unwrap_err();
        assert!(said.message.contains(name) && said.message.contains("is no file"), "{said}");
        fs::remove_file(&there).unwrap();
        if is_moved {
            fs::rename(&aside, &there).unwrap();
        }
        // The control.
        ground.copy().unwrap();
    }
    ground.host("git clone -q --no-local copy clone; test $(cat clone/a) = own");
}

#[test]
fn what_names_other_places_is_not_copied() {
    let ground = Ground::new("names", "");
    ground.host(
        "git -C own repack -qad --write-midx; echo '[include] path = ../../other/.git/config' \
         >>own/.git/config; git -C own config core.hooksPath x; test -e own/.git/objects/pack/multi-pack-index",
    );
    fs::write(ground.git("objects/info/more"), "x").unwrap();
    let copy = ground.copy().unwrap();
    for name in ["objects/info", "objects/pack/multi-pack-index", "hooks", "index", "logs"] {
        assert!(!copy.join(name).exists(), "{name}");
    }
    let said = fs::read_to_string(copy.join("config")).unwrap();
    assert!(!said.contains("include") && !said.contains("hooksPath"), "{said}");
    // What names the directory itself, or nothing, borrows from nobody.
    for itself in [".\n", ".", ""] {
        fs::write(ground.git("commondir"), itself).unwrap();
        assert!(!ground.copy().unwrap().join("commondir").exists());
    }
    for (name, other) in [("commondir", "../../other/.git\n"), ("objects/info/alternates", "x")] {
        fs::write(ground.git(name), other).unwrap();
        let said = ground.copy().unwrap_err();
        assert!(said.message.contains("borrows"), "{said}");
        fs::remove_file(ground.git(name)).unwrap();
    }
}

#[test]
fn repositories_of_every_format_are_copied() {
    for init in ["", "--object-format=sha256", "--ref-format=reftable"] {
        let ground = Ground::new("format", "");
        ground.host("rm -r own");
        let knows = format!("git init -q -b main {init} own 2>/dev/null || rm -rf own");
        ground.host(&knows);
        if !ground.0.join("own").exists() {
            println!("skipped: tool-git: it does not know {init}");
            continue;
        }
        ground.host("cd own; echo own >a; git add a; git commit -qm own; git branch side");
        ground.copy().unwrap();
        ground.host("git clone -q --no-local --branch=side copy clone; test $(cat clone/a) = own");
        if init.contains("reftable") {
            fs::write(ground.git("reftable/tables.list"), "../../other\n").unwrap();
            let said = ground.copy().unwrap_err();
            assert!(said.message.contains("lie elsewhere"), "{said}");
        }
    }
}

#[test]
fn a_repository_of_this_machine_has_limits() {
    let ground = Ground::new("limits", "");
    let usual = Room::USUAL;
    fs::write(ground.git("config"), vec![b'\n'; 1 << 20]).unwrap();
    ground.copy().unwrap();
    fs::write(ground.git("config"), vec![b'\n'; (1 << 20) + 1]).unwrap();
    assert_eq!(ground.copy().unwrap_err().kind, ErrorKind::TooLarge);
    fs::remove_file(ground.git("config")).unwrap();
    // HEAD, refs, heads, main, tags, objects, pack, and three objects with their directories.
    assert!(ground.copy_in(Room { names: 13, ..usual }).is_ok());
    assert_eq!(ground.copy_in(Room { names: 12, ..usual }).unwrap_err().kind, ErrorKind::TooLarge);
    let large = ground.git("refs/heads/large");
    File::create(&large).unwrap().set_len(MAX_OWN_BYTES + 1).unwrap();
    assert_eq!(ground.copy().unwrap_err().kind, ErrorKind::TooLarge);
    assert_eq!((MAX_OWN_NAMES, MAX_OWN_BYTES), (200_000, 8 << 30));
}

#[test]
fn what_is_exchanged_while_a_repository_is_copied_brings_nothing_of_another() {
    let ground = Ground::new("exchange", "");
    let secret = fs::read(ground.0.join("other/.git/refs/heads/main")).unwrap();
    let (heads, link) = (ground.git("refs/heads"), ground.0.join("link"));
    symlink(ground.0.join("other/.git/refs/heads"), &link).unwrap();
    let over = AtomicBool::new(false);
    let (mut copied, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, &heads, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let end = Instant::now() + Duration::from_secs(30);
        // Both happen, so the names are exchanged between looks and opens as well.
        while (copied < 20 || refused < 20) && Instant::now() < end {
            match ground.copy() {
                Ok(copy) => {
                    let main = fs::read(copy.join("refs/heads/main"));
                    assert!(main.is_err() || main.is_ok_and(|main| main != secret));
                    copied += 1;
                }
                Err(_) => refused += 1,
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(copied > 0 && refused > 0, "{copied} {refused}");
}
