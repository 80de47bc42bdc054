//! The suite's actions as lines for `/bin/sh`.

use crate::fixture::Action;
use std::ffi::OsString;
use std::fmt::Write as _;

/// Turns actions into shell lines, for backends whose sandboxes have `/bin/sh` and the usual small
/// programs. A [`Fixture`](crate::Fixture) of such a backend calls it from its own `argv`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShellFixture;

impl ShellFixture {
    /// The command that does it.
    pub fn argv(action: &Action) -> Vec<OsString> {
        ["/bin/sh", "-c", &line(action), "sh"]
            .into_iter()
            .chain(arguments(action))
            .map(OsString::from)
            .collect()
    }
}

/// What the line finds as its `$1` and `$2`, so that no text is ever read by the shell.
fn arguments(action: &Action) -> Vec<&str> {
    match action {
        Action::Print { stdout, stderr } => vec![stdout, stderr],
        Action::PrintThenWait(text) => vec![text],
        Action::WriteFile(path) | Action::ReadFile(path) => vec![path],
        Action::MakeLink { name, target } => vec![name, target],
        Action::Exit(_)
        | Action::DieOf(_)
        | Action::PrintEveryByte
        | Action::PrintBytes(_)
        | Action::CopyInput
        | Action::LeaveChild(_)
        | Action::LeaveChildAndWait(_)
        | Action::CountChildren(_)
        | Action::IsTerminal
        | Action::PrintNextSize
        | Action::SeesProcess(_)
        | Action::UseMemory(_)
        | Action::HaveProcesses(_)
        | Action::EchoAt(_)
        | Action::PrintVariable(_) => Vec::new(),
    }
}

fn line(action: &Action) -> String {
    match action {
        Action::Exit(code) => format!("exit {code}"),
        Action::DieOf(signal) => format!("kill -{signal} $$"),
        Action::Print { .. } => "printf %s \"$1\"; printf %s \"$2\" >&2".to_owned(),
        Action::PrintEveryByte => every_byte(),
        Action::PrintBytes(count) => format!("head -c {count} /dev/zero"),
        Action::PrintThenWait(_) => "printf %s \"$1\"; sleep 90".to_owned(),
        Action::CopyInput => "cat".to_owned(),
        Action::LeaveChild(name) => leave(name),
        Action::LeaveChildAndWait(name) => format!("{}; sleep 90", leave(name)),
        Action::CountChildren(name) => count(name),
        Action::IsTerminal => "test -t 1".to_owned(),
        Action::PrintNextSize => {
            "trap 'stty size; exit 0' WINCH; printf ready; while :; do sleep 0.05; done".to_owned()
        }
        Action::WriteFile(_) => "printf written > \"$1\"".to_owned(),
        Action::ReadFile(_) => "cat \"$1\"".to_owned(),
        Action::MakeLink { .. } => "ln -s \"$2\" \"$1\"".to_owned(),
        Action::SeesProcess(pid) => format!("test -d /proc/{pid}"),
        // `tail` keeps what has no end of line, and stands last so that its end is the line's.
        Action::UseMemory(bytes) => format!("head -c {bytes} /dev/zero | tail >/dev/null"),
        Action::HaveProcesses(count) => {
            format!("i=0; while [ $i -lt {count} ]; do sleep 90 & i=$((i+1)); done")
        }
        Action::EchoAt(port) => echo(*port),
        Action::PrintVariable(name) => format!("printf '%s\\n' \"${name}\""),
    }
}

/// A child whose own command line, and no other, contains the name behind a colon. Waits until the
/// child has that command line.
fn leave(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!(
        "f={first}; (trap '' HUP; setsid sh -c \"sleep 90; : ${{f}}{rest}\" &); \
         until [ \"$({})\" -gt 0 ]; do sleep 0.01; done; printf left",
        count(name)
    )
}

/// Perl is a part of every Debian-like system that a shell has no sockets of its own for.
fn echo(port: u16) -> String {
    format!(
        "exec perl -MIO::Socket::INET -e '$| = 1; alarm 90; \
         my $l = IO::Socket::INET->new(LocalAddr => \"127.0.0.1:{port}\", Listen => 8) or die; \
         print \"ready\"; while (my $c = $l->accept) {{ \
         while (sysread($c, my $b, 65536)) {{ \
         my $o = 0; while ($o < length $b) {{ $o += syswrite($c, $b, length($b) - $o, $o) // last }} \
         }} close $c }}'"
    )
}

fn count(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("grep -la ': [{first}]{rest}' /proc/[0-9]*/cmdline 2>/dev/null | wc -l")
}

fn every_byte() -> String {
    let mut line = "printf '".to_owned();
    for byte in 0..=u8::MAX {
        // Writing to a string does not fail.
        write!(line, "\\{byte:03o}").ok();
    }
    line.push('\'');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn output(action: &Action) -> (Option<i32>, Vec<u8>) {
        let argv = ShellFixture::argv(action);
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), output.stdout)
    }

    #[test]
    fn the_lines_do_what_their_actions_say() {
        assert_eq!(output(&Action::Exit(7)).0, Some(7));
        assert_eq!(output(&Action::DieOf(15)).0, None);
        assert_eq!(output(&Action::PrintEveryByte).1, (0..=u8::MAX).collect::<Vec<u8>>());
        assert_eq!(output(&Action::PrintBytes(70_000)).1.len(), 70_000);
        let text = "a'b \"$HOME\"\n".to_owned();
        let print = Action::Print { stdout: text.clone(), stderr: String::new() };
        assert_eq!(output(&print).1, text.as_bytes());
        assert_ne!(output(&Action::IsTerminal).0, Some(0));
        assert_eq!(output(&Action::SeesProcess(std::process::id())).0, Some(0));
        assert_eq!(output(&Action::CountChildren("NobodyIsCalledThis".to_owned())).1, b"0\n");
        assert_eq!(output(&Action::UseMemory(5000)).0, Some(0));
    }
}
