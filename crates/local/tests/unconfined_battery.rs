//! The control arm of the battery: where nothing confines it, its attacks succeed.
//!
//! An attack that fails here as well proves nothing when it fails in a sandbox. Those that the
//! kernel refuses by itself are listed, so that the list cannot grow unnoticed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use cofferdam_guestd::prove;
use cofferdam_local::probe_targets::{ProbeTargets, Surroundings};
use cofferdam_wire::message::{Attempt, Proof, Prove};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An id that owns nothing on a usual machine.
const ORDINARY: &str = "54321";
/// Where the inner run finds its request, and puts its proof.
const PLACE: &str = "COFFERDAM_TEST_BATTERY";

/// Refused by the kernel itself to an ordinary user, or without an object on many machines: their
/// failure inside says only that the sandbox takes nothing away that would help.
const REFUSED_TO_ALL: &[&str] = &[
    "environment.hardware",
    "environment.machine_id",
    "environment.working_directory",
    "limits.open_files",
    "files.open_devices",
    "files.open_devices",
    "files.list_host_places",
    "network.other_families",
    "network.crypto_socket",
    "network.high_bits_socket",
    "network.key_socket",
    "network.metadata_udp",
    "network.multipath_tcp",
    "network.ping_socket",
    "network.public_udp",
    "network.public_udp6",
    "network.sctp",
    "network.socket_pair_family",
    "network.udp_lite",
    "network.vsock",
    "network.xdp_socket",
    "processes.callers_terminal",
    "processes.debug_files",
    "processes.ia32_call",
    "processes.interrupts",
    "processes.io_ports",
    "processes.io_ports",
    "processes.kernel_keys",
    "processes.kernel_lists",
    "processes.kernel_memory",
    "processes.lower_oom_score",
    "processes.module_loader",
    "processes.other_terminals",
    "processes.push_input",
    "processes.push_input_high_bits",
    "processes.quotactl",
    "processes.sysrq",
    "processes.unknown_call",
    "processes.x32_call",
];

/// Refused to an ordinary user, and not to root.
const REFUSED_TO_ORDINARY: &[&str] = &[
    "environment.users",
    "files.make_device",
    "files.open_by_handle",
    "files.read_keys_of_root",
    "files.read_shadow",
    "network.change_interface",
    "network.packet_socket",
    "network.raw_socket",
    "network.raw_socket6",
    "processes.become_root",
    "processes.chroot",
    "processes.clone_mount",
    "processes.core_pattern",
    "processes.fsmount",
    "processes.fsopen",
    "processes.join_by_pidfd",
    "processes.join_groups",
    "processes.join_namespace",
    "processes.kernel_addresses",
    "processes.kernel_log",
    "processes.kernel_log_call",
    "processes.kernel_settings",
    "processes.network_settings",
    "processes.open_tree",
    "processes.raise_capability",
    "processes.unshare_cgroup",
    "processes.unshare_ipc",
    "processes.unshare_mount",
    "processes.unshare_network",
    "processes.unshare_pid",
    "processes.unshare_time",
    "processes.unshare_uts",
];

/// Runs in a process of its own, single-threaded as the battery wants it.
#[test]
fn the_inner_run_writes_its_proof() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let request: Prove = serde_json::from_slice(&fs::read(place.join("request")).unwrap()).unwrap();
    let proof = prove::run_unconfined(&request);
    fs::write(place.join("proof"), serde_json::to_vec(&proof).unwrap()).unwrap();
}

#[test]
fn attacks_succeed_unconfined_as_the_caller() {
    let refused: Vec<&str> = if is_root() {
        REFUSED_TO_ALL.to_vec()
    } else {
        [REFUSED_TO_ALL, REFUSED_TO_ORDINARY].concat()
    };
    judge(&unconfined("caller", &[]), &refused);
}

#[test]
fn attacks_succeed_unconfined_as_an_ordinary_user() {
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let change = ["setpriv", "--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups", "--"];
    let refused = [REFUSED_TO_ALL, REFUSED_TO_ORDINARY].concat();
    judge(&unconfined("ordinary", &change), &refused);
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn judge(proof: &Proof, refused: &[&str]) {
    let (mut works, mut listed) = (0, 0);
    let mut wrong = BTreeSet::new();
    for check in &proof.checks {
        let name = check.name.as_str();
        match &check.attack {
            Attempt::Succeeded(_) => works += 1,
            Attempt::NotTried(_) => {}
            Attempt::Failed { .. } if refused.contains(&name) => listed += 1,
            Attempt::Failed { errno, call } => {
                wrong.insert(format!("{name}: the attack fails: {call}: error {errno}"));
            }
        }
        if !matches!(check.control, Attempt::Succeeded(_)) {
            wrong.insert(format!("{name}: the control fails: {:?}", check.control));
        }
    }
    println!("{works} attacks work unconfined, {listed} are refused by the kernel itself");
    assert!(works >= 90, "only {works} attacks work");
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

fn unconfined(name: &str, prefix: &[&str]) -> Proof {
    let root = PathBuf::from(format!("/tmp/cofferdam-battery-{name}-{}", std::process::id()));
    let workspace = root.join("workspace");
    let outside = root.join("outside");
    for directory in [&root, &workspace, &outside] {
        fs::create_dir_all(directory).unwrap();
        open_to_all(directory);
    }
    make_repository(&workspace);
    let program = root.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    // The init of this arm is a process of the same user, as inside.
    let mut victim = with_prefix(prefix, Path::new("sleep"))
        .arg("60")
        .env("COFFERDAM_TEST_SECRET", "x")
        .spawn()
        .unwrap();
    let targets = ProbeTargets::create(&Surroundings {
        directory: &outside,
        other_directories: &[&root],
        shown: &[],
        secret_variable: "COFFERDAM_TEST_SECRET",
    })
    .unwrap();
    let mut request = Prove { targets: targets.targets().clone(), env: Vec::new() };
    request.targets.workspace = workspace.to_str().unwrap().to_owned();
    request.targets.workspace_writable = true;
    request.targets.protected =
        [".git/hooks", ".git/config", ".envrc", ".vscode"].map(str::to_owned).to_vec();
    request.targets.host_pid = victim.id().cast_signed();
    request.targets.host_pid_started = started(victim.id());
    request.env =
        vec![("PATH".into(), "/usr/bin".into()), ("COFFERDAM_TEST_SECRET".into(), "x".into())];
    fs::write(root.join("request"), serde_json::to_vec(&request).unwrap()).unwrap();
    let begin = std::time::Instant::now();
    // A caller may have closed what it does not need, so the descriptor to find is opened here.
    let output = with_prefix(prefix, Path::new("sh"))
        .args(["-c", r#"exec 9</dev/null; exec "$0" "$@""#])
        .arg(&program)
        .args(["--exact", "the_inner_run_writes_its_proof", "--test-threads=1"])
        .env(PLACE, &root)
        .env("COFFERDAM_TEST_SECRET", "x")
        .output()
        .unwrap();
    println!("the battery took {:?}", begin.elapsed());
    victim.kill().unwrap();
    victim.wait().unwrap();
    let proof = fs::read(root.join("proof"));
    drop(targets);
    fs::remove_dir_all(&root).unwrap();
    serde_json::from_slice(&proof.unwrap_or_else(|_| panic!("no proof: {output:?}"))).unwrap()
}

fn with_prefix(prefix: &[&str], program: &Path) -> Command {
    match prefix.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    }
}

fn started(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
}

fn make_repository(workspace: &Path) {
    for directory in [".git", ".git/hooks", ".vscode"] {
        let path = workspace.join(directory);
        fs::create_dir_all(&path).unwrap();
        open_to_all(&path);
    }
    for file in [".git/config", ".git/hooks/old"] {
        fs::write(workspace.join(file), "").unwrap();
        fs::set_permissions(workspace.join(file), fs::Permissions::from_mode(0o666)).unwrap();
    }
}

fn open_to_all(directory: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
}
