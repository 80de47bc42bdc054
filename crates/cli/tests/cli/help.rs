//! Help texts, completions and manual pages, as they were reviewed.

use crate::harness::{Place, compare};

/// What there is to ask for help about.
const VERBS: [&str; 45] = [
    "",
    "run",
    "create",
    "ensure",
    "exec",
    "ps",
    "logs",
    "attach",
    "signal",
    "wait",
    "shell",
    "file",
    "diff",
    "apply",
    "discard",
    "history",
    "undo",
    "snapshot",
    "fork",
    "port",
    "network",
    "approve",
    "audit",
    "policy",
    "ls",
    "show",
    "pause",
    "resume",
    "stop",
    "rm",
    "extend",
    "events",
    "gc",
    "image",
    "probe",
    "explain",
    "doctor",
    "wrap",
    "serve",
    "key",
    "mcp",
    "secret",
    "config",
    "completions",
    "man",
];

/// What is done with files.
const FILE_VERBS: [&str; 18] = [
    "read",
    "write",
    "append",
    "stat",
    "list",
    "mkdir",
    "mv",
    "cp",
    "rm",
    "chmod",
    "read-many",
    "glob",
    "grep",
    "watch",
    "upload",
    "download",
    "export",
    "import",
];

/// What is done with snapshots.
const SNAPSHOT_VERBS: [&str; 6] = ["create", "ls", "restore", "rm", "export", "import"];

/// What is done with images.
const IMAGE_VERBS: [&str; 5] = ["ls", "import", "inspect", "rm", "gc"];

/// What is done with secrets.
const SECRET_VERBS: [&str; 3] = ["add", "ls", "rm"];

/// What is done with what a session may reach.
const NETWORK_VERBS: [&str; 4] = ["show", "set", "allow", "deny"];

/// What is done with rules.
const POLICY_VERBS: [&str; 3] = ["learn", "explain", "test"];

/// What is done with keys.
const KEY_VERBS: [&str; 3] = ["create", "ls", "revoke"];

#[test]
fn help_texts_are_as_reviewed() {
    let place = Place::new("help");
    for verb in VERBS {
        let said = place.run(&format!("{verb} --help"));
        assert_eq!(said.code, 0, "{verb}: {}", said.stderr);
        let name = if verb.is_empty() { "cofferdam" } else { verb };
        compare(&format!("tests/snapshots/help-{name}.txt"), &said.stdout);
    }
    for verb in ["check", "trust", "schema"] {
        let said = place.run(&format!("config {verb} --help"));
        assert_eq!(said.code, 0, "{verb}: {}", said.stderr);
        compare(&format!("tests/snapshots/help-config-{verb}.txt"), &said.stdout);
    }
    let nested: [(&str, &[&str]); 7] = [
        ("file", &FILE_VERBS),
        ("snapshot", &SNAPSHOT_VERBS),
        ("image", &IMAGE_VERBS),
        ("secret", &SECRET_VERBS),
        ("key", &KEY_VERBS),
        ("network", &NETWORK_VERBS),
        ("policy", &POLICY_VERBS),
    ];
    for (outer, verbs) in nested {
        for verb in verbs {
            let said = place.run(&format!("{outer} {verb} --help"));
            assert_eq!(said.code, 0, "{outer} {verb}: {}", said.stderr);
            compare(&format!("tests/snapshots/help-{outer}-{verb}.txt"), &said.stdout);
        }
    }
    let install = place.run("mcp install --help");
    assert_eq!(install.code, 0, "{}", install.stderr);
    compare("tests/snapshots/help-mcp-install.txt", &install.stdout);
    compare("tests/snapshots/help-run-short.txt", &place.run("run -h").stdout);
}

#[test]
fn every_option_of_run_and_of_sessions_has_an_example() {
    let place = Place::new("help-example");
    let nouns = [
        "",
        "config",
        "file",
        "image",
        "key",
        "network",
        "policy",
        "secret",
        "snapshot",
        "completions",
        "man",
    ];
    let verbs = VERBS.iter().filter(|verb| !nouns.contains(verb)).map(|verb| (*verb).to_owned());
    let of_files = FILE_VERBS.iter().map(|verb| format!("file {verb}"));
    let of_images = IMAGE_VERBS.iter().map(|verb| format!("image {verb}"));
    let of_snapshots = SNAPSHOT_VERBS.iter().map(|verb| format!("snapshot {verb}"));
    let of_keys = KEY_VERBS.iter().map(|verb| format!("key {verb}"));
    let of_secrets = SECRET_VERBS.iter().map(|verb| format!("secret {verb}"));
    let of_network = NETWORK_VERBS.iter().map(|verb| format!("network {verb}"));
    let of_policy = POLICY_VERBS.iter().map(|verb| format!("policy {verb}"));
    let of_mcp = ["mcp install".to_owned()];
    let others = of_snapshots.chain(of_keys).chain(of_secrets).chain(of_network).chain(of_policy);
    let others = others.chain(of_mcp);
    for verb in verbs.chain(of_files).chain(of_images).chain(others) {
        let help = place.run(&format!("{verb} --help")).stdout;
        let options = help.lines().filter(|line| line.trim_start().starts_with('-')).count();
        // The parser's own -h has none, the verb has one before its options, run in another place.
        let own = usize::from(verb != "run");
        assert_eq!(help.matches("Example: ").count(), options - 1 + own, "{help}");
    }
}

#[test]
fn every_verb_says_its_exit_codes_and_shows_itself() {
    let place = Place::new("help-codes");
    let of_config = ["config check", "config trust", "config schema", "mcp install"];
    for verb in VERBS.iter().filter(|verb| !verb.is_empty()).chain(&of_config) {
        let help = place.run(&format!("{verb} --help")).stdout;
        assert!(help.contains("Exit code:"), "{verb}");
        for example in help.lines().filter(|line| line.contains("Example: ")) {
            let shown =
                example.split("cofferdam ").nth(1).is_none_or(|rest| rest.starts_with(verb));
            assert!(shown, "{verb}: {example}");
        }
    }
}

#[test]
fn completions_are_there_for_every_shell() {
    let place = Place::new("completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = place.run(&format!("completions {shell}"));
        assert_eq!(said.code, 0);
        assert!(said.stdout.contains("on-unavailable"), "{shell}");
    }
    assert_eq!(place.run("completions tcsh").code, 2);
}

/// Asks for names as bash does, with a stand-in for the program: each line of the answer is one question's.
const ASK_FOR_IMAGES: &str = r#"
fake() { [[ "$*" == "__complete -- image rm --x=a:b py"* ]] && printf '%s\n' python:3.12 python:3.13; }
ask() {
    COMP_LINE="$1" COMPREPLY=()
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _cofferdam_names fake
    echo "${COMPREPLY[@]}"
}
ask "fake image rm --x=a:b  python:3" fake image rm --x = a : b python : 3
ask "fake image rm --x=a:b  python:" fake image rm --x = a : b python :
ask "fake image rm --x=a:b  py" fake image rm --x = a : b py
"#;

#[test]
fn bash_completes_a_name_over_its_colon() {
    let script = Place::new("colon").run("completions bash").stdout + ASK_FOR_IMAGES;
    let asked = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    let told = String::from_utf8_lossy(&asked.stdout);
    assert_eq!(told, "3.12 3.13\n3.12 3.13\npython:3.12 python:3.13\n", "{asked:?}");
}

#[test]
fn the_manual_has_a_page_for_each_verb() {
    let place = Place::new("man");
    let title = |variables: &[(&str, &str)]| {
        let said = place.run_with(["man"], variables).stdout;
        said.lines().find(|line| line.starts_with(".TH")).unwrap_or_default().to_owned()
    };
    let version = concat!("\"cofferdam ", env!("CARGO_PKG_VERSION"), "\" Cofferdam");
    let packed = title(&[("SOURCE_DATE_EPOCH", "1700000000")]);
    assert_eq!(packed, format!(".TH cofferdam 1 2023-11-14 {version}"));
    let today = title(&[]);
    assert!(today.starts_with(".TH cofferdam 1 2") && today.ends_with(version), "{today}");
    assert_eq!(place.run("man pages").code, 0);
    for verb in VERBS.iter().skip(1).chain(&["config-trust"]) {
        let page = place.path(&format!("work/pages/cofferdam-{verb}.1"));
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains(".SH"), "{verb}");
    }
}
