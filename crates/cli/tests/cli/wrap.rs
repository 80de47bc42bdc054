//! What `wrap` prints.

use crate::harness::{Place, compare};
use std::collections::BTreeMap;

fn wrapped(place: &Place, words: &[&str], variables: &[(&str, &str)]) -> String {
    let said = place.run_with(words.iter().copied(), variables);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let object: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let mut text = format!("$ cofferdam {}\n", words.join(" "));
    text.push_str(&serde_json::to_string_pretty(&object).unwrap());
    text + "\n\n"
}

#[test]
fn a_wrapped_command_carries_every_setting() {
    let place = Place::new("wrap");
    let every = "wrap --profile ci-only -w sub --read /etc --write sub/../sub --hide nowhere \
                 --env A=b=c --env-from TOKEN --env-from UNSET --cwd x --timeout 90s --memory 512M \
                 --pids 64 --cpu 1.5 --disk 1G --max-output 16M --user root \
                 --on-unavailable degrade --backend local --allow-sensitive-writes --json -- ls -l";
    let every: Vec<&str> = every.split_whitespace().collect();
    let variables = [("TOKEN", "secret"), ("LANG", "C.UTF-8"), ("OTHER", "x")];
    let text = wrapped(&place, &["wrap", "--", "true"], &[])
        + &wrapped(&place, &["wrap", "--no-workspace", "--shell", "a | b"], &[])
        + &wrapped(&place, &every, &variables);
    compare("tests/snapshots/wrap.txt", &text);
}

#[test]
fn what_is_wrapped_reads_as_a_run() {
    let place = Place::new("wrap-twice");
    let said = place.run("wrap --memory 512M --cpu 0.5 --timeout 250ms --env=-A=-b -- true --json");
    let object: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let argv: Vec<String> = serde_json::from_value(object["argv"].clone()).unwrap();
    // The words of a run, wrapped once more, come to the same words.
    let real = |word: &String| word.replace("$PLACE", place.path("").to_str().unwrap());
    let again = ["wrap".to_owned()].into_iter().chain(argv.iter().skip(2).map(real));
    let env: BTreeMap<String, String> = serde_json::from_value(object["env"].clone()).unwrap();
    assert_eq!(env["-A"], "-b");
    let said = place.run_with(again, &[("-A", "-b")]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let object: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let twice: Vec<String> = serde_json::from_value(object["argv"].clone()).unwrap();
    assert_eq!(argv, twice);
}

#[test]
fn a_value_for_the_command_is_in_no_argv_and_rules_no_program_of_the_host() {
    let place = Place::new("wrap-values");
    let said = place.run(
        "wrap --env TOKEN=secret --env LD_PRELOAD=/x.so --env PATH=/y --env SSL_CERT_FILE=/c \
         --env KUBECONFIG=/z -- true",
    );
    let object: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(object["env"]["TOKEN"], "secret");
    let argv = object["argv"].to_string();
    assert!(argv.contains("--env-from=TOKEN") && !argv.contains("secret"), "{argv}");
    for kept in ["LD_PRELOAD=/x.so", "PATH=/y", "SSL_CERT_FILE=/c", "KUBECONFIG=/z"] {
        assert!(argv.contains(&format!("--env={kept}")), "{argv}");
    }
    assert_eq!(object["env"]["PATH"], "/usr/bin:/bin");
    assert!(object["env"].get("LD_PRELOAD").is_none() && object["env"].get("KUBECONFIG").is_none());
}
