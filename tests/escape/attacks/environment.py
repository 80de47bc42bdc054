# attack environment.secret bare=works
def environment_secret():
    return show(os.environ.get("COFFERDAM_ESCAPE_SECRET") or need(False, "not set"))

# attack environment.secret_of_self bare=works
def environment_secret_of_self():
    data = read("/proc/self/environ")
    need(b"COFFERDAM_ESCAPE_SECRET" in data, "not there")
    return show(data)

# attack environment.secret_of_all bare=works
def environment_secret_of_all():
    def look(p):
        data = read(f"/proc/{p}/environ")
        need(b"COFFERDAM_ESCAPE_SECRET" in data, "not there")
        return show(data)
    return first([lambda p=p: look(p) for p in os.listdir("/proc") if p.isdigit()])

# attack environment.loader_variables bare=works
def environment_loader_variables():
    return need([k for k in os.environ if k.startswith("COFFERDAM_ESCAPE_")], "none")

# attack environment.descriptors bare=works
def environment_descriptors():
    own = os.open("/proc/self/fd", os.O_RDONLY)
    found = [int(n) for n in os.listdir("/proc/self/fd")]
    alive = []
    for n in found:
        try:
            if n > 2 and n != own and os.readlink(f"/proc/self/fd/{n}") != f"/proc/{os.getpid()}/fd":
                alive.append(n)
        except OSError:
            pass
    return need(alive, "only three")

# attack environment.leaked_directory bare=works
def environment_leaked_directory():
    # The harness leaves descriptor 9 open on a directory outside.
    return show(os.read(os.open("secret", os.O_RDONLY, dir_fd=9), 4096))

# attack environment.leaked_file_by_proc bare=works
def environment_leaked_file_by_proc():
    return first([lambda n=n: show(read(f"/proc/self/fd/{n}/secret")) for n in range(3, 32)])

# attack environment.reopen_stdin bare=works
def environment_reopen_stdin():
    # Standard input was a file opened for reading only. A pipe of the sandbox's own is no file of
    # the caller's: what is written to it comes back to whoever reads it, inside.
    need(stat.S_ISREG(os.fstat(0).st_mode), "no file")
    return os.write(os.open("/proc/self/fd/0", os.O_WRONLY), b"attacked")

# attack environment.change_stdin_file bare=works
def environment_change_stdin_file():
    path = os.readlink("/proc/self/fd/0")
    need(path.startswith("/") and not path.startswith("/dev/"), path)
    return write(path, flags=os.O_WRONLY | os.O_APPEND)

# attack environment.seek_stdin bare=works
def environment_seek_stdin():
    # A shared offset lets a command rewind what its caller reads later.
    return os.lseek(0, 0, os.SEEK_SET)

# attack environment.stdin_chmod bare=works
def environment_stdin_chmod():
    need(stat.S_ISREG(os.fstat(0).st_mode), "no file")
    os.fchmod(0, 0o777)

# attack environment.host_name bare=works
def environment_host_name():
    return need(platform.node() == W["host_name"], "another name")

# attack environment.machine_id bare=refused
def environment_machine_id():
    return need(read("/etc/machine-id").decode().strip() == W["machine_id"] != "", "another id")

# attack environment.boot_id bare=works
def environment_boot_id():
    return need(read("/proc/sys/kernel/random/boot_id").decode().strip() == W["boot_id"], "another id")

# attack environment.boot_command bare=works
def environment_boot_command():
    return need(read("/proc/cmdline").strip(), "empty")

# attack environment.mount_table bare=works
def environment_mount_table():
    table = read("/proc/self/mountinfo").decode()
    places = [l.split()[4] for l in table.splitlines()]
    return need([p for p in places if p in ("/run", "/sys", "/boot", "/sys/fs/cgroup", "/root")] or OUT in table, "only its own")

# attack environment.group_path bare=refused
def environment_group_path():
    paths = [l.split(":", 2)[2] for l in read("/proc/self/cgroup").decode().splitlines()]
    # Where the caller is in the root group there is nothing to hide.
    return need([p for p in paths if p != "/"], "only the root")

# attack environment.users bare=refused
def environment_users():
    rows = [l.split(":") for l in read("/etc/passwd").decode().splitlines()]
    return need([r[0] for r in rows if 1000 <= int(r[2]) < 65534 and r[0] != "sandbox"], "none")

# attack environment.hardware bare=works
def environment_hardware():
    return first([lambda p=p: need(os.listdir(p), "empty") for p in ("/sys/class/dmi/id", "/sys/class/net", "/sys/devices", "/sys/block")])

# attack environment.groups bare=refused
def environment_groups():
    return need([g for g in os.getgroups() if g == 0], "not in group 0")

# attack environment.callers_name bare=refused
def environment_callers_name():
    return need([v for k, v in os.environ.items() if k in ("SUDO_USER", "SSH_CONNECTION", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")], "none")
