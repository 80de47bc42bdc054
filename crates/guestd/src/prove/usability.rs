//! What must work: P15. A sandbox in which nothing works holds every attack off.

use super::attack::{Group, Row, Scene};
use super::calls::{create, create_private, list, open, read_something};
use super::outcome::{Door, Outcome};
use super::sys;
use std::io::Read;
use std::process::{Command, Stdio};

const FILES: Group = Group { axis: "files", promise: "P15", door: Door::Path };
const PROCESSES: Group = Group { axis: "processes", promise: "P15", door: Door::Process };

pub(super) const ROWS: &[Row] = &[
    FILES.usable("use.null_device", |_| write_to("/dev/null")),
    FILES.usable("use.zero_device", |_| open("/dev/zero")),
    FILES.usable("use.random_device", |_| read_a_byte("/dev/urandom")),
    FILES.usable("use.system_files", |_| list("/usr/bin")).when(|s| !s.request.targets.image),
    FILES.usable("use.tmp", create_private),
    FILES.usable("use.shared_memory_files", |_| create("/dev/shm/cofferdam-attack")),
    FILES.usable("use.own_links", own_links),
    FILES
        .usable("use.workspace", |s| create(&s.scratch("use")))
        .when(|s| s.request.targets.workspace_writable),
    FILES
        .usable("use.read_workspace", |s| {
            let path = &s.request.targets.workspace;
            Outcome::of(&format!("list {path}"), &std::fs::read_dir(path))
        })
        .when(|s| !s.request.targets.workspace.is_empty()),
    PROCESSES.usable("use.own_proc", |_| read_something("/proc/self/status")),
    PROCESSES.usable("use.fork", fork),
    PROCESSES.usable("use.threads", threads),
    PROCESSES.usable("use.programs", programs),
    PROCESSES.usable("use.exit_code", exit_code),
    PROCESSES.usable("use.pipes", pipes),
    PROCESSES.usable("use.signals", signals),
    #[cfg(target_arch = "x86_64")]
    PROCESSES.usable("use.written_code", written_code),
    PROCESSES.usable("use.event_files", event_files),
    PROCESSES.usable("use.memory_files", memory_files),
    PROCESSES.usable("use.system_v_memory", system_v_memory),
];

fn write_to(path: &str) -> Outcome {
    Outcome::of(&format!("write {path}"), &std::fs::write(path, "x"))
}

fn read_a_byte(path: &str) -> Outcome {
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut [0]));
    Outcome::of(&format!("read {path}"), &read)
}

fn own_links(scene: &Scene<'_>) -> Outcome {
    let (link, hard) = (scene.private("own-link"), scene.private("own-hard-link"));
    let made = std::fs::write(&link, "x").and_then(|()| std::fs::hard_link(&link, &hard));
    let _ = std::fs::remove_file(&link);
    let _ = std::fs::remove_file(&hard);
    Outcome::of("link a file of its own", &made)
}

fn fork(_: &Scene<'_>) -> Outcome {
    match sys::fork() {
        Ok(sys::Forked::Child) => sys::exit(7),
        Ok(sys::Forked::Parent(child)) => {
            let ended =
                rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
            let code = ended.ok().flatten().and_then(|(_, status)| status.exit_status());
            Outcome::claim((code == Some(7)).into(), "fork and wait")
        }
        Err(errno) => Outcome::met(errno, "fork"),
    }
}

fn threads(_: &Scene<'_>) -> Outcome {
    let made = std::thread::Builder::new().stack_size(64 << 10).spawn(|| 6 * 7);
    match made {
        Ok(thread) => Outcome::claim((thread.join().ok() == Some(42)).into(), "run a thread"),
        Err(error) => Outcome::met(error.raw_os_error().unwrap_or(0), "make a thread"),
    }
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn programs(_: &Scene<'_>) -> Outcome {
    match shell("echo forty-two").output() {
        Ok(output) => Outcome::claim((output.stdout == b"forty-two\n").into(), "run a shell"),
        Err(error) => Outcome::met(error.raw_os_error().unwrap_or(0), "execute /bin/sh"),
    }
}

fn exit_code(_: &Scene<'_>) -> Outcome {
    match shell("exit 42").status() {
        Ok(status) => Outcome::claim((status.code() == Some(42)).into(), "see exit code 42"),
        Err(error) => Outcome::met(error.raw_os_error().unwrap_or(0), "execute /bin/sh"),
    }
}

fn pipes(_: &Scene<'_>) -> Outcome {
    match shell("echo a b c | { read a b c; echo $c; }").output() {
        Ok(output) => Outcome::claim((output.stdout == b"c\n").into(), "run a pipeline"),
        Err(error) => Outcome::met(error.raw_os_error().unwrap_or(0), "execute /bin/sh"),
    }
}

fn signals(_: &Scene<'_>) -> Outcome {
    use std::os::unix::process::ExitStatusExt;
    match shell("kill -TERM $$").status() {
        Ok(status) => Outcome::claim((status.signal() == Some(15)).into(), "end by a signal"),
        Err(error) => Outcome::met(error.raw_os_error().unwrap_or(0), "execute /bin/sh"),
    }
}

#[cfg(target_arch = "x86_64")]
fn written_code(_: &Scene<'_>) -> Outcome {
    match sys::run_written_code() {
        Ok(answer) => Outcome::claim((answer == 42).into(), "call code that it wrote"),
        Err(errno) => Outcome::met(errno, "make memory executable"),
    }
}

/// What event loops are made of.
fn event_files(_: &Scene<'_>) -> Outcome {
    let calls = [
        ("epoll_create1", libc::SYS_epoll_create1, [0; 6]),
        ("eventfd2", libc::SYS_eventfd2, [0; 6]),
        ("timerfd_create", libc::SYS_timerfd_create, [1, 0, 0, 0, 0, 0]),
        ("inotify_init1", libc::SYS_inotify_init1, [0; 6]),
    ];
    all(calls)
}

fn memory_files(_: &Scene<'_>) -> Outcome {
    let name = c"own".as_ptr() as usize;
    all([("memfd_create", libc::SYS_memfd_create, [name, 0, 0, 0, 0, 0])])
}

/// Made private, so it is gone with its namespace; removed here all the same.
fn system_v_memory(_: &Scene<'_>) -> Outcome {
    match sys::raw(libc::SYS_shmget, [0, 4096, 0o600, 0, 0, 0]) {
        Ok(id) => Outcome::of_call("shmctl", sys::raw(libc::SYS_shmctl, [id, 0, 0, 0, 0, 0])),
        Err(errno) => Outcome::met(errno, "shmget"),
    }
}

fn all(calls: impl IntoIterator<Item = (&'static str, i64, [usize; 6])>) -> Outcome {
    let mut names = Vec::new();
    for (name, number, args) in calls {
        if let Err(errno) = sys::raw(number, args) {
            return Outcome::met(errno, name);
        }
        names.push(name);
    }
    Outcome::did(names.join(", "))
}
