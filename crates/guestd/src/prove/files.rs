//! Attacks on the file view: P1 and P2, and what P5 says about files.

use super::attack::{Group, Row, Scene};
use super::calls::{
    create, create_private, find, find_own, list, open, open_to_write, plain_call, read_something,
};
use super::outcome::{Door, Layer, Outcome, any};
use super::sys;
use rustix::fs::{CWD, FileType, Mode, OFlags, StatVfsMountFlags};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

const READ: Group = Group { axis: "files", promise: "P1", door: Door::Path };
const WRITE: Group = Group { axis: "files", promise: "P2", door: Door::Path };
const PLANT: Group = Group { axis: "files", promise: "P5", door: Door::Call };

pub(super) const ROWS: &[Row] = &[
    READ.check("files.read_outside", |s| find(outside(s), canary(s)), find_own),
    READ.check("files.read_outside_through_dots", read_through_dots, dots_inside),
    READ.check("files.read_outside_through_link", read_through_link, link_inside),
    READ.check("files.read_outside_through_init_root", read_through_init_root, find_own),
    READ.check("files.read_outside_through_init_cwd", read_through_init_cwd, find_own),
    READ.check("files.read_other_places", read_other_places, find_own)
        .when(|s| !s.request.targets.other_outside_files.is_empty()),
    READ.check("files.stat_outside", stat_outside, stat_own),
    READ.check("files.list_outside", list_outside, |_| list("/")),
    READ.check("files.list_sys", |_| any([list("/sys"), open("/sys/kernel")]), |_| list("/")),
    READ.check("files.read_run", read_run, |_| list("/")).when(of_the_host),
    READ.check("files.read_keys_of_root", read_keys_of_root, find_own).when(of_the_host),
    READ.check("files.read_shadow", |_| read_first(&SHADOW), |_| read_something("/etc/passwd"))
        .when(of_the_host),
    READ.check("files.list_host_places", |_| any(PLACES.map(list)), |_| list("/"))
        .when(of_the_host),
    READ.check("files.open_devices", |_| any(DEVICES.map(open)), |_| open("/dev/null")),
    READ.check("files.open_by_handle", open_by_handle, plain_call),
    WRITE.check("files.write_outside", |s| create(&beside_outside(s)), create_private),
    WRITE.check("files.change_outside", |s| open_to_write(outside(s)), create_private),
    WRITE
        .check("files.write_system", |_| any(SYSTEM.map(create)), create_private)
        .confined()
        .when(of_the_host),
    WRITE
        .check("files.write_root", |_| create("/cofferdam-attack"), create_private)
        .confined()
        .when(of_the_host),
    WRITE.check("files.write_dev", |_| create("/dev/cofferdam-attack"), create_private).confined(),
    WRITE
        .check("files.write_etc", |_| create("/etc/cofferdam-attack"), create_private)
        .confined()
        .when(of_the_host),
    WRITE
        .check("files.change_program", |_| any(PROGRAMS.map(open_to_write)), create_private)
        .confined()
        .when(of_the_host),
    WRITE
        .check("files.change_passwd", |_| open_to_write("/etc/passwd"), create_private)
        .confined()
        .when(of_the_host),
    WRITE.check("files.remove_system", remove_system, create_private).confined().when(of_the_host),
    WRITE.check("files.chmod_system", chmod_system, chmod_own).confined().when(of_the_host),
    WRITE
        .check("files.write_workspace", |s| create(&in_workspace(s)), create_private)
        .when(|s| !s.request.targets.workspace_writable),
    PLANT.check("files.set_id_by_chmod", set_id_by_chmod, chmod_own),
    PLANT.check("files.set_id_by_fchmodat2", set_id_by_fchmodat2, chmod_own),
    PLANT.check("files.set_id_by_open", set_id_by_open, create_private),
    PLANT.check("files.set_id_by_mknod", set_id_by_mknod, make_fifo),
    PLANT.check("files.set_id_by_mkdir", set_id_by_mkdir, make_directory),
    PLANT.check("files.make_device", make_device, make_fifo),
    WRITE.check("files.mount_honours_set_id", honours_set_id, |_| stat_mount("/tmp")),
];

/// What an image has under such a name is its own, and can be written. What of the host must not be
/// there is told by what only the host holds.
fn of_the_host(scene: &Scene<'_>) -> bool {
    !scene.request.targets.image
}

const SHADOW: [&str; 4] = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private"];

const PLACES: [&str; 6] = ["/var/log", "/var/spool", "/boot", "/srv", "/mnt", "/media"];

const DEVICES: [&str; 16] = [
    "/dev/mem",
    "/dev/kmsg",
    "/dev/port",
    "/dev/kvm",
    "/dev/fuse",
    "/dev/net/tun",
    "/dev/vda",
    "/dev/vda1",
    "/dev/sda",
    "/dev/nvme0n1",
    "/dev/loop-control",
    "/dev/vsock",
    "/dev/userfaultfd",
    "/dev/snapshot",
    "/dev/tty0",
    "/dev/input/event0",
];

const SYSTEM: [&str; 6] = [
    "/usr/cofferdam-attack",
    "/usr/bin/cofferdam-attack",
    "/usr/lib/cofferdam-attack",
    "/usr/local/cofferdam-attack",
    "/bin/cofferdam-attack",
    "/lib/cofferdam-attack",
];

const PROGRAMS: [&str; 4] = ["/usr/bin/env", "/bin/sh", "/usr/bin/python3", "/lib/ld-linux.so.2"];

fn outside<'a>(scene: &Scene<'a>) -> &'a str {
    &scene.request.targets.outside_file
}

fn canary<'a>(scene: &Scene<'a>) -> &'a str {
    &scene.request.targets.canary
}

fn beside_outside(scene: &Scene<'_>) -> String {
    format!("{}/attack", scene.request.targets.outside_directory)
}

fn in_workspace(scene: &Scene<'_>) -> String {
    format!("{}/.cofferdam-attack", scene.request.targets.workspace)
}

fn read_through_dots(scene: &Scene<'_>) -> Outcome {
    let path = format!("/tmp/../../../../../../../..{}", outside(scene));
    find(&path, canary(scene))
}

fn dots_inside(_: &Scene<'_>) -> Outcome {
    list("/tmp/../../../..")
}

fn read_through_link(scene: &Scene<'_>) -> Outcome {
    through_link(scene, outside(scene), |path| find(path, canary(scene)))
}

fn link_inside(scene: &Scene<'_>) -> Outcome {
    through_link(scene, "/", list)
}

fn through_link(scene: &Scene<'_>, target: &str, look: impl FnOnce(&str) -> Outcome) -> Outcome {
    let link = scene.private("link");
    if let Err(error) = std::os::unix::fs::symlink(target, &link) {
        return Outcome::untried(format!("no link could be made: {error}"));
    }
    let found = look(&link);
    let _ = std::fs::remove_file(&link);
    found
}

fn read_through_init_root(scene: &Scene<'_>) -> Outcome {
    find(&format!("/proc/{}/root{}", scene.init, outside(scene)), canary(scene))
}

fn read_through_init_cwd(scene: &Scene<'_>) -> Outcome {
    let path = format!("/proc/{}/cwd/../../../../../../../..{}", scene.init, outside(scene));
    find(&path, canary(scene))
}

fn read_other_places(scene: &Scene<'_>) -> Outcome {
    any(scene.request.targets.other_outside_files.iter().map(|path| find(path, canary(scene))))
}

fn stat_outside(scene: &Scene<'_>) -> Outcome {
    Outcome::of(&format!("stat {}", outside(scene)), &std::fs::metadata(outside(scene)))
}

fn stat_own(_: &Scene<'_>) -> Outcome {
    Outcome::of("stat /tmp", &std::fs::metadata("/tmp"))
}

fn list_outside(scene: &Scene<'_>) -> Outcome {
    list(&scene.request.targets.outside_directory)
}

/// What is found in `/run` of nearly every host, and speaks for it.
fn read_run(_: &Scene<'_>) -> Outcome {
    const PLACES: [&str; 9] = [
        "/run/user",
        "/run/systemd",
        "/run/dbus",
        "/run/docker.sock",
        "/run/lock",
        "/run/udev",
        "/run/utmp",
        "/run/initctl",
        "/run/secrets",
    ];
    any(PLACES.map(|path| Outcome::of(&format!("stat {path}"), &std::fs::metadata(path))))
}

fn read_keys_of_root(_: &Scene<'_>) -> Outcome {
    const PLACES: [&str; 6] = [
        "/root/.ssh",
        "/root/.bashrc",
        "/root/.profile",
        "/root/.bash_history",
        "/root/.netrc",
        "/root/.aws",
    ];
    any(PLACES.map(open))
}

fn read_first(paths: &[&str]) -> Outcome {
    any(paths.iter().map(|path| read_something(path)))
}

/// Takes a handle of the root and opens it again: that would reach every file of its file system.
fn open_by_handle(_: &Scene<'_>) -> Outcome {
    // struct file_handle: length of the handle, type, handle.
    let mut handle = [0_u32; 34];
    if let Some(length) = handle.first_mut() {
        *length = 128;
    }
    let mut mount_id = 0_i32;
    let address = handle.as_mut_ptr() as usize;
    let id_address = std::ptr::from_mut(&mut mount_id) as usize;
    let root = c"/".as_ptr() as usize;
    let args = [libc::AT_FDCWD as usize, root, address, id_address, 0, 0];
    if let Err(errno) = sys::raw(libc::SYS_name_to_handle_at, args) {
        return Outcome::met(errno, "name_to_handle_at");
    }
    let args = [libc::AT_FDCWD as usize, address, libc::O_RDONLY as usize, 0, 0, 0];
    Outcome::of_call("open_by_handle_at", sys::raw(libc::SYS_open_by_handle_at, args))
}

fn remove_system(_: &Scene<'_>) -> Outcome {
    let result = std::fs::rename("/usr/bin/env", "/usr/bin/env.cofferdam-attack");
    Outcome::of("rename /usr/bin/env", &result)
}

fn chmod_system(_: &Scene<'_>) -> Outcome {
    let mode = std::fs::Permissions::from_mode(0o755);
    Outcome::of("chmod /usr/bin/env", &std::fs::set_permissions("/usr/bin/env", mode))
}

fn chmod_own(scene: &Scene<'_>) -> Outcome {
    with_file(scene, "chmod 0750", |path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o750))
            .map_err(|error| error.raw_os_error().unwrap_or(0))?;
        mode_of(path).filter(|mode| mode & 0o777 == 0o750).ok_or(0)
    })
}

fn set_id_by_chmod(scene: &Scene<'_>) -> Outcome {
    with_file(scene, "chmod 06755", |path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o6755))
            .map_err(|error| error.raw_os_error().unwrap_or(0))?;
        has_set_id(path)
    })
}

/// The newest of the ways to change mode bits: filters that know only the old ones miss it.
fn set_id_by_fchmodat2(scene: &Scene<'_>) -> Outcome {
    const FCHMODAT2: i64 = 452;
    with_file(scene, "fchmodat2 06755", |path| {
        let name = std::ffi::CString::new(path).map_err(|_| 0)?;
        let place = name.as_ptr() as usize;
        sys::raw(FCHMODAT2, [libc::AT_FDCWD as usize, place, 0o6755, 0, 0, 0])?;
        has_set_id(path)
    })
}

fn set_id_by_open(scene: &Scene<'_>) -> Outcome {
    let path = scene.scratch("set-id-open");
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
    let made = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o6755));
    planted("open with 06755", &path, made.map(drop))
}

fn set_id_by_mknod(scene: &Scene<'_>) -> Outcome {
    let path = scene.scratch("set-id-mknod");
    let mode = Mode::from_raw_mode(0o6755);
    let made = rustix::fs::mknodat(CWD, &path, FileType::RegularFile, mode, 0);
    planted("mknod with 06755", &path, made)
}

fn set_id_by_mkdir(scene: &Scene<'_>) -> Outcome {
    let path = scene.scratch("set-id-mkdir");
    // mkdir ignores the two bits by itself, so the directory is made first.
    let made = rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755))
        .and_then(|()| rustix::fs::chmod(&path, Mode::from_raw_mode(0o6755)));
    let outcome = planted("chmod 06755 of a directory", &path, made);
    let _ = std::fs::remove_dir(&path);
    outcome
}

fn planted(call: &str, path: &str, made: rustix::io::Result<()>) -> Outcome {
    let found = made.map_err(rustix::io::Errno::raw_os_error).and_then(|()| has_set_id(path));
    let _ = std::fs::remove_file(path);
    match found {
        Ok(mode) => Outcome::did(format!("{call}: the mode is {mode:o}")),
        Err(errno) => Outcome::met(errno, call),
    }
}

fn make_device(scene: &Scene<'_>) -> Outcome {
    let path = scene.scratch("device");
    let number = rustix::fs::makedev(1, 3);
    let kinds = [FileType::CharacterDevice, FileType::BlockDevice];
    any(kinds.map(|kind| {
        let made = rustix::fs::mknodat(CWD, &path, kind, Mode::from_raw_mode(0o666), number);
        let _ = std::fs::remove_file(&path);
        match made {
            Ok(()) => Outcome::did("mknod of a device"),
            Err(error) => Outcome::met(error.raw_os_error(), "mknod of a device"),
        }
    }))
}

fn make_fifo(scene: &Scene<'_>) -> Outcome {
    let path = scene.scratch("fifo");
    let made = rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0);
    let _ = std::fs::remove_file(&path);
    match made {
        Ok(()) => Outcome::did("mknod of a FIFO"),
        Err(error) => Outcome::met(error.raw_os_error(), "mknod of a FIFO"),
    }
}

fn make_directory(scene: &Scene<'_>) -> Outcome {
    let path = scene.scratch("directory");
    let made = std::fs::create_dir(&path).and_then(|()| std::fs::remove_dir(&path));
    Outcome::of("mkdir", &made)
}

fn with_file(scene: &Scene<'_>, call: &str, act: impl FnOnce(&str) -> Result<u32, i32>) -> Outcome {
    let path = scene.scratch("mode");
    if let Err(error) = std::fs::File::create(&path) {
        return Outcome::untried(format!("no file could be made: {error}"));
    }
    let result = act(&path);
    let _ = std::fs::remove_file(&path);
    match result {
        Ok(mode) => Outcome::did(format!("{call}: the mode is {mode:o}")),
        Err(errno) => Outcome::met(errno, call),
    }
}

fn mode_of(path: &str) -> Option<u32> {
    std::fs::metadata(path).ok().map(|facts| facts.mode())
}

/// A call that succeeds and sets no bit has stopped the attack as well.
fn has_set_id(path: &str) -> Result<u32, i32> {
    mode_of(path).filter(|mode| mode & 0o6000 != 0).ok_or(libc::EPERM)
}

fn honours_set_id(scene: &Scene<'_>) -> Outcome {
    let workspace = scene.request.targets.workspace.as_str();
    let system = if of_the_host(scene) { "/usr" } else { "/home/sandbox" };
    let places = ["/", system, "/tmp", "/dev/shm", workspace];
    any(places.map(|path| match rustix::fs::statvfs(path) {
        Ok(facts) if facts.f_flag.contains(StatVfsMountFlags::NOSUID) => {
            Outcome::met_at(Layer::Mount, libc::EPERM, format!("{path} is nosuid"))
        }
        Ok(_) => Outcome::did(format!("{path} honours set-id bits")),
        Err(error) => Outcome::met(error.raw_os_error(), format!("statvfs {path}")),
    }))
}

fn stat_mount(path: &str) -> Outcome {
    match rustix::fs::statvfs(path) {
        Ok(_) => Outcome::did(format!("statvfs {path}")),
        Err(error) => Outcome::met(error.raw_os_error(), format!("statvfs {path}")),
    }
}
