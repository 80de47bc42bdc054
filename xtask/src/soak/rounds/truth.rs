//! What was told of the ends of commands, which stays true.

use super::client::{Client, Told};
use super::{Outcome, Plan, at};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How a command ended, as `ps` says it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    ending: String,
    code: Option<i64>,
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// The code that each command was to exit with.
    ordered: BTreeMap<String, i64>,
    /// What was told, by session and command.
    told: BTreeMap<(String, String), End>,
    /// Commands whose end was compared with what was told.
    checked: BTreeSet<String>,
}

fn exited(code: i64) -> End {
    End { ending: "exited".to_owned(), code: Some(code) }
}

impl Truth {
    pub(super) fn order(&mut self, client: &Client) {
        if let Some(exec) = &client.exec {
            self.ordered.insert(exec.id.clone(), exec.code.into());
        }
    }

    /// How many statuses were told and stayed.
    pub(super) fn kept(&self) -> usize {
        self.checked.len()
    }

    /// Takes in what clients exited with. A session that was replaced meanwhile may be another.
    pub(super) fn hear_clients(
        &mut self,
        told: Vec<Told>,
        before: &BTreeMap<String, String>,
        after: &BTreeMap<String, String>,
    ) {
        for Told { name, exec } in told {
            let (Some(id), Some(now)) = (before.get(name), after.get(name)) else { continue };
            if id == now {
                self.told.insert((id.clone(), exec.id), exited(exec.code.into()));
            }
        }
    }

    /// Takes in what stands in the journals.
    pub(super) fn hear_journals(&mut self, plan: &Plan<'_>) -> Outcome<()> {
        let entries = std::fs::read_dir(plan.state.join("sessions")).map_err(|e| e.to_string())?;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some((session, _)) = name.split_once('.').filter(|(id, _)| !id.is_empty()) else {
                continue;
            };
            let journal = std::fs::read(entry.path().join("journal")).unwrap_or_default();
            // A line that is cut short was never written.
            let lines = journal.split_inclusive(|byte| *byte == b'\n');
            for line in lines.filter(|line| line.ends_with(b"\n")) {
                let entry: Value = serde_json::from_slice(line)
                    .map_err(|error| format!("the journal of {name}: {error}"))?;
                let status = at(&entry, "/happened/ExecEnded");
                let code = at(status, "/ended/ending/Exited").as_i64();
                if let (Some(id), Some(code)) = (at(status, "/id").as_str(), code) {
                    self.told.insert((session.to_owned(), id.to_owned()), exited(code));
                }
            }
        }
        Ok(())
    }

    /// What is removed is owed to nobody.
    pub(super) fn forget_others(&mut self, ids: &[&String]) {
        self.told.retain(|(session, _), _| ids.contains(&session));
    }

    /// Compares what `ps` says with all that was told.
    pub(super) fn compare(&mut self, session: &str, listed: &Value) -> Outcome<()> {
        let mut found = BTreeMap::new();
        for exec in at(listed, "/execs").as_array().into_iter().flatten() {
            let id = at(exec, "/id").as_str().unwrap_or_default().to_owned();
            let Some(ending) = at(exec, "/ending").as_str() else { continue };
            let end = End { ending: ending.to_owned(), code: at(exec, "/exit_code").as_i64() };
            let ordered = self.ordered.get(&id).copied();
            if ending == "exited" && ordered.is_some() && ordered != end.code {
                return Err(format!("{session}: {id} was to exit with {ordered:?}: {end:?}"));
            }
            if let Some(other) = found.insert(id.clone(), end.clone()) {
                return Err(format!("{session}: {id} is listed twice: {other:?}, {end:?}"));
            }
        }
        for ((_, id), told) in self.told.iter().filter(|((of, _), _)| of == session) {
            if found.get(id) != Some(told) {
                let now = found.get(id);
                return Err(format!("{session}: {id} was told as {told:?}, and is now {now:?}"));
            }
        }
        for (id, end) in found {
            self.checked.extend(self.ordered.contains_key(&id).then(|| id.clone()));
            self.told.insert((session.to_owned(), id), end);
        }
        Ok(())
    }

    /// In a session whose sandbox is gone every command has its end.
    pub(super) fn all_ended(session: &str, listed: &Value) -> Outcome<()> {
        let mut execs = at(listed, "/execs").as_array().into_iter().flatten();
        match execs.find(|exec| at(exec, "/ending").is_null()) {
            Some(exec) => Err(format!("{session} is gone, and a command has no end: {exec}")),
            None => Ok(()),
        }
    }

    /// Whatever was killed, no command ran twice, and one that exited ran.
    pub(super) fn compare_runs(&self, plan: &Plan<'_>) -> Outcome<()> {
        let text = std::fs::read_to_string(plan.workspace.join("runs")).unwrap_or_default();
        let mut runs: BTreeMap<&str, u32> = BTreeMap::new();
        for id in text.lines() {
            *runs.entry(id).or_default() += 1;
        }
        if let Some((id, count)) = runs.iter().find(|(_, count)| **count > 1) {
            return Err(format!("{id} ran {count} times"));
        }
        let exited = self.told.iter().filter(|(_, end)| end.ending == "exited");
        let mut ours = exited.filter(|((_, id), _)| self.ordered.contains_key(id));
        match ours.find(|((_, id), _)| !runs.contains_key(id.as_str())) {
            Some(((session, id), end)) => Err(format!("{session}: {id} never ran, and {end:?}")),
            None => Ok(()),
        }
    }
}
