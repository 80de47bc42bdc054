//! The addresses of resources.

use cofferdam_core::Standard;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

const SCHEME: &str = "cofferdam://";
/// Leads what belongs to the sandbox of the connection.
const OWN: &str = "own";
/// Leads what belongs to one that is named.
const NAMED: &str = "sandboxes";

/// What one can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceUri {
    /// The sandbox by its name or id; `None` is that of the connection.
    pub(crate) sandbox: Option<String>,
    /// What of it.
    pub(crate) subject: Subject,
}

/// What of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The session itself.
    Session,
    /// A file of its workspace.
    File(OsString),
    /// The receipt of a command.
    Exec(String),
    /// What a command wrote.
    Log(String, Standard),
}

/// A template of addresses.
pub(crate) struct Template {
    pub(crate) rest: &'static str,
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
}

/// What there is of every sandbox.
pub(crate) const TEMPLATES: [Template; 5] = [
    Template { rest: "", name: "status", about: "How the sandbox stands, as JSON." },
    Template {
        rest: "/files/{+path}",
        name: "file",
        about: "A file of the workspace: text, or base64 where it is no text.",
    },
    Template {
        rest: "/execs/{exec}",
        name: "receipt",
        about: "How a command ended and what it used, as JSON; in a copy-on-write sandbox also what it \
                changed.",
    },
    Template {
        rest: "/execs/{exec}/stdout",
        name: "stdout",
        about: "The last of what a command wrote to standard output.",
    },
    Template {
        rest: "/execs/{exec}/stderr",
        name: "stderr",
        about: "The last of what a command wrote to standard error.",
    },
];

/// The address of a template, of the connection's sandbox or of those that are named.
pub(crate) fn template(rest: &str, is_named: bool) -> String {
    match is_named {
        false => format!("{SCHEME}{OWN}{rest}"),
        true => format!("{SCHEME}{NAMED}/{{sandbox}}{rest}"),
    }
}

impl ResourceUri {
    /// Reads an address. Nothing, where it is none of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(SCHEME)?;
        let (place, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let (sandbox, rest) = match place {
            OWN => (None, rest),
            NAMED => {
                let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
                (Some(decoded_text(name).filter(|name| !name.is_empty())?), rest)
            }
            _ => return None,
        };
        let words: Vec<&str> = rest.split('/').collect();
        let subject = match words.as_slice() {
            [""] => Subject::Session,
            ["files", path @ ..] if path.iter().any(|word| !word.is_empty()) => {
                Subject::File(decoded(&path.join("/"))?)
            }
            ["execs", exec] => Subject::Exec(decoded_text(exec)?),
            ["execs", exec, "stdout"] => Subject::Log(decoded_text(exec)?, Standard::Output),
            ["execs", exec, "stderr"] => Subject::Log(decoded_text(exec)?, Standard::Error),
            _ => return None,
        };
        Some(Self { sandbox, subject })
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        match &self.sandbox {
            None => f.write_str(OWN)?,
            Some(name) => write!(f, "{NAMED}/{}", encoded(name.as_bytes()))?,
        }
        match &self.subject {
            Subject::Session => Ok(()),
            Subject::File(path) => write!(f, "/files/{}", encoded(path.as_bytes())),
            Subject::Exec(exec) => write!(f, "/execs/{}", encoded(exec.as_bytes())),
            Subject::Log(exec, stream) => {
                let stream = match stream {
                    Standard::Output => "stdout",
                    Standard::Error => "stderr",
                };
                write!(f, "/execs/{}/{stream}", encoded(exec.as_bytes()))
            }
        }
    }
}

/// Bytes as they stand in an address; slashes stay.
fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(*byte));
            }
            // Writing to a string does not fail.
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

fn decoded(text: &str) -> Option<OsString> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, others)) = rest.split_first() {
        rest = others;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, others) = rest.split_at_checked(2)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = others;
    }
    // No name holds a zero.
    (!bytes.contains(&0)).then(|| OsString::from_vec(bytes))
}

fn decoded_text(text: &str) -> Option<String> {
    decoded(text)?.into_string().ok()
}

/// A path that was listed, as an address.
pub(crate) fn of_file(sandbox: Option<&str>, path: &OsStr) -> ResourceUri {
    ResourceUri { sandbox: sandbox.map(str::to_owned), subject: Subject::File(path.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_as_it_was_written() {
        let subjects = [
            Subject::Session,
            Subject::File("src/main.rs".into()),
            Subject::File("a b/100%/é?#".into()),
            Subject::File(OsString::from_vec(vec![b'x', 0xff, b'y'])),
            Subject::Exec("x0123".to_owned()),
            Subject::Log("build".to_owned(), Standard::Output),
            Subject::Log("build".to_owned(), Standard::Error),
        ];
        for subject in subjects {
            for sandbox in [None, Some("agent-1".to_owned())] {
                let uri = ResourceUri { sandbox, subject: subject.clone() };
                let text = uri.to_string();
                assert!(text.is_ascii(), "{text}");
                assert_eq!(ResourceUri::parse(&text), Some(uri), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for bad in [
            "",
            "file:///etc/passwd",
            "cofferdam://",
            "cofferdam://other",
            "cofferdam://sandboxes",
            "cofferdam://sandboxes/",
            "cofferdam://own/files",
            "cofferdam://own/files/",
            "cofferdam://own/files/a%00b",
            "cofferdam://own/files/a%2",
            "cofferdam://own/files/a%+1",
            "cofferdam://own/execs/a/b",
            "cofferdam://own/execs/a/stdout/b",
            "cofferdam://own/nothing",
        ] {
            assert_eq!(ResourceUri::parse(bad), None, "{bad}");
        }
    }
}
