mod toolchains;

use super::*;
use crate::host::fake;
use cofferdam_core::{Caller, Profile, Workspace};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// A home directory of its own on disk, removed with its owner.
struct Ground(PathBuf);

impl Ground {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("cofferdam-view-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let ground = Self(path.canonicalize().unwrap());
        ground.directory("home/proj");
        ground
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn directory(&self, name: &str) -> String {
        fs::create_dir_all(self.0.join(name)).unwrap();
        self.path(name)
    }

    fn file(&self, name: &str, content: &str) -> String {
        fs::create_dir_all(self.0.join(name).parent().unwrap()).unwrap();
        fs::write(self.0.join(name), content).unwrap();
        self.path(name)
    }

    fn spec(&self) -> Spec {
        let caller = Caller { env: Default::default(), home: Some(self.0.join("home")) };
        Spec::new(Workspace::Directory(self.0.join("home/proj")), caller)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn user(spec: &Spec) -> Result<View> {
    look(spec, &fake::host(1000))
}

fn shown<'a>(view: &'a View, path: &str) -> Option<&'a Shown> {
    view.places.iter().filter_map(Place::shown).find(|shown| shown.path == path)
}

fn set(spec: &mut Spec, name: &str, value: &str) {
    spec.caller.env.insert(OsString::from(name), OsString::from(value));
}

#[test]
fn the_system_is_an_allowlist() {
    let view = user(&Ground::new("system").spec()).unwrap();
    assert!(view.shows("/usr/bin/env"));
    assert!(view.shows("/etc/ld.so.cache") || !Path::new("/etc/ld.so.cache").exists());
    for hidden in ["/etc/shadow", "/etc/ssh", "/root", "/home", "/var/lib", "/run", "/etc/passwd"] {
        assert!(!view.shows(hidden), "{hidden}");
    }
    let mounts = view.system.len();
    assert!(mounts < 25, "{mounts} mounts of the system are too many for a fast start");
}

#[test]
fn the_workspace_is_shown_at_its_own_path_with_its_identity() {
    let ground = Ground::new("workspace");
    let mut spec = ground.spec();
    let view = user(&spec).unwrap();
    let path = ground.path("home/proj");
    let place = shown(&view, &path).unwrap();
    assert_eq!(place.access, Access::ReadWrite);
    assert_eq!(place.owner, Owner::Same);
    assert!(place.identity.is_some());
    let as_root = look(&spec, &fake::host(0)).unwrap();
    assert!(matches!(shown(&as_root, &path).unwrap().owner, Owner::Mapped { .. }));
    spec.profile = Profile::ReadOnly;
    assert_eq!(shown(&user(&spec).unwrap(), &path).unwrap().access, Access::ReadOnly);
}

#[test]
fn a_workspace_that_holds_more_than_a_task_is_refused() {
    let ground = Ground::new("refused");
    let state = ground.directory("home/.local/state/cofferdam");
    let keys = ground.directory("home/.ssh/sub");
    let mut denied: Vec<String> =
        ["/", "/etc", "/usr", "/proc", "/proc/sys", "/sys/kernel", "/dev", "/tmp", "/var"]
            .map(str::to_owned)
            .to_vec();
    denied.extend([ground.path("home"), ground.path("")]);
    denied.extend([
        state.clone(),
        ground.path("home/.local"),
        ground.path("home/.local/state"),
        keys,
    ]);
    for path in denied {
        let mut spec = ground.spec();
        spec.workspace = Workspace::Directory(PathBuf::from(&path));
        let error = user(&spec).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{path}: {error}");
        assert!(error.hint.is_some(), "{path}");
    }
    let mut spec = ground.spec();
    spec.workspace = Workspace::Directory(ground.0.join("missing"));
    assert_eq!(user(&spec).unwrap_err().kind, ErrorKind::NotFound);
    spec.workspace = Workspace::Directory(PathBuf::from(ground.file("file", "")));
    assert_eq!(user(&spec).unwrap_err().kind, ErrorKind::Usage);
}

#[test]
fn a_workspace_that_leads_through_a_link_is_refused() {
    let ground = Ground::new("led");
    let (elsewhere, project) = (ground.directory("elsewhere"), ground.path("home/proj"));
    let below = ground.directory("home/proj/below");
    let moved = ground.path("home/moved");
    let check = |named: &str, end: Option<&str>| {
        for workspace in [Workspace::Directory, Workspace::CopyOnWrite] {
            let spec = Spec { workspace: workspace(named.into()), ..ground.spec() };
            let refused = user(&spec).err();
            assert_eq!(refused.as_ref().map(|error| error.kind), end.map(|_| ErrorKind::Conflict));
            let hint = refused.and_then(|error| error.hint).unwrap_or_default();
            assert!(hint.contains(end.unwrap_or_default()), "{hint}");
        }
    };
    check(&project, None);
    check(&below, None);
    fs::rename(&project, &moved).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &project).unwrap();
    check(&project, Some(&elsewhere));
    // The link may lie above.
    let below_elsewhere = ground.directory("elsewhere/below");
    check(&below, Some(&below_elsewhere));
    fs::remove_file(&project).unwrap();
    fs::rename(&moved, &project).unwrap();
    check(&project, None);
}

#[test]
fn a_secret_cannot_be_listed_and_is_covered_where_it_lies_below() {
    let ground = Ground::new("secrets");
    ground.file("dotfiles/ssh/id_ed25519", "key");
    std::os::unix::fs::symlink(ground.path("dotfiles/ssh"), ground.0.join("home/.ssh")).unwrap();
    ground.file("home/.aws/credentials", "key");
    ground.file("home/.config/gcloud/x", "key");
    let mut spec = ground.spec();
    for listed in ["home/.ssh", "home/.ssh/id_ed25519", "dotfiles/ssh", "home/.aws/credentials"] {
        spec.read = vec![ground.0.join(listed)];
        let error = user(&spec).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{listed}");
    }
    spec.read = vec![ground.0.join("home"), ground.0.join("dotfiles")];
    let view = user(&spec).unwrap();
    let covered: Vec<&str> = view.hidden.iter().map(|hidden| hidden.path.as_str()).collect();
    for secret in ["dotfiles/ssh", "home/.aws", "home/.config/gcloud"] {
        assert!(covered.contains(&ground.path(secret).as_str()), "{secret}: {covered:?}");
    }
    assert!(view.shows(&ground.path("home/other")));
    assert!(!view.shows(&ground.path("home/.aws/credentials")));
}

#[test]
fn the_deeper_of_two_places_stands_later() {
    let ground = Ground::new("depth");
    let deep = ground.directory("home/proj/vendor/deep");
    ground.directory("data/in");
    let mut spec = ground.spec();
    spec.read = vec![PathBuf::from(&deep), ground.0.join("data")];
    spec.write = vec![ground.0.join("data/in"), ground.0.join("home/proj/vendor")];
    let view = user(&spec).unwrap();
    let order: Vec<&str> = view.places.iter().map(Place::path).collect();
    let at = |name: &str| order.iter().position(|path| *path == ground.path(name)).unwrap();
    assert!(at("data") < at("data/in"));
    assert!(at("home/proj") < at("home/proj/vendor"));
    assert!(at("home/proj/vendor") < at("home/proj/vendor/deep"));
    spec.read = vec![ground.0.join("home/proj")];
    assert_eq!(user(&spec).unwrap_err().kind, ErrorKind::Usage);
}

#[test]
fn what_cannot_hold_is_an_error_that_names_it() {
    let ground = Ground::new("errors");
    let check = |change: &dyn Fn(&mut Spec), kind: ErrorKind, named: &str| {
        let mut spec = ground.spec();
        change(&mut spec);
        let error = user(&spec).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(named), "{error} does not name {named}");
    };
    let missing = PathBuf::from("/no/such/place");
    let list = |path: &str| vec![PathBuf::from(path)];
    check(&|spec| spec.read = vec![missing.clone()], ErrorKind::NotFound, "/no/such/place");
    check(&|spec| spec.write = vec![missing.clone()], ErrorKind::NotFound, "/no/such/place");
    check(&|spec| spec.hide = vec![missing.clone()], ErrorKind::NotFound, "/no/such/place");
    check(&|spec| spec.read = list("/"), ErrorKind::Denied, "--read /");
    check(&|spec| spec.read = list("/proc/1"), ErrorKind::Denied, "/proc/1");
    check(&|spec| spec.read = list("/dev/null"), ErrorKind::Denied, "/dev/null");
    check(&|spec| spec.read = list("/etc/shadow"), ErrorKind::Denied, "/etc/shadow");
    check(&|spec| spec.write = list("/usr"), ErrorKind::Denied, "/usr");
    check(&|spec| spec.hide = vec![ground.0.join("home")], ErrorKind::Usage, "workspace");
    check(&|spec| spec.hide = list("/usr"), ErrorKind::Usage, "/usr");
    for own in ["/proc", "/proc/version", "/dev/null"] {
        check(&|spec| spec.hide = list(own), ErrorKind::Usage, own);
    }
    let without_workspace = |spec: &mut Spec| {
        spec.workspace = Workspace::Private;
        spec.hide = list("/");
    };
    check(&without_workspace, ErrorKind::Usage, "the system itself");
    let read_only = |spec: &mut Spec| {
        spec.profile = Profile::ReadOnly;
        spec.write = list("/opt");
    };
    check(&read_only, ErrorKind::Usage, "--write");
}

#[test]
fn hiding_takes_both_names_of_the_workspace() {
    let ground = Ground::new("hide");
    let hidden = ground.file("home/proj/.env", "SECRET=1");
    let mut spec = ground.spec();
    for name in [hidden.as_str(), "/workspace/.env"] {
        spec.hide = vec![PathBuf::from(name)];
        let view = user(&spec).unwrap();
        assert_eq!(view.hidden.len(), 1, "{name}");
        assert_eq!(view.hidden[0].path, hidden, "{name}");
    }
}

#[test]
fn what_is_shown_below_a_hidden_path_is_hidden_too() {
    let ground = Ground::new("hide-below");
    let listed = ground.file("home/data/part/deep/a", "1");
    let beside = ground.file("home/data-2/b", "2");
    let tool = ground.directory("home/tools/bin");
    ground.file("home/tools/bin/tool", "#!/bin/sh\n");
    let mut spec = ground.spec();
    set(&mut spec, "PATH", &format!("/usr/bin:{tool}"));
    spec.read = vec![PathBuf::from(&listed), PathBuf::from(&beside)];
    let all = user(&spec).unwrap();
    assert!(all.shows(&listed) && all.shows(&beside) && all.shows(&tool), "{:?}", all.places);
    let fonts = all.system.iter().map(|shown| shown.path.clone());
    let of_etc: Vec<String> = fonts.filter(|path| path.starts_with("/etc/")).collect();
    assert!(!of_etc.is_empty() && of_etc.iter().all(|path| all.shows(path)));

    let paths = ["home/data", "home/tools"].map(|name| ground.0.join(name));
    spec.hide = paths.into_iter().chain([PathBuf::from("/etc")]).collect();
    let view = user(&spec).unwrap();
    assert!(!view.shows(&listed) && !view.shows(&tool), "{:?}", view.hidden);
    assert!(view.shows(&beside), "a name that begins alike is another one");
    assert!(!of_etc.iter().any(|path| view.shows(path)), "{:?}", view.hidden);
    assert!(!view.links.iter().any(|link| link.path.starts_with("/etc/")), "{:?}", view.links);
    assert!(view.shows("/usr/bin"));
}

/// What an earlier run made of `home/proj/<name>`.
fn plant(ground: &Ground, name: &str, target: &str) {
    let link = ground.0.join("home/proj").join(name);
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(ground.path(target), link).unwrap();
}

#[test]
fn a_listed_path_is_not_followed_through_a_link_that_an_earlier_run_planted() {
    let ground = Ground::new("planted");
    ground.directory("home/other/key");
    ground.directory("home/data/deep");
    plant(&ground, "a/cache", "home/other");
    plant(&ground, "b", "home/other");
    plant(&ground, "dots", "home/other");
    // The caller's own link leads into the workspace, and only from there away.
    std::os::unix::fs::symlink(ground.path("home/proj/dots"), ground.0.join("home/own")).unwrap();
    let list = |name: &str, change: &dyn Fn(&mut Spec, PathBuf)| {
        let mut spec = ground.spec();
        change(&mut spec, ground.0.join(name));
        user(&spec)
    };
    let as_write = |spec: &mut Spec, path| spec.write = vec![path];
    let as_read = |spec: &mut Spec, path| spec.read = vec![path];
    let as_hide = |spec: &mut Spec, path| spec.hide = vec![path];
    for name in ["home/proj/a/cache", "home/proj/b/key", "home/proj/a/../b", "home/own"] {
        for change in [&as_write as &dyn Fn(&mut Spec, PathBuf), &as_read, &as_hide] {
            let error = list(name, change).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Denied, "{name}: {error}");
            assert!(error.message.contains("home/proj/"), "{name}: {error}");
            assert!(error.hint.unwrap().contains("Remove the link"), "{name}");
        }
    }
    let read_only = |spec: &mut Spec, path| {
        spec.profile = Profile::ReadOnly;
        spec.read = vec![path];
    };
    assert_eq!(list("home/proj/b", &read_only).unwrap_err().kind, ErrorKind::Denied);
    let writable_elsewhere = |spec: &mut Spec, path| {
        spec.write = vec![ground.0.join("home/data")];
        spec.read = vec![path];
    };
    std::os::unix::fs::symlink(ground.path("home/other"), ground.0.join("home/data/l")).unwrap();
    let error = list("home/data/l", &writable_elsewhere).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);

    // A link that no command could have made is the caller's own.
    std::os::unix::fs::symlink(ground.path("home/other"), ground.0.join("home/mine")).unwrap();
    let view = list("home/mine/key", &as_read).unwrap();
    assert!(view.shows(&ground.path("home/other/key")));
    assert!(list("home/data/../data/deep", &writable_elsewhere).is_ok());
}

#[test]
fn a_toolchain_is_not_followed_through_a_link_that_an_earlier_run_planted() {
    let ground = Ground::new("planted-path");
    for name in ["home/private/bin", "home/tools/bin", "home/proj/real/bin", "home/private/mod"] {
        ground.directory(name);
    }
    plant(&ground, "venv/bin", "home/private");
    plant(&ground, "active", "home/private");
    plant(&ground, "mod", "home/private/mod");
    plant(&ground, "alias", "home/proj/real");
    std::os::unix::fs::symlink(ground.path("home/tools"), ground.0.join("home/mine")).unwrap();
    let mut spec = ground.spec();
    let entries = ["proj/venv/bin", "proj/active/bin", "proj/alias/bin", "mine/bin"];
    let path = entries.map(|name| ground.path(&format!("home/{name}"))).join(":");
    set(&mut spec, "PATH", &path);
    set(&mut spec, "VIRTUAL_ENV", &ground.path("home/proj/active"));
    set(&mut spec, "GOMODCACHE", &ground.path("home/proj/mod"));
    let view = user(&spec).unwrap();
    assert!(!view.shows(&ground.path("home/private")), "{:?}", view.places);
    assert!(!view.shows(&ground.path("home/private/bin")), "{:?}", view.places);
    assert!(!view.shows(&ground.path("home/private/mod")), "{:?}", view.places);
    for link in ["home/proj/venv/bin", "home/proj/active", "home/proj/mod"] {
        let link = ground.path(link);
        assert!(view.notes.iter().any(|note| note.contains(&link)), "{link}: {:?}", view.notes);
    }
    assert!(view.shows(&ground.path("home/tools/bin")));
    // What lies in the workspace is shown with it, and not once more.
    assert!(view.path.contains(&ground.path("home/proj/real/bin")));
    assert!(shown(&view, &ground.path("home/proj/real/bin")).is_none());
}

#[test]
fn toolchains_are_found_through_the_path() {
    let ground = Ground::new("tools");
    for name in [
        "home/.cargo/bin",
        "home/.cargo/registry/cache",
        "home/.rustup/toolchains",
        "home/.pyenv/shims",
        "home/bin",
        "home/.nvm/versions",
        "elsewhere/go/bin",
    ] {
        ground.directory(name);
    }
    ground.file("home/.cargo/credentials.toml", "[registry]\ntoken = 'x'");
    ground.file("home/.cargo/config.toml", "[build]\njobs = 2\n");
    let mut spec = ground.spec();
    let entries = ["home/.cargo/bin", "home/.pyenv/shims", "home/bin", "home", "home/missing"];
    let mut path: Vec<String> = entries.iter().map(|name| ground.path(name)).collect();
    path.extend(["", ".", "relative", "/usr/bin", "/usr/../etc"].map(str::to_owned));
    set(&mut spec, "PATH", &path.join(":"));
    let view = user(&spec).unwrap();

    for whole in [
        "home/.rustup",
        "home/.pyenv",
        "home/bin",
        "home/.cargo/bin",
        "home/.cargo/registry/cache",
        "home/.cargo/config.toml",
    ] {
        let place = shown(&view, &ground.path(whole)).unwrap_or_else(|| panic!("{whole}"));
        assert_eq!(place.access, Access::ReadOnly, "{whole}");
    }
    for hidden in ["home/.cargo/credentials.toml", "home/.nvm", "home/other", "elsewhere"] {
        assert!(!view.shows(&ground.path(hidden)), "{hidden}");
    }
    let cargo = Place::Private {
        path: ground.path("home/.cargo"),
        why: "cargo keeps locks and unpacked crates in its home".to_owned(),
    };
    assert!(view.places.contains(&cargo));
    assert_eq!(view.variables["CARGO_HOME"], ground.path("home/.cargo"));
    assert_eq!(view.variables["RUSTUP_HOME"], ground.path("home/.rustup"));
    assert_eq!(view.path[..3], path[..3]);
    assert!(view.path.iter().all(|entry| entry.starts_with('/') && entry != "/etc"));
    assert!(view.notes.iter().any(|note| note.contains("home directory")), "{:?}", view.notes);

    spec.profile = Profile::CiOnly;
    let view = user(&spec).unwrap();
    assert!(!view.shows(&ground.path("home/.rustup")));
    assert!(view.path.iter().all(|entry| !entry.starts_with(&ground.path(""))));
}

#[test]
fn a_setting_of_cargo_with_a_secret_stays_outside() {
    let ground = Ground::new("cargo");
    ground.directory("home/.cargo/bin");
    ground.file("home/.cargo/config.toml", "[registries.x]\ntoken = 'x'\n");
    let mut spec = ground.spec();
    set(&mut spec, "PATH", &ground.path("home/.cargo/bin"));
    let view = user(&spec).unwrap();
    assert!(!view.shows(&ground.path("home/.cargo/config.toml")));
    assert!(view.notes.iter().any(|note| note.contains("config.toml")), "{:?}", view.notes);
}

#[test]
fn as_root_a_toolchain_below_a_closed_directory_is_mapped() {
    use std::os::unix::fs::PermissionsExt;
    let ground = Ground::new("mapped");
    ground.directory("home/.pyenv/shims");
    let mut spec = ground.spec();
    set(&mut spec, "PATH", &ground.path("home/.pyenv/shims"));
    let owner = |spec: &Spec| {
        let view = look(spec, &fake::host(0)).unwrap();
        shown(&view, &ground.path("home/.pyenv")).unwrap().owner
    };
    assert_eq!(owner(&spec), Owner::Same);
    fs::set_permissions(ground.0.join("home"), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(owner(&spec), Owner::Mapped { .. }));
}

#[test]
fn a_linked_worktree_shows_its_repository_only_if_that_points_back() {
    let ground = Ground::new("worktree");
    let own = ground.directory("repo/.git/worktrees/proj");
    for name in ["repo/.git/objects", "repo/.git/refs", "repo/.git/hooks"] {
        ground.directory(name);
    }
    ground.file("repo/.git/HEAD", "ref: refs/heads/main\n");
    ground.file("repo/.git/config", "[core]\n");
    ground.file("repo/.git/worktrees/proj/commondir", "../..\n");
    ground.file("home/proj/.git", &format!("gitdir: {own}\n"));
    let spec = ground.spec();

    let view = user(&spec).unwrap();
    assert!(!view.shows(&ground.path("repo/.git")));
    assert!(view.notes.iter().any(|note| note.contains("point back")), "{:?}", view.notes);

    ground.file("repo/.git/worktrees/proj/gitdir", &ground.path("elsewhere/.git"));
    assert!(!user(&spec).unwrap().shows(&ground.path("repo/.git")));

    ground.file("repo/.git/worktrees/proj/gitdir", &ground.path("home/proj/.git"));
    let view = user(&spec).unwrap();
    let access = |name: &str| shown(&view, &ground.path(name)).map(|place| place.access);
    assert_eq!(access("repo/.git"), Some(Access::ReadOnly));
    assert_eq!(access("repo/.git/objects"), Some(Access::ReadWrite));
    assert_eq!(access("repo/.git/refs"), Some(Access::ReadWrite));
    assert_eq!(access("repo/.git/worktrees/proj"), Some(Access::ReadWrite));
    assert_eq!(access("repo/.git/worktrees/proj/commondir"), Some(Access::ReadOnly));
    assert_eq!(access("repo/.git/hooks"), None);
    assert!(!view.shows(&ground.path("repo/src")));
}

#[test]
fn the_repository_of_a_linked_worktree_is_shown_only_if_nobody_else_owns_it() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: root: only root gives a directory to somebody else");
        return;
    }
    let ground = Ground::new("worktree-owner");
    let own = ground.directory("repo/worktrees/proj");
    ground.directory("repo/objects");
    ground.file("repo/HEAD", "ref: refs/heads/main\n");
    ground.file("repo/config", "[core]\n");
    ground.file("repo/worktrees/proj/gitdir", &ground.path("home/proj/.git"));
    ground.file("home/proj/.git", &format!("gitdir: {own}\n"));
    let spec = ground.spec();
    let give = |name: &str, uid| std::os::unix::fs::chown(ground.path(name), Some(uid), None);
    let by = |uid: u32| {
        let view = look(&spec, &fake::host(uid)).unwrap();
        let why = view.notes.into_iter().find(|note| note.contains("belongs to user 4242"));
        (view.places.iter().filter_map(Place::shown).any(|it| it.path == ground.path("repo")), why)
    };
    let parts = ["repo", "repo/objects", "repo/worktrees/proj", "repo/worktrees/proj/gitdir"];
    for name in parts.into_iter().chain(["home/proj/.git"]) {
        give(name, 4242).unwrap();
        for uid in [0, 1000] {
            let (is_shown, why) = by(uid);
            assert!(!is_shown && why.is_some(), "{name}, {uid}: {why:?}");
        }
        assert_eq!(by(4242), (true, None), "{name}: the caller's own");
        give(name, 0).unwrap();
        assert_eq!(by(0), (true, None), "{name}: the control");
    }
    for name in ["home/proj", "repo", "repo/objects"] {
        give(name, 4242).unwrap();
    }
    assert_eq!(by(0), (true, None), "of the workspace's owner");
}

#[test]
fn a_repository_that_a_command_made_up_holds_nobody_up() {
    let ground = Ground::new("made-up");
    let own = ground.directory("home/proj/fake/worktrees/x");
    ground.file("home/proj/.git", "gitdir: fake/worktrees/x\n");
    ground.file("home/proj/fake/HEAD", "ref: refs/heads/main\n");
    ground.file("home/proj/fake/worktrees/x/gitdir", &ground.path("home/proj/.git"));
    let config = ground.path("home/proj/fake/config");
    let spec = ground.spec();
    let writes_own = || shown(&user(&spec).unwrap(), &own).is_some();
    let in_time = |what: &str| {
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| done.send(writes_own()));
            let answer = ended.recv_timeout(std::time::Duration::from_secs(10));
            if answer.is_err() {
                // Let a reader go that waits, so that the test ends.
                let _ = fs::OpenOptions::new().write(true).open(&config);
            }
            answer.unwrap_or_else(|_| panic!("{what} holds the look up"))
        })
    };
    assert!(in_time("no configuration"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &config, rustix::fs::Mode::RWXU).unwrap();
    assert!(!in_time("a FIFO"));
    fs::remove_file(&config).unwrap();
    std::os::unix::fs::symlink("/dev/null", &config).unwrap();
    assert!(!in_time("a link to a device"));
}

#[test]
fn the_look_is_cheap() {
    let ground = Ground::new("cheap");
    let mut spec = ground.spec();
    let path = std::env::var_os("PATH").unwrap_or_default();
    spec.caller.env.insert(OsString::from("PATH"), path);
    spec.caller.home = std::env::var_os("HOME").map(PathBuf::from);
    let best = (0..50)
        .map(|_| {
            let start = std::time::Instant::now();
            std::hint::black_box(user(&spec)).unwrap();
            start.elapsed()
        })
        .min()
        .unwrap();
    println!("a look takes {best:?}");
    // The best of fifty, and far above what it takes: this host may be busy, and this is no
    // benchmark but a guard against reading a whole tree.
    assert!(best < std::time::Duration::from_millis(5), "{best:?}");
}
