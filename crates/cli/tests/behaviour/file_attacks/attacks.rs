//! The attacks.

/// A trap in the workspace and a verb that walks into it.
#[derive(Debug)]
pub(super) struct Attack {
    /// What is made first: a line of shell inside, or on the host after `host:`.
    pub(super) trap: &'static str,
    /// The verb of `cofferdam file` and its words; `OUTSIDE` is the host's directory.
    pub(super) words: &'static [&'static str],
    pub(super) expected: Expected,
}

/// How it has to end, beside leaving alone what is outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// Refused, in words among which these are.
    Refused(&'static str),
    /// The command line is refused.
    Usage,
    /// Done to what is inside.
    Done,
    /// Done to what is inside, or refused: names are swapped meanwhile.
    Either,
}

use Expected::{Done, Either, Refused, Usage};

/// The hint of errors of kind `path_escape`.
const OUT: Expected = Refused("go through no link that leaves it");

const fn attack(trap: &'static str, words: &'static [&'static str], expected: Expected) -> Attack {
    Attack { trap, words, expected }
}

const LINK: &str = "ln -s /tmp/out/secret t";
const LINK_UP: &str = "ln -s ../tmp/out/secret t";
const LINK_DEEP: &str = "mkdir -p t/d/e; ln -s ../../../../tmp/out/secret t/d/e/x";
const CHAIN: &str = "ln -s t2 t1; ln -s t3 t2; ln -s /tmp/out/secret t3";
const LINK_DIRECTORY: &str = "ln -s /tmp/out t";
const LINK_DIRECTORY_DEEP: &str = "mkdir t; ln -s /tmp/out/dir t/d";
const LINK_ROOT: &str = "ln -s /proc/self/root/tmp/out/secret t";
const LINK_CWD: &str = "ln -s /proc/1/cwd/../tmp/out/secret t";
const LINK_DESCRIPTOR: &str = "ln -s /proc/self/fd/0 t";
const LINK_DEVICE: &str = "ln -s /dev/zero t";
const LINK_NOWHERE: &str = "ln -s /tmp/out/new t";
const LINK_HOST: &str = "host:ln -s ../outside/secret t";
const HARD: &str = "host:ln ../outside/secret t";
const FIFO: &str = "mkfifo t";
const HELD_FIFO: &str = "mkfifo t; (setsid sleep 600 >t &) ";
const SOCKET: &str = "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('t')\"";
const LOOP: &str = "ln -s t2 t1; ln -s t1 t2";
const LONG_LOOP: &str =
    "i=0; while [ $i -lt 60 ]; do ln -s t$((i+1)) t$i; i=$((i+1)); done; echo x >t60";
const SPARSE: &str = "truncate -s 4T t";
const DIRECTORY: &str = "mkdir -p t/a; echo x >t/a/b";
const NOTHING: &str = "true";
const DEEP: &str = "python3 -c \"\nimport os\nos.mkdir('t'); os.chdir('t')\nfor _ in range(300):\n os.mkdir('d'); os.chdir('d')\n\"";
const ODD: &str =
    "mkdir t; printf x >\"$(printf 't/a\\nb')\"; printf x >\"$(printf 't/\\033[31m\\377')\"";

/// All of them.
pub(super) const ATTACKS: &[Attack] = &[
    // Reading what lies outside.
    attack(LINK, &["read", "t"], OUT),
    attack(LINK_UP, &["read", "t"], OUT),
    attack(LINK_DEEP, &["read", "t/d/e/x"], OUT),
    attack(CHAIN, &["read", "t1"], OUT),
    attack(LINK_DIRECTORY, &["read", "t/secret"], OUT),
    attack(LINK_DIRECTORY_DEEP, &["read", "t/d/inner"], OUT),
    attack(LINK_ROOT, &["read", "t"], OUT),
    attack(LINK_CWD, &["read", "t"], OUT),
    attack(LINK_DESCRIPTOR, &["read", "t"], OUT),
    attack(LINK_DEVICE, &["read", "t"], OUT),
    attack(LINK_HOST, &["read", "t"], OUT),
    attack(NOTHING, &["read", "../tmp/out/secret"], OUT),
    attack(NOTHING, &["read", "busy/../../tmp/out/secret"], OUT),
    attack(NOTHING, &["read", "/tmp/out/secret"], OUT),
    attack(NOTHING, &["read", "/workspace/../tmp/out/secret"], OUT),
    attack(NOTHING, &["read", "/workspace-of-another/x"], OUT),
    attack(NOTHING, &["read", "OUTSIDE/secret"], OUT),
    attack(NOTHING, &["read", "/proc/self/environ"], OUT),
    // What must not be waited for, or never ends.
    attack(FIFO, &["read", "t"], Refused("is a named pipe")),
    attack(HELD_FIFO, &["read", "t"], Refused("is a named pipe")),
    attack(SOCKET, &["read", "t"], Refused("is a socket")),
    attack(DIRECTORY, &["read", "t"], Refused("is a directory")),
    attack(LOOP, &["read", "t1"], Refused("")),
    attack(LONG_LOOP, &["read", "t0"], Refused("")),
    attack(SPARSE, &["read", "t", "--json"], Refused("")),
    attack(FIFO, &["append", "t"], Refused("is a named pipe")),
    attack(SOCKET, &["append", "t"], Refused("is a socket")),
    // Writing what lies outside.
    attack(LINK, &["write", "t"], Refused("is a symbolic link")),
    attack(CHAIN, &["write", "t1"], Refused("is a symbolic link")),
    attack(LINK_DIRECTORY, &["write", "t/secret"], OUT),
    attack(LINK_DIRECTORY, &["write", "t/new"], OUT),
    attack(LINK_DIRECTORY_DEEP, &["write", "t/d/inner"], OUT),
    attack(LINK_NOWHERE, &["write", "t"], Refused("is a symbolic link")),
    attack(LINK_DEVICE, &["write", "t"], Refused("is a symbolic link")),
    attack(NOTHING, &["write", "../tmp/out/secret"], OUT),
    attack(NOTHING, &["write", "/tmp/out/new"], OUT),
    attack(NOTHING, &["write", "OUTSIDE/new"], OUT),
    attack(HARD, &["write", "t"], Done),
    attack(FIFO, &["write", "t"], Refused("is a named pipe")),
    attack(SOCKET, &["write", "t"], Refused("is a socket")),
    attack(DIRECTORY, &["write", "t"], Refused("is a directory")),
    attack(DIRECTORY, &["write", "t/a/b/c"], Refused("")),
    // Adding to it.
    attack(LINK, &["append", "t"], Refused("is a symbolic link")),
    attack(LINK_DIRECTORY, &["append", "t/secret"], OUT),
    attack(LINK_NOWHERE, &["append", "t"], Refused("is a symbolic link")),
    attack(NOTHING, &["append", "/tmp/out/secret"], OUT),
    attack(HARD, &["append", "t"], Refused("it has 2 names")),
    // Its permissions.
    attack(LINK, &["chmod", "777", "t"], Refused("is a symbolic link")),
    attack(LINK_DIRECTORY, &["chmod", "777", "t/secret"], OUT),
    attack(NOTHING, &["chmod", "777", "../tmp/out/secret"], OUT),
    attack(HARD, &["chmod", "777", "t"], Refused("it has 2 names")),
    attack(FIFO, &["chmod", "777", "t"], Refused("is a named pipe")),
    attack(DIRECTORY, &["chmod", "4777", "t/a/b"], Usage),
    // Removing it.
    attack(LINK_DIRECTORY, &["rm", "t", "-r"], Done),
    attack(LINK_DIRECTORY, &["rm", "t/dir", "-r"], OUT),
    attack(LINK_DIRECTORY_DEEP, &["rm", "t", "-r"], Done),
    attack(NOTHING, &["rm", "../tmp/out", "-r"], OUT),
    attack(NOTHING, &["rm", ".", "-r"], Usage),
    attack(NOTHING, &["rm", "/workspace", "-r"], Usage),
    attack(HARD, &["rm", "t"], Done),
    attack(DEEP, &["rm", "t", "-r"], Done),
    // Moving and copying, in and out.
    attack(LINK_DIRECTORY, &["mv", "t/secret", "t9"], OUT),
    attack(DIRECTORY, &["mv", "t/a/b", "/tmp/out/new"], OUT),
    attack(DIRECTORY, &["mv", "t/a/b", "../tmp/out/secret", "--replace"], OUT),
    attack(LINK, &["mv", "t", "t9"], Done),
    attack(LINK, &["cp", "t", "t9"], OUT),
    attack(LINK_DIRECTORY, &["cp", "t/secret", "t9"], OUT),
    attack("ln -s /tmp/out t; echo x >t1", &["cp", "t1", "t/new"], OUT),
    attack(
        "ln -s /tmp/out/secret t; echo x >t1",
        &["cp", "t1", "t", "--replace"],
        Refused("is a symbolic link"),
    ),
    attack(FIFO, &["cp", "t", "t9"], Refused("is a named pipe")),
    attack(DIRECTORY, &["mv", "t", "t/a/inside-itself"], Usage),
    // Directories.
    attack(LINK_DIRECTORY, &["mkdir", "t/new"], OUT),
    attack(NOTHING, &["mkdir", "../tmp/out/new"], OUT),
    attack(LINK_DIRECTORY, &["list", "t"], OUT),
    attack(NOTHING, &["list", "/tmp/out"], OUT),
    attack(DEEP, &["list", "t", "--depth", "1000"], Usage),
    attack(ODD, &["list", "t"], Done),
    // Names that are being swapped.
    attack(NOTHING, &["read", "busy/real/secret"], Either),
    attack(NOTHING, &["write", "busy/real/secret"], Either),
    attack(NOTHING, &["append", "busy/real/secret"], Either),
    attack(NOTHING, &["chmod", "604", "busy/real/secret"], Either),
    attack(NOTHING, &["cp", "busy/real/secret", "busy/link/secret", "--replace"], Either),
    attack(NOTHING, &["list", "busy/real"], Either),
    // Words that are no path.
    attack(NOTHING, &["read", "\u{1b}[31m"], Refused("")),
    attack(NOTHING, &["read", "-x"], Usage),
];
