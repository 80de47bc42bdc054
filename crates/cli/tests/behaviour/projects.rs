//! Real projects, built and tested inside with the toolchains of whoever starts the program.

use crate::place::{PYTHON, Place, Said, everyone, outcome, skipped};
use std::path::Path;
use std::time::Duration;

/// A build on a busy machine.
const BUILD: Duration = Duration::from_secs(120);

/// Whether the person can run this program at all, outside of any sandbox.
fn has(place: &Place, argv: &[&str]) -> bool {
    let mut command = place.host("env");
    command.args(argv);
    let works = outcome(&mut command, BUILD).status.success();
    if !works {
        let name = argv.last().filter(|_| argv.contains(&"-c")).unwrap_or(&argv[0]);
        skipped("toolchain", &format!("user {} cannot run {name}", place.uid()));
    }
    works
}

/// Runs it inside, with the time that a build takes.
fn inside(place: &Place, words: &[&str]) -> Said {
    let words: Vec<&str> = [&["run"], words].concat();
    outcome(&mut place.cofferdam(&words), BUILD)
}

fn succeeds(place: &Place, words: &[&str]) -> Said {
    let said = inside(place, words);
    assert_eq!(
        said.code(),
        Some(0),
        "as {}: {words:?}: {}{}",
        place.uid(),
        said.text(),
        said.stderr
    );
    said
}

/// What was built belongs to the person, and works on the host.
fn is_theirs(place: &Place) {
    let uid = place.uid().to_string();
    let foreign = outcome(place.host("find").args([".", "!", "-uid", &uid]), BUILD);
    assert_eq!(foreign.text(), "", "files of another owner");
}

#[test]
fn a_rust_project_is_built_and_tested() {
    everyone(|place| {
        if !has(place, &["cargo", "--version"]) {
            return;
        }
        let manifest = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
        place.write("Cargo.toml", manifest);
        let library = "pub fn answer() -> u32 {\n    6 * 7\n}\n\n#[test]\nfn it_is_the_answer() {\n    \
                       assert_eq!(answer(), 42);\n}\n";
        place.write("src/lib.rs", library);
        place.write("src/main.rs", "fn main() {\n    println!(\"{}\", small::answer());\n}\n");
        let said = succeeds(place, &["--", "cargo", "test", "--offline"]);
        assert!(said.text().contains("test it_is_the_answer ... ok"), "{}", said.text());
        assert_eq!(succeeds(place, &["--", "cargo", "run", "-q", "--offline"]).stdout, b"42\n");
        is_theirs(place);
        let built = place.workspace.join("target/debug/small");
        assert_eq!(outcome(&mut place.host(built), BUILD).stdout, b"42\n", "on the host");
        // A test that fails, fails.
        place.write("src/lib.rs", &library.replace("42", "41"));
        assert_eq!(inside(place, &["--", "cargo", "test", "--offline"]).code(), Some(101));
    });
}

#[test]
fn a_node_project_is_tested() {
    everyone(|place| {
        if !has(place, &["node", "--version"]) {
            return;
        }
        let manifest =
            "{\"name\": \"small\", \"type\": \"module\", \"scripts\": {\"test\": \"node --test\"}}";
        place.write("package.json", manifest);
        place.write("answer.js", "export const answer = () => 6 * 7;\n");
        let test = "import test from 'node:test';\nimport assert from 'node:assert';\n\
                    import http from 'node:http';\nimport { answer } from './answer.js';\n\
                    test('it is the answer', () => assert.equal(answer(), 42));\n\
                    test('a server and its client meet', async () => {\n  \
                    const server = http.createServer((_, r) => r.end('hi')).listen(0, '127.0.0.1');\n  \
                    await new Promise((done) => server.once('listening', done));\n  \
                    const url = `http://127.0.0.1:${server.address().port}/`;\n  \
                    const text = await new Promise((done) => http.get(url, (r) => {\n    \
                    r.setEncoding('utf8'); r.on('data', done); }));\n  \
                    assert.equal(text, 'hi');\n  server.close();\n  server.closeAllConnections?.();\n});\n";
        place.write("answer.test.js", test);
        let said = succeeds(place, &["--", "node", "--test"]);
        assert!(said.text().contains("pass 2"), "{}", said.text());
        if has(place, &["npm", "--version"]) {
            succeeds(place, &["--", "npm", "test"]);
        }
        place.write("answer.js", "export const answer = () => 41;\n");
        assert_eq!(inside(place, &["--", "node", "--test"]).code(), Some(1));
        is_theirs(place);
    });
}

#[test]
fn a_python_project_is_tested() {
    everyone(|place| {
        for python in [PYTHON, "python3"] {
            if has(place, &[python, "--version"]) {
                python_project(place, python);
            }
        }
    });
}

fn python_project(place: &Place, python: &str) {
    place.write("small/__init__.py", "");
    place.write("small/answer.py", "def answer():\n    return 6 * 7\n");
    let test = "import multiprocessing, os, sqlite3, subprocess, sys, tempfile, threading, unittest\n\
                from small.answer import answer\n\n\
                class Answers(unittest.TestCase):\n    \
                def test_answer(self):\n        self.assertEqual(answer(), 42)\n\n    \
                def test_processes(self):\n        \
                with multiprocessing.Pool(2) as pool:\n            \
                self.assertEqual(pool.map(abs, [-1, -2]), [1, 2])\n\n    \
                def test_children(self):\n        \
                said = subprocess.check_output([sys.executable, '-c', 'print(1)'])\n        \
                self.assertEqual(said, b'1\\n')\n\n    \
                def test_files(self):\n        \
                with tempfile.TemporaryDirectory() as place:\n            \
                base = sqlite3.connect(os.path.join(place, 'x'))\n            \
                base.execute('create table t (a)')\n            base.commit()\n";
    place.write("test_small.py", test);
    let said = succeeds(place, &["--", python, "-m", "unittest", "-v"]);
    assert!(said.stderr.contains("Ran 4 tests"), "{}", said.stderr);
    if has(place, &[python, "-c", "import pytest"]) {
        let said = succeeds(place, &["--", python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
        assert!(said.text().contains("4 passed"), "{}", said.text());
    }
    succeeds(place, &["--", python, "-m", "venv", "--without-pip", "environment"]);
    succeeds(place, &["--", "environment/bin/python", "-c", "import small.answer"]);
    place.write("small/answer.py", "def answer():\n    return 41\n");
    assert_eq!(inside(place, &["--", python, "-m", "unittest"]).code(), Some(1));
    std::fs::remove_dir_all(place.workspace.join("environment")).unwrap();
}

#[test]
fn a_c_project_is_built_and_tested() {
    everyone(|place| {
        if !has(place, &["make", "--version"]) || !has(place, &["gcc", "--version"]) {
            return;
        }
        place.write("answer.c", "int answer(void) { return 6 * 7; }\n");
        place.write("main.c", "#include <stdio.h>\nint answer(void);\nint main(void) { return printf(\"%d\\n\", answer()) != 3; }\n");
        let makefile = "answer: main.o answer.o\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -Wall -c -o $@ $<\n\
                        test: answer\n\ttest \"$$(./answer)\" = 42\n";
        place.write("Makefile", makefile);
        succeeds(place, &["--", "make", "-j2", "test"]);
        assert_eq!(outcome(&mut place.host("./answer"), BUILD).stdout, b"42\n", "on the host");
        place.write("answer.c", "int answer(void) { return 41; }\n");
        assert_eq!(inside(place, &["--", "make", "test"]).code(), Some(2));
        is_theirs(place);
    });
}

#[test]
fn a_go_project_is_built_where_go_is_installed() {
    everyone(|place| {
        if !has(place, &["go", "version"]) {
            return;
        }
        place.write("go.mod", "module small\n");
        place.write("main.go", "package main\n\nfunc main() { println(6 * 7) }\n");
        let said = succeeds(place, &["--", "go", "run", "."]);
        assert_eq!(said.stderr, "42\n");
    });
}

#[test]
fn programs_of_the_system_work() {
    everyone(|place| {
        let line = "set -e; date >/dev/null; whoami; hostname; id -un; ls -la / >/dev/null; \
                    df . >/dev/null; ps aux | head -1 >/dev/null; uname -a >/dev/null; \
                    mktemp >/dev/null; sort </etc/passwd | head -1 >/dev/null; \
                    tar cf - /etc/hosts 2>/dev/null | tar tf - ; getent hosts localhost >/dev/null; \
                    nproc >/dev/null; free >/dev/null; test -w . ; test -w $HOME; test -w /tmp";
        let said = succeeds(place, &["--shell", line]);
        assert_eq!(said.text(), "sandbox\ncofferdam\nsandbox\netc/hosts\n", "{}", said.stderr);
    });
}

#[test]
fn what_a_project_builds_may_be_executed_wherever_it_may_be_written() {
    everyone(|place| {
        assert!(Path::new("/bin/true").exists());
        let line = "for d in . /tmp $HOME /var/tmp; do cp /bin/true $d/own && $d/own || exit 1; done; rm own";
        succeeds(place, &["--shell", line]);
    });
}
