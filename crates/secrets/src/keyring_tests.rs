//! A store whose key is in a keyring: a real one, on a bus of its own.

use crate::keyring::{Keyring, NoKeyring};
use crate::keys::KeyPlace;
use crate::store::SecretStore;
use crate::tests::{Stage, name, value};
use cofferdam_core::ErrorKind;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// A bus, and a keyring on it, which end with this.
struct Session {
    /// Keyring and bus.
    processes: Vec<Child>,
    address: String,
    home: Stage,
}

impl Session {
    /// A bus with nobody on it. `None` where this machine has no program for it.
    fn without_keyring() -> Option<Self> {
        let home = Stage::new();
        let mut bus = Command::new("dbus-daemon");
        bus.args(["--session", "--nofork", "--print-address"]).arg("--address");
        bus.arg(format!("unix:path={}", home.0.join("bus").display()));
        // Nobody is started when a name is called that nobody has.
        bus.env("XDG_DATA_DIRS", &home.0).env("XDG_DATA_HOME", &home.0);
        let Ok(mut bus) = bus.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
            println!("skipped: there is no dbus-daemon");
            return None;
        };
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim_end().to_owned();
        Some(Self { processes: vec![bus], address, home })
    }

    /// A bus with a keyring that is open. `None` where this machine has no programs for it.
    fn new() -> Option<Self> {
        // One that is asked too early, while it makes its first collection, is wrong for good.
        for _ in 0..20 {
            let mut session = Self::without_keyring()?;
            if session.start_keyring()? {
                return Some(session);
            }
        }
        panic!("no keyring comes up");
    }

    /// Whether it came up as it ought to.
    fn start_keyring(&mut self) -> Option<bool> {
        let mut keyring = Command::new("gnome-keyring-daemon");
        keyring.args(["--foreground", "--unlock", "--components=secrets", "--control-directory"]);
        keyring.arg(self.home.0.join("control"));
        keyring.env("DBUS_SESSION_BUS_ADDRESS", &self.address);
        for directory in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            keyring.env(directory, &self.home.0);
        }
        let keyring = keyring.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut keyring) = keyring.spawn() else {
            println!("skipped: there is no gnome-keyring-daemon");
            return None;
        };
        keyring.stdin.take().unwrap().write_all(b"password").unwrap();
        let said = keyring.stdout.take().unwrap();
        self.processes.insert(0, keyring);
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).unwrap();
        let made = self.home.0.join("keyrings/login.keyring");
        let is_up = || made.exists().then_some(()).and_then(|()| self.answers().ok());
        let begun = std::time::Instant::now();
        while begun.elapsed().as_secs() < 3 {
            if is_up().is_some() {
                return Some(true);
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        Some(false)
    }

    /// Processes of this bus that nobody here started: it knows the services of the system, too.
    fn started_by_the_bus(&self) -> Vec<rustix::process::Pid> {
        let mine = self.address.split(',').next().unwrap_or_default().as_bytes();
        let is_of_it = |pid: &i32| {
            let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            !mine.is_empty() && variables.windows(mine.len()).any(|part| part == mine)
        };
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let own = std::process::id().cast_signed();
        pids.filter(|pid| *pid != own && is_of_it(pid))
            .filter_map(rustix::process::Pid::from_raw)
            .collect()
    }

    fn answers(&self) -> Result<(), NoKeyring> {
        Ok(Keyring::connect(Some(&self.address))?.get("nothing").map(drop)?)
    }

    fn keyring(&self) -> Keyring {
        Keyring::connect(Some(&self.address)).unwrap()
    }

    fn store(&self, stage: &Stage) -> SecretStore {
        SecretStore::open_within(&stage.0, Some(self.address.clone())).unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
        for pid in self.started_by_the_bus() {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

fn key_file(stage: &Stage) -> String {
    fs::read_to_string(stage.0.join("secrets/key")).unwrap()
}

#[test]
fn a_new_store_has_its_key_in_the_keyring_and_nowhere_else() {
    let Some(session) = Session::new() else { return };
    let stage = Stage::new();
    let store = session.store(&stage);
    assert_eq!(store.key_place().unwrap(), None);
    store.put("", &name("A"), &value("hunter22"), 1).unwrap();
    assert_eq!(store.key_place().unwrap(), Some(KeyPlace::Keyring));
    assert_eq!(store.value("", &name("A")).unwrap().expose(), b"hunter22");
    // Whoever has the directory alone has nothing.
    assert!(key_file(&stage).starts_with("cofferdam secret key in keyring 1\n"));
    let alone = SecretStore::open_within(&stage.0, None).unwrap();
    let error = alone.value("", &name("A")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.hint.unwrap().contains("--move-to file"));
    assert_eq!(alone.put("", &name("B"), &value("hunter33"), 2).unwrap_err().kind, error.kind);
    // The same keyring again, by another process.
    assert_eq!(session.store(&stage).list("").unwrap().len(), 1);
    let other = Session::new().unwrap();
    let error = other.store(&stage).value("", &name("A")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound, "another keyring has another key");
}

#[test]
fn a_locked_keyring_is_an_error_and_never_a_file() {
    let Some(session) = Session::new() else { return };
    let (old, new) = (Stage::new(), Stage::new());
    session.store(&old).put("", &name("A"), &value("hunter22"), 1).unwrap();
    session.keyring().lock();
    for attempt in [
        session.store(&old).value("", &name("A")).map(drop),
        session.store(&old).put("", &name("B"), &value("hunter33"), 2).map(drop),
        session.store(&old).move_key(KeyPlace::File),
        session.store(&new).put("", &name("A"), &value("hunter22"), 1).map(drop),
    ] {
        let error = attempt.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied);
        assert!(error.message.contains("locked") && error.hint.is_some(), "{error:?}");
    }
    assert_eq!(session.store(&new).key_place().unwrap(), None, "nothing was written");
    assert_eq!(session.store(&old).key_place().unwrap(), Some(KeyPlace::Keyring));
}

#[test]
fn a_key_is_moved_when_somebody_says_so() {
    let Some(session) = Session::new() else { return };
    let stage = Stage::new();
    let without = SecretStore::open_within(&stage.0, None).unwrap();
    without.put("", &name("A"), &value("hunter22"), 1).unwrap();
    let text = key_file(&stage);
    let store = session.store(&stage);
    store.put("", &name("B"), &value("hunter33"), 2).unwrap();
    assert_eq!(key_file(&stage), text, "what is in a file stays there");
    store.move_key(KeyPlace::Keyring).unwrap();
    store.move_key(KeyPlace::Keyring).unwrap();
    assert_eq!(store.key_place().unwrap(), Some(KeyPlace::Keyring));
    let digits = text.lines().nth(1).unwrap();
    assert!(!key_file(&stage).contains(digits));
    assert_eq!(store.value("", &name("A")).unwrap().expose(), b"hunter22");
    let item = key_file(&stage).lines().nth(1).unwrap().to_owned();
    assert!(session.keyring().get(&item).unwrap().is_some());
    store.move_key(KeyPlace::File).unwrap();
    assert_eq!(key_file(&stage), text);
    assert_eq!(session.keyring().get(&item).unwrap(), None, "the keyring forgets it");
    assert_eq!(without.value("", &name("B")).unwrap().expose(), b"hunter33");
}

/// The name that a keyring has the key by, too.
fn also(stage: &Stage) -> Option<String> {
    let text = key_file(stage);
    Some(text.lines().nth(2)?.strip_prefix("and in keyring ")?.to_owned())
}

#[test]
fn a_key_is_never_nowhere_whatever_the_disk_does_not_confirm() {
    let Some(session) = Session::new() else { return };
    for (to, confirmed) in
        [(KeyPlace::Keyring, 0), (KeyPlace::Keyring, 1), (KeyPlace::File, 0), (KeyPlace::File, 1)]
    {
        let stage = Stage::new();
        let store = session.store(&stage);
        let alone = SecretStore::open_within(&stage.0, None).unwrap();
        let from = if to == KeyPlace::File { &store } else { &alone };
        from.put("", &name("A"), &value("hunter22"), 1).unwrap();
        store.place.confirmed.store(confirmed, std::sync::atomic::Ordering::Relaxed);
        let error = store.move_key(to).unwrap_err();
        assert!(error.message.contains("did not confirm"), "{error:?}");
        // A power loss would have brought back what was there before, too.
        assert_eq!(
            store.value("", &name("A")).unwrap().expose(),
            b"hunter22",
            "{to:?} {confirmed}"
        );
        store.move_key(to).unwrap();
        assert_eq!(store.key_place().unwrap(), Some(to));
        assert_eq!(also(&stage), None, "{to:?} {confirmed}");
        assert_eq!(session.store(&stage).value("", &name("A")).unwrap().expose(), b"hunter22");
    }
}

#[test]
fn a_move_that_was_cut_off_is_ended_by_the_next_one() {
    let Some(session) = Session::new() else { return };
    let stage = Stage::new();
    let store = session.store(&stage);
    store.put("", &name("A"), &value("hunter22"), 1).unwrap();
    let item = key_file(&stage).lines().nth(1).unwrap().to_owned();
    let text = session.keyring().get(&item).unwrap().unwrap();
    // As after a crash amid a move into the file: the keyring has it still.
    let half = [&text[..], format!("and in keyring {item}\n").as_bytes()].concat();
    fs::write(stage.0.join("secrets/key"), &half).unwrap();
    assert_eq!(store.key_place().unwrap(), Some(KeyPlace::File));
    store.put("", &name("B"), &value("hunter33"), 2).unwrap();
    assert_eq!(also(&stage).as_ref(), Some(&item), "only a move ends one");
    store.move_key(KeyPlace::File).unwrap();
    assert_eq!((also(&stage), session.keyring().get(&item).unwrap()), (None, None));
    assert_eq!(store.value("", &name("A")).unwrap().expose(), b"hunter22");
    // Or amid one into the keyring: the same item is taken.
    fs::write(stage.0.join("secrets/key"), &half).unwrap();
    store.move_key(KeyPlace::Keyring).unwrap();
    assert_eq!(key_file(&stage).lines().nth(1), Some(&*item));
    assert_eq!(store.value("", &name("B")).unwrap().expose(), b"hunter33");
}

#[test]
fn without_a_keyring_the_key_is_in_a_file() {
    let Some(session) = Session::without_keyring() else { return };
    let stage = Stage::new();
    session.store(&stage).put("", &name("A"), &value("hunter22"), 1).unwrap();
    assert_eq!(session.store(&stage).key_place().unwrap(), Some(KeyPlace::File));
    let error = session.store(&stage).move_key(KeyPlace::Keyring).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(session.store(&stage).key_place().unwrap(), Some(KeyPlace::File));
    // A bus that is gone is none.
    let gone = Stage::new();
    let store = SecretStore::open_within(&gone.0, Some("unix:path=/nonexistent/bus".to_owned()));
    store.unwrap().put("", &name("A"), &value("hunter22"), 1).unwrap();
    assert!(key_file(&gone).starts_with("cofferdam secret key 1\n"));
}

#[test]
fn a_keyring_that_keeps_silent_is_not_waited_for() {
    let stage = Stage::new();
    let path = stage.0.join("bus");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let address = format!("unix:path={}", path.display());
    let store = SecretStore::open_within(&stage.0, Some(address)).unwrap();
    store.put("", &name("A"), &value("hunter22"), 1).unwrap();
    assert_eq!(store.key_place().unwrap(), Some(KeyPlace::File));
    drop(listener);
}
