//! A session as somebody wants it.

use crate::InitCommand;
use crate::init::Init;
use crate::manifest::Provisions;
use crate::owned::OWNED_LEASE;
use crate::provision::Provided;
use crate::store::{Facts, Row, Scope, Times};
use crate::{Phase, SessionId, now_ms};
use cofferdam_core::StoredSpec;
use cofferdam_core::{Error, ErrorKind, Result, SandboxId, Spec, Workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// After how long without use a session is paused, unless it says otherwise.
pub const IDLE_PAUSE: Duration = Duration::from_secs(180);
/// The shortest lease of a session: one that is over while the sandbox is being made is of use to nobody.
pub const MIN_LEASE: Duration = Duration::from_secs(1);
/// The most labels of a session.
const MAX_LABELS: usize = 64;
/// The longest key or value of a label, in bytes.
const MAX_LABEL_BYTES: usize = 256;

/// What an order may leave unsaid of a session that is there already, which then keeps its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unsaid {
    /// Its labels.
    Labels,
    /// The commands that prepare it.
    Init,
    /// After how long without use it is paused.
    IdlePause,
    /// After how long it is removed.
    Ttl,
    /// Whether commands are points of its history.
    Checkpoints,
}

impl Unsaid {
    /// Its name, as events have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Init => "init",
            Self::IdlePause => "idle_pause",
            Self::Ttl => "ttl",
            Self::Checkpoints => "checkpoints",
        }
    }
}

/// A session as somebody wants it.
#[derive(Debug, Clone)]
pub struct SessionOrder {
    /// Its name, unique among those that live. `ensure` needs one.
    pub name: Option<String>,
    /// Whose it is, where that is not said by whose [`Sessions`](crate::Sessions) make it.
    pub(crate) owner: String,
    /// The backend; `None` is the first that there is, or the one that the session has.
    pub backend: Option<String>,
    /// What it may do. It is written down: its caller should hold only what the view depends on.
    pub spec: Spec,
    /// What it is found by.
    pub labels: BTreeMap<String, String>,
    /// Commands that prepare it, each list once.
    pub init: Vec<InitCommand>,
    /// What its workspace is to hold, brought once before the init commands.
    pub manifest: Option<Arc<Provisions>>,
    /// It is paused after it was not in use for so long; `None` is never.
    pub idle_pause: Option<Duration>,
    /// It is removed after this long, at least [`MIN_LEASE`]; `None` is never.
    pub ttl: Option<Duration>,
    /// Whether every command of a copy-on-write session is a point of its history.
    pub checkpoints: bool,
    /// What of this is not said: it is for a session that is made, and one that `ensure` finds keeps its own.
    pub unsaid: BTreeSet<Unsaid>,
    /// Whether it ends with the process that makes it: whoever starts Cofferdam after that process is
    /// gone removes it. One that is there already stays whose it is. Without a `ttl` it has a lease of
    /// [`OWNED_LEASE`].
    pub owned: bool,
}

impl SessionOrder {
    /// An order with the defaults: no name, no labels, no init, paused after three idle minutes.
    pub fn new(spec: Spec) -> Self {
        Self {
            name: None,
            owner: String::new(),
            backend: None,
            spec,
            labels: BTreeMap::new(),
            init: Vec::new(),
            manifest: None,
            idle_pause: Some(IDLE_PAUSE),
            ttl: None,
            checkpoints: true,
            unsaid: BTreeSet::new(),
            owned: false,
        }
    }

    /// Gives it a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Refuses what makes no sense, as whoever makes or finds its session does.
    pub fn check(&self) -> Result<()> {
        let usage = |what: String, hint: &str| {
            Err(Error::new(ErrorKind::Usage, what).hint(hint.to_owned()))
        };
        if let Some(name) = &self.name {
            let fits =
                SandboxId::new(name.clone()).is_ok() && SessionId::new(name.clone()).is_err();
            if !fits {
                return Err(Error::new(
                    ErrorKind::Usage,
                    format!("{name:?} cannot be the name of a session"),
                )
                .hint(
                    "Use 1 to 64 letters, digits, '-', '_' or '.', begin with none of '-' and \
                     '.', and do not make it look like an id.",
                ));
            }
        }
        let long = |text: &String| text.len() > MAX_LABEL_BYTES;
        if self.labels.len() > MAX_LABELS {
            let what = format!("{} labels are more than {MAX_LABELS}", self.labels.len());
            return usage(what, "Give it fewer.");
        }
        if let Some((key, _)) = self.labels.iter().find(|(k, v)| k.is_empty() || long(k) || long(v))
        {
            let what = format!("the label {key:?} is empty or over {MAX_LABEL_BYTES} bytes");
            return usage(what, "Shorten its name or its value.");
        }
        if self.manifest.is_some() && self.spec.workspace == Workspace::Private {
            let what = "a manifest is for a workspace that outlives its sandbox";
            return Err(Error::new(ErrorKind::Usage, what).hint("Name a directory as workspace."));
        }
        if self.idle_pause.is_some_and(|idle| idle.as_millis() == 0) {
            let what = "an idle pause of zero never lets it run".to_owned();
            return usage(what, "Take a longer one, or none, to keep it awake.");
        }
        if let Some(ttl) = self.ttl.filter(|ttl| *ttl < MIN_LEASE) {
            let what = format!("a lease of {} ms is over at once", ttl.as_millis());
            let hint = format!("Take a lease (ttl) of at least {} ms.", MIN_LEASE.as_millis());
            return Err(Error::new(ErrorKind::Usage, what).hint(hint));
        }
        Ok(())
    }

    /// What it may do, with what its manifest shows it, and where what is listed leads.
    fn whole_spec(&self) -> Spec {
        let mut spec = self.spec.clone();
        spec.mounts.extend(self.manifest.iter().flat_map(|wanted| wanted.mounts.iter().cloned()));
        note_leads(&mut spec);
        spec
    }

    /// The row to begin with.
    pub(crate) fn row(&self, id: SessionId, backend: &str) -> Result<Row> {
        let now = now_ms();
        let ttl_ms = self.ttl.map(millis);
        let lease = self.ttl.or(self.owned.then_some(OWNED_LEASE));
        let mut init = Init::new(self.init.clone())?;
        init.enter(1);
        Ok(Row {
            id,
            name: self.name.clone(),
            owner: self.owner.clone(),
            backend: backend.to_owned(),
            phase: Phase::Creating,
            incarnation: 1,
            revision: 1,
            cleanup_failed: None,
            labels: self.labels.clone(),
            spec: StoredSpec::new(&self.whole_spec()),
            record: None,
            facts: Facts {
                scope: if self.owned { Scope::Owned } else { Scope::Kept },
                init,
                times: Times {
                    idle_pause_ms: self.idle_pause.map(millis),
                    ttl_ms,
                    lease_until_ms: lease.map(|lease| now.saturating_add(millis(lease))),
                    run_until_ms: None,
                },
                manifest: self.manifest.as_deref().map(Provided::owed),
                no_checkpoints: !self.checkpoints,
                ..Facts::default()
            },
            created_ms: now,
            updated_ms: now,
        })
    }
}

/// Notes where listed paths lead, so that every sandbox of the session is shown the same.
///
/// HOSTILE: before the next one starts, a command of another sandbox may have put a link in the place of what was listed.
/// What is noted already is of the session that this one is forked from, and stays for the same reason.
fn note_leads(spec: &mut Spec) {
    for path in spec.read.iter().chain(&spec.write).chain(&spec.hide) {
        if spec.leads.contains_key(path) {
            continue;
        }
        // What cannot be found is told by whoever makes the sandbox.
        if let Ok(end) = path.canonicalize() {
            spec.leads.insert(path.clone(), end);
        }
    }
}

/// Milliseconds, as far as they can be counted and stored.
pub(crate) fn millis(duration: Duration) -> u64 {
    // The database counts to 2^63.
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).min(1 << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::Caller;
    use std::path::PathBuf;

    #[test]
    fn where_a_listed_path_leads_is_noted_once() {
        let place = std::env::temp_dir().join(format!("cofferdam-leads-{}", std::process::id()));
        std::fs::create_dir_all(place.join("a")).unwrap();
        let place = place.canonicalize().unwrap();
        let [end, way, none] = ["a", "way", "none"].map(|name| place.join(name));
        std::os::unix::fs::symlink(&end, &way).unwrap();
        let mut order = SessionOrder::new(Spec::new(Workspace::Private, Caller::default()));
        order.spec.read = vec![end.clone(), none];
        order.spec.hide = vec![way.clone()];
        let noted = order.whole_spec().leads;
        assert_eq!(noted, [(end.clone(), end), (way.clone(), place.join("a"))].into());
        // As of a session that is forked: what it was shown counts, whatever is there by now.
        order.spec.leads = [(way.clone(), PathBuf::from("/before"))].into();
        let kept = order.whole_spec().leads;
        std::fs::remove_dir_all(&place).unwrap();
        assert_eq!(kept.get(&way), Some(&PathBuf::from("/before")));
    }
}
