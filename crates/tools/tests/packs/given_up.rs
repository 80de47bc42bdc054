//! Commands in the background, commands that are given up, and who listens.

use crate::stage::{Kind, Stage, call, done};
use cofferdam_tools::{CallContext, PackName, Progress, Scope};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

#[tokio::test]
async fn a_command_in_the_background_is_read_written_to_and_ended() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    let asked = json!({ "command": "while read x; do echo \"got $x\"; done; echo over; sleep 99",
                        "takes_input": true });
    let exec = done(&tools, "shell_start", asked).await["exec"].clone();
    let written = done(&tools, "shell_write", json!({ "exec": exec, "text": "one\n" })).await;
    assert_eq!(written, json!({ "exec": exec, "bytes_written": 4, "closed": false }));
    let asked = |offset: u64| json!({ "exec": exec, "offset": offset, "wait_ms": 20000 });
    let news = done(&tools, "shell_poll", asked(0)).await;
    assert_eq!((&news["content"], &news["running"]), (&json!("got one\n"), &json!(true)));
    done(&tools, "shell_write", json!({ "exec": exec, "text": "", "close": true })).await;
    let news = done(&tools, "shell_poll", asked(8)).await;
    assert_eq!((&news["content"], &news["next_offset"]), (&json!("over\n"), &json!(13)));
    let killed = done(&tools, "shell_kill", json!({ "exec": exec })).await;
    assert_eq!((&killed["running"], &killed["exit_code"]), (&json!(false), &json!(130)));
    // Once more is the same.
    assert_eq!(done(&tools, "shell_kill", json!({ "exec": exec })).await, killed);
    let end = done(&tools, "shell_poll", json!({ "exec": exec })).await;
    assert_eq!((&end["ending"], &end["content"]), (&json!("canceled"), &json!("got one\nover\n")));
    let late = call(&tools, "shell_write", json!({ "exec": exec, "text": "x" })).await;
    assert!(late.is_error && late.text.contains("has ended"), "{}", late.text);
    stage.end().await;
}

#[tokio::test]
async fn a_signal_is_answered_with_the_ending_that_it_brought_about_or_came_too_late_for() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    for (command, signal, ending, code) in [
        ("exec sleep 99", "KILL", "canceled", 130),
        ("exec sleep 99", "TERM", "signaled", 143),
        ("exec sleep 99", "INT", "signaled", 130),
        ("trap 'exit 5' TERM; echo set; while :; do sleep 0.1; done", "TERM", "exited", 5),
        ("echo set; exit 3", "KILL", "exited", 3),
    ] {
        let asked = json!({ "command": command });
        let exec = done(&tools, "shell_start", asked).await["exec"].clone();
        if command.contains("set") {
            let asked = json!({ "exec": exec, "offset": 0, "wait_ms": 20000 });
            done(&tools, "shell_poll", asked).await;
        }
        if command.contains("exit 3") {
            let asked = json!({ "exec": exec, "offset": 4, "wait_ms": 20000 });
            done(&tools, "shell_poll", asked).await;
        }
        let killed = done(&tools, "shell_kill", json!({ "exec": exec, "signal": signal })).await;
        let expected = json!({
            "exec": exec, "signal": signal, "running": false, "ending": ending, "exit_code": code,
        });
        assert_eq!(killed, expected, "{command}");
    }
    stage.end().await;
}

#[tokio::test]
async fn what_a_command_does_not_read_is_told_and_no_call_waits_for_it() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    let asked = json!({ "command": "sleep 99", "takes_input": true });
    let exec = done(&tools, "shell_start", asked).await["exec"].clone();
    // More than a pipe holds.
    let text = "x".repeat(3 << 20);
    let write = || json!({ "exec": exec, "text": text });
    let refused = call(&tools, "shell_write", write()).await;
    let said = &refused.text;
    assert_eq!(refused.structured["error"]["kind"], "timed_out", "{said}");
    let (_, took) = said.split_once("does not read: it took ").unwrap();
    let (took, _) = took.split_once(" of 3145728 bytes").unwrap();
    assert!((4096..2 << 20).contains(&took.parse::<usize>().unwrap()), "{said}");
    // One that is given up does not wait so long.
    let context = CallContext::new().canceled_by(async {});
    let given_up = tools.call("shell_write", write(), context).await;
    assert!(given_up.is_error && given_up.text.contains("took 0 of 3145728"), "{}", given_up.text);
    let asked = json!({ "command": "sleep 99", "stdin": text });
    let context = CallContext::new().canceled_by(tokio::time::sleep(Duration::from_millis(500)));
    let ran = tools.call("shell_exec", asked, context).await;
    assert_eq!(ran.structured["ending"], "canceled", "{}", ran.text);
    // The control: one that reads takes all of it.
    let asked = json!({ "command": "wc -c", "takes_input": true });
    let exec = done(&tools, "shell_start", asked).await["exec"].clone();
    let write = json!({ "exec": exec, "text": text, "close": true });
    assert_eq!(done(&tools, "shell_write", write).await["bytes_written"], 3 << 20);
    stage.end().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_kills_its_command_and_answers() {
    let stage = Stage::new().await;
    for (pack, name, stdout) in [
        (PackName::Cofferdam, "shell_exec", "/stdout/text"),
        (PackName::Everruns, "sandbox_exec", "/stdout"),
        (PackName::Adk, "exec_command", "/stdout"),
        (PackName::Fluers, "bash", "/stdout"),
    ] {
        let tools = stage.tools(pack, Scope::Implicit, Kind::Direct);
        let (begun, heard) = (Arc::new(Notify::new()), Arc::new(Mutex::new(Vec::new())));
        let (tell, keep) = (Arc::clone(&begun), Arc::clone(&heard));
        let context = CallContext::new()
            .with_progress(move |progress: Progress| {
                // Told once there is output: then it has begun.
                if !progress.message.contains(" 0 bytes") {
                    tell.notify_one();
                }
                keep.lock().unwrap().push(progress.done);
            })
            .canceled_by(async move { begun.notified().await });
        let command = json!({ "command": "echo begun; sleep 99; echo never" });
        let outcome = tools.call(name, command, context).await;
        let said = outcome.structured.pointer(stdout).and_then(Value::as_str);
        assert_eq!(said, Some("begun\n"), "{pack}: {}", outcome.text);
        assert_eq!(outcome.structured["exit_code"], 130, "{pack}: {}", outcome.text);
        let heard = heard.lock().unwrap().clone();
        assert!(heard.is_sorted() && !heard.is_empty(), "{heard:?}");
        tools.close().await.unwrap();
    }
    stage.end().await;
}

#[tokio::test]
async fn a_call_that_waits_for_news_can_be_given_up_and_kills_nothing() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    let started = done(&tools, "shell_start", json!({ "command": "sleep 99" })).await;
    let asked = json!({ "exec": started["exec"], "wait_ms": 60000 });
    let context = CallContext::new().canceled_by(async {});
    let outcome = tools.call("shell_poll", asked, context).await;
    assert_eq!((&outcome.structured["running"], outcome.is_error), (&json!(true), false));
    stage.end().await;
}

#[tokio::test]
async fn a_blocking_command_that_is_given_up_is_interrupted_and_its_session_stays() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Openmanus, Scope::Implicit, Kind::Direct);
    let run = |command: &str, blocking: bool| {
        json!({ "action": "execute_command", "session_name": "main", "command": command,
                "blocking": blocking })
    };
    done(&tools, "sandbox_shell", run("x=kept", true)).await;
    let context = CallContext::new().canceled_by(async {});
    let outcome = tools.call("sandbox_shell", run("sleep 99", true), context).await;
    assert_eq!(outcome.structured["exit_code"], 130, "{}", outcome.text);
    let kept = done(&tools, "sandbox_shell", run("echo $x", true)).await;
    assert_eq!((&kept["output"], &kept["exit_code"]), (&json!("kept\n"), &json!(0)));
    stage.end().await;
}
