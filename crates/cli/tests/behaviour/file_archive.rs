//! Archives out of a workspace and into it, as the command and the system's tar make and read them.

use crate::place::{Place, SOON, everyone, outcome, skipped};
use crate::schema::is_valid;
use std::fs;
use std::path::Path;

/// `file import` with what is in a file of the host.
fn import(place: &Place, session: &str, archive: &Path, more: &[&str], code: i32) -> String {
    let words: Vec<&str> = [&["file", "import", session], more].concat();
    let input = fs::File::open(archive).unwrap();
    let said = outcome(place.cofferdam(&words).stdin(input), SOON);
    assert_eq!(said.code(), Some(code), "as {}: {words:?}: {said:?}", place.uid());
    said.stderr
}

/// `file export` into a file of the host.
fn export(place: &Place, words: &[&str], archive: &Path, code: i32) -> String {
    let said = place.says(&[&["file", "export"], words].concat(), code);
    fs::write(archive, &said.stdout).unwrap();
    said.stderr
}

/// What a line of shell says on the host, as whoever runs the tests.
fn host(line: &str) -> String {
    let said = std::process::Command::new("/bin/sh").args(["-ec", line]).output().unwrap();
    assert!(said.status.success(), "{line}: {said:?}");
    String::from_utf8(said.stdout).unwrap()
}

/// Names, kinds, permissions, targets and bytes of all that is in a directory.
const LOOK: &str = "find . -mindepth 1 -printf '%P %y %m %l\\n' | sort; \
                    find . -type f -print0 | sort -z | xargs -0 sha256sum";

#[test]
fn a_tree_is_the_same_in_another_session_and_for_the_systems_tar() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let tree = "mkdir -p t/d/e t/empty; printf '\\000\\377' >t/d/bytes; echo run >t/run; \
                    chmod 751 t/run; chmod 710 t/d; ln -s /etc/passwd t/out; ln -s d/bytes t/in; \
                    head -c 70000 /dev/zero >t/d/e/zeros; cd t; \
                    touch $(printf 'n%.0s' $(seq 200)) 'a name'; touch -d @1000000000 run";
        place.says(&["exec", "s", "--shell", tree], 0);
        let look = |session: &str, directory: &str| {
            let line = format!("cd {directory}; {LOOK}");
            place.says(&["exec", session, "--shell", &line], 0).text()
        };
        let (plain, packed) = (place.base.join("t.tar"), place.base.join("t.tgz"));
        assert_eq!(export(place, &["s", "t"], &plain, 0), "");
        export(place, &["s", "t", "--gzip"], &packed, 0);
        place.says(&["create", "--name", "o", "--no-workspace"], 0);
        assert_eq!(import(place, "o", &plain, &["new/place"], 0), "");
        import(place, "o", &packed, &["second", "--gzip"], 0);
        // What it is packed with is seen; one who says so is told where it is not.
        import(place, "o", &packed, &["third"], 0);
        let said = import(place, "o", &plain, &["fourth", "-z"], 1);
        assert!(said.contains("gzip did not compress") && said.contains("Leave --gzip"), "{said}");
        let first = look("s", "t");
        assert!(first.contains("run f 751"), "{first}");
        assert_eq!(look("o", "new/place"), first);
        assert_eq!(look("o", "second"), first);
        assert_eq!(look("o", "third"), first);
        // The control: the system's own program reads it, and makes one that is read.
        let (plain, unpacked) = (plain.display(), place.base.join("unpacked"));
        let at = unpacked.display();
        let said =
            host(&format!("mkdir {at}; tar -xpf {plain} -C {at} --no-same-owner; cd {at}; {LOOK}"));
        assert_eq!(said, first);
        assert_eq!(host(&format!("stat -c %Y {at}/run")), "1000000000\n");
        match Path::new("/usr/bin/xz").exists() {
            false => skipped("xz", "the host's program packs an archive for this test"),
            true => {
                let packed = place.base.join("t.tar.xz");
                host(&format!("xz -c {plain} > {}", packed.display()));
                import(place, "o", &packed, &["by-xz"], 0);
                assert_eq!(look("o", "by-xz"), first);
            }
        }
        for format in ["gnu", "pax", "ustar", "v7"] {
            let theirs = place.base.join(format);
            let name = theirs.display();
            // The oldest formats have no room for the long name.
            host(&format!("cd {at}; tar --format={format} -cf {name} --exclude='nnn*' ."));
            import(place, "o", &theirs, &[&format!("their-{format}")], 0);
            let kept: Vec<&str> = first.lines().filter(|line| !line.contains("nnn")).collect();
            let got = look("o", &format!("their-{format}"));
            assert_eq!(got.lines().collect::<Vec<_>>(), kept, "{format}");
        }
    });
}

#[test]
fn what_is_no_file_is_named_and_left_out_of_an_archive() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let tree = "mkdir t; echo x >t/f; mkfifo t/pipe; ln -s /proc/self/environ t/out; \
                    mkdir t/closed; echo y >t/closed/f; chmod 0 t/closed";
        place.says(&["exec", "s", "--shell", tree], 0);
        let archive = place.base.join("t.tar");
        let said = export(place, &["s", "t"], &archive, 1);
        assert!(said.contains("pipe") && said.contains("being a fifo"), "{said}");
        assert!(said.contains("closed") && said.contains("cannot be read"), "{said}");
        let names = host(&format!("tar -tf {} | sort", archive.display()));
        assert_eq!(names, "closed/\nf\nout\n");
        for bad in ["none", "../x", "t/out/x"] {
            assert!(export(place, &["s", bad], &archive, 1).contains(bad));
        }
        export(place, &["s", "t", "--max-bytes", "1"], &archive, 1);
    });
}

#[test]
fn an_archive_of_anybody_is_imported_whole_or_changes_nothing() {
    everyone(|place| {
        fs::create_dir_all(place.workspace.join(".git/hooks")).unwrap();
        fs::write(place.workspace.join(".git/config"), "").unwrap();
        host(&format!("chown -R {0}:{0} {1}", place.uid(), place.workspace.join(".git").display()));
        place.says(&["create", "--name", "s"], 0);
        let made = |name: &str, line: &str| {
            let (at, archive) = (place.base.join(name), place.base.join(format!("{name}.tar")));
            let (at, out) = (at.display(), archive.display());
            host(&format!("mkdir {at}; cd {at}; echo x >a; echo y >b; OUT={out}; {line}"));
            archive
        };
        let names = || place.says(&["exec", "s", "--shell", "find . | sort"], 0).text();
        let before = names();
        for (code, name, line, word) in [
            (1, "absolute", "tar -P --transform 's,^b,/b,' -cf $OUT a b", "absolute"),
            (1, "up", "tar -P --transform 's,^b,../b,' -cf $OUT a b", "goes up"),
            (1, "pipe", "mkfifo p; tar -cf $OUT a p", "a pipe"),
            (1, "twice", "tar -cf $OUT a; tar -rf $OUT a", "twice"),
            (1, "sparse", "truncate -s 1G h; tar -S --format=gnu -cf $OUT a h", "sparse"),
            (1, "pax", "truncate -s 1G h; tar -S --format=pax -cf $OUT a h", "sparse"),
            (1, "further", "ln a h; tar -cf $OUT h a; tar --delete -f $OUT h", "no file before it"),
            (1, "cut", "tar -cf whole a b; head -c 2000 whole >$OUT", "no end"),
            (1, "other", "echo nothing >$OUT", "no tar archive"),
            (
                1,
                "hooks",
                "mkdir -p .git/hooks; echo x >.git/hooks/pre-push; tar -cf $OUT a .git",
                "protected",
            ),
        ] {
            let said = import(place, "s", &made(name, line), &["--replace"], code);
            // It is the archive that is wrong, and no word of the command line.
            let is_told = said.contains(word) && said.contains("failed to work on the files");
            assert!(is_told, "{name}: {said}");
            assert_eq!(names(), before, "{name}");
        }
        // A link of the workspace on the way leads nowhere.
        let outside = place.base.join("outside");
        host(&format!("mkdir -m 777 {}", outside.display()));
        let link = format!("ln -s {} d", outside.display());
        place.says(&["exec", "s", "--shell", &link], 0);
        let below = made("below", "mkdir d; echo x >d/x; tar -cf $OUT d/x");
        import(place, "s", &below, &["--replace"], 1);
        import(place, "s", &below, &["d", "--replace"], 1);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        // The control: what is good is imported, and refused where it is already.
        let good = made("good", "chmod 4755 a; tar -cf $OUT a b");
        let said = import(place, "s", &good, &["new"], 0);
        assert!(said.contains("set-id"), "{said}");
        let seen = place.says(&["exec", "s", "--shell", "stat -c %a new/a"], 0);
        assert_eq!(seen.text(), "755\n");
        import(place, "s", &good, &["new"], 1);
        let input = fs::File::open(&good).unwrap();
        let words = ["file", "import", "s", "told", "--json"];
        let told = outcome(place.cofferdam(&words).stdin(input), SOON).object();
        is_valid(place, "file-imported", &told);
        assert_eq!((told["files"].as_u64(), told["bytes"].as_u64()), (Some(2), Some(4)));
        import(place, "s", &good, &["new", "--replace"], 0);
    });
}
