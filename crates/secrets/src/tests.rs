use crate::store::{Listed, SecretStore};
use cofferdam_core::ErrorKind;
use cofferdam_core::secret::{SecretName, SecretValue};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A state directory, gone with its test.
pub(crate) struct Stage(pub(crate) PathBuf);

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Stage {
    pub(crate) fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cofferdam-secrets-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> SecretStore {
        SecretStore::open_within(&self.0, None).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.join("secrets")).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn of_secrets(&self) -> Vec<PathBuf> {
        let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "secret");
        self.files().into_iter().filter(is_one).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn name(text: &str) -> SecretName {
    SecretName::new(text).unwrap()
}

pub(crate) fn value(text: &str) -> SecretValue {
    SecretValue::new(text.as_bytes().to_vec()).unwrap()
}

#[test]
fn a_secret_is_kept_until_it_is_removed() {
    let stage = Stage::new();
    assert_eq!(stage.store().list("").unwrap(), []);
    stage.store().put("", &name("B"), &value("hunter22"), 1).unwrap();
    stage.store().put("", &name("A"), &value("hunter33"), 2).unwrap();
    let changed = stage.store().put("", &name("B"), &value("hunter44"), 3).unwrap();
    assert_eq!((changed.created_ms, changed.changed_ms), (1, 3));
    assert_eq!(stage.store().value("", &name("B")).unwrap(), value("hunter44"));
    let names = |stage: &Stage| -> Vec<String> {
        stage.store().list("").unwrap().into_iter().map(|secret| secret.name).collect()
    };
    assert_eq!(names(&stage), ["A", "B"]);
    stage.store().remove("", &name("B")).unwrap();
    assert_eq!(names(&stage), ["A"]);
    let again = stage.store().remove("", &name("B")).unwrap_err();
    let gone = stage.store().value("", &name("B")).unwrap_err();
    assert_eq!((again.kind, gone.kind), (ErrorKind::NotFound, ErrorKind::NotFound));
}

#[test]
fn secrets_of_one_owner_do_not_exist_for_another() {
    let stage = Stage::new();
    let store = stage.store();
    store.put("ci", &name("T"), &value("of-ci"), 1).unwrap();
    assert_eq!(store.value("", &name("T")).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(store.remove("other", &name("T")).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(store.list("other").unwrap(), []);
    store.put("", &name("T"), &value("mine"), 1).unwrap();
    assert_eq!(store.value("ci", &name("T")).unwrap(), value("of-ci"));
}

#[test]
fn nothing_of_another_owners_secret_is_decrypted_for_a_list() {
    let stage = Stage::new();
    let store = stage.store();
    store.put("ci", &name("T"), &value("of-ci"), 1).unwrap();
    let of_ci = stage.of_secrets().remove(0);
    store.put("", &name("U"), &value("mine"), 1).unwrap();
    let mut bytes = fs::read(&of_ci).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&of_ci, bytes).unwrap();
    // Who decrypts it finds that it is damaged: its owner does, and nobody else.
    let names: Vec<String> = store.list("").unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["U"]);
    store.put("", &name("V"), &value("mine-too"), 1).unwrap();
    assert_eq!(store.list("ci").unwrap_err().kind, ErrorKind::Conflict, "control");
}

#[test]
fn all_secrets_of_an_owner_go_at_once_and_no_others() {
    let stage = Stage::new();
    let store = stage.store();
    for (owner, text) in [("ci", "A"), ("ci", "B"), ("", "A"), ("cia", "A")] {
        store.put(owner, &name(text), &value("hunter22"), 1).unwrap();
    }
    assert_eq!(store.remove_all("ci").unwrap(), 2);
    assert_eq!(store.remove_all("ci").unwrap(), 0);
    assert_eq!(store.list("ci").unwrap(), []);
    assert_eq!(store.value("ci", &name("A")).unwrap_err().kind, ErrorKind::NotFound);
    for owner in ["", "cia"] {
        assert_eq!(store.value(owner, &name("A")).unwrap(), value("hunter22"), "{owner:?}");
    }
}

#[test]
fn no_file_holds_a_value_and_no_file_is_open_to_others() {
    let stage = Stage::new();
    stage.store().put("", &name("T"), &value("hunter22"), 1).unwrap();
    assert_eq!(stage.files().len(), 4);
    for file in stage.files() {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(8).any(|part| part == b"hunter22"), "{file:?}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
    let directory = fs::metadata(stage.0.join("secrets")).unwrap();
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
    // The control: it is found where it is.
    let planted = stage.0.join("secrets/planted");
    fs::write(&planted, "xhunter22x").unwrap();
    assert!(fs::read(&planted).unwrap().windows(8).any(|part| part == b"hunter22"));
}

#[track_caller]
fn refused(stage: &Stage, path: &Path, kind: ErrorKind) {
    for error in [
        stage.store().value("", &name("T")).unwrap_err(),
        stage.store().list("").unwrap_err(),
        stage.store().put("", &name("T"), &value("other"), 2).unwrap_err(),
    ] {
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(error.hint.is_some());
    }
}

#[test]
fn a_damaged_secret_is_an_error_that_names_its_file() {
    let stage = Stage::new();
    stage.store().put("", &name("T"), &value("hunter22"), 1).unwrap();
    let file = stage.of_secrets().remove(0);
    let whole = fs::read(&file).unwrap();
    for at in [0, 8, 14, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&file, changed).unwrap();
        refused(&stage, &file, ErrorKind::Conflict);
    }
    for length in [0, 5, 20, whole.len() - 1] {
        fs::write(&file, &whole[..length]).unwrap();
        refused(&stage, &file, ErrorKind::Conflict);
    }
    fs::write(&file, vec![b'x'; 1 << 20]).unwrap();
    refused(&stage, &file, ErrorKind::Conflict);
    stage.store().remove("", &name("T")).unwrap();
    stage.store().put("", &name("T"), &value("hunter22"), 1).unwrap();
}

#[test]
fn a_damaged_secret_is_named_and_keeps_nobody_from_the_others() {
    let stage = Stage::new();
    let store = stage.store();
    store.put("", &name("T"), &value("hunter22"), 1).unwrap();
    let file = stage.of_secrets().remove(0);
    store.put("", &name("U"), &value("hunter33"), 1).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, &bytes).unwrap();
    let look = || {
        let Listed { secrets, damaged } = stage.store().look("").unwrap();
        let names: Vec<String> = secrets.into_iter().map(|secret| secret.name).collect();
        let hints: Vec<String> = damaged.into_iter().map(|error| error.hint.unwrap()).collect();
        (names, hints)
    };
    let (names, hints) = look();
    assert_eq!((names, hints.len()), (vec!["U".to_owned()], 1));
    assert!(hints[0].contains("cofferdam secret rm T"), "{hints:?}");
    store.put("", &name("V"), &value("hunter44"), 1).unwrap();
    assert!(store.has("", &name("V")).unwrap() && !store.has("", &name("W")).unwrap());
    assert_eq!(store.has("", &name("T")).unwrap_err().kind, ErrorKind::Conflict);
    // What does not stand where such a name would is told by its file alone.
    fs::rename(&file, stage.0.join("secrets/0.secret")).unwrap();
    let (names, hints) = look();
    assert_eq!((names.len(), hints.len()), (2, 1));
    assert!(hints[0].contains("move the file away"), "{hints:?}");
}

#[test]
fn a_secret_under_the_name_of_another_is_refused() {
    let stage = Stage::new();
    stage.store().put("", &name("T"), &value("hunter22"), 1).unwrap();
    let file = stage.of_secrets().remove(0);
    stage.store().put("", &name("U"), &value("hunter33"), 1).unwrap();
    let other = stage.of_secrets().into_iter().find(|path| *path != file).unwrap();
    fs::copy(&other, &file).unwrap();
    refused(&stage, &file, ErrorKind::Conflict);
}

#[test]
fn what_is_no_plain_private_file_of_ours_is_refused() {
    let stage = Stage::new();
    stage.store().put("", &name("T"), &value("hunter22"), 1).unwrap();
    let file = stage.of_secrets().remove(0);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    refused(&stage, &file, ErrorKind::Denied);
    let away = stage.0.join("away");
    fs::rename(&file, &away).unwrap();
    symlink(&away, &file).unwrap();
    refused(&stage, &file, ErrorKind::Conflict);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    refused(&stage, &file, ErrorKind::Conflict);
}

#[test]
fn a_key_that_is_open_to_others_missing_or_another_opens_nothing() {
    let stage = Stage::new();
    stage.store().put("", &name("T"), &value("hunter22"), 1).unwrap();
    let key = stage.0.join("secrets/key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    refused(&stage, &key, ErrorKind::Denied);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let right = fs::read_to_string(&key).unwrap();
    fs::write(&key, "nonsense").unwrap();
    refused(&stage, &key, ErrorKind::Conflict);
    let digit = if right.contains('0') { '0' } else { 'a' };
    fs::write(&key, right.replace(digit, if digit == '0' { "1" } else { "b" })).unwrap();
    let wrong = stage.store().value("", &name("T")).unwrap_err();
    assert_eq!(wrong.kind, ErrorKind::Conflict);
    fs::remove_file(&key).unwrap();
    refused(&stage, &key, ErrorKind::NotFound);
    fs::write(&key, right).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(stage.store().value("", &name("T")).unwrap(), value("hunter22"));
    fs::set_permissions(stage.0.join("secrets"), fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(SecretStore::open(&stage.0).unwrap_err().kind, ErrorKind::Denied);
}

#[test]
fn what_a_crash_left_half_made_is_no_secret_and_goes() {
    let stage = Stage::new();
    stage.store().put("", &name("T"), &value("hunter22"), 1).unwrap();
    let half = stage.0.join("secrets/.new-0123");
    fs::write(&half, "half").unwrap();
    // A first key whose second was not written is no key yet.
    assert_eq!(stage.store().list("").unwrap().len(), 1);
    stage.store().put("", &name("U"), &value("hunter33"), 1).unwrap();
    assert!(!half.exists());
}

#[test]
fn many_at_once_have_one_key_and_lose_nothing() {
    let stage = Stage::new();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let stage = &stage;
            scope.spawn(move || {
                for number in 0..5 {
                    let name = name(&format!("T{thread}-{number}"));
                    let value = value(&format!("value-{thread}-{number}"));
                    stage.store().put("", &name, &value, 1).unwrap();
                    assert_eq!(stage.store().value("", &name).unwrap(), value);
                }
            });
        }
    });
    assert_eq!(stage.store().list("").unwrap().len(), 30);
}

#[test]
fn the_number_of_secrets_of_an_owner_is_bounded() {
    let stage = Stage::new();
    let mut store = stage.store();
    store.most = 2;
    let put = |owner: &str, text: &str| store.put(owner, &name(text), &value("hunter22"), 1);
    let kind = |owner: &str, text: &str| put(owner, text).err().map(|error| error.kind);
    // Those of others count for others.
    for (owner, text, expected) in [
        ("", "A", None),
        ("ci", "A", None),
        ("", "B", None),
        ("", "C", Some(ErrorKind::Conflict)),
        ("", "B", None),
        ("ci", "B", None),
    ] {
        assert_eq!(kind(owner, text), expected, "{owner} {text}");
    }
    assert_eq!(kind(&"o".repeat(257), "A"), Some(ErrorKind::Usage));
}

#[test]
fn what_the_disk_did_not_confirm_is_told_as_written() {
    let stage = Stage::new();
    let store = stage.store();
    store.put("", &name("A"), &value("hunter22"), 1).unwrap();
    store.place.confirmed.store(0, Ordering::Relaxed);
    let error = store.put("", &name("A"), &value("hunter33"), 2).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(error.message.contains("is written, but the disk did not confirm"), "{error:?}");
    assert_eq!(store.value("", &name("A")).unwrap().expose(), b"hunter33");
}
