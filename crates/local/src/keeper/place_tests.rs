use super::*;
use crate::test_directory::TestDirectory;

fn state(directory: &TestDirectory) -> StateDirectory {
    StateDirectory::open(&directory.path().join("state")).unwrap()
}

fn id(text: &str) -> SandboxId {
    SandboxId::new(text).unwrap()
}

#[test]
fn an_id_is_used_once_until_it_is_forgotten() {
    let directory = TestDirectory::new("place-once");
    let state = state(&directory);
    assert!(Place::find(&state, &id("a")).unwrap().is_none());
    let (place, lock) = Place::make(&state, &id("a")).unwrap();
    assert_eq!(Place::make(&state, &id("a")).unwrap_err().kind, ErrorKind::Conflict);
    assert!(place.is_kept().unwrap());
    assert_eq!(place.take_over().unwrap_err().kind, ErrorKind::Conflict);
    drop(lock);
    assert!(!place.is_kept().unwrap());
    assert_eq!(Place::make(&state, &id("a")).unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(Place::all(&state).unwrap(), [id("a")]);
    let lock = place.take_over().unwrap();
    place.forget(&state).unwrap();
    place.forget(&state).unwrap();
    drop(lock);
    assert_eq!(Place::all(&state).unwrap(), []);
    Place::make(&state, &id("a")).unwrap();
}

#[test]
fn what_was_half_made_is_swept_once_its_maker_is_gone() {
    let directory = TestDirectory::new("place-sweep");
    let state = state(&directory);
    let folder = state.path().join(SESSIONS);
    let (place, lock) = Place::make(&state, &id("a")).unwrap();
    std::fs::rename(folder.join("a"), folder.join(".new-a-1")).unwrap();
    std::fs::create_dir(folder.join(".new-b-1")).unwrap();
    let (kept, _lock) = Place::make(&state, &id("c")).unwrap();
    assert_eq!(sweep_half_made(&state), (1, Vec::new()));
    drop(lock);
    assert_eq!(state.sweep().unwrap().sessions, 1);
    assert!(kept.is_kept().unwrap());
    assert_eq!(Place::all(&state).unwrap(), [id("c")]);
    drop(place);
}

#[test]
fn what_got_its_name_during_a_sweep_is_whole() {
    let directory = TestDirectory::new("place-race");
    let state = state(&directory);
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| {
            for turn in 0..400 {
                let (place, lock) = Place::make(&state, &id(&format!("r{turn}"))).unwrap();
                assert!(place.journal().unwrap().is_some(), "{turn}: its journal was swept");
                place.forget(&state).unwrap();
                drop(lock);
            }
        });
        while !maker.is_finished() {
            sweep_half_made(&state);
        }
    });
}

#[test]
fn only_the_very_process_that_was_noted_is_killed() {
    let directory = TestDirectory::new("place-first");
    let (place, _lock) = Place::make(&state(&directory), &id("a")).unwrap();
    place.await_first().unwrap();
    let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = i32::try_from(other.id()).unwrap();
    std::fs::write(place.path.join(FIRST), format!("{pid} 1")).unwrap();
    place.await_first().unwrap();
    assert!(other.try_wait().unwrap().is_none(), "another process has that number now");
    place.note_first(pid).unwrap();
    place.await_first().unwrap();
    assert_eq!(other.wait().unwrap().code(), None);
}
