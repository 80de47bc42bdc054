//! What other programs of the same user see of a server.

use crate::place::{Place, SOON, everyone, outcome, skipped};
use crate::serving::Serving;
use std::process::Stdio;

const SECRET: (&str, &str) = ("TEST_OF_SECRECY", "hush-4711");

/// Whether this program of the place's user can read such a file of that process.
fn reads(place: &Place, process: u32, file: &str) -> Option<String> {
    let path = format!("/proc/{process}/{file}");
    // Of a memory nothing is at its beginning: to open it is what is asked for.
    let script = "import sys\nf = open(sys.argv[1], 'rb')\n\
                  print(f.read() if sys.argv[1].endswith('environ') else 'open')\n";
    let out = place.host(crate::place::PYTHON).args(["-I", "-c", script, &path]).output().unwrap();
    out.status.success().then(|| String::from_utf8(out.stdout).unwrap())
}

#[test]
fn memory_and_environment_of_a_server_are_closed_to_its_own_user() {
    everyone(|place| {
        if place.uid() == 0 {
            // Root looks at whatever it likes.
            return;
        }
        let serving = Serving::start_with(place, &[], &[SECRET]);
        // The control: what any other program of that user is open to.
        let mut sleep = place.host("/bin/sleep");
        let mut other =
            sleep.arg("60").env(SECRET.0, SECRET.1).stdin(Stdio::null()).spawn().unwrap();
        let seen = reads(place, other.id(), "environ");
        assert!(seen.is_some_and(|seen| seen.contains(SECRET.1)));
        assert_eq!(reads(place, serving.pid(), "environ"), None);
        match reads(place, other.id(), "mem") {
            Some(_) => assert_eq!(reads(place, serving.pid(), "mem"), None),
            None => skipped("the memory of another process", "this kernel closes it by rule"),
        }
        other.kill().unwrap();
        other.wait().unwrap();
        let limits =
            outcome(place.host("/bin/cat").arg(format!("/proc/{}/limits", serving.pid())), SOON);
        let limits = limits.text();
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
        // It serves all the same, and what it starts works.
        assert_eq!(serving.ask("", "PUT /v1/sandboxes/s", "{}").status, 201);
        let run = r#"{"exec":{"shell":"echo out"}}"#;
        assert_eq!(serving.ask("", "POST /v1/run", run).json()["stdout"], "out\n");
        serving.end(place, "-TERM");
    });
}
