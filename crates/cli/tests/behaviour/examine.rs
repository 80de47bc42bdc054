//! What a session uses, and what would stop an attack from inside it.

use crate::place::everyone;
use crate::schema::is_valid;
use crate::way_out::{HOST, ask, server};
use serde_json::json;
use std::fs;

#[test]
fn what_a_session_uses_is_told_and_wakes_nothing() {
    everyone(|place| {
        let port = server();
        let open = port.to_string();
        let words =
            ["create", "--name", "s", "--profile", "repo-write", "--allow-host-port", &open];
        place.says(&words, 0);
        let used = || {
            let used = place.says(&["show", "s", "--metrics", "--json"], 0).object();
            is_valid(place, "metrics", &used);
            used
        };
        let number = |used: &serde_json::Value, name: &str| used[name].as_f64().unwrap();
        let idle = used();
        assert_eq!(number(&idle, "processes"), 1.0, "its first process alone: {idle}");
        place.says(&["exec", "s", "-d", "--id", "one", "--", "sleep", "600"], 0);
        let line = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        place.says(&["exec", "s", "--shell", line], 0);
        let busy = used();
        assert!(number(&busy, "processes") >= 2.0, "{busy}");
        assert!(number(&busy, "cpu_ms") > number(&idle, "cpu_ms"), "{idle} {busy}");
        assert!(number(&busy, "memory_bytes") > 10_000.0, "{busy}");
        place.says(&["exec", "s", "--shell", &ask(HOST, port)], 0);
        place.says(&["exec", "s", "--shell", &ask("192.0.2.1", 8443)], 0);
        let counts = used()["connections"].clone();
        assert_eq!([&counts["allowed"], &counts["denied"]], [&json!(1), &json!(1)], "{counts}");
        assert!(counts["bytes_down"].as_u64() > Some(0), "{counts}");
        place.says(&["pause", "s"], 0);
        let paused = used();
        assert!(number(&paused, "processes") >= 2.0, "{paused}");
        let shown = place.says(&["show", "s", "--json"], 0).object();
        assert_eq!(shown["phase"], "paused");
        let text = place.says(&["show", "s", "--metrics"], 0).text();
        assert!(text.contains("connections") && text.contains("1 allowed, 1 denied"), "{text}");
    });
}

#[test]
fn the_proof_of_a_session_is_a_sandbox_like_its_own_and_leaves_it_alone() {
    everyone(|place| {
        let before = fs::read_dir(&place.workspace).unwrap().count();
        place.says(&["create", "--name", "s", "--profile", "read-only"], 0);
        place.says(&["exec", "s", "-d", "--id", "one", "--", "sleep", "600"], 0);
        let proof = place.says(&["show", "s", "--proof", "--json"], 0).object();
        is_valid(place, "probe", &proof);
        assert_eq!(
            [&proof["profile"], &proof["overall"]],
            [&json!("read-only"), &json!("FullyEnforced")],
            "{proof}"
        );
        let checks = proof["checks"].as_array().unwrap();
        assert!(checks.iter().filter(|check| check["held"] == true).count() > 20, "{proof}");
        let text = place.says(&["show", "s", "--proof"], 0).text();
        assert!(text.ends_with("read-only: FullyEnforced\n"), "{text}");
        assert_eq!(fs::read_dir(&place.workspace).unwrap().count(), before);
        let execs = place.says(&["ps", "s", "--json"], 0).object();
        assert_eq!(execs["execs"].as_array().unwrap().len(), 1, "{execs}");
        assert_eq!(execs["execs"][0]["ended_ms"], json!(null), "{execs}");
        let shown = place.says(&["show", "s", "--json"], 0).object();
        assert_eq!(shown["incarnation"], 1);
        place.says(&["show", "s", "--proof", "--metrics"], 2);
        // A workspace of its own is private space, which every profile lets it write.
        place.says(&["create", "--name", "own", "--profile", "read-only", "--no-workspace"], 0);
        let proof = place.says(&["show", "own", "--proof", "--json"], 0).object();
        assert_eq!(proof["overall"], "FullyEnforced", "{proof}");
    });
}
