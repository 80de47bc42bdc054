//! All commands of a kept sandbox.

use super::exec::Exec;
use super::talk::Start;
use cofferdam_core::{Error, ErrorKind, ProcessId, Result};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many commands may run at once in one sandbox. Each takes up to three descriptors.
pub(super) const MAX_RUNNING: usize = 256;
/// How many commands are known at once; those that ended first are forgotten first, with what they
/// wrote.
pub(super) const MAX_KNOWN: usize = 1000;
/// How many forgotten ids are remembered so far that they cannot be used again.
pub(super) const MAX_FORGOTTEN: usize = 8192;

/// The commands, in the order of their start.
#[derive(Debug)]
pub(super) struct Execs {
    all: VecDeque<Exec>,
    by_channel: BTreeMap<u32, ProcessId>,
    forgotten: BTreeSet<u64>,
    forgotten_in_order: VecDeque<u64>,
    next_channel: u32,
}

impl Execs {
    pub(super) fn new() -> Self {
        Self {
            all: VecDeque::new(),
            by_channel: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            forgotten_in_order: VecDeque::new(),
            // The host opens odd channels.
            next_channel: 1,
        }
    }

    /// Whether this command is known. Another one of the same id is a conflict.
    pub(super) fn knows(&self, order: &Start) -> Result<bool> {
        let id = &order.id;
        let conflict = |why: &str| {
            Error::new(ErrorKind::Conflict, format!("command {id} {why}"))
                .hint("Choose an id of its own for each command.")
        };
        match self.find(id) {
            Some(exec) if exec.is_of(order) => Ok(true),
            Some(_) => Err(conflict("was started with other words or options")),
            None if self.forgotten.contains(&hash(id)) => {
                Err(conflict("ran before, and what came of it is forgotten"))
            }
            None => Ok(false),
        }
    }

    /// Fails where no more may run.
    pub(super) fn check_room(&self) -> Result<()> {
        if self.running().count() < MAX_RUNNING {
            return Ok(());
        }
        let what = format!(
            "{MAX_RUNNING} commands run in this sandbox or have left processes, and more may not"
        );
        Err(Error::new(ErrorKind::Unavailable, what).hint("Wait for some of them, or kill them."))
    }

    /// A channel that was not used before.
    pub(super) fn take_channel(&mut self) -> u32 {
        let channel = self.next_channel;
        self.next_channel = self.next_channel.wrapping_add(2);
        channel
    }

    /// Adds a command, and gives the ids of those that are forgotten for it.
    pub(super) fn add(&mut self, exec: Exec) -> Vec<ProcessId> {
        if let Some(live) = &exec.live {
            self.by_channel.insert(live.channel, exec.id().clone());
        }
        self.all.push_back(exec);
        let mut gone = Vec::new();
        while self.all.len() > MAX_KNOWN {
            let Some(oldest) = self.all.iter().position(|exec| exec.live.is_none()) else { break };
            if let Some(exec) = self.all.remove(oldest) {
                self.remember(hash(exec.id()));
                gone.push(exec.id().clone());
            }
        }
        gone
    }

    fn remember(&mut self, id: u64) {
        self.forgotten.insert(id);
        self.forgotten_in_order.push_back(id);
        if self.forgotten_in_order.len() > MAX_FORGOTTEN
            && let Some(first) = self.forgotten_in_order.pop_front()
        {
            self.forgotten.remove(&first);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Exec> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Exec> {
        self.all.iter_mut()
    }

    /// Those that have not ended, or have left something that goes on.
    pub(super) fn running(&self) -> impl Iterator<Item = &Exec> {
        self.by_channel.values().filter_map(|id| self.find(id))
    }

    pub(super) fn find(&self, id: &ProcessId) -> Option<&Exec> {
        // The newest are asked for most.
        self.all.iter().rev().find(|exec| exec.id() == id)
    }

    pub(super) fn find_mut(&mut self, id: &ProcessId) -> Option<&mut Exec> {
        self.all.iter_mut().rev().find(|exec| exec.id() == id)
    }

    /// The command of a channel that is in use: it has not ended, or has left something.
    pub(super) fn on(&mut self, channel: u32) -> Option<&mut Exec> {
        let id = self.by_channel.get(&channel)?.clone();
        self.find_mut(&id)
    }

    /// The channel is not in use any more.
    pub(super) fn close(&mut self, channel: u32) {
        self.by_channel.remove(&channel);
    }

    /// The channels in use.
    pub(super) fn channels(&self) -> Vec<u32> {
        self.by_channel.keys().copied().collect()
    }
}

fn hash(id: &ProcessId) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::exec::LastWord;
    use super::super::talk::order_of;
    use super::*;
    use crate::keeper::place::Place;
    use crate::state::StateDirectory;
    use crate::test_directory::TestDirectory;
    use cofferdam_core::{Ending, SandboxId, Terminal};

    struct Stage {
        _directory: TestDirectory,
        _lock: rustix::fd::OwnedFd,
        place: Place,
        execs: Execs,
    }

    impl Stage {
        fn new(name: &str) -> Self {
            let directory = TestDirectory::new(name);
            let state = StateDirectory::open(&directory.path().join("s")).unwrap();
            let (place, lock) = Place::make(&state, &SandboxId::new("a").unwrap()).unwrap();
            Self { _directory: directory, _lock: lock, place, execs: Execs::new() }
        }

        fn start(&mut self, id: &str) -> Vec<ProcessId> {
            let start = order_of(id, "true");
            let ids = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
            let channel = self.execs.take_channel();
            let (exec, _) = Exec::prepare(&start, &self.place, channel, ids).unwrap();
            self.execs.add(exec)
        }

        fn end(&mut self, id: &str) {
            let exec = self.execs.find_mut(&ProcessId::new(id).unwrap()).unwrap();
            let channel = exec.live.as_ref().unwrap().channel;
            exec.end(Ending::Exited(0), LastWord::default(), Vec::new());
            self.execs.close(channel);
        }
    }

    #[test]
    fn commands_that_ended_are_forgotten_first_and_their_ids_are_not_used_again() {
        let mut stage = Stage::new("execs-known");
        stage.start("runs");
        for number in 1..MAX_KNOWN {
            let id = format!("e{number}");
            assert_eq!(stage.start(&id), []);
            stage.end(&id);
        }
        let gone = stage.start("new");
        assert_eq!(gone, [ProcessId::new("e1").unwrap()]);
        assert_eq!(stage.execs.iter().count(), MAX_KNOWN);
        let known = |id: &str, word: &str| stage.execs.knows(&order_of(id, word));
        assert!(known("runs", "true").unwrap() && known("e2", "true").unwrap());
        assert!(!known("other", "true").unwrap());
        assert_eq!(known("e1", "true").unwrap_err().kind, ErrorKind::Conflict);
        assert_eq!(known("e2", "false").unwrap_err().kind, ErrorKind::Conflict);
    }

    #[test]
    fn the_same_words_with_other_options_are_another_command() {
        let mut stage = Stage::new("execs-options");
        stage.start("e");
        let known = |change: &dyn Fn(&mut Start)| {
            let mut again = order_of("e", "true");
            change(&mut again);
            stage.execs.knows(&again).map_err(|error| error.kind)
        };
        assert_eq!(known(&|_| {}), Ok(true));
        assert_eq!(known(&|again| again.patience_ms = 7), Ok(true), "who asks waits as he likes");
        assert_eq!(known(&|again| again.detached = true), Ok(true), "or not at all");
        let changes: [&dyn Fn(&mut Start); 6] = [
            &|again| again.cwd = Some("/".into()),
            &|again| again.env.push(("A".into(), "b".into())),
            &|again| again.reads = true,
            &|again| again.terminal = Some(Terminal { rows: 1, columns: 1 }),
            &|again| again.timeout_ms = Some(1),
            &|again| again.max_output_bytes = Some(1),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            assert_eq!(known(change), Err(ErrorKind::Conflict), "{number}");
        }
    }

    #[test]
    fn the_number_of_running_commands_is_bounded() {
        // As a keeper does: the usual limit is too low for so many.
        crate::launcher::allow_descriptors();
        let mut stage = Stage::new("execs-running");
        for number in 0..MAX_RUNNING {
            stage.execs.check_room().unwrap();
            stage.start(&format!("e{number}"));
        }
        assert_eq!(stage.execs.check_room().unwrap_err().kind, ErrorKind::Unavailable);
        stage.end("e7");
        stage.execs.check_room().unwrap();
    }

    #[test]
    fn only_so_many_forgotten_ids_are_remembered() {
        let mut execs = Execs::new();
        for number in 0..=MAX_FORGOTTEN {
            execs.remember(u64::try_from(number).unwrap());
        }
        assert_eq!(execs.forgotten.len(), MAX_FORGOTTEN);
        assert!(!execs.forgotten.contains(&0));
    }
}
