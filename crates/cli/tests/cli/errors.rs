//! Errors of the command line, as they were reviewed.

use crate::harness::{Place, compare};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// One line for each way to be wrong.
const LINES: [&str; 92] = [
    "",
    "rum",
    "--json rum",
    "--nonsense",
    "config",
    "config chekc",
    "config schema resutl",
    "config trust",
    "completions",
    "completions tcsh",
    "doctor extra",
    "run",
    "run --",
    "run ls -l",
    "run --shell x -- y",
    "run --json",
    "run --memroy 1G -- true",
    "run --json --memroy 1G -- true",
    "run -x -- true",
    "run --profile readonly -- true",
    "run --profile nothing-like-it -- true",
    "run --profile -- true",
    "run --timeout 5 -- true",
    "run --timeout 0s -- true",
    "run --memory 1.5G -- true",
    "run --memory 0 -- true",
    "run --pids 0 -- true",
    "run --pids many -- true",
    "run --cpu 0.001 -- true",
    "run --disk big -- true",
    "run --max-output 16MB -- true",
    "run --env NAME -- true",
    "run --env =x -- true",
    "run --env-from A=b -- true",
    "run --user admin -- true",
    "run --on-unavailable degarde -- true",
    "run --backend docker -- true",
    "run --json=yes -- true",
    "run -t -T -- true",
    "run -t --json -- true",
    "run -w . --no-workspace -- true",
    "run --config x --no-config -- true",
    "run --memory 1G --memory 2G -- true",
    "run --egress *.com:443 -- true",
    "run --egress example.com:443 -- true",
    "run --allow-host-port 0 --profile repo-write -- true",
    "run --allow-host-port 5432 -- true",
    "run --ask 5 --profile repo-write -- true",
    "run --ask 5s -- true",
    "wrap",
    "wrap -t -- true",
    "wrap --session x --memory 1G -- true",
    "wrap --session nosuch -- true",
    "create extra",
    "create --name -x",
    "create --name a/b",
    "create --idle-pause 180",
    "create --idle-pause never",
    "create --label agent",
    "create --label a=b --label a=c",
    "create --ask 5s",
    "create --json --ttl 0s",
    "ensure",
    "exec",
    "exec nosuch",
    "exec nosuch ls -l",
    "exec nosuch -- true",
    "exec --json nosuch -- true",
    "exec nosuch --id a/b -- true",
    "exec nosuch --keep-awake -- true",
    "ps nosuch",
    "logs nosuch",
    "logs nosuch x --offset -1",
    "logs nosuch x --stream out",
    "attach nosuch x --detach-keys ctrl-1",
    "signal nosuch x TREM",
    "wait nosuch x",
    "shell nosuch",
    "rm",
    "extend nosuch 30",
    "port s 0",
    "network set s --ask 0x",
    "network set s --ask 61m",
    "approve --list --session X",
    "approve --list --deny",
    "exec nosuch --secr x -- true",
    "file read --nope",
    "file read",
    "key create k --allow-workspace /nowhere",
    "serve --allow-workspace /nowhere",
    "serve --allow-origin board.example",
    "serve --allow-host http://box.example",
];

#[test]
fn errors_of_the_command_line_are_as_reviewed() {
    let place = Place::new("errors");
    let text: String = LINES.iter().map(|line| place.run(line).transcript(line)).collect();
    compare("tests/snapshots/errors.txt", &text);
}

#[test]
fn errors_about_places_are_as_reviewed() {
    let place = Place::new("places");
    place.write("work/file", "");
    let lines = [
        "run -w nowhere -- true",
        "run -w file -- true",
        "run -w / -- true",
        "run -w ../home -- true",
        "run --write ../home/.config/cofferdam -- true",
        "run --read nowhere -- true",
        "run --write ../nowhere -- true",
        "run --config nowhere -- true",
        "probe --allow-host-port 5432",
        "probe --json --ask 5s",
        "wrap --ask 5s -- true",
        "config trust nowhere",
    ];
    let text: String = lines.iter().map(|line| place.run(line).transcript(line)).collect();
    compare("tests/snapshots/errors-places.txt", &text);
}

#[test]
fn every_fault_of_our_own_in_run_and_exec_exits_125() {
    let place = Place::new("faults");
    let runs = |line: &&&str| line.starts_with("run") || line.starts_with("exec");
    for line in LINES.iter().filter(runs) {
        assert_eq!(place.run(line).code, 125, "{line}");
    }
}

#[test]
fn with_json_an_error_is_one_object_on_standard_output() {
    let place = Place::new("json-errors");
    for line in ["run --json", "run --json --nonsense", "run --json --ask 5s -- x"] {
        let said = place.run(line);
        let object: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        let error = object["error"].as_object().unwrap();
        let fields: Vec<_> = error.keys().map(String::as_str).collect();
        assert_eq!(fields, ["hint", "kind", "message"], "{line}");
        assert_eq!(said.stderr, "", "{line}");
    }
    let said = place.run("run --nonsense -- x --json");
    assert_eq!(said.stdout, "", "--json after -- belongs to the command");
}

#[test]
fn what_is_not_text_cannot_be_wrapped() {
    let place = Place::new("bytes");
    let words: [OsString; 4] =
        ["wrap".into(), "--".into(), "echo".into(), OsString::from_vec(vec![b'a', 0xff])];
    let said = place.run_with(words, &[]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("\"a\\xFF\" is not UTF-8"), "{}", said.stderr);
}
