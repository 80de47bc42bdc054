//! What a session does with its sandbox before the first command.

use super::{ExecSandboxContext, Probed, ProcessSandbox, SandboxPolicy};
use cofferdam_core::{Enforcement, Error, ErrorKind, OnUnavailable, Result};
use std::sync::Arc;

/// What came of attaching a sandbox to a session.
pub struct Attached {
    /// The prepared sandbox. `None`: it enforces nothing here, and the policy goes on without it.
    pub sandbox: Option<Arc<dyn ProcessSandbox>>,
    /// How far it enforces the profile.
    pub enforcement: Enforcement,
    /// What the session has to tell its user: a sentence for everything that is less than asked for, with why.
    pub said: Vec<String>,
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Attached");
        shown.field("is_sandboxed", &self.sandbox.is_some());
        shown.field("enforcement", &self.enforcement).field("said", &self.said).finish()
    }
}

/// Probes, decides, and prepares: once each, in this order, on the canonical workspace, which is
/// made if it is not there.
///
/// | | refuse | degrade |
/// |---|---|---|
/// | fully enforced | attached | attached |
/// | partial | an error | attached, and said |
/// | unavailable | an error | dropped, and said |
///
/// The profile and the rules are those of the policy, whatever the context says. With a dropped
/// sandbox commands run as the session runs them by itself.
pub async fn attach(
    sandbox: Arc<dyn ProcessSandbox>,
    policy: &SandboxPolicy,
    context: &ExecSandboxContext,
) -> Result<Attached> {
    let probed = sandbox.probe_with_reasons(&policy.profile).await?;
    let (enforcement, said) = (probed.enforcement, said(&probed, policy)?);
    if enforcement == Enforcement::Unavailable {
        return Ok(Attached { sandbox: None, enforcement, said });
    }
    let root = &context.workspace_path;
    let unusable = |cause| {
        let what = format!("the workspace {} cannot be used", root.display());
        Error::new(ErrorKind::Io, what).source(cause)
    };
    std::fs::create_dir_all(root).map_err(unusable)?;
    let context = ExecSandboxContext {
        workspace_path: root.canonicalize().map_err(unusable)?,
        cwd: context.cwd.clone(),
        profile: policy.profile,
        egress: policy.egress.clone(),
    };
    sandbox.prepare(&context).await?;
    Ok(Attached { sandbox: Some(sandbox), enforcement, said })
}

fn said(probed: &Probed, policy: &SandboxPolicy) -> Result<Vec<String>> {
    let (profile, enforcement) = (policy.profile, probed.enforcement);
    let why = match probed.reasons.as_slice() {
        [] => String::new(),
        reasons => format!(": {}", reasons.join("; ")),
    };
    let shortfall = match enforcement {
        Enforcement::FullyEnforced => return Ok(Vec::new()),
        Enforcement::Partial => format!("profile {profile} is enforced only in part here"),
        Enforcement::Unavailable => format!("profile {profile} cannot be enforced here at all"),
    };
    match (policy.on_unavailable, enforcement) {
        (OnUnavailable::Refuse, _) => {
            Err(Error::new(ErrorKind::Unenforceable, format!("{shortfall}{why}"))
                .hint("Run `cofferdam doctor` for the remedy."))
        }
        (OnUnavailable::Degrade, Enforcement::Unavailable) => {
            Ok(vec![format!("{shortfall}, and commands run without a sandbox{why}")])
        }
        (OnUnavailable::Degrade, Enforcement::Partial | Enforcement::FullyEnforced) => {
            Ok(vec![format!("{shortfall}{why}")])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SandboxProfile, WrappedCommand};
    use super::*;
    use async_trait::async_trait;
    use std::sync::Mutex;

    /// Enforces this much, and notes its calls.
    struct Scripted(Enforcement, Mutex<Vec<String>>);

    #[async_trait]
    impl ProcessSandbox for Scripted {
        async fn prepare(&self, ctx: &ExecSandboxContext) -> Result<()> {
            self.1.lock().unwrap().push(format!("prepare {}", ctx.workspace_path.display()));
            Ok(())
        }

        fn wrap(&self, argv: &[String], _: &ExecSandboxContext) -> Result<WrappedCommand> {
            Ok(WrappedCommand { argv: argv.to_vec(), env: std::collections::BTreeMap::new() })
        }

        async fn probe(&self, profile: &SandboxProfile) -> Result<Enforcement> {
            self.1.lock().unwrap().push(format!("probe {profile}"));
            Ok(self.0)
        }

        async fn probe_with_reasons(&self, profile: &SandboxProfile) -> Result<Probed> {
            let enforcement = self.probe(profile).await?;
            Ok(Probed { enforcement, reasons: vec!["network: open".into(), "limits: none".into()] })
        }

        async fn shutdown(&self) -> Result<()> {
            Ok(())
        }
    }

    async fn check(
        enforcement: Enforcement,
        on_unavailable: OnUnavailable,
    ) -> (Option<(bool, usize)>, Vec<String>) {
        let root = std::env::temp_dir().join(format!("attach-{}", std::process::id()));
        let context = ExecSandboxContext {
            workspace_path: root.join(".").join("made"),
            cwd: None,
            profile: SandboxProfile::ReadOnly,
            egress: Vec::new(),
        };
        let profile = SandboxProfile::RepoWrite;
        let policy = SandboxPolicy { profile, egress: Vec::new(), on_unavailable };
        let sandbox = Arc::new(Scripted(enforcement, Mutex::default()));
        let attached = attach(Arc::clone(&sandbox) as _, &policy, &context).await;
        let said = attached.ok().map(|a| (a.sandbox.is_some(), a.said.len()));
        let mark = root.display().to_string();
        let calls = sandbox.1.lock().unwrap().iter().map(|c| c.replace(&mark, "ROOT")).collect();
        let _ = std::fs::remove_dir_all(&root);
        (said, calls)
    }

    #[test]
    fn what_falls_short_is_told_with_its_reasons() {
        let told = |enforcement, on_unavailable, reasons: &[&str]| {
            let reasons = reasons.iter().map(ToString::to_string).collect();
            let profile = SandboxProfile::RepoWrite;
            let policy = SandboxPolicy { profile, egress: Vec::new(), on_unavailable };
            match said(&Probed { enforcement, reasons }, &policy) {
                Ok(said) => said.concat(),
                Err(error) => error.message,
            }
        };
        let why = ["network: open", "limits: none"];
        let ends = ": network: open; limits: none";
        for enforcement in [Enforcement::Partial, Enforcement::Unavailable] {
            for choice in [OnUnavailable::Refuse, OnUnavailable::Degrade] {
                let told = told(enforcement, choice, &why);
                assert!(told.contains("repo-write") && told.ends_with(ends), "{told}");
            }
        }
        let none = told(Enforcement::Partial, OnUnavailable::Refuse, &[]);
        assert_eq!(none, "profile repo-write is enforced only in part here");
    }

    #[tokio::test]
    async fn what_falls_short_is_refused_or_said() {
        let probe = "probe repo-write".to_owned();
        let both = vec![probe.clone(), "prepare ROOT/made".to_owned()];
        let full = Enforcement::FullyEnforced;
        for (enforcement, choice, came_of_it, calls) in [
            (full, OnUnavailable::Refuse, Some((true, 0)), both.clone()),
            (full, OnUnavailable::Degrade, Some((true, 0)), both.clone()),
            (Enforcement::Partial, OnUnavailable::Refuse, None, vec![probe.clone()]),
            (Enforcement::Partial, OnUnavailable::Degrade, Some((true, 1)), both),
            (Enforcement::Unavailable, OnUnavailable::Refuse, None, vec![probe.clone()]),
            (Enforcement::Unavailable, OnUnavailable::Degrade, Some((false, 1)), vec![probe]),
        ] {
            assert_eq!(check(enforcement, choice).await, (came_of_it, calls), "{enforcement:?}");
        }
    }
}
