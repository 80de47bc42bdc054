//! What a model is told where something is not as a call needs it: a tool of its own pack, and why a command
//! never ran.

use crate::stage::{Kind, Stage, call, done};
use cofferdam_tools::{PackName, Scope};
use serde_json::{Value, json};

#[tokio::test]
async fn what_is_to_be_done_first_is_a_tool_of_the_pack() {
    let stage = Stage::new().await;
    let hint_of = |structured: &Value| {
        let hint = structured["error"]["hint"].as_str().or(structured["hint"].as_str());
        hint.unwrap_or_default().to_owned()
    };
    for (pack, run, pause, first) in [
        (
            PackName::Cofferdam,
            ("shell_exec", json!({ "command": "true" })),
            ("sandbox_pause", json!({})),
            "Bring it back with sandbox_ensure first.",
        ),
        (
            PackName::Everruns,
            ("sandbox_exec", json!({ "command": "true" })),
            ("sandbox_manage", json!({ "action": "pause" })),
            "Bring it back with sandbox_manage and the action resume first.",
        ),
    ] {
        let tools = stage.tools(pack, Scope::Implicit, Kind::Direct);
        done(&tools, run.0, run.1.clone()).await;
        let session = tools.sandbox(None).await.unwrap();
        stage.sessions.stop(session.id()).await.unwrap();
        let refused = call(&tools, pause.0, pause.1.clone()).await;
        assert_eq!(hint_of(&refused.structured), first, "{pack}: {}", refused.text);
    }
    let tools = stage.tools(PackName::Openmanus, Scope::Implicit, Kind::Direct);
    let asked = json!({ "action": "check_command_output", "session_name": "none" });
    let refused = call(&tools, "sandbox_shell", asked.clone()).await;
    let hint = hint_of(&refused.structured);
    assert!(hint.starts_with("Call sandbox_shell with execute_command first"), "{hint}");
    let run = json!({ "action": "execute_command", "command": "true", "session_name": "other" });
    done(&tools, "sandbox_shell", run).await;
    let refused = call(&tools, "sandbox_shell", asked).await;
    let hint = hint_of(&refused.structured);
    assert!(hint.starts_with("Open it with sandbox_shell, execute_command"), "{hint}");
    stage.end().await;
}

#[tokio::test]
async fn a_command_that_never_ran_says_why_whichever_tool_is_asked() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    let why = "the working directory \"/workspace/none\" cannot be entered";
    let arguments = json!({ "command": "true", "cwd": "none" });
    let ran = done(&tools, "shell_exec", arguments.clone()).await;
    assert!(ran["detail"].as_str().unwrap().starts_with(why), "{ran}");
    let polled = call(&tools, "shell_poll", json!({ "exec": ran["exec"] })).await;
    assert_eq!(polled.structured["detail"], ran["detail"]);
    assert!(
        polled.text.starts_with(&format!("never ran, exit code 125 ({why}")),
        "{}",
        polled.text
    );
    let started = call(&tools, "shell_start", arguments).await;
    let told = (&started.structured["running"], &started.structured["detail"]);
    assert_eq!(told, (&json!(false), &ran["detail"]), "{}", started.text);
    assert!(started.text.contains(&format!("could not be started: {why}")), "{}", started.text);
    // The control: one that ran has nothing to say of it.
    let ran = done(&tools, "shell_exec", json!({ "command": "exit 125" })).await;
    assert!(ran.get("detail").is_none(), "{ran}");
    stage.end().await;
}
