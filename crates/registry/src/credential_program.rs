//! Programs that keep credentials for others.

use crate::limits::MAX_HELPER_BYTES;
use crate::secret::{Credentials, Secret};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Leads the name of such a program.
const LEAD: &str = "docker-credential-";

/// The name with which a helper says that the secret is an identity token.
const IDENTITY: &str = "<token>";

/// What a helper says.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Said {
    #[serde(default)]
    username: String,
    #[serde(default)]
    secret: String,
}

/// Asks a helper about a server. An error is a sentence without any word of the helper.
pub(crate) fn ask(
    name: &str,
    server: &str,
    search: &OsStr,
    within: Duration,
) -> Result<Option<Credentials>, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    // HOSTILE: the name is one of a program, and no path to one.
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err("the name of the credential helper is no name".to_owned());
    }
    let program = find(&format!("{LEAD}{name}"), search)
        .ok_or_else(|| format!("{LEAD}{name} is not on the PATH"))?;
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|_| format!("{LEAD}{name} cannot be started"))?;
    let answer = talk(&mut child, server, Instant::now() + within);
    // It has said all it will, or had its time; what has ended cannot be killed. What it started and
    // left goes too. ORDER: before it is waited for, so that the group is still its own.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait();
    let answer = answer.map_err(|why| format!("{LEAD}{name} {why}"))?;
    if !status.is_ok_and(|status| status.success()) && answer.is_empty() {
        return Ok(None);
    }
    // One that knows nothing says so in words.
    let Ok(Said { username, secret }) = serde_json::from_slice(&answer) else { return Ok(None) };
    let secret = Secret::new(secret);
    Ok(match (username.as_str(), secret.reveal()) {
        (_, "") => None,
        (IDENTITY, _) => Some(Credentials::Identity(secret)),
        _ => Some(Credentials::Password(username, secret)),
    })
}

/// The program, in a directory that is named from the root: a command cannot put one before it by
/// where the caller happens to work.
fn find(program: &str, search: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(search)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

fn talk(child: &mut Child, server: &str, end: Instant) -> Result<Vec<u8>, &'static str> {
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read it may know the answer all the same. It fits into the pipe.
        let _ = stdin.write_all(server.as_bytes());
    }
    let mut stdout = child.stdout.take().ok_or("has no output")?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    loop {
        wait(&stdout, end)?;
        let count = stdout.read(&mut part).map_err(|_| "cannot be read")?;
        if count == 0 {
            return Ok(answer);
        }
        answer.extend_from_slice(part.get(..count).unwrap_or_default());
        if answer.len() as u64 > MAX_HELPER_BYTES {
            return Err("says too much");
        }
    }
}

fn wait(stdout: &ChildStdout, end: Instant) -> Result<(), &'static str> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("did not answer in time");
        }
        let left = Timespec::try_from(left).map_err(|_| "cannot be waited for")?;
        match poll(&mut [PollFd::new(stdout, PollFlags::IN)], Some(&left)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(_) => return Err("cannot be waited for"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn ask_script(case: &str, script: &str) -> Result<Option<Credentials>, String> {
        let directory =
            std::env::temp_dir().join(format!("cofferdam-helper-{case}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("docker-credential-test");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let within =
            if case == "slow" { Duration::from_millis(300) } else { Duration::from_secs(60) };
        let answer = ask("test", "a.example", directory.as_os_str(), within);
        std::fs::remove_dir_all(directory).unwrap();
        answer
    }

    #[test]
    fn a_helper_is_asked_for_a_server_and_says_who_one_is() {
        let script = r#"read -r server; [ "$1 $server" = "get a.example" ] || exit 3
            echo '{"ServerURL":"a.example","Username":"u","Secret":"s"}'"#;
        let known = ask_script("known", script).unwrap().unwrap();
        assert_eq!(known, Credentials::Password("u".to_owned(), Secret::new("s")));
        let token = ask_script("token", r#"echo '{"Username":"<token>","Secret":"s"}'"#).unwrap();
        assert_eq!(token, Some(Credentials::Identity(Secret::new("s"))));
    }

    #[test]
    fn a_helper_that_knows_nothing_is_no_error() {
        for script in ["exit 1", "echo 'credentials not found'; exit 1", "echo '{}'", "echo '['"] {
            assert_eq!(ask_script("none", script), Ok(None), "{script}");
        }
    }

    #[test]
    fn a_helper_is_bounded_in_time_and_words_and_is_no_path() {
        // What it starts may hold its output open: it is not waited for, and ends with it.
        let noted = std::env::temp_dir().join(format!("cofferdam-left-{}", std::process::id()));
        let script = format!("sleep 600 & echo $! >{}; sleep 600", noted.display());
        let slow = ask_script("slow", &script).unwrap_err();
        assert!(slow.contains("in time"), "{slow}");
        let left = std::fs::read_to_string(&noted).unwrap_or_default();
        let _ = std::fs::remove_file(&noted);
        // On a busy machine its time may be over before it has begun.
        if !left.trim().is_empty() {
            let left = PathBuf::from("/proc").join(left.trim()).join("stat");
            let is_over =
                || std::fs::read_to_string(&left).map_or(true, |stat| stat.contains(") Z "));
            let end = Instant::now() + Duration::from_secs(60);
            while !is_over() {
                assert!(Instant::now() < end, "{}", left.display());
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let much = ask_script("much", "while echo xxxxxxxxxxxxxxxxxxxx; do :; done").unwrap_err();
        assert!(much.contains("too much"), "{much}");
        for name in ["../x", "/bin/sh", "", "a b"] {
            let error = ask(name, "a", OsStr::new("/bin"), Duration::from_secs(1)).unwrap_err();
            assert!(error.contains("no name"), "{name}");
        }
        let error = ask("none", "a", OsStr::new(".:bin"), Duration::from_secs(1)).unwrap_err();
        assert!(error.contains("not on the PATH"), "{error}");
    }
}
