//! A process that confines itself as a gate does: what it cannot do any more, beside the same without,
//! and what it must still be able to do.

use crate::sys::{PANICKED, become_program, call, in_child, start_child, wait};
use cofferdam_guestd::give_up;
use cofferdam_local::gate::confine;
use rustix::net::{AddressFamily, SocketType};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A directory that everybody may use, with a file that everybody may read and write.
struct Ground(PathBuf);

impl Ground {
    fn new(name: &str) -> Self {
        // Each has a name of its own: what an attack leaves running may still hold the last one.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cofferdam-gate-{name}.{}.{number}", std::process::id());
        let place = std::env::temp_dir().join(name);
        fs::create_dir(&place).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
        let ground = Self(place);
        fs::write(ground.file(), "content").unwrap();
        fs::set_permissions(ground.file(), fs::Permissions::from_mode(0o666)).unwrap();
        ground
    }

    fn file(&self) -> PathBuf {
        self.0.join("file")
    }

    fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    fn new_file(&self) -> PathBuf {
        self.0.join("new")
    }

    fn abstract_name(&self) -> UnixAddress {
        UnixAddress::from_abstract_name(self.0.as_os_str().as_encoded_bytes()).unwrap()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Attack = (&'static str, fn(&Ground) -> io::Result<()>, i32);

fn made(result: Result<i64, i32>) -> io::Result<()> {
    result.map(drop).map_err(io::Error::from_raw_os_error)
}

fn socket(family: AddressFamily) -> io::Result<()> {
    Ok(rustix::net::socket(family, SocketType::RAW, None).map(drop)?)
}

/// A child that ends at once.
fn fork() -> io::Result<()> {
    // The flags are none, the signal of its end is SIGCHLD.
    match call(libc::SYS_clone, [17, 0, 0, 0, 0, 0]) {
        Ok(0) => std::process::exit(0),
        Ok(_) => Ok(()),
        Err(errno) => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Attacks, and what each gets. Where it is `ENOSYS`, no row of the filter names the call.
const ATTACKS: &[Attack] = &[
    ("open a file", |ground| File::open(ground.file()).map(drop), libc::EACCES),
    ("list the root", |_| fs::read_dir("/").map(drop), libc::EACCES),
    ("list /etc", |_| fs::read_dir("/etc").map(drop), libc::EACCES),
    ("read who there is", |_| File::open("/etc/passwd").map(drop), libc::EACCES),
    ("look at its own process", |_| File::open("/proc/self/status").map(drop), libc::EACCES),
    ("make a file", |ground| File::create_new(ground.new_file()).map(drop), libc::EACCES),
    (
        "write a file",
        |ground| OpenOptions::new().append(true).open(ground.file()).map(drop),
        libc::EACCES,
    ),
    ("remove a file", |ground| fs::remove_file(ground.file()), libc::ENOSYS),
    ("rename a file", |ground| fs::rename(ground.file(), ground.new_file()), libc::ENOSYS),
    ("run a program", |_| Err(become_program(c"/bin/true")), libc::ENOSYS),
    ("start a process", |_| fork(), libc::EPERM),
    ("signal its parent", |_| signal_parent(), libc::ENOSYS),
    ("be traced", |_| made(call(libc::SYS_ptrace, [0; 6])), libc::ENOSYS),
    ("leave what it shares", |_| made(call(libc::SYS_unshare, [0x600, 0, 0, 0, 0, 0])), 38),
    ("run what it writes", |_| memory(libc::PROT_EXEC | libc::PROT_WRITE), libc::EPERM),
    ("talk to the kernel", |_| socket(AddressFamily::NETLINK), libc::EAFNOSUPPORT),
    ("reach an abstract socket", |ground| reach(ground), libc::EAFNOSUPPORT),
    // No rule of Landlock is about these: the user's bus, an agent of keys, the keepers of other sandboxes.
    ("reach a socket by its path", |ground| reach_by_path(ground), libc::EAFNOSUPPORT),
    ("be looked at again", |_| made(call(libc::SYS_prctl, [4, 1, 0, 0, 0, 0])), libc::EPERM),
    ("set a limit", |_| set_limit(), libc::EPERM),
    ("hold what is not a file", |_| memfd(), libc::ENOSYS),
    // Refused to most in other words: what matters is that the filter says so first.
    ("mount", |_| made(call(libc::SYS_mount, [0; 6])), libc::ENOSYS),
    ("load a program of the kernel's", |_| made(call(libc::SYS_bpf, [99; 6])), libc::ENOSYS),
    ("use keys", |_| made(call(libc::SYS_keyctl, [0, 0xffff_fffd, 0, 0, 0, 0])), libc::ENOSYS),
    ("use a ring", |_| made(call(libc::SYS_io_uring_setup, [0; 6])), libc::ENOSYS),
    ("become root", |_| made(call(libc::SYS_setuid, [0; 6])), libc::ENOSYS),
    ("gain a capability", |_| made(call(libc::SYS_capset, [0; 6])), libc::ENOSYS),
    ("join a namespace", |_| made(call(libc::SYS_setns, [u64::MAX; 6])), libc::ENOSYS),
];

fn signal_parent() -> io::Result<()> {
    let parent = rustix::process::getppid().unwrap();
    Ok(rustix::process::test_kill_process(parent)?)
}

fn memory(protection: i32) -> io::Result<()> {
    let flags = u64::from((libc::MAP_PRIVATE | libc::MAP_ANONYMOUS).unsigned_abs());
    let arguments = [0, 4096, u64::from(protection.unsigned_abs()), flags, u64::MAX, 0];
    made(call(libc::SYS_mmap, arguments))
}

fn reach(ground: &Ground) -> io::Result<()> {
    UnixStream::connect_addr(&ground.abstract_name()).map(drop)
}

fn reach_by_path(ground: &Ground) -> io::Result<()> {
    UnixStream::connect(ground.socket()).map(drop)
}

fn set_limit() -> io::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    Ok(rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)?)
}

fn memfd() -> io::Result<()> {
    Ok(rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).map(drop)?)
}

/// What an attack comes to in a process of its own: 0, or an errno.
fn outcome(attack: fn(&Ground) -> io::Result<()>, ground: &Ground, is_confined: bool) -> i32 {
    in_child(|| {
        if is_confined {
            confine().unwrap();
        }
        attack(ground).map_or_else(|error| error.raw_os_error().unwrap_or(PANICKED), |()| 0)
    })
}

#[test]
fn a_gate_can_do_nothing_but_its_work() {
    let (mut held, mut wrong) = (0, Vec::new());
    for (name, attack, expected) in ATTACKS {
        let ground = Ground::new("attack");
        let _named = UnixListener::bind(ground.socket()).unwrap();
        let _listener = UnixListener::bind_addr(&ground.abstract_name()).unwrap();
        let confined = outcome(*attack, &ground, true);
        let control = outcome(*attack, &ground, false);
        println!("{name}: confined {confined}, control {control}");
        match (confined == *expected, control == *expected) {
            (true, false) => held += 1,
            (true, true) if control == libc::ENOSYS => {
                println!("skipped: {name}: this kernel has no such call");
            }
            _ => wrong.push(format!("{name}: confined {confined}, not {expected}; {control}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(held >= 20, "only {held} were tried");
}

#[test]
fn most_of_what_a_gate_cannot_do_anybody_else_can() {
    let ground = Ground::new("control");
    let _listener = UnixListener::bind_addr(&ground.abstract_name()).unwrap();
    let can = ATTACKS.iter().filter(|(_, attack, _)| {
        let ground = Ground::new("each");
        let _named = UnixListener::bind(ground.socket()).unwrap();
        let _listener = UnixListener::bind_addr(&ground.abstract_name()).unwrap();
        outcome(*attack, &ground, false) == 0
    });
    let can: Vec<&str> = can.map(|(name, ..)| *name).collect();
    assert!(can.len() >= 17, "{can:?}");
}

/// The lines of `/proc/PID/status` of a confined child.
fn status_of_a_gate() -> String {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let child = start_child(|| {
        confine().unwrap();
        theirs.write_all(b"c").unwrap();
        // Until the parent has looked.
        theirs.read(&mut [0]).map_or(PANICKED, |_| 0)
    });
    ours.read_exact(&mut [0]).unwrap();
    let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap();
    ours.write_all(b"d").unwrap();
    assert_eq!(wait(child), 0);
    status
}

#[test]
fn a_gate_is_nobody_and_stays_so() {
    let status = status_of_a_gate();
    let field = |name: &str| -> Vec<String> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(field(set), ["0000000000000000"], "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    assert_eq!(field("Seccomp:"), ["2"]);
    let own = rustix::process::geteuid().as_raw();
    for ids in ["Uid:", "Gid:"] {
        let ids: Vec<u32> = field(ids).iter().map(|id| id.parse().unwrap()).collect();
        match own {
            0 => assert!(ids.iter().all(|id| (2_100_066_000..2_100_098_768).contains(id))),
            _ if ids.first() == Some(&own) => assert!(ids.iter().all(|id| *id == own)),
            _ => assert!(ids.iter().all(|id| *id != 0)),
        }
    }
    if own == 0 {
        assert_eq!(field("CapBnd:"), ["0000000000000000"]);
        assert_eq!(field("Groups:"), [""; 0]);
    }
}

#[test]
fn a_gate_can_do_its_work() {
    let ground = Ground::new("work");
    let log = OpenOptions::new().append(true).read(true).open(ground.file()).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let authorities = readable_authorities();
    let ended = in_child(|| {
        assert_eq!(confine().unwrap(), [""; 0]);
        for about_names in ["/etc/hosts", "/etc/resolv.conf"] {
            match fs::read(about_names) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound, "{about_names}"),
            }
        }
        for authority in &authorities {
            let error = File::open(authority).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{}", authority.display());
        }
        work(&log, address);
        0
    });
    assert_eq!(ended, 0);
    assert_eq!(fs::read_to_string(ground.file()).unwrap(), "line\n");
    drop(listener);
}

/// What is trusted comes with its order. The control is that they are there, and are read before.
fn readable_authorities() -> Vec<PathBuf> {
    let there = fs::read_dir("/etc/ssl/certs").into_iter().flatten().flatten();
    let there: Vec<PathBuf> = there
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && File::open(path).is_ok())
        .collect();
    if there.is_empty() {
        println!("skipped: no authorities are at /etc/ssl/certs");
    }
    there
}

/// What a gate does: its log, sockets, clocks, chance, threads.
fn work(log: &File, address: SocketAddr) {
    log.set_len(0).unwrap();
    (&*log).write_all(b"line\n").unwrap();
    log.read_exact_at(&mut [0; 5], 0).unwrap();
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().connect(address).unwrap();
    drop(TcpStream::connect(address).unwrap());
    UnixStream::pair().unwrap();
    let thread = std::thread::Builder::new().name("more".to_owned()).spawn(|| 7).unwrap();
    assert_eq!(thread.join().unwrap(), 7);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let connected = tokio::net::TcpStream::connect(address).await.unwrap();
        connected.set_nodelay(true).unwrap();
        assert!(tokio::task::spawn_blocking(|| true).await.unwrap());
    });
    rustix::rand::getrandom(&mut [0; 8], rustix::rand::GetRandomFlags::empty()).unwrap();
}

#[test]
fn a_kernel_without_landlock_is_said_and_the_rest_stands() {
    /// Every call, but for the one that makes rules of Landlock.
    const WITHOUT: &[(u16, u8, u8, u32)] =
        &[(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x0005_0026), (0x06, 0, 0, 0x7fff_0000)];
    let ground = Ground::new("without");
    let ended = in_child(|| {
        rustix::thread::set_no_new_privs(true).unwrap();
        give_up::calls(WITHOUT).unwrap();
        let missing = confine().unwrap();
        assert!(missing.iter().any(|what| what.contains("no Landlock")), "{missing:?}");
        assert!(File::open(ground.file()).is_ok(), "this is what is missing");
        assert_eq!(become_program(c"/bin/true").raw_os_error(), Some(libc::ENOSYS));
        0
    });
    assert_eq!(ended, 0);
}

#[test]
fn a_root_that_can_become_nobody_is_said_and_has_no_capability() {
    use rustix::thread::UnshareFlags;
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let ended = in_child(|| {
        if made(call(libc::SYS_unshare, [UnshareFlags::NEWUSER.bits().into(), 0, 0, 0, 0, 0]))
            .is_err()
        {
            println!("skipped: this user makes no namespace of users");
            return 0;
        }
        fs::write("/proc/self/setgroups", "deny").unwrap();
        fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw())).unwrap();
        fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw())).unwrap();
        let missing = confine().unwrap();
        assert!(missing.iter().any(|what| what.contains("still user 0")), "{missing:?}");
        let host_name = call(libc::SYS_sethostname, [0; 6]);
        assert_eq!(host_name, Err(libc::ENOSYS));
        0
    });
    assert_eq!(ended, 0);
}
