//! What programs do all day. A filter that refuses too much would otherwise pass every attack.

use crate::sys::{call, confined};
use cofferdam_core::User;
use cofferdam_local::seccomp::{Surface, Tracing};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;

const BASE: Surface = Surface { tracing: Tracing::Refused, user: User::Ordinary };

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("seccomp-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn files_can_be_made_changed_and_removed() {
    let place = scratch("files");
    confined(BASE, move || {
        let file = place.join("file");
        std::fs::write(&file, "text").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::OpenOptions::new().write(true).mode(0o6777).open(&file).unwrap();
        std::fs::copy(&file, place.join("copy")).unwrap();
        std::fs::rename(place.join("copy"), place.join("moved")).unwrap();
        std::fs::hard_link(&file, place.join("link")).unwrap();
        std::os::unix::fs::symlink("file", place.join("symlink")).unwrap();
        std::fs::create_dir(place.join("directory")).unwrap();
        let sticky = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(place.join("directory"), sticky).unwrap();
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 5);
        assert_eq!(std::fs::read_to_string(place.join("symlink")).unwrap(), "text");
        std::fs::remove_dir_all(&place).unwrap();
    });
}

#[test]
fn threads_and_processes_run() {
    confined(BASE, || {
        assert_eq!(std::thread::spawn(|| 6 * 7).join().unwrap(), 42);
        let line = "mkfifo \"$D/fifo\" && (echo ok | cat) && wc -c </etc/passwd >/dev/null";
        let place = scratch("processes");
        let shell = Command::new("/bin/sh").args(["-c", line]).env("D", &place).output().unwrap();
        assert_eq!(shell.stdout, b"ok\n", "{}", String::from_utf8_lossy(&shell.stderr));
        std::fs::remove_dir_all(place).unwrap();
    });
}

#[test]
fn sockets_of_the_four_families_work() {
    let place = scratch("sockets");
    confined(BASE, move || {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        near.write_all(b"x").unwrap();
        far.read_exact(&mut [0]).unwrap();
        let listener = UnixListener::bind(place.join("socket")).unwrap();
        let client = UnixStream::connect(place.join("socket")).unwrap();
        drop((listener.accept().unwrap(), client));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nodelay(true).unwrap();
        drop((listener.accept().unwrap(), client));
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = 1;
        let ipv6 = call(libc::SYS_socket, [10, stream, 6, 0, 0, 0]);
        assert!(ipv6.is_ok() || ipv6 == Err(libc::EAFNOSUPPORT), "{ipv6:?}");
        let raw_and_close_on_exec = 0x8_0003;
        call(libc::SYS_socket, [16, raw_and_close_on_exec, 0, 0, 0, 0]).unwrap();
        std::fs::remove_dir_all(place).unwrap();
    });
}

#[test]
fn event_loops_memory_and_messages_work() {
    let calls: &[(&str, i64, [u64; 6])] = &[
        ("eventfd2", libc::SYS_eventfd2, [0; 6]),
        ("epoll_create1", libc::SYS_epoll_create1, [0; 6]),
        ("inotify_init1", libc::SYS_inotify_init1, [0; 6]),
        ("timerfd_create", libc::SYS_timerfd_create, [1, 0, 0, 0, 0, 0]),
        ("membarrier", libc::SYS_membarrier, [0; 6]),
        ("sched_yield", libc::SYS_sched_yield, [0; 6]),
        ("shmget", libc::SYS_shmget, [0, 4096, 0o1600, 0, 0, 0]),
        ("personality", libc::SYS_personality, [0xffff_ffff, 0, 0, 0, 0, 0]),
        ("close_range", libc::SYS_close_range, [1 << 20, 1 << 21, 0, 0, 0, 0]),
        ("unshare of the descriptor table", libc::SYS_unshare, [0x400, 0, 0, 0, 0, 0]),
        ("setpriority", libc::SYS_setpriority, [0, 0, 19, 0, 0, 0]),
        ("pidfd_open", libc::SYS_pidfd_open, [std::process::id().into(), 0, 0, 0, 0, 0]),
    ];
    for (name, number, arguments) in calls {
        let outcome = confined(BASE, move || {
            let outcome = call(*number, *arguments);
            if *number == libc::SYS_shmget {
                let remove = 0;
                let id = outcome.unwrap().cast_unsigned();
                call(libc::SYS_shmctl, [id, remove, 0, 0, 0, 0]).unwrap();
            }
            outcome
        });
        assert!(outcome.is_ok(), "{name}: {outcome:?}");
    }
}

#[test]
fn a_pseudo_terminal_opens_and_answers() {
    confined(BASE, || {
        let terminal = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
        rustix::pty::grantpt(&terminal).unwrap();
        rustix::pty::unlockpt(&terminal).unwrap();
        let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap();
        let inner = std::fs::File::open(name.to_str().unwrap()).unwrap();
        rustix::termios::tcgetattr(&inner).unwrap();
        rustix::termios::tcgetwinsize(&inner).unwrap();
    });
}

#[test]
fn filters_and_rulesets_can_be_stacked() {
    confined(BASE, || {
        crate::sys::load(&BASE);
        let version = 1;
        let abi = call(libc::SYS_landlock_create_ruleset, [0, 0, version, 0, 0, 0]);
        assert!(abi.is_ok() || abi == Err(libc::ENOSYS) || abi == Err(libc::EOPNOTSUPP));
    });
}

/// Languages that are not on this machine are named.
#[test]
fn language_runtimes_start() {
    let python = "import threading, subprocess, socket, multiprocessing.pool as p, tempfile, os\n\
        assert p.ThreadPool(4).map(abs, [-1, 2]) == [1, 2]\n\
        assert subprocess.check_output(['echo', 'x']) == b'x\\n'\n\
        socket.socketpair(); tempfile.TemporaryFile(); os.cpu_count()";
    let node = "require('child_process').execFileSync('true');\
        new (require('worker_threads').Worker)('0', {eval: true})";
    let programs: &[(&str, &[&str])] = &[
        ("python3", &["-c", python]),
        ("node", &["-e", node]),
        ("git", &["--version"]),
        ("bash", &["-c", "exec 3< <(echo x); read -r l <&3; test \"$l\" = x"]),
        ("java", &["-version"]),
        ("go", &["version"]),
        ("gcc", &["-v"]),
        ("rustc", &["--version"]),
    ];
    for (program, arguments) in programs {
        let ran = confined(BASE, move || Command::new(program).args(*arguments).output());
        match ran {
            Err(_) => println!("skipped: there is no {program} here"),
            Ok(output) => {
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{program}: {} {error}", output.status);
            }
        }
    }
}
