//! What lands in the workspace by a tool, and what never does.

use crate::stage::{Kind, Stage, call, done};
use cofferdam_core::{ApplyOrder, GuestPath};
use cofferdam_tools::{PackName, Scope};
use serde_json::json;

#[tokio::test]
async fn a_control_file_does_not_land_even_where_a_model_names_it() {
    let stage = Stage::new().await;
    let hook = stage.workspace().join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    for name in ["objects", "refs"] {
        std::fs::create_dir(stage.workspace().join(".git").join(name)).unwrap();
    }
    std::fs::write(stage.workspace().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Layered);
    let command = "echo evil > .git/hooks/pre-commit; echo evil > .envrc; echo good > a.txt";
    done(&tools, "shell_exec", json!({ "command": command })).await;
    for paths in [
        json!({ "paths": [".git/hooks/pre-commit", ".envrc"] }),
        json!({ "paths": [".git/hooks"] }),
        json!({ "paths": [".git"] }),
        json!({ "paths": [".envrc", "a.txt"] }),
        json!({}),
    ] {
        let outcome = call(&tools, "sandbox_apply", paths.clone()).await;
        // Naming them is of no use, and nobody is told that it is.
        assert!(!outcome.is_error && !outcome.text.contains("to be named"), "{}", outcome.text);
        assert!(outcome.text.contains("which the user alone applies"), "{}", outcome.text);
        let applied = outcome.structured;
        let kept = applied["kept"].as_array().unwrap();
        assert!(!kept.is_empty() && kept.iter().all(|c| c["standing"] == "protected"), "{paths}");
    }
    assert!(!hook.exists() && !stage.workspace().join(".envrc").exists());
    assert_eq!(std::fs::read(stage.workspace().join("a.txt")).unwrap(), b"good\n", "the control");
    // The control: a person who names it has it land.
    let session = stage.sessions.list(&Default::default()).await.unwrap().remove(0).id;
    let session = stage.sessions.session(stage.sessions.find(&session).await.unwrap());
    let paths = vec![GuestPath::new(".git/hooks/pre-commit").unwrap()];
    session.apply(&ApplyOrder { paths, ..ApplyOrder::default() }).await.unwrap();
    assert_eq!(std::fs::read(&hook).unwrap(), b"evil\n");
    stage.end().await;
}

#[tokio::test]
async fn a_path_that_no_change_is_at_is_named() {
    let stage = Stage::new().await;
    std::fs::create_dir_all(stage.workspace().join("gone")).unwrap();
    std::fs::write(stage.workspace().join("gone/a"), "").unwrap();
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Layered);
    let command = "mkdir d; echo x > d/f; echo x > e; rm -r gone";
    done(&tools, "shell_exec", json!({ "command": command })).await;
    for tool in ["sandbox_diff", "sandbox_apply"] {
        let said = async |paths: serde_json::Value| {
            let mut arguments = json!({ "paths": paths });
            if tool == "sandbox_apply" {
                arguments["dry_run"] = json!(true);
            }
            call(&tools, tool, arguments).await.text
        };
        let text = said(json!(["d", "typo", "ex"])).await;
        assert!(text.contains("[no change at typo, ex]"), "{text}");
        assert!(!said(json!(["./d/", "e", "gone/a"])).await.contains("no change at"));
    }
    let beyond = call(&tools, "sandbox_diff", json!({ "skip": 10 })).await;
    assert!(!beyond.text.contains("these are"), "{}", beyond.text);
    done(&tools, "sandbox_apply", json!({ "paths": ["e"] })).await;
    stage.end().await;
}

#[tokio::test]
async fn an_error_from_below_names_a_tool_or_says_that_the_user_has_to_do_it() {
    let stage = Stage::new().await;
    let layered = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Layered);
    done(&layered, "shell_exec", json!({ "command": "echo x > a" })).await;
    let direct = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    let ran = done(&direct, "shell_exec", json!({ "command": "true" })).await;
    for (tools, tool, arguments, hint) in [
        (&layered, "sandbox_undo", json!({ "point": 99 }), "an earlier sandbox_undo named"),
        (&direct, "sandbox_undo", json!({}), "For the user, on the command line: "),
        (&direct, "sandbox_diff", json!({}), "For the user, on the command line: "),
        (&direct, "shell_write", json!({ "exec": ran["exec"], "text": "x" }), "shell_poll"),
    ] {
        let refused = call(tools, tool, arguments).await;
        let said = refused.structured["error"]["hint"].as_str().unwrap_or_default();
        assert!(refused.is_error && said.contains(hint), "{tool}: {}", refused.text);
    }
    stage.end().await;
}
