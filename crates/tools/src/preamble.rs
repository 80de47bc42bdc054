//! What a model should know of the place that it works in: facts, absences among them, and no advice.

use crate::scope::{Sandboxes, Scope};
use cofferdam_core::network::HOST_NAME;
use cofferdam_core::{
    Axis, Degree, Enforced, Limit, OnUnavailable, Profile, SensitiveWrites, Spec, User, Workspace,
};
use cofferdam_session::{NetworkReport, SessionOrder, SessionReport};
use std::fmt::Write as _;

/// How many destinations are named.
const NAMED_RULES: usize = 5;

/// See [`Toolbox::preamble`](crate::Toolbox::preamble).
pub(crate) async fn of(sandboxes: &Sandboxes) -> String {
    let order = sandboxes.order();
    let (mut report, mut rules) = (None, None);
    if sandboxes.scope == Scope::Implicit
        && let Ok(Some(session)) = sandboxes.existing(None).await
    {
        report = sandboxes.sessions.status(session.id()).await.ok();
        // The user may have changed them since.
        rules = session.network().await.ok();
    }
    let rules = rules.or_else(|| planned_rules(&order.spec));
    text(order, report.as_ref(), rules.as_ref())
}

/// What a sandbox of this order may reach; nothing where that makes no sense.
fn planned_rules(spec: &Spec) -> Option<NetworkReport> {
    Some(NetworkReport::of(String::new(), spec.network_policy().ok()?))
}

/// What is known of a sandbox, in sentences.
fn text(
    order: &SessionOrder,
    report: Option<&SessionReport>,
    rules: Option<&NetworkReport>,
) -> String {
    let spec = &order.spec;
    let enforced = report.and_then(|report| report.enforced.as_ref());
    let mut facts = vec![format!(
        "Commands and files are in a Linux sandbox of profile {} on the user's machine.",
        spec.profile
    )];
    facts.push(network(rules, enforced));
    facts.extend(workspace(spec, report));
    facts.push(control_files(spec));
    facts.push(view(spec, enforced));
    facts.push(who(spec));
    facts.push(limits(spec, enforced));
    facts.push(time(order));
    facts.push(
        "There is no display and no browser. A port of the sandbox is reached from outside only where it is exposed."
            .to_owned(),
    );
    facts.extend(held(spec, enforced));
    let lines: Vec<String> = facts.into_iter().map(|fact| format!("- {fact}")).collect();
    format!("The environment:\n{}\n", lines.join("\n"))
}

/// Whether an axis is told as a fact: it holds, or is going to where nothing stands yet.
fn holds(enforced: Option<&Enforced>, axis: Axis) -> bool {
    enforced.is_none_or(|enforced| enforced.degree(axis) == Degree::Full)
}

fn network(rules: Option<&NetworkReport>, enforced: Option<&Enforced>) -> String {
    if !holds(enforced, Axis::Network) {
        return "The network is not fully cut off here; see below.".to_owned();
    }
    match rules.filter(|rules| rules.way_out) {
        Some(rules) => way_out(rules),
        None => {
            "There is no network: no address outside the sandbox can be reached, no package can be \
                 downloaded, and names are not resolved."
                .to_owned()
        }
    }
}

/// What the rules of a way out come to.
fn way_out(rules: &NetworkReport) -> String {
    let mut text = match rules.allow.as_slice() {
        [] => "The network reaches no destination so far".to_owned(),
        allow => format!("The network reaches {}", named(allow)),
    };
    if !rules.deny.is_empty() {
        write!(text, ", but never {}", named(&rules.deny)).ok();
    }
    if !rules.host_ports.is_empty() {
        let ports: Vec<String> = rules.host_ports.iter().map(ToString::to_string).collect();
        write!(text, ", and the user's own machine as {HOST_NAME}, port {}", ports.join(", ")).ok();
    }
    text.push_str(if rules.allow.iter().any(|rule| rule.starts_with('*') && !rule.starts_with("*.")) {
        ". Addresses of private networks are refused but for those that are named. Only TCP gets out."
    } else {
        ", and nothing else; other names are not resolved. Only TCP gets out."
    });
    if rules.ask_ms > 0 {
        let secs = rules.ask_ms.div_ceil(1000);
        write!(text, " What is not allowed waits up to {secs} s for the user to allow it.").ok();
    }
    text
}

/// The first rules in words, and how many others there are.
fn named(rules: &[String]) -> String {
    let word = |rule: &String| match rule.strip_prefix('*') {
        Some("") => "any public address".to_owned(),
        Some(rest) => match rest.strip_prefix(':') {
            Some(port) => format!("any public address at port {port}"),
            None => rule.clone(),
        },
        None => rule.clone(),
    };
    let shown: Vec<String> = rules.iter().take(NAMED_RULES).map(word).collect();
    match rules.len().saturating_sub(NAMED_RULES) {
        0 => shown.join(", "),
        more => format!("{} and {more} others", shown.join(", ")),
    }
}

fn workspace(spec: &Spec, report: Option<&SessionReport>) -> Vec<String> {
    let inside = report.and_then(|report| report.workspace_inside.as_deref());
    let place = inside.unwrap_or("/workspace");
    let is_read_only = spec.profile == Profile::ReadOnly;
    let what = match &spec.workspace {
        Workspace::Directory(_) if is_read_only => {
            "a directory of the user's that can be read and not be written"
        }
        Workspace::Directory(_) => {
            "a directory of the user's: what is written there is written for good, at once"
        }
        Workspace::CopyOnWrite(_) if is_read_only => {
            "a directory of the user's that can be read and not be written"
        }
        Workspace::CopyOnWrite(_) => {
            "copy-on-write over a directory of the user's: what is written stays in the sandbox until it is \
             applied, and the user's files do not change before"
        }
        Workspace::Private => "an empty directory of its own, gone with the sandbox",
    };
    let mut facts = vec![format!("The workspace is {place}, {what}.")];
    facts.extend(start(spec, place));
    if matches!(spec.workspace, Workspace::CopyOnWrite(_)) && !is_read_only {
        facts.push("Commands can be undone: the workspace goes back to any point.".to_owned());
    }
    let kept = match spec.workspace {
        Workspace::Private => "The home directory outlives",
        Workspace::Directory(_) | Workspace::CopyOnWrite(_) => {
            "The home directory and the workspace outlive"
        }
    };
    facts.push(format!("{kept} a sandbox that is lost; processes and /tmp do not."));
    facts
}

/// Where commands start, where that is called otherwise than the workspace.
fn start(spec: &Spec, place: &str) -> Option<String> {
    if let Some(image) = &spec.image {
        let cwd = image.run.start()?;
        return Some(format!("Commands start where the image wants it, in {cwd}."));
    }
    let (Workspace::Directory(path) | Workspace::CopyOnWrite(path)) = &spec.workspace else {
        return None;
    };
    let path = path.to_string_lossy();
    let is_shown = spec.profile != Profile::CiOnly && path != place;
    is_shown.then(|| {
        format!("Commands start in {path}, which is the same directory by its name on the user's machine.")
    })
}

fn control_files(spec: &Spec) -> String {
    match (&spec.workspace, spec.sensitive_writes) {
        (_, SensitiveWrites::Allowed) => {
            "Control files such as git hooks and editor settings are files like others.".to_owned()
        }
        (Workspace::CopyOnWrite(_), SensitiveWrites::Protected) => {
            "Control files such as git hooks, git configuration, start files and settings of editors and \
             agents stay in the sandbox: only a person applies them."
                .to_owned()
        }
        (Workspace::Private, SensitiveWrites::Protected) => {
            "Control files such as git hooks and editor settings are files like others: nobody outside the \
             sandbox uses them."
                .to_owned()
        }
        (Workspace::Directory(_), SensitiveWrites::Protected) => {
            "Control files such as git hooks, git configuration, start files and settings of editors and \
             agents cannot be changed at the top of the workspace and of its repositories, nor made there."
                .to_owned()
        }
    }
}

fn view(spec: &Spec, enforced: Option<&Enforced>) -> String {
    let mut text = match &spec.image {
        Some(image) => format!("The root file system is the image {}.", image.name),
        None if spec.profile.shows_toolchains() => {
            "The machine's programs and the toolchains on the user's PATH are there, read-only."
                .to_owned()
        }
        None => {
            "The machine's programs are there, read-only; the user's toolchains are not.".to_owned()
        }
    };
    if holds(enforced, Axis::Files) {
        text.push_str(
            " The user's home directory, credentials and other files are not there, but for what was shown \
             on purpose.",
        );
    }
    if holds(enforced, Axis::Processes) {
        text.push_str(" No process outside the sandbox can be seen or signaled.");
    }
    text
}

fn who(spec: &Spec) -> String {
    match spec.user {
        User::Ordinary => {
            "Commands run as an ordinary user. There is no root, and sudo does not work.".to_owned()
        }
        User::Root => {
            "Commands run as root of the sandbox alone, which has no right on the machine."
                .to_owned()
        }
    }
}

fn limits(spec: &Spec, enforced: Option<&Enforced>) -> String {
    let all = &spec.limits;
    let cpu = match all.cpu_millis.value() {
        0 => "no limit of processors".to_owned(),
        millis => format!("{}.{:03} processors", millis / 1000, millis % 1000),
    };
    let word = match (enforced, is_asked(spec)) {
        (Some(_), _) if !holds(enforced, Axis::Limits) => "Limits (not all of them hold here)",
        (None, false) => "Limits, as far as this machine can hold them",
        _ => "Limits",
    };
    format!(
        "{word}: memory {}, {} processes, {cpu}, private space {}.",
        size(all.memory_bytes.value()),
        all.pids.value(),
        size(all.disk_bytes.value())
    )
}

/// Whether limits were asked for, so that a sandbox which cannot hold them does not start.
fn is_asked(spec: &Spec) -> bool {
    let all = &spec.limits;
    let asked = |limit: Limit<u64>| limit.is_asked();
    asked(all.memory_bytes) || asked(all.disk_bytes) || all.pids.is_asked()
}

fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}

fn time(order: &SessionOrder) -> String {
    let mut text = match order.idle_pause {
        Some(idle) => format!(
            "The sandbox is paused after {} s without use, with all that runs in the background, and goes on \
             at the next use.",
            idle.as_secs()
        ),
        None => "The sandbox is not paused when idle.".to_owned(),
    };
    let lease = match order.ttl {
        Some(ttl) => format!(" It is removed {} s after it was made.", ttl.as_secs()),
        None if order.owned => String::new(),
        None => " It has no lease.".to_owned(),
    };
    if order.owned {
        text.push_str(" It is removed when the connection ends, with all that is only in it.");
    }
    text.push_str(&lease);
    text
}

/// How far it holds.
fn held(spec: &Spec, enforced: Option<&Enforced>) -> Vec<String> {
    let Some(enforced) = enforced else {
        let word = match spec.on_unavailable {
            OnUnavailable::Refuse => {
                "The sandbox is not made yet. If this machine cannot enforce this, it is not made at all."
            }
            OnUnavailable::Degrade => {
                "The sandbox is not made yet. What this machine cannot enforce will not hold, and is told \
                 when it is made."
            }
        };
        return vec![word.to_owned()];
    };
    let all = enforced.reasons.iter().take(16);
    all.map(|reason| format!("Not fully enforced: {reason}.")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{Basis, Caller};
    use std::time::Duration;

    fn order(workspace: Workspace) -> SessionOrder {
        SessionOrder::new(Spec::new(workspace, Caller::default()))
    }

    /// What is told of an order alone.
    fn planned(order: &SessionOrder) -> String {
        text(order, None, planned_rules(&order.spec).as_ref())
    }

    fn says(text: &str, words: &[&str]) {
        for word in words {
            assert!(text.contains(word), "{word:?} in {text}");
        }
    }

    #[test]
    fn absences_are_said_as_plainly_as_what_is_there() {
        let text = planned(&order(Workspace::Private));
        says(&text, &["no-network", "There is no network", "There is no root", "no display"]);
        says(&text, &["8 GiB", "4096 processes", "not made yet", "paused after 180 s", "no lease"]);
        assert!(!text.contains("undone"), "{text}");
    }

    #[test]
    fn a_sandbox_that_goes_with_its_connection_says_so() {
        let mut order = order(Workspace::Private);
        order.owned = true;
        let text = planned(&order);
        says(&text, &["removed when the connection ends"]);
        assert!(!text.contains("no lease"), "{text}");
    }

    #[test]
    fn what_kind_of_workspace_it_is_is_said() {
        let cow = planned(&order(Workspace::CopyOnWrite("/x".into())));
        says(
            &cow,
            &["until it is applied", "Commands can be undone", "only a person applies them"],
        );
        let direct = planned(&order(Workspace::Directory("/x".into())));
        says(&direct, &["written for good", "cannot be changed"]);
        let private = planned(&order(Workspace::Private));
        says(&private, &["files like others: nobody outside"]);
        assert!(!private.contains("cannot be changed"), "{private}");
        let mut read_only = order(Workspace::Directory("/x".into()));
        read_only.spec.profile = Profile::ReadOnly;
        read_only.ttl = Some(Duration::from_secs(60));
        says(&planned(&read_only), &["not be written", "removed 60 s"]);
    }

    #[test]
    fn rules_are_told_as_what_they_reach() {
        let told = |profile, egress: &[&str], more: fn(&mut Spec)| {
            let mut order = order(Workspace::Private);
            order.spec.profile = profile;
            order.spec.egress = egress.iter().map(|rule| rule.parse().unwrap()).collect();
            more(&mut order.spec);
            planned(&order)
        };
        let open = told(Profile::FullDev, &[], |_| {});
        says(&open, &["reaches any public address. Addresses of private networks are refused"]);
        assert!(!open.contains("nothing else") && !open.contains('*'), "{open}");
        let one = told(Profile::RepoWrite, &["crates.io:443"], |_| {});
        says(&one, &["reaches crates.io:443, and nothing else", "Only TCP"]);
        let web = told(Profile::FullDev, &["*:443"], |spec| {
            spec.deny = vec!["evil.test".parse().unwrap()];
        });
        says(&web, &["any public address at port 443, but never evil.test. Addresses"]);
        let asks = told(Profile::RepoWrite, &[], |spec| spec.ask = Duration::from_secs(30));
        says(&asks, &["reaches no destination so far, and nothing else", "waits up to 30 s"]);
        let host = told(Profile::RepoWrite, &["a.test"], |spec| spec.host_ports = vec![5432]);
        says(&host, &["a.test, and the user's own machine as host.cofferdam.internal, port 5432"]);
        says(&told(Profile::RepoWrite, &[], |_| {}), &["There is no network"]);
    }

    #[test]
    fn where_commands_start_is_said_where_it_has_another_name() {
        let start = "Commands start in /x, which is the same directory";
        says(&planned(&order(Workspace::CopyOnWrite("/x".into()))), &["is /workspace,", start]);
        let mut ci = order(Workspace::Directory("/x".into()));
        ci.spec.profile = Profile::CiOnly;
        assert!(!planned(&ci).contains("Commands start"));
        assert!(!planned(&order(Workspace::Private)).contains("Commands start"));
    }

    #[test]
    fn nothing_is_promised_that_does_not_hold() {
        let order = order(Workspace::Private);
        let full = text_of(&order, Enforced::full(Basis::Applied));
        says(&full, &["There is no network", "are not there", "No process outside"]);
        for (axis, promise) in [
            (Axis::Network, "There is no network"),
            (Axis::Files, "home directory, credentials"),
            (Axis::Processes, "No process outside"),
        ] {
            let mut less = Enforced::full(Basis::Applied);
            less.lower(axis, Degree::Partial, "this kernel cannot");
            let text = text_of(&order, less);
            assert!(!text.contains(promise), "{text}");
            says(&text, &["Not fully enforced", "this kernel cannot"]);
        }
        let mut less = Enforced::full(Basis::Applied);
        less.lower(Axis::Limits, Degree::None, "no control groups");
        says(&text_of(&order, less), &["not all of them hold here", "no control groups"]);
    }

    fn text_of(order: &SessionOrder, enforced: Enforced) -> String {
        let report = serde_json::json!({
            "id": "s", "name": null, "backend": "local", "phase": "running", "incarnation": 1,
            "profile": "no-network", "workspace": null, "workspace_inside": "/workspace", "labels": {},
            "init": "done", "init_error": null, "idle_pause_ms": null, "lease_until_ms": null,
            "cleanup_failed": null, "enforced": enforced, "created_ms": 1, "updated_ms": 1,
        });
        let rules = planned_rules(&order.spec);
        text(order, Some(&serde_json::from_value(report).unwrap()), rules.as_ref())
    }
}
