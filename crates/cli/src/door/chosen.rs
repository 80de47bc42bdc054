//! Which server is meant, if one is: `--server` before the verb, or `COFFERDAM_SERVER`.

use crate::verb::VerbName;
use cofferdam_core::{Error, ErrorKind, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The variable that names a server.
const SERVER: &str = "COFFERDAM_SERVER";
/// The variable that holds a key.
#[cfg(feature = "remote")]
const KEY: &str = "COFFERDAM_KEY";

/// A server as somebody named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// Its address.
    pub(crate) address: OsString,
    /// A file that holds a key.
    pub(crate) key_file: Option<PathBuf>,
    /// Who said so.
    pub(crate) origin: &'static str,
}

static CHOSEN: OnceLock<Server> = OnceLock::new();

/// The server that was chosen, if one was.
pub(crate) fn chosen() -> Option<&'static Server> {
    CHOSEN.get()
}

/// Whether a server was chosen.
pub(crate) fn is_chosen() -> bool {
    CHOSEN.get().is_some()
}

/// From now on sessions are those behind this server.
pub(crate) fn choose(server: Option<Server>) {
    if let Some(server) = server {
        // There is one command line.
        let _ = CHOSEN.set(server);
    }
}

/// What is said before a verb for the same server to be meant from anywhere. A key that came by a variable is not
/// among it.
#[cfg(all(feature = "mcp", feature = "remote"))]
pub(crate) fn words() -> Result<Vec<OsString>> {
    let Some(server) = chosen() else { return Ok(Vec::new()) };
    let mut words = vec!["--server".into(), server.address.clone()];
    if let Some(file) = &server.key_file {
        let file = std::path::absolute(file)
            .map_err(|cause| Error::new(ErrorKind::Io, format!("find {file:?}")).source(cause))?;
        words.extend(["--server-key-file".into(), file.into_os_string()]);
    }
    Ok(words)
}

/// Takes the options of a server from before the verb. What is wrong with them is left there for the
/// parser, which says it as of any option.
pub(crate) fn split(words: Vec<OsString>) -> Result<(Option<Server>, Vec<OsString>)> {
    let mut key_file = None;
    let mut words = words.into_iter();
    let mut left: Vec<OsString> = words.by_ref().take(1).collect();
    let mut rest: Vec<OsString> = words.collect();
    // Whoever wants no variable to count means this one too: what `wrap` wrote runs where it was written.
    let wants_none = rest.iter().take_while(|word| *word != "--").any(|word| word == "--no-config");
    let variable = std::env::var_os(SERVER).filter(|value| !value.is_empty() && !wants_none);
    let mut server = variable.map(|address| (address, SERVER));
    while let Some((option, value, taken)) = next(&rest) {
        match option {
            Before::Server => server = Some((value, "--server")),
            Before::KeyFile => key_file = Some(PathBuf::from(value)),
        }
        rest.drain(..taken);
    }
    left.extend(rest);
    let server = match (server, key_file) {
        (Some((address, origin)), key_file) => Some(Server { address, key_file, origin }),
        (None, Some(_)) => {
            return Err(Error::new(
                ErrorKind::Usage,
                "--server-key-file is for a server, and none is named",
            )
            .hint("Write --server URL before it."));
        }
        (None, None) => None,
    };
    Ok((server, left))
}

/// An option that stands before the verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Server,
    KeyFile,
}

/// The option that comes next, its value, and how many words both are.
fn next(words: &[OsString]) -> Option<(Before, OsString, usize)> {
    let first = words.first()?.as_bytes();
    let known = [(Before::Server, "--server"), (Before::KeyFile, "--server-key-file")];
    for (option, name) in known {
        let Some(rest) = first.strip_prefix(name.as_bytes()) else { continue };
        match rest {
            [] => return Some((option, words.get(1)?.clone(), 2)),
            [b'=', value @ ..] => return Some((option, OsStr::from_bytes(value).to_owned(), 1)),
            [..] => {}
        }
    }
    None
}

/// Why a verb is of this machine alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) &'static str);

/// Refuses a verb that a server cannot do.
pub(crate) fn refuse(verb: VerbName, server: Option<&Server>) -> Result<()> {
    let (Some(server), Some(Refusal(why))) = (server, refusal(verb)) else { return Ok(()) };
    let (origin, verb) = (server.origin, verb.name().unwrap_or_default());
    let hint = match origin {
        SERVER => "Unset COFFERDAM_SERVER for it, or run it on the machine of the server.",
        _ => "Leave --server out, or run it on the machine of the server.",
    };
    Err(Error::new(ErrorKind::Usage, format!("{origin}: `{verb}` {why}")).hint(hint))
}

/// Why a verb is of this machine by its nature. Every verb is here, so that none ignores a server.
pub(crate) fn refusal(verb: VerbName) -> Option<Refusal> {
    Some(Refusal(match verb {
        VerbName::Run
        | VerbName::Create
        | VerbName::Ensure
        | VerbName::Exec
        | VerbName::Ps
        | VerbName::Logs
        | VerbName::Attach
        | VerbName::Signal
        | VerbName::Wait
        | VerbName::Shell
        | VerbName::File
        | VerbName::Diff
        | VerbName::Apply
        | VerbName::Discard
        | VerbName::History
        | VerbName::Undo
        | VerbName::Snapshot
        | VerbName::Network
        | VerbName::Approve
        | VerbName::Audit
        | VerbName::Secret
        | VerbName::Port
        | VerbName::Fork
        | VerbName::Ls
        | VerbName::Show
        | VerbName::Pause
        | VerbName::Resume
        | VerbName::Stop
        | VerbName::Rm
        | VerbName::Extend
        | VerbName::Events
        | VerbName::Complete
        | VerbName::Probe
        | VerbName::Mcp
        | VerbName::None => return None,
        VerbName::Gate => "is a part of a sandbox of this machine",
        VerbName::Policy => "tries rules on this machine",
        VerbName::Gc => "compares what this machine has with what is written down on it",
        VerbName::Image => "works on the images of this machine",
        VerbName::Explain => "says what a sandbox of this machine would be made of",
        VerbName::Doctor => "looks at the kernel of this machine",
        VerbName::Wrap => "makes a command line for programs of this machine",
        VerbName::Serve => "is the server, on this machine",
        VerbName::Key => "is for the user whose server it is, on its machine",
        VerbName::Config => "is about configuration files of this machine",
        VerbName::Completions | VerbName::Man => "prints what this program says of itself",
    }))
}

/// The key that is to be told the server.
#[cfg(feature = "remote")]
pub(super) fn key(server: &Server) -> Result<Option<cofferdam_client::Key>> {
    use cofferdam_client::Key;
    if let Some(file) = &server.key_file {
        return Key::from_file(file).map(Some);
    }
    match std::env::var_os(KEY).filter(|value| !value.is_empty()) {
        Some(text) => Key::new(&text.to_string_lossy(), KEY).map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_server_is_named_before_the_verb() {
        let check = |line: &str, address: Option<&str>, key: Option<&str>, left: &str| {
            let (server, rest) = split(words(line)).unwrap();
            let found = server.as_ref().map(|server| server.address.to_string_lossy().into_owned());
            assert_eq!(found.as_deref(), address, "{line}");
            let file = server.and_then(|server| server.key_file);
            assert_eq!(file.as_deref().and_then(|path| path.to_str()), key, "{line}");
            assert_eq!(rest, words(left), "{line}");
        };
        check("c ls", None, None, "c ls");
        check("c --server u ls --json", Some("u"), None, "c ls --json");
        check("c --server=u --server-key-file k ls", Some("u"), Some("k"), "c ls");
        check("c --server-key-file=k --server u ls", Some("u"), Some("k"), "c ls");
        check("c run -- --server u", None, None, "c run -- --server u");
        check("c --server", None, None, "c --server");
        check("c --servers u", None, None, "c --servers u");
        assert_eq!(split(words("c --server-key-file k ls")).unwrap_err().kind, ErrorKind::Usage);
    }

    #[test]
    fn no_verb_ignores_a_server() {
        let server = |origin| Server { address: "u".into(), key_file: None, origin };
        for verb in VerbName::ALL {
            assert!(refuse(verb, None).is_ok());
            let refused = refuse(verb, Some(&server("--server")));
            assert_eq!(refused.is_err(), refusal(verb).is_some(), "{verb:?}");
        }
        let error = refuse(VerbName::Doctor, Some(&server(SERVER))).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.hint.unwrap().contains(SERVER));
    }
}
