//! Files that pass between this machine and a workspace.

use crate::place::{Place, everyone};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};

/// A place of the host's user, beside the workspace.
fn beside(place: &Place, name: &str) -> String {
    place.base.join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_file_is_the_same_on_both_sides_and_its_hash_is_told() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let (here, back) = (beside(place, "here"), beside(place, "back"));
        fs::write(&here, b"abc").unwrap();
        fs::set_permissions(&here, fs::Permissions::from_mode(0o755)).unwrap();
        // Of FIPS 180-4.
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let said = place.says(&["file", "upload", "s", &here, "d/there"], 0);
        assert_eq!(said.text(), format!("{hash}  3\n"));
        assert_eq!(said.stderr, "");
        let seen = place.says(&["exec", "s", "--shell", "cat d/there; stat -c %a d/there"], 0);
        assert_eq!(seen.text(), "abc755\n");
        place.says(&["file", "write", "s", "x"], 0);
        let said = place.says(&["file", "download", "s", "d/there", &back, "--json"], 0).object();
        assert_eq!((said["sha256"].as_str(), said["bytes"].as_u64()), (Some(hash), Some(3)));
        assert_eq!(fs::read(&back).unwrap(), b"abc");
        // What comes from inside is never executable here.
        assert_eq!(fs::metadata(&back).unwrap().permissions().mode() & 0o111, 0);
        place.says(&["file", "download", "s", "x", &back], 1);
        assert_eq!(fs::read(&back).unwrap(), b"abc");
        place.says(&["file", "download", "s", "x", &back, "--replace"], 0);
        assert_eq!(fs::read(&back).unwrap(), b"");
    });
}

#[test]
fn what_is_no_file_passes_in_no_direction_and_leaves_nothing() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let back = beside(place, "back");
        place.says(&["exec", "s", "--shell", "mkfifo pipe; mkdir d; ln -s /etc/passwd out"], 0);
        for name in ["pipe", "d", "out", "none", "../x"] {
            place.says(&["file", "download", "s", name, &back], 1);
        }
        let pipe = place.workspace.join("pipe");
        for local in [pipe.to_str().unwrap(), "/", "/none"] {
            place.says(&["file", "upload", "s", local, "got"], 1);
        }
        place.says(&["file", "stat", "s", "got"], 1);
        let left = |name: &str| name.contains(".cofferdam-") || name == "back";
        let names = fs::read_dir(&place.base).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(!names.into_iter().any(|name| left(name.to_str().unwrap())));
        // A link that waits at the place is replaced itself, and never written through.
        let other = beside(place, "other");
        fs::write(&other, "mine").unwrap();
        symlink(&other, &back).unwrap();
        place.says(&["exec", "s", "--shell", "echo theirs >f"], 0);
        place.says(&["file", "download", "s", "f", &back], 1);
        place.says(&["file", "download", "s", "f", &back, "--replace"], 0);
        assert_eq!(fs::read(&other).unwrap(), b"mine");
        // The control: it is a file now.
        assert_eq!(fs::read(&back).unwrap(), b"theirs\n");
    });
}

#[test]
fn holes_and_many_pieces_pass() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let (here, back) = (beside(place, "here"), beside(place, "back"));
        let file = fs::File::create(&here).unwrap();
        file.write_all_at(b"begin", 0).unwrap();
        file.write_all_at(b"end", 40 << 20).unwrap();
        place.says(&["file", "upload", "s", &here, "big"], 0);
        place.says(&["file", "download", "s", "big", &back], 0);
        assert!(fs::read(&here).unwrap() == fs::read(&back).unwrap());
    });
}
