//! Words, directories and whole commands that are longer than the system takes: told as that, with what to do.

use crate::stage::{Kind, Stage, call, done};
use cofferdam_tools::{PackName, Scope};
use serde_json::json;

#[tokio::test]
async fn what_is_too_long_to_start_is_told_as_that_and_the_sandbox_stays() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    let before = done(&tools, "sandbox_ensure", json!({})).await;
    for bytes in [4_200, 60_000, 300_000] {
        let cwd = "a/".repeat(bytes / 2);
        for tool in ["shell_start", "shell_exec"] {
            let started = call(&tools, tool, json!({ "command": "echo x", "cwd": cwd })).await;
            let exec = started.structured["exec"].clone();
            let ended = done(&tools, "shell_poll", json!({ "exec": exec, "wait_ms": 20000 })).await;
            let told = (&ended["running"], &ended["ending"], &ended["exit_code"]);
            assert_eq!(
                told,
                (&json!(false), &json!("not_started"), &json!(125)),
                "{bytes} {ended}"
            );
            let detail = ended["detail"].as_str().unwrap();
            assert!(detail.contains("is too long") && detail.contains("inside"), "{detail}");
        }
    }
    let refused =
        call(&tools, "shell_start", json!({ "command": "x", "cwd": "a".repeat(2 << 20) }));
    let refused = refused.await;
    assert!(refused.is_error && refused.text.contains("too long"), "{}", refused.text);
    for bytes in [200_000, 900_000] {
        let ran = call(&tools, "shell_exec", json!({ "command": "x".repeat(bytes) })).await;
        let told = format!("argument 2 of \"/bin/sh\" has {bytes} bytes");
        assert!(ran.text.contains(&told) && ran.text.contains("by a file"), "{}", ran.text);
    }
    // The control: it is the same sandbox, and what is shorter runs.
    let ran = done(&tools, "shell_exec", json!({ "command": format!(": {}", "x".repeat(99_000)) }));
    assert_eq!(ran.await["exit_code"], 0);
    let after = done(&tools, "sandbox_ensure", json!({})).await;
    assert_eq!(before["id"], after["id"]);
    stage.end().await;
}
