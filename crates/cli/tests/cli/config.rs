//! Which configuration counts, and what it comes to.

use crate::harness::{Place, compare};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

const PROJECT: &str = "[run]\nprofile = \"read-only\"\nmemory = \"1G\"\nread = [\"/usr/share\"]\n";

/// The argv that `wrap` prints: every setting in force, without running anything.
fn argv(place: &Place, options: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let line = format!("wrap {options} -- true");
    let said = place.run_with(line.split(' ').filter(|word| !word.is_empty()), variables);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let object: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    serde_json::from_value(object["argv"].clone()).unwrap()
}

fn says(argv: &[String], word: &str) -> bool {
    argv.iter().any(|known| known == word)
}

#[test]
fn the_later_of_two_sources_wins() {
    let place = Place::new("order");
    let own = "[run]\nprofile = \"ci-only\"\nmemory = \"3G\"\npids = 7\nhide = [\"~/keys\"]\n";
    place.write("home/.config/cofferdam/config.toml", own);
    place.write("work/cofferdam.toml", PROJECT);
    assert_eq!(place.run("config trust cofferdam.toml").code, 0);

    let file = argv(&place, "", &[]);
    assert!(says(&file, "--profile=read-only") && says(&file, "--memory=1G"), "{file:?}");
    assert!(says(&file, "--pids=7") && says(&file, "--hide=$PLACE/home/keys"), "{file:?}");

    let variable = argv(&place, "", &[("COFFERDAM_MEMORY", "2G")]);
    assert!(says(&variable, "--memory=2G"), "{variable:?}");

    let flag = argv(&place, "--memory 5G --read /etc", &[("COFFERDAM_MEMORY", "2G")]);
    assert!(says(&flag, "--memory=5G"), "{flag:?}");
    assert!(says(&flag, "--read=/usr/share") && says(&flag, "--read=/etc"), "{flag:?}");

    let none = argv(&place, "--no-config", &[("COFFERDAM_MEMORY", "2G")]);
    assert!(says(&none, "--profile=no-network"), "{none:?}");
    assert!(!none.iter().any(|word| word.starts_with("--memory")), "{none:?}");
}

#[test]
fn a_project_file_counts_only_while_it_is_what_was_approved() {
    let place = Place::new("trust");
    let path = place.write("cofferdam.toml", PROJECT);
    let refused = place.run("run -w sub -- true");
    assert_eq!(refused.code, 125);
    let expected = "cofferdam: failed to read the configuration: $PLACE/cofferdam.toml is not \
                    approved, and a sandboxed program may have written it\n\nhint: Read it, then run \
                    `cofferdam config trust $PLACE/cofferdam.toml`, or leave it out with --no-config.\n";
    assert_eq!(refused.stderr, expected);
    assert_eq!(place.run("probe").code, 125);
    assert_eq!(place.run("wrap -- true").code, 1);

    let trusted = place.run("config trust ../cofferdam.toml");
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    assert!(says(&argv(&place, "", &[]), "--profile=read-only"));
    let state = fs::metadata(place.path("home/.local/state/cofferdam")).unwrap();
    assert_eq!(state.permissions().mode() & 0o777, 0o700);

    fs::write(&path, format!("{PROJECT}write = [\"/\"]\n")).unwrap();
    assert_eq!(place.run("wrap -- true").code, 1, "changed");
    fs::write(&path, PROJECT).unwrap();
    assert_eq!(place.run("wrap -- true").code, 0, "as approved");

    assert_eq!(place.run("config trust --remove ../cofferdam.toml").code, 0);
    assert_eq!(place.run("wrap -- true").code, 1, "withdrawn");
    fs::write(&path, "[run]\nwirte = []\n").unwrap();
    assert_eq!(
        place.run("config trust ../cofferdam.toml").code,
        1,
        "what is wrong is not approved"
    );
    fs::write(&path, "[run]\nmemory = 5\n").unwrap();
    let said = place.run("config trust ../cofferdam.toml");
    assert_eq!(said.code, 1, "what a run would refuse is not approved");
    assert!(said.stderr.contains("too small"), "{}", said.stderr);
}

#[test]
fn an_approval_is_of_one_path() {
    let place = Place::new("trust-path");
    place.write("work/cofferdam.toml", PROJECT);
    assert_eq!(place.run("config trust cofferdam.toml").code, 0);
    fs::rename(place.path("work/cofferdam.toml"), place.path("cofferdam.toml")).unwrap();
    assert_eq!(place.run("wrap -- true").code, 1);
}

#[test]
fn a_named_file_counts_and_the_nearest_then_does_not() {
    let place = Place::new("named");
    place.write("work/cofferdam.toml", "[run]\npids = 3\n");
    place.write("work/sub/named.toml", "[run]\nmemory = \"1G\"\nwrite = [\"out\"]\n");
    fs::create_dir(place.path("work/sub/out")).unwrap();
    let named = argv(&place, "--config sub/named.toml", &[]);
    assert!(says(&named, "--memory=1G") && says(&named, "--write=$PLACE/work/sub/out"));
    assert!(!named.iter().any(|word| word.starts_with("--pids")), "{named:?}");
}

#[test]
fn a_file_that_somebody_else_could_have_placed_is_refused() {
    let place = Place::new("planted");
    let path = place.write("work/cofferdam.toml", PROJECT);
    assert_eq!(place.run("config trust cofferdam.toml").code, 0);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(place.run("run -- true").stderr.contains("everybody may write it"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    if chown(&path, Some(54321), None).is_ok() {
        assert!(place.run("run -- true").stderr.contains("it belongs to user 54321"));
    } else {
        println!("not tried: a file of another user, which only root can make");
    }
    fs::remove_file(&path).unwrap();
    let elsewhere = place.write("elsewhere.toml", PROJECT);
    symlink(&elsewhere, &path).unwrap();
    for line in ["run -- true", "run --config cofferdam.toml -- true"] {
        let said = place.run(line);
        assert_eq!(said.code, 125);
        assert!(said.stderr.contains("it is a symbolic link"), "{}", said.stderr);
    }
    assert!(place.run("config trust cofferdam.toml").stderr.contains("it is a symbolic link"));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(place.run("run -- true").stderr.contains("it is not a regular file"));
}

#[test]
fn approvals_that_others_could_plant_do_not_count() {
    let place = Place::new("planted-approval");
    place.write("work/cofferdam.toml", PROJECT);
    assert_eq!(place.run("config trust cofferdam.toml").code, 0);
    let state = place.path("home/.local/state/cofferdam");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    let said = place.run("wrap -- true");
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("others may write the state directory"), "{}", said.stderr);
}

#[test]
fn a_stricter_profile_closes_the_way_out_of_a_file() {
    let place = Place::new("stricter");
    let own = "[run]\nprofile = \"repo-write\"\negress = [\"crates.io:443\"]\n";
    place.write("home/.config/cofferdam/config.toml", own);
    let open = argv(&place, "", &[]);
    assert!(open.contains(&"--egress=crates.io:443".to_owned()), "{open:?}");
    let strict = argv(&place, "--profile no-network", &[]);
    assert!(!strict.iter().any(|word| word.starts_with("--egress")), "{strict:?}");
}

#[test]
fn errors_of_the_configuration_are_as_reviewed() {
    let place = Place::new("config-errors");
    let files = [
        "[run]\nmemroy = \"1G\"\n",
        "[rum]\n",
        "memory = \"1G\"\n",
        "\n\n[run]\nprofile = \"readonly\"\n",
        "[run]\ntimeout = 5\n",
        "[run]\ntimeout = \"5\"\n",
        "[run]\nread = \"/etc\"\n",
        "[run]\nread = [\"/etc\", 5]\n",
        "[run]\nenv = [\"A=b\"]\n",
        "[run]\nenv = { A = 5 }\n",
        "[run]\nallow_sensitive_writes = \"yes\"\n",
        "[run]\non_unavailable = \"warn\"\n",
        "[run]\negress = [\"*.com:443\"]\n",
        "[run]\negress = [\"example.com:443\"]\n",
        "[run]\nmemory =\n",
        "[run]\nprofile = \"read-only\"\nmemory = 5\n",
        "[run]\ndisk = \"1k\"\n",
        "[run\n",
        "[run]\nmemory = \"1G\"\nmemory = \"2G\"\n",
        "[run]\nworkspace = \"\"\n",
    ];
    let mut text = String::new();
    for file in files {
        place.write("work/cofferdam.toml", file);
        for line in file.lines() {
            text.push_str(format!("| {line}").trim_end());
            text.push('\n');
        }
        text.push_str(&place.run("config check").transcript("config check"));
    }
    fs::remove_file(place.path("work/cofferdam.toml")).unwrap();
    for (name, value) in [
        ("COFFERDAM_MEMROY", "1G"),
        ("COFFERDAM_ENV", "A=b"),
        ("COFFERDAM_COLOUR", "x"),
        ("COFFERDAM_TIMEOUT", "5"),
        ("COFFERDAM_PROFILE", ""),
    ] {
        let said = place.run_with(["config", "check"], &[(name, value)]);
        text.push_str(&said.transcript(&format!("config check   # {name}={value:?}")));
    }
    compare("tests/snapshots/config-errors.txt", &text);
}

#[test]
fn check_shows_each_value_with_its_origin() {
    let place = Place::new("check");
    place.write("home/.config/cofferdam/config.toml", "[run]\npids = 100\n");
    let project = "[run]\nprofile = \"repo-write\"\n# Wide.\nmemory = \"1536M\"\ncpu = 1.5\n\
                   env = { TOKEN = \"secret\" }\nread = [\"docs\", \"~/models\"]\n";
    place.write("work/cofferdam.toml", project);
    let variables = [("COFFERDAM_TIMEOUT", "90s"), ("COFFERDAM_HOME", "/nowhere/state")];
    let said = place.run_with(["config", "check"], &variables);
    // Columns are as wide as the place's name is long, so spaces are not compared.
    let transcript = said.transcript("config check");
    let lines =
        transcript.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let text: String = lines.map(|line| line + "\n").collect();
    compare("tests/snapshots/config-check.txt", &text);
    assert!(!place.path("home/.local").exists(), "checking leaves nothing behind");
    let said = place.run_with(["config", "check", "--json"], &variables);
    let object: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(object["files"][1]["standing"], "unapproved");
}
