//! The surroundings of one attack: a workspace, things outside, and what the host sees afterwards.

use crate::arm::{Arm, PYTHON};
use crate::snapshot::{self, Snapshot};
use serde_json::json;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names in the workspace that a later run outside trusts.
const PROTECTED: [&str; 23] = [
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/modules",
    ".git/worktrees",
    ".git/info/attributes",
    ".gitmodules",
    ".vscode",
    ".idea",
    ".mcp.json",
    ".claude",
    ".envrc",
    ".husky",
    ".devcontainer",
    "cofferdam.toml",
    ".bashrc",
    ".profile",
    ".zshrc",
    "nested/.git/hooks",
    "nested/.git/config",
    "nested/.git/commondir",
    "src/main.txt",
];

/// The surroundings of one attack. Dropping them removes them.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) root: PathBuf,
    pub(crate) workspace: PathBuf,
    pub(crate) outside: PathBuf,
    /// Marks the command lines of all processes of the attack.
    pub(crate) token: String,
    pub(crate) canary: String,
    victim: Child,
    loopback: TcpListener,
    loopback6: Option<TcpListener>,
    udp: UdpSocket,
    path_socket: UnixListener,
    abstract_socket: UnixListener,
    abstract_datagram: UnixDatagram,
    scattered: Vec<PathBuf>,
    shared_memory: Option<(String, i32)>,
    before: Snapshot,
}

impl World {
    pub(crate) fn new(arm: &Arm, number: usize) -> Self {
        let root = arm.place.join(number.to_string());
        let token = format!("escape-{}-{}-{number}", std::process::id(), arm.name);
        let canary = format!("canary-{token}");
        let (workspace, outside) = (root.join("workspace"), root.join("outside"));
        make_tree(&root, &canary);
        let path_socket = UnixListener::bind(outside.join("socket")).unwrap();
        give_all(arm, &root);
        let scattered = ["/tmp", "/dev/shm"].map(|place| {
            let path = Path::new(place).join(format!("{token}-secret"));
            fs::write(&path, &canary).unwrap();
            arm.give(&path);
            path
        });
        let address = |name: &str| SocketAddr::from_abstract_name(name).unwrap();
        let datagram = format!("{token}-datagram");
        let mut world = Self {
            victim: victim(arm, &canary),
            loopback: TcpListener::bind("127.0.0.1:0").unwrap(),
            loopback6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            path_socket,
            abstract_socket: UnixListener::bind_addr(&address(&token)).unwrap(),
            abstract_datagram: UnixDatagram::bind_addr(&address(&datagram)).unwrap(),
            scattered: scattered.to_vec(),
            shared_memory: shared_memory(),
            before: Snapshot::new(),
            root,
            workspace,
            outside,
            token,
            canary,
        };
        world.listen_without_waiting();
        world.before = world.look();
        world
    }

    /// What the attack is told.
    pub(crate) fn facts(&self) -> String {
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        json!({
            "workspace": self.workspace, "outside": self.outside, "token": self.token,
            "canary": &self.canary[..8], "neighbour": self.root.join("neighbour"),
            "home_secret": self.root.join("home/.secret"),
            "tmp_secret": self.scattered[0], "shm_secret": self.scattered[1],
            "port": port(&self.loopback), "port6": self.loopback6.as_ref().map_or(9, port),
            "udp": self.udp.local_addr().unwrap().port(),
            "socket": self.outside.join("socket"), "abstract": self.token,
            "victim": self.victim.id(), "victim_start": started(self.victim.id()),
            "shared_memory": self.shared_memory.as_ref().map_or(9, |(_, key)| *key),
            "host_name": first_line("/proc/sys/kernel/hostname"),
            "machine_id": first_line("/etc/machine-id"),
            "boot_id": first_line("/proc/sys/kernel/random/boot_id"),
        })
        .to_string()
    }

    /// What the host sees that must not be. `output` is all that came out of the sandbox.
    pub(crate) fn damage(&mut self, output: &str) -> Option<String> {
        let seen = output.contains(&self.canary).then(|| "the canary is in the output".to_owned());
        seen.or_else(|| self.reached())
            .or_else(|| self.victim_is_harmed())
            .or_else(|| snapshot::planted(&self.workspace))
            .or_else(|| snapshot::difference(&self.before, &self.look()))
            .or_else(|| self.survivor())
    }

    /// Whether the whole workspace is as it was at first; `trees` says what it was.
    pub(crate) fn workspace_now(&self) -> Snapshot {
        let mut now = Snapshot::new();
        snapshot::take(&mut now, &self.workspace);
        now
    }

    fn look(&self) -> Snapshot {
        let mut now = Snapshot::new();
        let trees = [&self.outside, &self.root.join("neighbour"), &self.root.join("stdin")];
        trees.into_iter().for_each(|tree| snapshot::take(&mut now, tree));
        PROTECTED.iter().for_each(|name| snapshot::take(&mut now, &self.workspace.join(name)));
        now
    }

    /// The program that is sent; it belongs to the person, and must stay as it is.
    pub(crate) fn put_stdin(&mut self, arm: &Arm, text: &str) -> fs::File {
        let path = self.root.join("stdin");
        fs::write(&path, text).unwrap();
        arm.give(&path);
        self.before = self.look();
        fs::File::open(path).unwrap()
    }

    fn listen_without_waiting(&self) {
        self.loopback.set_nonblocking(true).unwrap();
        self.loopback6.iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
        self.udp.set_nonblocking(true).unwrap();
        self.path_socket.set_nonblocking(true).unwrap();
        self.abstract_socket.set_nonblocking(true).unwrap();
        self.abstract_datagram.set_nonblocking(true).unwrap();
    }

    fn reached(&self) -> Option<String> {
        let mut byte = [0; 1];
        let reached = [
            ("loopback", self.loopback.accept().is_ok()),
            ("loopback 6", self.loopback6.as_ref().is_some_and(|l| l.accept().is_ok())),
            ("udp", self.udp.recv(&mut byte).is_ok()),
            ("path socket", self.path_socket.accept().is_ok()),
            ("abstract socket", self.abstract_socket.accept().is_ok()),
            ("abstract datagram socket", self.abstract_datagram.recv(&mut byte).is_ok()),
        ];
        let found = reached.into_iter().find(|(_, is_reached)| *is_reached);
        found.map(|(name, _)| format!("the host's {name} was reached"))
    }

    fn victim_is_harmed(&mut self) -> Option<String> {
        if let Ok(Some(status)) = self.victim.try_wait() {
            return Some(format!("a process of the host was ended: {status}"));
        }
        let id = self.victim.id();
        let limits = fs::read_to_string(format!("/proc/{id}/limits")).unwrap_or_default();
        let files = limits.lines().find(|line| line.starts_with("Max open files"))?;
        let limited = files.split_whitespace().nth(3) == Some("3");
        limited.then(|| "a process of the host was limited".to_owned())
    }

    /// A process of the attack that is still there, a moment after the end.
    fn survivor(&self) -> Option<String> {
        let found = survivors(&self.token, Duration::from_millis(60));
        found.first().map(|pid| format!("process {pid} is left, of {}", found.len()))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        if let Some((id, _)) = &self.shared_memory {
            let _ = Command::new("ipcrm").args(["-m", id]).status();
        }
        for pid in survivors(&self.token, Duration::ZERO) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        for path in &self.scattered {
            let _ = fs::remove_file(path);
        }
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Processes whose command line holds the token, after waiting a while for them to go.
pub(crate) fn survivors(token: &str, wait: Duration) -> Vec<i32> {
    let give_up = Instant::now() + wait;
    loop {
        let found = marked(token);
        if found.is_empty() || Instant::now() >= give_up {
            return found;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn marked(token: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_marked = |pid: &i32| {
        // The token of attack 1 begins that of attack 10, so its end counts.
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let next = |at: usize| line[at + token.len()..].chars().next();
        line.match_indices(token).any(|(at, _)| !next(at).is_some_and(|c| c.is_ascii_digit()))
    };
    pids.filter(|pid| *pid != own).filter(is_marked).collect()
}

fn make_tree(root: &Path, canary: &str) {
    for directory in ["workspace", "outside", "neighbour", "home"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    let workspace = root.join("workspace");
    fs::create_dir_all(workspace.join("src")).unwrap();
    fs::write(workspace.join("src/main.txt"), "hello\n").unwrap();
    for repository in [workspace.clone(), workspace.join("nested")] {
        make_repository(&repository);
    }
    fs::create_dir(workspace.join(".vscode")).unwrap();
    fs::write(workspace.join(".vscode/settings.json"), "{}\n").unwrap();
    let outside = root.join("outside");
    for secret in ["outside/secret", "neighbour/secret", "home/.secret"] {
        fs::write(root.join(secret), canary).unwrap();
    }
    fs::write(outside.join("untouched"), "untouched\n").unwrap();
    symlink(outside.join("secret"), workspace.join("link-out")).unwrap();
    symlink(outside.join("untouched"), workspace.join("link-untouched")).unwrap();
    symlink(outside.join("socket"), workspace.join("link-socket")).unwrap();
    symlink(&outside, workspace.join("link-dir")).unwrap();
}

/// As `git init` makes it, without its samples.
fn make_repository(path: &Path) {
    let git = path.join(".git");
    for directory in ["hooks", "info", "objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        fs::create_dir_all(git.join(directory)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(git.join("info/exclude"), "").unwrap();
    let config = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";
    fs::write(git.join("config"), config).unwrap();
    let hook = git.join("hooks/pre-commit");
    fs::write(&hook, "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
}

fn give_all(arm: &Arm, path: &Path) {
    arm.give(path);
    if fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap().flatten() {
            give_all(arm, &entry.path());
        }
    }
}

fn victim(arm: &Arm, canary: &str) -> Child {
    let mut command = arm.command("/bin/sleep");
    command.arg("600").env("COFFERDAM_ESCAPE_SECRET", canary);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    // Until the prefix has become the program, its environment is not the one to look for.
    let give_up = Instant::now() + Duration::from_secs(5);
    let line = || fs::read_to_string(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
    while !line().starts_with("/bin/sleep") && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

/// Field 22 of `stat`.
fn started(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
}

/// A segment of System V memory on the host that anybody may attach: its id and its key.
fn shared_memory() -> Option<(String, i32)> {
    let made = Command::new("ipcmk").args(["-M", "4096", "-p", "0666"]).output().ok()?;
    let id = String::from_utf8(made.stdout).ok()?.rsplit(' ').next()?.trim().to_owned();
    let table = fs::read_to_string("/proc/sysvipc/shm").ok()?;
    let key = table.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let key = fields.next()?;
        (fields.next() == Some(&id)).then(|| key.parse::<i32>().ok())?
    })?;
    Some((id, key))
}

/// The first line of a file, or nothing.
fn first_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// The words of an attack: descriptor 9 is left open on the outside, as careless callers do.
pub(crate) fn command(arm: &Arm, world: &World, name: &str, options: &[String]) -> Command {
    let mut words = arm.confining(&world.workspace, options);
    words.extend([PYTHON, "-", name].map(str::to_owned));
    words.push(world.facts());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec 9<\"$0\"; exec \"$@\""]).arg(&world.outside).args(words);
    command.current_dir(&world.workspace);
    command.env("COFFERDAM_HOME", arm.place.join("state"));
    command.env("COFFERDAM_ESCAPE_SECRET", &world.canary).env("HOME", world.root.join("home"));
    command
}
