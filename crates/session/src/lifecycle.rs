//! What follows from what happened: one pure function over all pairs of phase and event.
//!
//! INVARIANT: whatever may live has a row whose phase owes an end ([`Phase::owes_an_end`]). So a
//! phase that owes nothing is entered only by an event that proves that nothing is there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a session. Every door shows the same.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its sandbox is being made, or was when somebody died.
    Creating,
    /// It takes commands.
    Running,
    /// A pause was asked for and not yet confirmed.
    Pausing,
    /// Everything in it stands still.
    Paused,
    /// A resume was asked for and not yet confirmed.
    Resuming,
    /// Its sandbox died. Home directory and workspace are kept.
    Lost,
    /// Its sandbox is being ended; the session is kept.
    Stopping,
    /// Its sandbox was ended; the session is kept.
    Stopped,
    /// Its sandbox could not be made.
    Failed,
    /// All of it is being removed. Nothing leads back.
    Deleting,
}

/// What somebody asked for, or what is known now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// It is wanted running.
    Ensure,
    /// It is wanted paused.
    Pause,
    /// Its sandbox is wanted ended.
    Stop,
    /// All of it is wanted removed.
    Delete,
    /// The backend says that the sandbox takes commands.
    FoundRunning,
    /// The backend says that the sandbox stands still.
    FoundPaused,
    /// The backend says that the sandbox is being made.
    FoundUnfinished,
    /// The backend says that there is no sandbox.
    FoundGone,
    /// The sandbox was made.
    Made,
    /// It is not known that the sandbox was made.
    NotMade,
    /// The pause is confirmed.
    PauseDone,
    /// It is not known that it was paused.
    PauseFailed,
    /// The resume is confirmed.
    ResumeDone,
    /// It is not known that it was resumed.
    ResumeFailed,
    /// The end is confirmed.
    Ended,
    /// It is not known that it was ended.
    EndFailed,
}

/// What is done next, after the phase was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// Make the sandbox of a new incarnation.
    Create,
    /// Pause the sandbox.
    Pause,
    /// Resume the sandbox.
    Resume,
    /// Ask the backend what has become of the sandbox.
    Look,
    /// End the sandbox, or what is left of it.
    End,
    /// Remove home directory, spools and row.
    Remove,
    /// Say that this cannot be done in this phase.
    Refuse,
}

/// A phase and what is done in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The phase, to be stored before anything is done.
    pub phase: Phase,
    /// What is done then.
    pub action: Action,
}

impl Phase {
    /// All phases, in the order of the documents.
    pub const ALL: [Self; 10] = [
        Self::Creating,
        Self::Running,
        Self::Pausing,
        Self::Paused,
        Self::Resuming,
        Self::Lost,
        Self::Stopping,
        Self::Stopped,
        Self::Failed,
        Self::Deleting,
    ];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Running => "running",
            Self::Pausing => "pausing",
            Self::Paused => "paused",
            Self::Resuming => "resuming",
            Self::Lost => "lost",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Deleting => "deleting",
        }
    }

    /// The phase of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// Whether something may live that has to be ended one day.
    pub fn owes_an_end(self) -> bool {
        match self {
            Self::Creating
            | Self::Running
            | Self::Pausing
            | Self::Paused
            | Self::Resuming
            | Self::Stopping
            | Self::Deleting => true,
            Self::Lost | Self::Stopped | Self::Failed => false,
        }
    }

    /// Whether somebody was at work when this was stored. If nobody is any more, it has to be
    /// repaired.
    pub fn is_passing(self) -> bool {
        match self {
            Self::Creating | Self::Pausing | Self::Resuming | Self::Stopping | Self::Deleting => {
                true
            }
            Self::Running | Self::Paused | Self::Lost | Self::Stopped | Self::Failed => false,
        }
    }
}

impl Event {
    /// All events.
    pub const ALL: [Self; 16] = [
        Self::Ensure,
        Self::Pause,
        Self::Stop,
        Self::Delete,
        Self::FoundRunning,
        Self::FoundPaused,
        Self::FoundUnfinished,
        Self::FoundGone,
        Self::Made,
        Self::NotMade,
        Self::PauseDone,
        Self::PauseFailed,
        Self::ResumeDone,
        Self::ResumeFailed,
        Self::Ended,
        Self::EndFailed,
    ];
}

/// What follows. Every pair has an answer.
pub fn next(phase: Phase, event: Event) -> Step {
    match event {
        Event::Ensure => ensure(phase),
        Event::Pause => pause(phase),
        Event::Stop => stop(phase),
        Event::Delete => step(Phase::Deleting, Action::End),
        Event::FoundRunning | Event::Made => found(phase, Phase::Running),
        Event::FoundPaused => found(phase, Phase::Paused),
        Event::FoundUnfinished => found(phase, phase),
        Event::FoundGone => found_gone(phase),
        Event::NotMade => not_made(phase),
        Event::PauseDone => done(phase, Phase::Pausing, Phase::Paused),
        Event::ResumeDone => done(phase, Phase::Resuming, Phase::Running),
        Event::PauseFailed => failed(phase, Phase::Pausing),
        Event::ResumeFailed => failed(phase, Phase::Resuming),
        Event::Ended => ended(phase),
        Event::EndFailed => step(phase, Action::Nothing),
    }
}

fn step(phase: Phase, action: Action) -> Step {
    Step { phase, action }
}

fn ensure(phase: Phase) -> Step {
    match phase {
        // Whoever asks holds the lock, so whoever was at work is not any more.
        Phase::Creating | Phase::Running | Phase::Pausing | Phase::Resuming => {
            step(phase, Action::Look)
        }
        Phase::Paused => step(Phase::Resuming, Action::Resume),
        Phase::Lost | Phase::Stopped | Phase::Failed => step(Phase::Creating, Action::Create),
        Phase::Stopping => step(Phase::Stopping, Action::End),
        Phase::Deleting => step(Phase::Deleting, Action::Refuse),
    }
}

fn pause(phase: Phase) -> Step {
    match phase {
        Phase::Creating => step(Phase::Creating, Action::Look),
        Phase::Running | Phase::Pausing | Phase::Resuming => step(Phase::Pausing, Action::Pause),
        Phase::Paused => step(Phase::Paused, Action::Look),
        Phase::Lost | Phase::Stopping | Phase::Stopped | Phase::Failed | Phase::Deleting => {
            step(phase, Action::Refuse)
        }
    }
}

fn stop(phase: Phase) -> Step {
    match phase {
        Phase::Creating
        | Phase::Running
        | Phase::Pausing
        | Phase::Paused
        | Phase::Resuming
        | Phase::Stopping => step(Phase::Stopping, Action::End),
        Phase::Lost | Phase::Stopped | Phase::Failed => step(phase, Action::Nothing),
        Phase::Deleting => step(Phase::Deleting, Action::Refuse),
    }
}

/// Something is there.
fn found(phase: Phase, seen: Phase) -> Step {
    match phase {
        Phase::Creating | Phase::Running | Phase::Pausing | Phase::Paused | Phase::Resuming => {
            step(seen, Action::Nothing)
        }
        // Something came late. What was declared gone stays so, and is ended.
        Phase::Lost | Phase::Stopping | Phase::Stopped | Phase::Failed => {
            step(Phase::Stopping, Action::End)
        }
        Phase::Deleting => step(Phase::Deleting, Action::End),
    }
}

fn found_gone(phase: Phase) -> Step {
    match phase {
        // The end of what is gone removes what it left behind.
        Phase::Creating => step(Phase::Creating, Action::End),
        Phase::Running | Phase::Pausing | Phase::Paused | Phase::Resuming => {
            step(Phase::Lost, Action::End)
        }
        Phase::Lost | Phase::Stopped | Phase::Failed => step(phase, Action::Nothing),
        Phase::Stopping | Phase::Deleting => step(phase, Action::End),
    }
}

fn not_made(phase: Phase) -> Step {
    match phase {
        // The reply may have been lost: whatever is there is ended before this counts as failed.
        Phase::Creating | Phase::Stopping | Phase::Deleting => step(phase, Action::End),
        Phase::Running
        | Phase::Pausing
        | Phase::Paused
        | Phase::Resuming
        | Phase::Lost
        | Phase::Stopped
        | Phase::Failed => step(phase, Action::Nothing),
    }
}

fn done(phase: Phase, asked: Phase, reached: Phase) -> Step {
    step(if phase == asked { reached } else { phase }, Action::Nothing)
}

fn failed(phase: Phase, asked: Phase) -> Step {
    step(phase, if phase == asked { Action::Look } else { Action::Nothing })
}

fn ended(phase: Phase) -> Step {
    match phase {
        Phase::Creating => step(Phase::Failed, Action::Nothing),
        // Its keeper ended it at a deadline.
        Phase::Running | Phase::Pausing | Phase::Paused | Phase::Resuming | Phase::Stopping => {
            step(Phase::Stopped, Action::Nothing)
        }
        Phase::Lost | Phase::Stopped | Phase::Failed => step(phase, Action::Nothing),
        Phase::Deleting => step(Phase::Deleting, Action::Remove),
    }
}
