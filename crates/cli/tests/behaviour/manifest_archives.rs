//! Sessions whose manifest unpacks archives of the host.

use crate::place::{PYTHON, Place, SOON, everyone, outcome, skipped};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

/// Makes an archive by a line of Python over `tar`, with `file(name, text, **more)` at hand.
fn archive(place: &Place, name: &str, how: &str, lines: &str) {
    let prelude = "import io, sys, tarfile\n\
        def file(name, text='x', **more):\n    \
            info = tarfile.TarInfo(name); info.size = len(text); info.mode = 0o640\n    \
            for key, value in more.items(): setattr(info, key, value)\n    \
            tar.addfile(info, io.BytesIO(text.encode()))\n\
        def other(name, kind, target=''):\n    \
            file(name, '', type=kind, linkname=target, mode=0o755)\n\
        S, H, D, C, F = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, \
        tarfile.FIFOTYPE\n";
    let path = place.base.join(name);
    let program =
        format!("{prelude}tar = tarfile.open(sys.argv[1], {how:?})\n{lines}\ntar.close()");
    let said = std::process::Command::new(PYTHON).arg("-c").arg(program).arg(&path).output();
    let said = said.unwrap();
    assert!(said.status.success(), "{said:?}");
    place.give(&path);
}

fn has_python() -> bool {
    let has = Path::new(PYTHON).exists();
    if !has {
        skipped("archives in manifests", "there is no Python to make them");
    }
    has
}

fn manifest(place: &Place, from: &str, more: &str) -> String {
    let fine = "[[entries]]\ntype = \"file\"\npath = \"fine\"\ntext = \"x\"\n";
    let entry = "[[entries]]\ntype = \"archive\"\npath = \"un/packed\"";
    let file = place.base.join("m.toml");
    fs::write(&file, format!("version = 1\n{fine}{entry}\nfrom = {from:?}\n{more}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

fn sha256(path: &Path) -> String {
    let said = outcome(std::process::Command::new("sha256sum").arg(path), SOON);
    said.text().split(' ').next().unwrap().to_owned()
}

fn is_refused(place: &Place, file: &str, word: &str) {
    let said = place.say(&["create", "--name", "s", "--manifest", file]);
    assert!(matches!(said.code(), Some(1 | 2)), "{said:?}");
    assert!(said.stderr.contains(word), "{word}: {said:?}");
    assert_eq!(place.says(&["ls", "--json"], 0).object()["sessions"], serde_json::json!([]));
    assert_eq!(fs::read_dir(&place.workspace).unwrap().count(), 0, "{word}");
    let staged = fs::read_dir(place.state.join("staging")).into_iter().flatten();
    assert_eq!(staged.count(), 0, "{word}");
}

/// A tree below one directory, as releases are packed.
const RELEASE: &str = "other('top', D)\nfile('top/run', '#!/bin/sh\\necho ran\\n', mode=0o755)\n\
    file('top/deep/er/data', 'y' * 100000)\nother('top/link', S, 'deep/er/data')\n\
    other('top/again', H, 'top/run')\nfile('top/suid', 'x', mode=0o4755)\nother('top/empty', D)";

#[test]
fn a_workspace_holds_what_an_archive_holds() {
    if !has_python() {
        return;
    }
    everyone(|place| {
        archive(place, "plain.tar", "w", RELEASE);
        archive(place, "packed.tgz", "w:gz", RELEASE);
        let packed = place.base.join("packed.tgz");
        for (from, strip, top) in [
            ("plain.tar", "", "un/packed/top"),
            ("packed.tgz", "strip_components = 1", "un/packed"),
        ] {
            let hash = sha256(&place.base.join(from)).to_uppercase();
            let file = manifest(place, from, &format!("{strip}\nsha256 = {hash:?}"));
            place.says(&["create", "--name", "s", "--manifest", &file], 0);
            let at = place.workspace.join(top);
            let run = format!("{top}/run && {top}/again");
            assert_eq!(place.says(&["exec", "s", "--shell", &run], 0).text(), "ran\nran\n");
            assert_eq!(fs::read(at.join("link")).unwrap(), [b'y'; 100_000]);
            let mode = |name: &str| fs::metadata(at.join(name)).unwrap().mode() & 0o7777;
            assert_eq!((mode("run"), mode("suid"), mode("deep/er/data")), (0o755, 0o755, 0o640));
            assert_eq!(fs::metadata(at.join("run")).unwrap().uid(), place.uid());
            assert!(at.join("empty").is_dir());
            assert_eq!(fs::metadata(at.join("again")).unwrap().nlink(), 1, "a copy");
            // It is brought once, and what is there as it says stays in another session.
            place.write(&format!("{top}/late"), "late");
            fs::remove_file(at.join("link")).unwrap();
            place.says(&["ensure", "s", "--manifest", &file], 0);
            assert!(!at.join("link").exists());
            place.says(&["rm", "s"], 0);
            place.says(&["create", "--name", "s", "--manifest", &file], 0);
            assert!(at.join("link").exists() && at.join("late").exists());
            place.says(&["rm", "s"], 0);
            fs::write(at.join("run"), "mine").unwrap();
            let said = place.says(&["create", "--name", "s", "--manifest", &file], 1);
            assert!(said.stderr.contains("/run"), "{said:?}");
            fs::remove_dir_all(place.workspace.join("un")).unwrap();
            fs::remove_file(place.workspace.join("fine")).unwrap();
        }
        assert!(packed.exists());
    });
}

#[test]
fn an_archive_that_is_not_the_one_that_is_meant_is_not_unpacked() {
    if !has_python() {
        return;
    }
    everyone(|place| {
        archive(place, "a.tgz", "w:gz", RELEASE);
        let is = sha256(&place.base.join("a.tgz"));
        let wanted = "0123456789abcdef".repeat(4);
        let file = manifest(place, "a.tgz", &format!("sha256 = {wanted:?}"));
        is_refused(place, &file, &is);
        is_refused(place, &file, &wanted);
        // What is behind the archive counts, though no program unpacks it.
        let mut bytes = fs::read(place.base.join("a.tgz")).unwrap();
        bytes.extend([0; 20]);
        fs::write(place.base.join("longer"), bytes).unwrap();
        place.give(&place.base.join("longer"));
        let longer = manifest(place, "longer", &format!("sha256 = {is:?}"));
        is_refused(place, &longer, &is);
        for bad in ["sha256 = \"abc\"", "sha256 = \"../../../etc/passwd\"", "strip_components = 65"]
        {
            is_refused(place, &manifest(place, "a.tgz", bad), "un/packed");
        }
        is_refused(place, &manifest(place, "a.tgz", "strip_components = 9"), "more than 9 names");
        // The control.
        let file = manifest(place, "a.tgz", &format!("sha256 = {is:?}"));
        place.says(&["create", "--name", "s", "--manifest", &file], 0);
    });
}

#[test]
fn a_hostile_archive_is_refused_whole_and_reaches_nothing() {
    if !has_python() {
        return;
    }
    everyone(|place| {
        let secret = place.base.join("secret");
        fs::write(&secret, "outside\n").unwrap();
        place.give(&secret);
        let outside = secret.to_str().unwrap();
        for (lines, word) in [
            ("file('a/../../evil')".to_owned(), ".."),
            ("file('../evil')".to_owned(), ".."),
            ("file('/tmp/evil')".to_owned(), "absolute"),
            (format!("other('l', S, {outside:?})"), "absolute"),
            ("other('d/l', S, '../../../../secret')".to_owned(), "lead out"),
            ("other('l', S, '.')\nfile('l/evil')".to_owned(), "below"),
            (format!("other('l', S, {:?})\nfile('l/evil')", place.base), "below"),
            ("file('l/evil')\nother('l', S, '..')".to_owned(), "below"),
            (format!("other('h', H, {outside:?})"), "outside the archive"),
            ("other('h', H, '../../secret')".to_owned(), "outside the archive"),
            ("other('l', S, 'x')\nother('h', H, 'l')".to_owned(), "no file before it"),
            ("other('dev', C)".to_owned(), "a device"),
            ("other('pipe', F)".to_owned(), "a pipe"),
            ("file('twice')\nfile('./twice')".to_owned(), "twice"),
            ("file('.envrc')".to_owned(), ".envrc"),
            ("file('n' * 300)".to_owned(), "n"),
            ("file('/'.join('d' * 200))".to_owned(), "deep"),
            ("[other('d%d' % n, D) for n in range(50001)]".to_owned(), "more than 50000"),
        ] {
            archive(place, "evil.tgz", "w:gz", &format!("file('good')\n{lines}"));
            let file = manifest(place, "evil.tgz", "");
            if word == ".envrc" {
                // Protected at the top of a workspace alone.
                let text = fs::read_to_string(&file).unwrap().replace("un/packed", ".husky");
                fs::write(&file, text).unwrap();
                is_refused(place, &file, "protected");
                continue;
            }
            is_refused(place, &file, word);
        }
        for (bytes, word) in [
            (&b"no archive at all"[..], "evil.tgz"),
            (&b"\x1f\x8b\x08\x00garbage"[..], "evil.tgz"),
            (&b"\xfd7zXZ\x00rest"[..], "gzip, xz or Zstandard"),
            (&b""[..], "no end"),
        ] {
            fs::write(place.base.join("evil.tgz"), bytes).unwrap();
            is_refused(place, &manifest(place, "evil.tgz", ""), word);
        }
        symlink("evil.tgz", place.base.join("named")).unwrap();
        is_refused(place, &manifest(place, "named", ""), "no regular file");
        is_refused(place, &manifest(place, "missing", ""), "missing");
        is_refused(place, &manifest(place, "workspace", ""), "no regular file");
        for evil in [place.base.join("evil"), "/tmp/evil".into(), place.workspace.join("evil")] {
            assert!(!evil.exists(), "{evil:?}");
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "outside\n");
        // The control.
        archive(place, "good.tgz", "w:gz", "file('good')");
        let file = manifest(place, "good.tgz", "");
        place.says(&["create", "--name", "s", "--manifest", &file], 0);
        assert!(place.workspace.join("un/packed/good").exists());
    });
}
