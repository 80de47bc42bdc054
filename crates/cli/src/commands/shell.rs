//! `cofferdam shell`.

use super::attach::{shown, told_end, watch};
use crate::args::DetachKeys;
use crate::door::Session;
use crate::follow::Passed;
use crate::surroundings::Surroundings;
use crate::{render, screen, sessions};
use clap::Args;
use cofferdam_core::{
    Error, ErrorKind, ExecInput, Part, ProcessId, Result, Seen, Standard, Stdin, Terminal,
};
use cofferdam_session::ExecReport;

/// Opens a shell in a session, or goes on with the one that is open there.
///
/// The shell has a terminal of its own, which keeps running when you leave it with Ctrl-P Ctrl-Q or
/// lose your connection; the next `shell` shows the last of what was on it and goes on. A shell that
/// has ended is replaced by a new one. What was started in it goes on, see `ps` and `signal`.
///
/// Example: cofferdam shell agent-1
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit code:
  0 the shell has ended, or was left; 1 Cofferdam could not do it; 2 usage; that of `exec` where the
  session was stopped or removed, or its sandbox died: 130 or 137")]
pub(crate) struct ShellArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Names the shell: a session may have several. Default: main.
    ///
    /// Example: --session logs
    #[arg(long = "session", value_name = "S", default_value = "main", hide_default_value = true)]
    pub(crate) shell: String,

    /// Leaves the terminal at these keys. Default: ctrl-p,ctrl-q.
    ///
    /// Keys separated by commas: ctrl-a to ctrl-z, ctrl-], a letter, a digit; or none.
    ///
    /// Example: --detach-keys ctrl-]
    #[arg(long, value_name = "KEYS", value_parser = DetachKeys::parse)]
    pub(crate) detach_keys: Option<DetachKeys>,

    /// Prints the shell's command as one JSON object when it has ended or was left, and errors as
    /// objects.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// How much of what was on an open shell is shown again: some screens full.
const SHOWN_AGAIN_BYTES: u64 = 16 << 10;
/// Leads the ids of commands that are shells at a terminal.
const LEAD: &str = "terminal-";
/// The shell that the variables inside name, as an interactive one.
const SHELL: [&str; 3] = ["/bin/sh", "-c", "exec \"${SHELL:-/bin/sh}\" -i"];

/// Opens the shell, or goes on with it.
pub(super) fn perform(args: &ShellArgs) -> Result<u8> {
    if !screen::reads_keys() {
        return Err(Error::new(ErrorKind::Usage, "a shell needs a terminal, and there is none")
            .hint("Use `cofferdam exec SESSION -t -- sh` where a program plays the terminal."));
    }
    let surroundings = Surroundings::of_this_process();
    sessions::with(async |sessions| {
        let session = sessions::find_to_change(sessions, &args.session).await?;
        let (exec, from) = open(args, &surroundings, &session).await?;
        let passed = Passed {
            reads: true,
            has_terminal: true,
            keys: Some(watch(args.detach_keys.as_ref())),
            signals: None,
        };
        let ended = shown(&session, &exec, from, passed).await?;
        if args.json {
            render::print_json(&session.status(&exec).await?)?;
        }
        Ok(told_end(&session, ended.as_deref()).await)
    })
}

/// The shell of this name, and from where on it is shown.
async fn open(
    args: &ShellArgs,
    surroundings: &Surroundings,
    session: &Session,
) -> Result<(ProcessId, Seen)> {
    let of_name = of_name(&args.shell, &session.execs().await?)?;
    if let Some(open) = of_name.open {
        // Another size and back: a program that paints its screen paints it again.
        let size = screen::size();
        let smaller = Terminal { rows: size.rows.saturating_sub(1).max(1), ..size };
        session.input(&open.0, &ExecInput::Resize(smaller)).await?;
        let from = last_lines(session, &open.0, open.1).await?;
        return Ok((open.0, Seen { stdout: from, stderr: 0, ..Seen::default() }));
    }
    let mut order = Session::order(SHELL)?;
    order.command.id = of_name.next;
    order.command.terminal = Some(screen::size());
    order.command.stdin = Stdin::Piped;
    sessions::add_terminal(&mut order.command.env, surroundings);
    order.detached = true;
    let exec = session.start(&order).await?.id;
    Ok((exec, Seen::default()))
}

/// The shells of one name.
#[derive(Debug, PartialEq)]
struct OfName {
    /// The one that is open, and how much it wrote.
    open: Option<(ProcessId, u64)>,
    /// The id of the next.
    next: ProcessId,
}

fn of_name(name: &str, execs: &[ExecReport]) -> Result<OfName> {
    let begins = format!("{LEAD}{name}-");
    let number = |exec: &ExecReport| exec.id.strip_prefix(&begins)?.parse::<u32>().ok();
    let last = execs.iter().filter_map(|exec| Some((number(exec)?, exec))).max_by_key(|(n, _)| *n);
    let open = match last.filter(|(_, exec)| exec.ended_ms.is_none()) {
        Some((_, exec)) => Some((ProcessId::new(exec.id.clone())?, exec.stdout.written)),
        None => None,
    };
    let next = ProcessId::new(format!("{begins}{}", last.map_or(1, |(n, _)| n.saturating_add(1))))?;
    Ok(OfName { open, next })
}

/// Where the last lines begin of so many bytes that a shell wrote.
async fn last_lines(session: &Session, exec: &ProcessId, written: u64) -> Result<u64> {
    let offset = written.saturating_sub(SHOWN_AGAIN_BYTES);
    if offset == 0 {
        return Ok(0);
    }
    let len = u32::try_from(SHOWN_AGAIN_BYTES).unwrap_or(u32::MAX);
    let part = Part { stream: Standard::Output, offset, len };
    let chunk = session.read(exec, part).await?;
    // A line's beginning is most likely no middle of a command to the terminal.
    let line = chunk.bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    Ok(chunk.offset.saturating_add(u64::try_from(line).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::UsageReport;
    use cofferdam_session::StreamReport;

    fn exec(id: &str, ended_ms: Option<u64>) -> ExecReport {
        ExecReport {
            id: id.to_owned(),
            incarnation: 1,
            argv: Vec::new(),
            detached: true,
            left: 0,
            terminal: true,
            started_ms: 0,
            ended_ms,
            ending: None,
            signal: None,
            exit_code: None,
            code: None,
            stage: None,
            detail: None,
            killed_descendants: None,
            usage: UsageReport::default(),
            denials: Vec::new(),
            stdout: StreamReport { written: 7, dropped: 0 },
            stderr: StreamReport::default(),
        }
    }

    #[test]
    fn an_open_shell_is_gone_on_with_and_a_dead_one_replaced() {
        let next = |name: &str, execs: &[ExecReport]| of_name(name, execs).unwrap();
        let none = next("main", &[exec("terminal-other-3", None), exec("terminal-main-x", None)]);
        assert_eq!((none.open, none.next.as_str()), (None, "terminal-main-1"));
        let dead =
            next("main", &[exec("terminal-main-1", Some(5)), exec("terminal-main-10", Some(6))]);
        assert_eq!((dead.open, dead.next.as_str()), (None, "terminal-main-11"));
        let open = next("main", &[exec("terminal-main-1", Some(5)), exec("terminal-main-2", None)]);
        assert_eq!(open.open, Some((ProcessId::new("terminal-main-2").unwrap(), 7)));
    }
}
