//! A package manager in a session on a root file system, fed from a directory of the host.

use crate::place::{Place, Said, everyone, outcome, skipped};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Names a root file system of Debian: a directory, or a tar file as `mmdebstrap --variant=apt` writes it.
const ROOT: &str = "TEST_COFFERDAM_DEBIAN";
/// It is unpacked, which takes a busy machine its time.
const LATE: Duration = Duration::from_secs(900);

fn host(program: &str, words: &[&str], directory: &Path) -> Vec<u8> {
    let said = Command::new(program).args(words).current_dir(directory).output().unwrap();
    assert!(said.status.success(), "{program}: {said:?}");
    said.stdout
}

/// A directory with one package and its list, as a mirror has them.
fn mirror(place: &Place, configure: &str) {
    let package = place.base.join("package");
    for directory in ["DEBIAN", "usr/bin"] {
        fs::create_dir_all(package.join(directory)).unwrap();
    }
    let program = |name: &str, text: &str| {
        fs::write(package.join(name), format!("#!/bin/sh\nset -e\n{text}\n")).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(package.join(name), mode).unwrap();
    };
    let control = "Package: cofferdam-thing\nVersion: 1.0\nArchitecture: all\n\
                   Maintainer: Nobody <nobody@example.com>\nDescription: a thing\n";
    fs::write(package.join("DEBIAN/control"), control).unwrap();
    program("DEBIAN/postinst", configure);
    program("usr/bin/cofferdam-thing", "echo the thing runs");
    fs::create_dir_all(place.base.join("mirror")).unwrap();
    let words = ["--root-owner-group", "-b", "package", "mirror/thing_1.0_all.deb"];
    host("dpkg-deb", &words, &place.base);
    let mirror = place.base.join("mirror");
    let (name, file) = ("thing_1.0_all.deb", mirror.join("thing_1.0_all.deb"));
    let hash = String::from_utf8(host("sha256sum", &[name], &mirror)).unwrap();
    let hash = hash.split(' ').next().unwrap();
    let size = fs::metadata(file).unwrap().len();
    let list = format!("{control}Filename: ./{name}\nSize: {size}\nSHA256: {hash}\n");
    fs::write(mirror.join("Packages"), list).unwrap();
    let text = "version = 1\n[[entries]]\ntype = \"mount\"\npath = \"mirror\"\nfrom = \"mirror\"\n";
    fs::write(place.base.join("m.toml"), text).unwrap();
}

fn says(place: &Place, words: &[&str]) -> Said {
    let said = outcome(&mut place.cofferdam(words), LATE);
    assert_eq!(said.code(), Some(0), "as {}: {words:?}: {said:?}", place.uid());
    said
}

#[test]
fn packages_are_installed_inside_from_a_directory_of_the_host() {
    let Some(root) = std::env::var_os(ROOT).and_then(|root| root.into_string().ok()) else {
        return skipped("apt-get inside", &format!("{ROOT} names no root file system of Debian"));
    };
    if !Path::new("/usr/bin/dpkg-deb").exists() {
        return skipped("apt-get inside", "there is no dpkg-deb to make a package");
    }
    everyone(|place| {
        let image = if Path::new(&root).is_dir() { root.clone() } else { format!("tar:{root}") };
        // As an ordinary user there is no other user inside: neither for a package nor for apt.
        let (configure, owner, apt) = match place.is_root() {
            true => ("id -u >/etc/thing; chown 33:33 /etc/thing", "33:33", "apt-get"),
            false => ("id -u >/etc/thing", "0:0", "apt-get -o APT::Sandbox::User=root"),
        };
        mirror(place, configure);
        let manifest = place.base.join("m.toml");
        let made = ["create", "--name", "s", "--image", &image, "--user", "root", "--manifest"];
        says(place, &[&made[..], &[manifest.to_str().unwrap()]].concat());
        let source = "rm -rf /etc/apt/sources.list.d; echo 'deb [trusted=yes] \
                      file:/workspace/mirror ./' >/etc/apt/sources.list";
        let install = format!("{apt} update && {apt} install -y cofferdam-thing");
        says(place, &["exec", "s", "--shell", &format!("{source}; {install}")]);
        let look = "cofferdam-thing; stat -c %u:%g /etc/thing; cat /etc/thing; \
                    dpkg-query -W -f '${Status}\\n' cofferdam-thing";
        let expected = format!("the thing runs\n{owner}\n0\ninstall ok installed\n");
        assert_eq!(says(place, &["exec", "s", "--shell", look]).text(), expected);
        // It is there after the sandbox, and nothing of it is outside.
        says(place, &["pause", "s"]);
        says(place, &["resume", "s"]);
        assert_eq!(says(place, &["exec", "s", "--shell", look]).text(), expected);
        assert!(!Path::new("/usr/bin/cofferdam-thing").exists());
        // The control: the mirror itself cannot be changed, whoever one is inside.
        let said = place.say(&["exec", "s", "--shell", "echo >>/workspace/mirror/Packages"]);
        assert_ne!(said.code(), Some(0), "{said:?}");
        says(place, &["rm", "s"]);
    });
}
