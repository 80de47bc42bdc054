//! Which sandbox a call is about, who makes it and who removes it.

use crate::stage::{Kind, Stage, call, done};
use cofferdam::Profile;
use cofferdam_session::{InitCommand, SessionOrder};
use cofferdam_tools::{PackName, Scope, Toolbox};
use serde_json::{Value, json};
use std::collections::BTreeMap;

async fn count(stage: &Stage) -> usize {
    stage.sessions.list(&BTreeMap::new()).await.unwrap().len()
}

#[tokio::test]
async fn an_implied_sandbox_is_made_once_and_removed_with_its_toolbox() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    let other = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    assert_eq!(count(&stage).await, 0);
    assert!(!tools.close().await.unwrap());
    let run = || done(&tools, "shell_exec", json!({ "command": "echo $$ >> pids" }));
    tokio::join!(run(), run(), run());
    assert_eq!(count(&stage).await, 1, "calls at the same time make one");
    done(&other, "shell_exec", json!({ "command": "true" })).await;
    assert_eq!(count(&stage).await, 2, "another toolbox has another");
    assert!(tools.close().await.unwrap());
    assert_eq!(count(&stage).await, 1);
    // Somebody else may remove it: the next call makes another one.
    let left = stage.sessions.list(&BTreeMap::new()).await.unwrap().remove(0).id;
    stage.sessions.delete(&stage.sessions.find(&left).await.unwrap()).await.unwrap();
    done(&other, "shell_exec", json!({ "command": "true" })).await;
    assert_eq!(count(&stage).await, 1);
    stage.end().await;
}

#[tokio::test]
async fn an_implied_sandbox_that_cannot_be_prepared_is_removed() {
    let stage = Stage::new().await;
    let tools = |name: Option<&str>| {
        let mut order = stage.order(Kind::Direct);
        order.name = name.map(str::to_owned);
        order.init.push(InitCommand::shell("test -e ready"));
        Toolbox::new(PackName::Cofferdam, stage.sessions.clone(), Scope::Implicit, order)
    };
    let run = json!({ "command": "true" });
    let own = tools(None);
    for _ in 0..2 {
        let failed = call(&own, "shell_exec", run.clone()).await;
        assert!(failed.is_error && failed.text.contains("test -e ready"), "{}", failed.text);
        assert!(failed.text.contains("nothing is left"), "{}", failed.text);
        assert_eq!(count(&stage).await, 0);
    }
    // The control: one with a name stays, and goes on where it failed; and what can be prepared is there.
    let named = tools(Some("named"));
    assert!(call(&named, "shell_exec", run.clone()).await.is_error);
    assert_eq!(count(&stage).await, 1);
    std::fs::write(stage.workspace().join("ready"), "").unwrap();
    done(&named, "shell_exec", run.clone()).await;
    done(&own, "shell_exec", run).await;
    assert_eq!(count(&stage).await, 2);
    stage.end().await;
}

#[tokio::test]
async fn an_order_with_a_name_is_shared_and_stays() {
    let stage = Stage::new().await;
    let order = || stage.order(Kind::Direct).named("shared");
    let make =
        || Toolbox::new(PackName::Everruns, stage.sessions.clone(), Scope::Implicit, order());
    let (one, two) = (make(), make());
    done(&one, "sandbox_exec", json!({ "command": "echo x > $HOME/kept" })).await;
    let seen = done(&two, "sandbox_exec", json!({ "command": "cat $HOME/kept" })).await;
    assert_eq!(seen["stdout"], "x\n");
    assert!(!one.close().await.unwrap() && !two.close().await.unwrap());
    assert_eq!(count(&stage).await, 1);
    stage.end().await;
}

#[tokio::test]
async fn a_named_scope_needs_a_whole_name_in_every_call() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Named, Kind::Direct);
    let outcome = call(&tools, "shell_exec", json!({ "command": "true" })).await;
    assert!(outcome.is_error && outcome.text.contains("\"sandbox\""), "{}", outcome.text);
    let run = json!({ "sandbox": "build", "command": "true" });
    let outcome = call(&tools, "shell_exec", run.clone()).await;
    assert_eq!(outcome.structured["error"]["kind"], "not_found", "a typing error makes none");
    let ensure = || done(&tools, "sandbox_ensure", json!({ "sandbox": "build" }));
    let (a, b, c) = tokio::join!(ensure(), ensure(), ensure());
    assert!(a["sandbox"]["id"] == b["sandbox"]["id"] && b["sandbox"]["id"] == c["sandbox"]["id"]);
    done(&tools, "shell_exec", run).await;
    for near in ["buil", "", "Build"] {
        let outcome = call(&tools, "sandbox_delete", json!({ "sandbox": near })).await;
        assert!(outcome.is_error || outcome.structured["deleted"] == false, "{near:?}");
    }
    assert_eq!(count(&stage).await, 1);
    done(&tools, "sandbox_delete", json!({ "sandbox": "build" })).await;
    let again = done(&tools, "sandbox_status", json!({ "sandbox": "build" })).await;
    assert_eq!(again["exists"], false);
    // Those whose tools have no call for it make theirs at first use.
    let tools = stage.tools(PackName::Adk, Scope::Named, Kind::Direct);
    let file = json!({ "sandbox": "a", "path": "x", "content": "1" });
    done(&tools, "write_file", file).await;
    let refused = call(&tools, "read_file", json!({ "path": "x" })).await;
    assert_eq!(refused.structured["error"], "invalid_arguments");
    stage.end().await;
}

#[tokio::test]
async fn a_sandbox_without_the_labels_of_the_order_is_nobodys() {
    let stage = Stage::new().await;
    let labelled = |value: &str| {
        let mut order = stage.order(Kind::Direct);
        order.labels.insert("team".to_owned(), value.to_owned());
        Toolbox::new(PackName::Cofferdam, stage.sessions.clone(), Scope::Named, order)
    };
    let (red, blue) = (labelled("red"), labelled("blue"));
    done(&red, "sandbox_ensure", json!({ "sandbox": "a" })).await;
    let exists = |report: &Value| report["exists"].clone();
    let named = json!({ "sandbox": "a" });
    assert_eq!(exists(&done(&red, "sandbox_status", named.clone()).await), true, "the control");
    assert_eq!(exists(&done(&blue, "sandbox_status", named.clone()).await), false);
    assert_eq!(done(&blue, "sandbox_delete", named.clone()).await["deleted"], false);
    let id = done(&red, "sandbox_status", named.clone()).await["sandbox"]["id"].clone();
    assert_eq!(exists(&done(&blue, "sandbox_status", json!({ "sandbox": id })).await), false);
    let outcome = call(&blue, "sandbox_ensure", named).await;
    assert!(outcome.is_error, "a name that is taken is not taken over: {}", outcome.text);
    assert_eq!(count(&stage).await, 1);
    stage.end().await;
}

async fn names(tools: &Toolbox) -> Vec<String> {
    let all = tools.nameable().await.unwrap();
    all.into_iter().map(|report| report.name.unwrap_or(report.id)).collect()
}

#[tokio::test]
async fn a_named_scope_reaches_no_sandbox_of_another_policy_and_tells_of_none() {
    let stage = Stage::new().await;
    let mut order = stage.order(Kind::Direct).named("agent");
    order.spec.profile = Profile::ReadOnly;
    let id = stage.sessions.create(&order).await.unwrap().id().to_string();
    let tools = stage.tools(PackName::Cofferdam, Scope::Named, Kind::Direct);
    let everruns = stage.tools(PackName::Everruns, Scope::Named, Kind::Direct);
    for name in ["agent", &id] {
        for (tools, tool, more) in [
            (&tools, "shell_exec", json!({ "command": "true" })),
            (&tools, "file_write", json!({ "path": "x", "content": "" })),
            (&tools, "sandbox_status", json!({})),
            (&tools, "sandbox_ensure", json!({})),
            (&tools, "sandbox_delete", json!({})),
            (&everruns, "sandbox_exec", json!({ "command": "true" })),
        ] {
            let mut arguments = more;
            arguments["sandbox"] = json!(name);
            let outcome = call(tools, tool, arguments).await;
            assert!(outcome.is_error && outcome.text.contains("profile"), "{}", outcome.text);
        }
    }
    assert_eq!((count(&stage).await, names(&tools).await.len()), (1, 0));
    // The control: one of this policy is reached, and told of.
    done(&tools, "sandbox_ensure", json!({ "sandbox": "mine" })).await;
    assert_eq!(names(&tools).await, ["mine"]);
    stage.end().await;
}

#[tokio::test]
async fn another_workspace_is_reached_only_where_whoever_asks_may_have_it() {
    let stage = Stage::new().await;
    let order = stage.order(Kind::Layered).named("layered");
    stage.sessions.create(&order).await.unwrap();
    let tools = || {
        let order = SessionOrder::new(cofferdam::Sandbox::builder().spec().unwrap());
        Toolbox::new(PackName::Cofferdam, stage.sessions.clone(), Scope::Named, order)
    };
    let named = json!({ "sandbox": "layered", "command": "true" });
    let outcome = call(&tools(), "shell_exec", named.clone()).await;
    assert_eq!(outcome.structured["error"]["kind"], "denied", "{}", outcome.text);
    let elsewhere = tools().over(std::slice::from_ref(&stage.place));
    assert!(call(&elsewhere, "shell_exec", named.clone()).await.is_error);
    let given = tools().over(&[stage.workspace().canonicalize().unwrap()]);
    done(&given, "shell_exec", named).await;
    stage.end().await;
}

#[tokio::test]
async fn a_sandbox_that_ends_with_a_process_is_named_by_that_alone() {
    let stage = Stage::new().await;
    let mut order = stage.order(Kind::Direct);
    order.owned = true;
    let sessions = stage.sessions.clone();
    let own = Toolbox::new(PackName::Cofferdam, sessions, Scope::Implicit, order);
    done(&own, "sandbox_ensure", json!({})).await;
    let id = own.sandbox(None).await.unwrap().id().to_string();
    let named = json!({ "sandbox": id, "command": "true" });
    done(&own, "shell_exec", named.clone()).await;
    for scope in [Scope::Named, Scope::Implicit] {
        let other = stage.tools(PackName::Cofferdam, scope, Kind::Direct);
        let outcome = call(&other, "shell_exec", named.clone()).await;
        assert_eq!(outcome.structured["error"]["kind"], "not_found", "{}", outcome.text);
        let delete = json!({ "sandbox": id });
        assert_eq!(done(&other, "sandbox_delete", delete).await["deleted"], false);
        assert!(names(&other).await.is_empty());
    }
    assert_eq!(names(&own).await, [id]);
    stage.end().await;
}

#[tokio::test]
async fn the_preamble_is_of_what_holds() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Layered);
    let planned = tools.preamble().await;
    assert!(
        planned.contains("not made yet") && planned.contains("There is no network"),
        "{planned}"
    );
    assert_eq!(count(&stage).await, 0, "a look makes none");
    done(&tools, "sandbox_ensure", json!({})).await;
    let real = tools.preamble().await;
    assert!(!real.contains("not made yet") && real.contains("until it is applied"), "{real}");
    // What it says is tried: no root, no network, no home directory of others.
    let line = "id -u | grep -x 0; ls /sys/class/net | grep -vx lo; ls -d /home/* | grep -vx /home/sandbox; \
                head -c 1 /etc/shadow; ls / | grep -x workspace; true";
    let ran = done(&tools, "shell_exec", json!({ "command": line })).await;
    assert_eq!(ran["stdout"]["text"], "workspace\n", "{ran}");
    stage.end().await;
}
