//! What a command starts with: its words, its variables, its directory, its input.

use crate::place::{PYTHON, Place, SOON, everyone, outcome};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;

/// Prints its own words as hexadecimal numbers, one a line.
const PRINT_WORDS: &str =
    "import os,sys; [print(os.fsencode(word).hex()) for word in sys.argv[1:]]";

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn words_reach_the_command_byte_for_byte_and_are_never_read_again() {
    everyone(|place| {
        let every: Vec<u8> = (1..=255).collect();
        let long = vec![b'x'; 100_000];
        let words: [&[u8]; 12] = [
            b"",
            b"--",
            b"--json",
            b"-i",
            b"--timeout=1ms",
            b"-",
            b"a b\tc\nd",
            b"$(touch planted)`touch planted`;touch planted",
            b"\xff\xfe\x80",
            b"*?[a]~",
            &every,
            &long,
        ];
        let mut command = place.cofferdam(&["run", "--", PYTHON, "-c", PRINT_WORDS]);
        command.args(words.map(OsStr::from_bytes));
        let said = outcome(&mut command, SOON);
        let expected: Vec<String> = words.map(hexadecimal).to_vec();
        assert_eq!(said.text().lines().collect::<Vec<_>>(), expected, "{}", said.stderr);
        assert!(!place.workspace.join("planted").exists());
    });
}

#[test]
fn a_program_whose_name_begins_with_a_dash_is_a_program() {
    everyone(|place| {
        let said = place.run(&["--", "--version"]);
        assert_eq!(said.code(), Some(127), "{said:?}");
        assert!(said.stderr.contains("\"--version\" was not found"), "{}", said.stderr);
    });
}

#[test]
fn a_shell_line_is_a_shell_line() {
    everyone(|place| {
        let said = place.run(&["--shell", "printf 'b\\na\\n' | sort | tr '\\n' ,; echo \"$0\""]);
        assert_eq!((said.code(), said.text().as_str()), (Some(0), "a,b,/bin/sh\n"), "{said:?}");
        let both = place.run(&["--shell", "true", "--", "true"]);
        assert_eq!(both.code(), Some(125), "both is a mistake");
    });
}

#[test]
fn variables_are_those_that_were_asked_for() {
    everyone(|place| {
        let mut command = place.cofferdam(&["run", "--env", "A=b=c", "--env", "EMPTY="]);
        command.args(["--env-from", "PASSED", "--env-from", "NOT_SET", "--env", "LANG=xx"]);
        command.arg("--env").arg(OsStr::from_bytes(b"RAW=\xff\xfe"));
        command.args(["--env", "BOTH=given", "--env-from", "BOTH"]).env("BOTH", "the caller's");
        command.args(["--", PYTHON, "-c"]);
        command.arg("import os; [print(k.hex(), v.hex()) for k, v in os.environb.items()]");
        command.env("PASSED", OsStr::from_bytes(b"on \xf0")).env("SECRET_OF_THE_HOST", "x");
        let said = outcome(&mut command, SOON);
        let all = said.text();
        let has = |name: &str, value: &[u8]| {
            let line = format!("{} {}", hexadecimal(name.as_bytes()), hexadecimal(value));
            assert!(
                all.lines().any(|known| known.trim_end() == line.trim_end()),
                "{name}: {said:?}"
            );
        };
        has("A", b"b=c");
        has("EMPTY", b"");
        has("BOTH", b"given");
        has("RAW", b"\xff\xfe");
        has("LANG", b"xx");
        has("PASSED", b"on \xf0");
        has("HOME", b"/home/sandbox");
        for name in ["SECRET_OF_THE_HOST", "NOT_SET", "COFFERDAM_HOME"] {
            assert!(!all.contains(&hexadecimal(name.as_bytes())), "{name} is inside");
        }
    });
}

fn directory(place: &Place, options: &[&str]) -> String {
    let said = place.run(&[options, &["--", "/bin/pwd"]].concat());
    assert_eq!(said.code(), Some(0), "{options:?}: {said:?}");
    said.text().trim_end().to_owned()
}

#[test]
fn a_command_starts_in_the_directory_that_was_named() {
    everyone(|place| {
        place.write("sub/deep/file", "");
        let workspace = place.workspace.to_str().unwrap();
        assert_eq!(directory(place, &[]), workspace);
        assert_eq!(directory(place, &["--cwd", "sub/deep"]), format!("{workspace}/sub/deep"));
        assert_eq!(directory(place, &["--cwd", "/etc"]), "/etc");
        assert_eq!(directory(place, &["--cwd", "/workspace/sub"]), "/workspace/sub");
        assert_eq!(directory(place, &["--no-workspace"]), "/workspace");
        let named = format!("{workspace}/sub");
        assert_eq!(directory(place, &["-w", "sub"]), named);
        assert_eq!(directory(place, &["-w", "sub", "--cwd", "deep"]), format!("{named}/deep"));
    });
}

#[test]
fn standard_input_is_empty_unless_it_was_asked_for() {
    everyone(|place| {
        let path = place.write("input", "not for the command\n");
        let said = place.run_with_input(&["--", "cat"], File::open(&path).unwrap());
        assert_eq!((said.code(), &*said.stdout), (Some(0), &b""[..]), "{said:?}");
        let line = "readlink /proc/self/fd/0; test -c /dev/stdin";
        let said = place.run_with_input(&["--shell", line], File::open(&path).unwrap());
        assert_eq!(said.code(), Some(0), "{said:?}");
        let mut input = File::open(&path).unwrap();
        let said = place.run_with_input(&["--", "cat"], input.try_clone().unwrap());
        assert_eq!(said.code(), Some(0));
        let left = std::io::Read::read_to_end(&mut input, &mut Vec::new()).unwrap();
        assert_eq!(left, 20, "what was not asked for is still there for the next program");
    });
}

#[test]
fn standard_input_passes_byte_for_byte_small_and_large() {
    everyone(|place| {
        let small = place.write("small", "one\0two\n");
        let said = place.run_with_input(&["-i", "--", "cat"], File::open(small).unwrap());
        assert_eq!(said.stdout, b"one\0two\n");
        let mut sum = place.run_with_input(&["-i", "--", "cat"], Stdio::null());
        assert_eq!((sum.code(), &*sum.stdout), (Some(0), &b""[..]));
        let make = "head -c 50000000 /dev/urandom >large; sha256sum <large";
        let expected = outcome(place.host("sh").args(["-c", make]), SOON);
        let large = place.workspace.join("large");
        sum = place.run_with_input(&["-i", "--", "sha256sum"], File::open(&large).unwrap());
        assert_eq!(sum.text(), expected.text(), "from a file");
        let mut cat = place.host("cat").arg("large").stdout(Stdio::piped()).spawn().unwrap();
        sum = place.run_with_input(&["-i", "--", "sha256sum"], cat.stdout.take().unwrap());
        assert_eq!(sum.text(), expected.text(), "from a pipe");
        assert!(cat.wait().unwrap().success());
    });
}

#[test]
fn a_command_that_does_not_read_its_input_ends_all_the_same() {
    everyone(|place| {
        let endless = File::open("/dev/zero").unwrap();
        let said = place.run_with_input(&["-i", "--", "head", "-c", "3"], endless);
        assert_eq!((said.code(), &*said.stdout), (Some(0), &[0, 0, 0][..]), "{said:?}");
        let mut yes = place.host("yes").stdout(Stdio::piped()).spawn().unwrap();
        let said = place.run_with_input(&["-i", "--", "true"], yes.stdout.take().unwrap());
        assert_eq!(said.code(), Some(0));
        // Its reader is gone, and it learns that as in any pipeline.
        assert!(!yes.wait().unwrap().success());
    });
}

#[test]
fn the_file_behind_standard_input_cannot_be_changed_from_inside() {
    everyone(|place| {
        let path = place.base.join("outside");
        fs::write(&path, "as it was\n").unwrap();
        place.give(&path);
        let before = fs::metadata(&path).unwrap();
        let attack = "
import fcntl, os
def attempt(what, *words):
    try:
        what(*words)
        print('done', what.__name__)
    except OSError:
        pass
attempt(os.write, 0, b'changed')
attempt(os.ftruncate, 0, 0)
attempt(os.fchmod, 0, 0o777)
attempt(os.lseek, 0, 0, 0)
for flags in (os.O_RDWR, os.O_WRONLY, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
    try:
        f = os.open('/proc/self/fd/0', flags)
        os.write(f, b'changed')
    except OSError:
        pass
";
        // The caller's own descriptor may write: the command must not gain that.
        let input = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let said = place.run_with_input(&["-i", "--", PYTHON, "-c", attack], input);
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert_eq!(fs::read(&path).unwrap(), b"as it was\n");
        assert_eq!(fs::metadata(&path).unwrap().mode(), before.mode());
        let name = fs::File::open(&path).unwrap();
        let said =
            place.run_with_input(&["-i", "--", "stat", "-L", "-c", "%F", "/proc/self/fd/0"], name);
        assert_eq!(said.text(), "fifo\n", "the file itself is not handed over");
    });
}

#[test]
fn nothing_is_open_inside_but_the_three_streams() {
    everyone(|place| {
        let leak = place.write("leak", "");
        let line = "exec 5<\"$1\" 9>>\"$1\"; shift; exec \"$@\"";
        let mut command = place.host("sh");
        command.args(["-c", line, "sh"]).arg(leak).arg(place.program());
        let inside = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])";
        command.args(["run", "--", PYTHON, "-c", inside]);
        let said = outcome(&mut command, SOON);
        assert_eq!(said.text(), "[0, 1, 2]\n", "{said:?}");
    });
}

#[test]
fn a_relative_path_of_options_is_one_below_the_callers_directory() {
    everyone(|place| {
        place.write("sub/secret", "hidden");
        place.write("shown/file", "shown");
        let options: [OsString; 4] =
            ["--hide".into(), "sub/secret".into(), "--read".into(), "shown".into()];
        let mut command = place.cofferdam(&["run"]);
        command
            .args(options)
            .args(["--shell", "cat sub/secret; cat shown/file; echo x >shown/new"]);
        let said = outcome(&mut command, SOON);
        assert_eq!(said.text(), "shown", "{said:?}");
        assert!(!place.workspace.join("shown/new").exists());
    });
}

/// The path itself is not shown, and what another option or a toolchain shows of it is hidden.
#[test]
fn what_is_shown_below_a_hidden_path_is_hidden_too() {
    everyone(|place| {
        let part = place.base.join("data/part");
        place.write("../data/part/key", "hidden");
        let (data, part) = (place.base.join("data"), part.to_str().unwrap().to_owned());
        let look = format!("cat {part}/key; ls /etc/fonts /etc/alternatives; cat /etc/passwd");
        let shown = ["--read", &part, "--shell", &look];
        let said = place.run(&shown);
        assert!(said.text().starts_with("hidden") && said.text().contains("awk"), "{said:?}");
        let hides = ["--hide", data.to_str().unwrap(), "--hide", "/etc"];
        let said = place.run(&[&hides[..], &shown[..]].concat());
        let text = said.text();
        assert!(!text.contains("hidden") && !text.contains("awk"), "{said:?}");
        assert!(text.contains("sandbox:x:1000"), "{said:?}");
        let explained = place.says(&[&["explain"], &hides[..], &shown[..2]].concat(), 0);
        assert!(!explained.text().contains("was not shown anyway"), "{explained:?}");
    });
}

/// What is made inside is for whom the caller makes things, in a run as in a session.
#[test]
fn what_commands_make_has_the_mask_of_modes_of_whoever_made_the_sandbox() {
    everyone(|place| {
        for (mask, [file, directory]) in
            [("0077", [0o600, 0o700]), ("0002", [0o664, 0o775]), ("0022", [0o644, 0o755])]
        {
            let make = "umask && touch \"$1\" && mkdir \"$1.d\"";
            let under = |verbs: &str, name: &str| {
                let line = format!("umask {mask}; {verbs}");
                let words = ["-c", &line, place.program(), make, name];
                let said = outcome(place.host("sh").args(words), SOON);
                assert_eq!(said.code(), Some(0), "{said:?}");
                assert!(said.text().ends_with(&format!("{mask}\n")), "{said:?}");
                let mode = |name: &str| {
                    let found = fs::metadata(place.workspace.join(name)).unwrap();
                    found.permissions().mode() & 0o7777
                };
                assert_eq!(mode(name), file, "{verbs}");
                assert_eq!(mode(&format!("{name}.d")), directory, "{verbs}");
            };
            under("\"$0\" run -- sh -c \"$1\" sh \"$2\"", &format!("run-{mask}"));
            let session = format!("s{mask}");
            let create = format!(
                "\"$0\" create --name {session} >&2; umask 0027; \"$0\" exec {session} -- sh -c \"$1\" sh \"$2\""
            );
            under(&create, &format!("session-{mask}"));
            place.says(&["rm", &session], 0);
        }
    });
}

/// What would be left then could be opened by nobody, nor removed.
#[test]
fn a_mask_of_modes_that_closes_what_is_made_to_its_owner_is_refused() {
    everyone(|place| {
        for (mask, verbs, code) in [
            ("0777", "run -- true", 125),
            ("0277", "create --name masked", 1),
            ("0077", "run -- true", 0),
        ] {
            let line = format!("umask {mask}; exec \"$0\" {verbs}");
            let said = outcome(place.host("sh").args(["-c", &line, place.program()]), SOON);
            assert_eq!(said.code(), Some(code), "{mask}: {said:?}");
            assert_eq!(said.stderr.contains(&format!("(umask {mask})")), code != 0, "{said:?}");
        }
    });
}

/// Names that are hidden by default lie in what is shown, and nobody but their owner gets there.
#[test]
fn a_directory_that_is_closed_to_commands_is_shown_with_a_remedy_or_not_at_all() {
    everyone(|place| {
        let closed = place.base.join("closed");
        fs::create_dir(&closed).unwrap();
        place.write("../closed/.env", "SECRET=1");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        place.give(&closed);
        let hidden = closed.join(".env");
        let words = ["--read", closed.to_str().unwrap(), "--hide", hidden.to_str().unwrap()];
        let said = place.run(&[&words[..], &["--", "true"]].concat());
        match place.is_root() {
            // Commands of root's sandboxes are of another user.
            true => {
                assert_eq!(said.code(), Some(125), "{said:?}");
                assert!(said.stderr.contains("name what they are to read (--read)"), "{said:?}");
            }
            false => assert_eq!(said.code(), Some(0), "{said:?}"),
        }
    });
}

#[test]
fn a_workspace_that_is_closed_to_its_owner_is_refused_with_the_remedy() {
    everyone(|place| {
        // Nothing is closed to the machine's root.
        let modes = if place.is_root() { &[][..] } else { &[(0o500, "chmod u+wx"), (0, "right")] };
        for (mode, remedy) in modes {
            let open = fs::Permissions::from_mode(0o700);
            fs::set_permissions(&place.workspace, fs::Permissions::from_mode(*mode)).unwrap();
            let workspace = place.workspace.to_str().unwrap();
            let mut command = place.cofferdam(&["run", "-w", workspace, "--", "true"]);
            let said = outcome(command.current_dir("/"), SOON);
            fs::set_permissions(&place.workspace, open).unwrap();
            assert_eq!(said.code(), Some(125), "{said:?}");
            assert!(said.stderr.contains(remedy), "{said:?}");
            assert!(said.stderr.matches("not protected").count() < 2, "{said:?}");
        }
        place.says(&["run", "--", "true"], 0);
    });
}

#[test]
fn a_link_that_a_command_may_have_planted_is_no_workspace() {
    everyone(|place| {
        let other = place.base.join("other");
        fs::create_dir(&other).unwrap();
        place.give(&other);
        let plant = format!("mkdir sub && ln -s sub beside && ln -s {} way", other.display());
        let said = place.run(&["--", "/bin/sh", "-c", &plant]);
        assert_eq!(said.code(), Some(0), "{said:?}");
        let write = ["--", "/bin/sh", "-c", "echo x >planted"];
        let other_name = other.to_str().unwrap();
        for options in [&["-w", "way"][..], &["--cow", "-w", "way"], &["-w", "sub/../way/."]] {
            let said = place.run(&[options, &write].concat());
            assert_eq!(said.code(), Some(125), "as {}: {options:?}: {said:?}", place.uid());
            assert!(said.stderr.contains("an earlier command in a sandbox"), "{said:?}");
            assert!(said.stderr.contains(&format!("name {other_name} itself")), "{said:?}");
        }
        place.says(&["create", "-w", "way"], 1);
        assert!(!other.join("planted").exists());
        // Controls: by its own name, and by a link to what lies beside it.
        for workspace in [other_name, "beside"] {
            let said = place.run(&[&["-w", workspace], &write[..]].concat());
            assert_eq!(said.code(), Some(0), "{said:?}");
        }
        assert!(other.join("planted").exists());
        assert!(place.workspace.join("sub/planted").exists());
    });
}
