//! `cofferdam run`.

use super::{exec::not_started, scoped};
use crate::args::{CommandOptions, RunArgs};
use crate::context::Context;
use crate::engine::{self, Output, RunOutcome, RunRequest};
use crate::{appeared, exit, render, report, screen};
use cofferdam_core::{
    Cause, Command, Denial, Ending, EndingReport, Enforced, LayerNote, Limits, Profile, Result,
    RunReport, Stdin,
};
use cofferdam_session::text_or_base64;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much of a stream is kept with `--json` unless somebody says otherwise: 16 MiB.
pub(super) const CAPTURED_BYTES: u64 = 16 << 20;

/// Runs the command, and returns the exit code that stands for its ending.
pub(super) fn perform(args: &RunArgs) -> Result<u8> {
    let context = Context::new(&args.policy, Some(&args.command), &args.config)?;
    if context.spec.network_policy()?.is_some_and(|policy| policy.ask_ms > 0) {
        // Somebody has to find what waits in it to answer it: that takes a session.
        return scoped::perform(args);
    }
    let mut command = context.command(&args.command, &args.start)?;
    connect_streams(&mut command, &args.command, args.json);
    let about = About::new(&context, args.json);
    let output = about.output;
    let state_directory = context.state_directory;
    let outcome = engine::run(RunRequest { spec: context.spec, command, output, state_directory })?;
    let code = exit::of_ending(&outcome.ending);
    match output {
        Output::Capture { .. } => render::print_json(&report_of(outcome))?,
        Output::Stream { .. } => tell(&about, &outcome),
    }
    Ok(code)
}

/// Decides on standard input and on a terminal: one only if all three streams are terminals, unless
/// it is forced or forbidden.
pub(super) fn connect_streams(command: &mut Command, options: &CommandOptions, is_captured: bool) {
    let is_wanted =
        !options.no_terminal && !is_captured && (options.terminal || screen::is_whole());
    command.terminal = is_wanted.then(screen::size);
    // A terminal is for both ways: what is typed there is for the command.
    let is_passed = options.interactive || is_wanted;
    command.stdin = if is_passed { Stdin::Piped } else { Stdin::Null };
}

/// What was asked for, as far as the words after a run need it.
pub(super) struct About {
    profile: Profile,
    limits: Limits,
    timeout: Option<Duration>,
    /// The directory that is the workspace.
    workspace: Option<PathBuf>,
    /// What becomes of the output.
    pub(super) output: Output,
}

impl About {
    /// What this command line asks for.
    pub(super) fn new(context: &Context, is_captured: bool) -> Self {
        let limit = context.max_output_bytes;
        let output = match is_captured {
            true => Output::Capture { limit_bytes: limit.unwrap_or(CAPTURED_BYTES) },
            false => Output::Stream { limit_bytes: limit },
        };
        let Context { spec, timeout, .. } = context;
        let workspace = spec.workspace.directory().map(Path::to_owned);
        Self { profile: spec.profile, limits: spec.limits, timeout: *timeout, workspace, output }
    }
}

/// Says on standard error what the exit code alone does not.
pub(super) fn tell(about: &About, outcome: &RunOutcome) {
    if let Some(shortfall) = shortfall(about, outcome) {
        report::note(&shortfall);
    }
    if let Some(cause) = cause(about, &outcome.ending) {
        report::note(&cause);
    }
    if let Some(why) = without_repository(about, &outcome.ending) {
        report::note(&render::plain(&why));
    }
    if let Some(layer) = &outcome.layer {
        tell_layer(layer);
    }
    tell_denials(&outcome.denials);
    let appeared = outcome.new_control_files.as_deref().unwrap_or_default();
    if !appeared.is_empty() {
        appeared::tell(&appeared.join(", "));
    }
}

/// How many destinations that were denied are told, a line each.
const TOLD_DENIALS: usize = 10;

/// Says what was denied, each destination once, with what would allow it.
pub(super) fn tell_denials(denials: &[Denial]) {
    for denial in denials.iter().take(TOLD_DENIALS) {
        report::note(&render::plain(&denial.to_string()));
    }
    if denials.len() > TOLD_DENIALS {
        let more = denials.len() - TOLD_DENIALS;
        report::note(&format!("{more} more destinations were denied; --json lists them"));
    }
}

/// Says why the workspace was copied where nobody asked for that, and what of it was not.
fn tell_layer(layer: &LayerNote) {
    if let Some(why) = &layer.why {
        report::note(&format!("the workspace was copied, because {why}"));
    }
    for what in &layer.left_out {
        report::note(&format!("not in the copy of the workspace: {what}"));
    }
    if layer.left_out_more > 0 {
        report::note(&format!("{} more were not in the copy", layer.left_out_more));
    }
}

fn shortfall(about: &About, outcome: &RunOutcome) -> Option<String> {
    unheld(&outcome.enforced, about.profile, &about.limits)
}

/// Where the policy did not hold as a whole, if that is so.
pub(super) fn unheld(enforced: &Enforced, profile: Profile, limits: &Limits) -> Option<String> {
    let reasons = enforced.reasons_that_count(profile, limits);
    (!reasons.is_empty()).then(|| format!("not fully enforced: {}", reasons.join("; ")))
}

/// What git exits with, and most of what calls it, where it finds no repository.
const FATAL_FOR_GIT: i32 = 128;

/// Why git found no repository, where the workspace is a part of one.
fn without_repository(about: &About, ending: &Ending) -> Option<String> {
    let (Ending::Exited(FATAL_FOR_GIT), Some(workspace)) = (ending, &about.workspace) else {
        return None;
    };
    let is_one = workspace.join(".git").is_dir();
    let mut above = workspace.ancestors().skip(1).filter(|_| !is_one);
    let top = above.find(|above| above.join(".git").exists())?;
    let (below, top) = (workspace.strip_prefix(top).ok()?.display(), top.display());
    Some(format!(
        "the workspace is a part of the repository {top}, of which nothing else is inside: where git is needed, \
         use -w {top} --cwd {below}"
    ))
}

fn cause(about: &About, ending: &Ending) -> Option<String> {
    let limits = &about.limits;
    match ending {
        Ending::Exited(_) | Ending::Signaled(_) => None,
        Ending::Killed(Cause::Time) => Some(match about.timeout {
            Some(limit) => format!("killed: out of time (limit {})", render::duration(limit)),
            None => "killed: out of time".to_owned(),
        }),
        Ending::Killed(Cause::Memory) => {
            let limit = render::bytes(limits.memory_bytes.value());
            Some(format!("killed: out of memory (limit {limit})"))
        }
        Ending::Killed(Cause::MemoryWithin { .. }) => {
            let limit = render::bytes(limits.memory_bytes.value());
            Some(format!("failed: out of memory (limit {limit})"))
        }
        Ending::Killed(Cause::Pids { .. }) => {
            Some(format!("failed: out of processes (limit {})", limits.pids.value()))
        }
        Ending::Killed(Cause::Output) => Some(match about.output {
            Output::Stream { limit_bytes: Some(limit) }
            | Output::Capture { limit_bytes: limit } => {
                format!("killed: too much output (limit {})", render::bytes(limit))
            }
            Output::Stream { limit_bytes: None } => "killed: too much output".to_owned(),
        }),
        Ending::NotStarted { detail, .. } => Some(not_started(ending, detail)),
        Ending::SetupFailed { stage, detail } => {
            Some(format!("failed to set up the sandbox: {stage}: {detail}"))
        }
        Ending::Killed(Cause::Disk { .. }) => Some(format!(
            "failed: out of private space (limit {})",
            render::bytes(limits.disk_bytes.value())
        )),
        Ending::Killed(Cause::Lease) => Some("killed: the session's lease is over".to_owned()),
        // Said with its host, among what was denied.
        Ending::Killed(Cause::SecretAlarm) => {
            Some("killed: a secret's placeholder was on its way to another host".to_owned())
        }
        Ending::Canceled => Some("canceled".to_owned()),
        Ending::Lost => Some("lost: its sandbox died".to_owned()),
    }
}

/// To the microsecond: what is finer is noise, and the digits of a float besides.
fn milliseconds(duration: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "microseconds fit a float exactly")]
    let microseconds = duration.as_micros() as f64;
    microseconds / 1000.0
}

/// The outcome as the object that every door shows.
pub(super) fn report_of(outcome: RunOutcome) -> RunReport {
    let (stdout, stdout_base64) = text_or_base64(outcome.stdout);
    let (stderr, stderr_base64) = text_or_base64(outcome.stderr);
    let layer = outcome.layer;
    RunReport {
        tier: layer.as_ref().map(|layer| layer.tier),
        tier_why: layer.and_then(|layer| layer.why),
        ending: EndingReport::from(&outcome.ending),
        hint: outcome.ending.hint().map(str::to_owned),
        exit_code: outcome.ending.exit_code(),
        stdout,
        stderr,
        stdout_base64,
        stderr_base64,
        omitted: outcome.omitted,
        duration_ms: milliseconds(outcome.duration),
        usage: outcome.usage,
        enforced: outcome.enforced,
        denials: outcome.denials,
        new_control_files: outcome.new_control_files,
        session: None,
        exec: None,
        receipt: None,
        killed_descendants: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{Basis, Enforced, Omitted, UsageReport};

    fn about() -> About {
        About {
            profile: Profile::NoNetwork,
            limits: Limits::default(),
            timeout: Some(Duration::from_secs(300)),
            workspace: None,
            output: Output::Stream { limit_bytes: Some(1 << 20) },
        }
    }

    fn check(ending: Ending, expected: Option<&str>) {
        assert_eq!(cause(&about(), &ending).as_deref(), expected, "{ending:?}");
    }

    #[test]
    fn a_cause_is_said_with_its_limit() {
        check(Ending::Exited(3), None);
        check(Ending::Signaled(9), None);
        check(Ending::Killed(Cause::Time), Some("killed: out of time (limit 5m)"));
        check(Ending::Killed(Cause::Memory), Some("killed: out of memory (limit 8G)"));
        let within = Ending::Killed(Cause::MemoryWithin { code: 5 });
        check(within, Some("failed: out of memory (limit 8G)"));
        let pids = Ending::Killed(Cause::Pids { code: 2 });
        check(pids, Some("failed: out of processes (limit 4096)"));
        let not_started =
            |detail: &str| Ending::NotStarted { code: 125, detail: detail.to_owned() };
        check(not_started("\"x\" was not found"), Some("failed to start: \"x\" was not found"));
        let empty = not_started("the command is empty: no");
        check(empty, Some("failed to start: the command is empty: no; name a program behind --"));
        let cwd = cause(&about(), &not_started("the working directory \"/x\" cannot be entered"));
        assert!(cwd.unwrap().ends_with("; name one that is there inside with --cwd"));
        check(Ending::Killed(Cause::Output), Some("killed: too much output (limit 1M)"));
    }

    fn outcome(ending: Ending) -> RunOutcome {
        RunOutcome {
            ending,
            stdout: b"hi\n".to_vec(),
            stderr: vec![0xff, 0xfe],
            omitted: Omitted::default(),
            duration: Duration::from_micros(1500),
            usage: UsageReport::default(),
            enforced: Enforced::full(Basis::Applied),
            denials: Vec::new(),
            new_control_files: Some(Vec::new()),
            layer: None,
        }
    }

    #[test]
    fn the_object_holds_text_as_text_and_bytes_as_base64() {
        let report = report_of(outcome(Ending::Exited(3)));
        let object = serde_json::to_value(&report).unwrap();
        assert_eq!(object["ending"]["kind"], "exited");
        assert_eq!(object["exit_code"], 3);
        assert_eq!(object["stdout"], "hi\n");
        assert_eq!(object["stderr_base64"], "//4=");
        assert!(object.get("stderr").is_none());
        assert_eq!(object["duration_ms"], 1.5);
        assert_eq!(milliseconds(Duration::from_millis(1003)).to_string(), "1003");
        assert_eq!(object["enforced"]["files"], "full");
        assert!(object.get("hint").is_none());
    }

    #[test]
    fn the_object_says_what_helps_where_the_command_never_ran() {
        let detail = "the working directory \"/x\" cannot be entered".to_owned();
        let report = report_of(outcome(Ending::NotStarted { code: 125, detail }));
        let hint = "Name one that is there inside with --cwd.";
        assert_eq!(serde_json::to_value(&report).unwrap()["hint"], hint);
    }

    #[test]
    fn every_ending_has_its_fields() {
        let not_started = Ending::NotStarted { code: 127, detail: "find x".into() };
        let told = EndingReport::from(&not_started);
        assert_eq!(
            (told.stage.as_deref(), told.detail.as_deref()),
            (Some("find x"), Some("find x"))
        );
        assert_eq!(EndingReport::from(&Ending::Signaled(11)).signal, Some(11));
        assert_eq!(EndingReport::from(&Ending::Killed(Cause::Time)).signal, Some(9));
        assert_eq!(EndingReport::from(&Ending::Canceled).code, None);
    }

    #[test]
    fn a_default_limit_that_is_not_held_is_no_shortfall() {
        let mut outcome = outcome(Ending::Exited(0));
        outcome.enforced.lower(cofferdam_core::Axis::Limits, cofferdam_core::Degree::None, "no");
        let mut about = about();
        assert_eq!(shortfall(&about, &outcome), None);
        about.limits.pids = cofferdam_core::Limit::Asked(5);
        assert!(shortfall(&about, &outcome).is_some());
        // One that is held is not told with the words about another.
        outcome.enforced = Enforced::full(Basis::Applied);
        let memory = format!("{} no group", cofferdam_core::Limited::Memory.unheld());
        outcome.enforced.lower(
            cofferdam_core::Axis::Limits,
            cofferdam_core::Degree::Partial,
            &memory,
        );
        assert_eq!(shortfall(&about, &outcome), None);
    }
}
