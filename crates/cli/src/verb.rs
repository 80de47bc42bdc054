//! Which verb is at work, known even where the command line makes no sense.

use std::ffi::{OsStr, OsString};

/// Which verb is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerbName {
    /// `run`
    Run,
    /// `create`
    Create,
    /// `ensure`
    Ensure,
    /// `exec`
    Exec,
    /// `ps`
    Ps,
    /// `logs`
    Logs,
    /// `attach`
    Attach,
    /// `signal`
    Signal,
    /// `wait`
    Wait,
    /// `shell`
    Shell,
    /// `file`
    File,
    /// `diff`
    Diff,
    /// `apply`
    Apply,
    /// `discard`
    Discard,
    /// `history`
    History,
    /// `undo`
    Undo,
    /// `snapshot`
    Snapshot,
    /// `fork`
    Fork,
    /// `port`
    Port,
    /// `network`
    Network,
    /// `approve`
    Approve,
    /// `audit`
    Audit,
    /// `policy`
    Policy,
    /// `ls`
    Ls,
    /// `show`
    Show,
    /// `pause`
    Pause,
    /// `resume`
    Resume,
    /// `stop`
    Stop,
    /// `rm`
    Rm,
    /// `extend`
    Extend,
    /// `events`
    Events,
    /// `gc`
    Gc,
    /// `image`
    Image,
    /// `probe`
    Probe,
    /// `explain`
    Explain,
    /// `doctor`
    Doctor,
    /// `wrap`
    Wrap,
    /// `serve`
    Serve,
    /// `key`
    Key,
    /// `mcp`
    Mcp,
    /// `secret`
    Secret,
    /// `config`
    Config,
    /// `completions`
    Completions,
    /// `man`
    Man,
    /// `__complete`
    Complete,
    /// `gate`
    Gate,
    /// None that is known.
    None,
}

impl VerbName {
    /// All verbs.
    pub(crate) const ALL: [Self; 47] = [
        Self::Run,
        Self::Create,
        Self::Ensure,
        Self::Exec,
        Self::Ps,
        Self::Logs,
        Self::Attach,
        Self::Signal,
        Self::Wait,
        Self::Shell,
        Self::File,
        Self::Diff,
        Self::Apply,
        Self::Discard,
        Self::History,
        Self::Undo,
        Self::Snapshot,
        Self::Fork,
        Self::Port,
        Self::Network,
        Self::Approve,
        Self::Audit,
        Self::Policy,
        Self::Ls,
        Self::Show,
        Self::Pause,
        Self::Resume,
        Self::Stop,
        Self::Rm,
        Self::Extend,
        Self::Events,
        Self::Gc,
        Self::Image,
        Self::Probe,
        Self::Explain,
        Self::Doctor,
        Self::Wrap,
        Self::Serve,
        Self::Key,
        Self::Mcp,
        Self::Secret,
        Self::Config,
        Self::Completions,
        Self::Man,
        Self::Complete,
        Self::Gate,
        Self::None,
    ];

    /// Its name, if it is a verb.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Run => Some("run"),
            Self::Create => Some("create"),
            Self::Ensure => Some("ensure"),
            Self::Exec => Some("exec"),
            Self::Ps => Some("ps"),
            Self::Logs => Some("logs"),
            Self::Attach => Some("attach"),
            Self::Signal => Some("signal"),
            Self::Wait => Some("wait"),
            Self::Shell => Some("shell"),
            Self::File => Some("file"),
            Self::Diff => Some("diff"),
            Self::Apply => Some("apply"),
            Self::Discard => Some("discard"),
            Self::History => Some("history"),
            Self::Undo => Some("undo"),
            Self::Snapshot => Some("snapshot"),
            Self::Fork => Some("fork"),
            Self::Port => Some("port"),
            Self::Network => Some("network"),
            Self::Approve => Some("approve"),
            Self::Audit => Some("audit"),
            Self::Policy => Some("policy"),
            Self::Ls => Some("ls"),
            Self::Show => Some("show"),
            Self::Pause => Some("pause"),
            Self::Resume => Some("resume"),
            Self::Stop => Some("stop"),
            Self::Rm => Some("rm"),
            Self::Extend => Some("extend"),
            Self::Events => Some("events"),
            Self::Gc => Some("gc"),
            Self::Image => Some("image"),
            Self::Probe => Some("probe"),
            Self::Explain => Some("explain"),
            Self::Doctor => Some("doctor"),
            Self::Wrap => Some("wrap"),
            Self::Serve => Some("serve"),
            Self::Key => Some("key"),
            Self::Mcp => Some("mcp"),
            Self::Secret => Some("secret"),
            Self::Config => Some("config"),
            Self::Completions => Some("completions"),
            Self::Man => Some("man"),
            Self::Complete => Some("__complete"),
            Self::Gate => Some("gate"),
            Self::None => None,
        }
    }

    /// What the verb does, to follow "failed to".
    pub(crate) fn doing(self) -> &'static str {
        match self {
            Self::Run | Self::Exec => "run the command",
            Self::Create => "make the session",
            Self::Ensure => "ensure the session",
            Self::Ps => "list the commands",
            Self::Logs => "print the output",
            Self::Attach => "attach to the command",
            Self::Signal => "signal the command",
            Self::Wait => "wait for the command",
            Self::Shell => "open the shell",
            Self::File => "work on the files",
            Self::Diff => "print the changes",
            Self::Apply => "apply the changes",
            Self::Discard => "discard the changes",
            Self::History => "list the points",
            Self::Undo => "undo",
            Self::Snapshot => "work on the snapshots",
            Self::Fork => "fork the session",
            Self::Port => "forward the ports",
            Self::Network => "work on the rules of the way out",
            Self::Approve => "answer what waits",
            Self::Audit => "list the connections",
            Self::Policy => "work on rules",
            Self::Ls => "list the sessions",
            Self::Show => "show the session",
            Self::Pause => "pause the session",
            Self::Resume => "resume the session",
            Self::Stop => "stop the session",
            Self::Rm => "remove the session",
            Self::Extend => "extend the session",
            Self::Events => "list the events",
            Self::Gc => "clean up",
            Self::Image => "work on the images",
            Self::Probe => "probe the sandbox",
            Self::Explain => "explain the sandbox",
            Self::Doctor => "look at this host",
            Self::Wrap => "wrap the command",
            Self::Serve => "serve",
            Self::Key => "work on the keys",
            Self::Mcp => "serve the tools",
            Self::Secret => "work on the secrets",
            Self::Config => "read the configuration",
            Self::Completions => "print completions",
            Self::Man => "print the manual",
            Self::Complete => "complete the line",
            Self::Gate => "be a gate",
            Self::None => "start",
        }
    }
}

/// What can be told of a command line at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Glance {
    /// Its verb.
    pub(crate) verb: VerbName,
    /// Whether errors are to be objects: whether `--json` stands before any `--`.
    pub(crate) json: bool,
}

/// Glances at the words of a command line, the program's name first.
pub(crate) fn glance(words: &[OsString]) -> Glance {
    let first = words.get(1).and_then(|word| word.to_str());
    let named = |verb: &VerbName| first.is_some() && verb.name() == first;
    let verb = VerbName::ALL.into_iter().find(named).unwrap_or(VerbName::None);
    let json =
        words.iter().take_while(|word| *word != OsStr::new("--")).any(|word| word == "--json");
    Glance { verb, json }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, verb: VerbName, json: bool) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert_eq!(glance(&words), Glance { verb, json }, "{line}");
    }

    #[test]
    fn json_counts_only_before_two_hyphens() {
        check("cofferdam run --json --nonsense", VerbName::Run, true);
        check("cofferdam run -- cargo metadata --json", VerbName::Run, false);
        check("cofferdam", VerbName::None, false);
        check("cofferdam rum --json", VerbName::None, true);
    }
}
