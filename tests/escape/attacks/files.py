# attack files.read_canary bare=works
def files_read_canary():
    return show(read(f"{OUT}/secret"))

# attack files.read_through_dots bare=works
def files_read_through_dots():
    return show(read("/tmp/../../../.." + f"{OUT}/secret"))

# attack files.read_through_relative_dots bare=works
def files_read_through_relative_dots():
    os.chdir(WS)
    return show(read("../outside/secret"))

# attack files.read_through_old_link bare=works
def files_read_through_old_link():
    return show(read(f"{WS}/link-out"))

# attack files.read_through_new_link bare=works
def files_read_through_new_link():
    os.symlink(f"{OUT}/secret", f"/tmp/{W['token']}")
    try:
        return show(read(f"/tmp/{W['token']}"))
    finally:
        os.unlink(f"/tmp/{W['token']}")

# attack files.read_through_directory_link bare=works
def files_read_through_directory_link():
    return show(read(f"{WS}/link-dir/secret"))

# attack files.read_through_init_root bare=refused
def files_read_through_init_root():
    return show(read(f"/proc/1/root{OUT}/secret"))

# attack files.read_through_init_cwd bare=refused
def files_read_through_init_cwd():
    return show(read(f"/proc/1/cwd/../../../../../..{OUT}/secret"))

# attack files.read_through_any_root bare=works
def files_read_through_any_root():
    return first([lambda p=p: show(read(f"/proc/{p}/root{OUT}/secret"))
                  for p in os.listdir("/proc") if p.isdigit()])

# attack files.read_through_any_descriptor bare=refused
def files_read_through_any_descriptor():
    def look(p, d):
        return show(read(f"/proc/{p}/fd/{d}/../secret"))
    tries = []
    for p in [p for p in os.listdir("/proc") if p.isdigit()]:
        try:
            for d in os.listdir(f"/proc/{p}/fd"):
                tries.append(lambda p=p, d=d: look(p, d))
        except OSError:
            pass
    return first(tries[:500])

# attack files.list_outside bare=works
def files_list_outside():
    return os.listdir(OUT)[0]

# attack files.stat_outside bare=works
def files_stat_outside():
    return os.stat(f"{OUT}/secret").st_size

# attack files.read_neighbour bare=works
def files_read_neighbour():
    return show(read(f"{W['neighbour']}/secret"))

# attack files.read_home bare=works
def files_read_home():
    return show(read(W["home_secret"]))

# attack files.read_shadow bare=refused
def files_read_shadow():
    return need(len(read("/etc/shadow")) > 0, "shadow is not empty")

# attack files.read_root_home bare=refused
def files_read_root_home():
    return first([lambda n=n: os.stat("/".join(("", "root", n))) for n in (".ssh", ".bashrc", ".profile", ".netrc")])

# attack files.list_homes bare=unsafe
def files_list_homes():
    # Toolchains of the caller are shown where they lie, so that the name of that home is no secret.
    shown = [WS, W["home_secret"], *os.environ.get("PATH", "").split(":")]
    allowed = {"sandbox"} | {name for place in shown for name in place.split("/") if name}
    found = [n for n in os.listdir("/home") if n not in allowed]
    need(found, "only its own home")
    return found

# attack files.host_tmp bare=works
def files_host_tmp():
    return show(read(W["tmp_secret"]))

# attack files.host_shm bare=works
def files_host_shm():
    return show(read(W["shm_secret"]))

# attack files.run_directory bare=works
def files_run_directory():
    return first([lambda n=n: os.stat(f"/run/{n}") for n in ("user", "systemd", "dbus", "lock", "udev", "docker.sock", "utmp")])

# attack files.sys_directory bare=works
def files_sys_directory():
    return need(os.listdir("/sys"), "sysfs")

# attack files.devices bare=refused
def files_devices():
    names = ("mem", "kmsg", "kvm", "fuse", "net/tun", "vda", "sda", "loop-control", "vsock", "port", "tty0", "userfaultfd", "vhost-net", "ptmx-host")
    return first([lambda n=n: os.open(f"/dev/{n}", os.O_RDONLY | os.O_NONBLOCK) for n in names])

# attack files.write_outside bare=works
def files_write_outside():
    return write(f"{OUT}/new")

# attack files.change_outside bare=works
def files_change_outside():
    return write(f"{OUT}/untouched")

# attack files.truncate_outside bare=works
def files_truncate_outside():
    os.truncate(f"{OUT}/untouched", 0)

# attack files.remove_outside bare=works
def files_remove_outside():
    os.unlink(f"{OUT}/untouched")

# attack files.rename_outside bare=works
def files_rename_outside():
    os.rename(f"{OUT}/untouched", f"{OUT}/moved")

# attack files.chmod_outside bare=works
def files_chmod_outside():
    os.chmod(f"{OUT}/untouched", 0o600)

# attack files.touch_outside bare=works
def files_touch_outside():
    os.utime(f"{OUT}/untouched", (1, 1))

# attack files.attribute_outside bare=refused
def files_attribute_outside():
    os.setxattr(f"{OUT}/untouched", "user.attack", b"x")

# attack files.write_through_old_link bare=works
def files_write_through_old_link():
    return write(f"{WS}/link-untouched")

# attack files.write_through_directory_link bare=works
def files_write_through_directory_link():
    return write(f"{WS}/link-dir/new")

# attack files.link_from_outside bare=works
def files_link_from_outside():
    os.link(f"{OUT}/secret", f"{WS}/stolen")
    return show(read(f"{WS}/stolen"))

# attack files.rename_to_outside bare=works
def files_rename_to_outside():
    write(f"/tmp/{W['token']}")
    try:
        os.rename(f"/tmp/{W['token']}", f"{OUT}/new")
    finally:
        if os.path.exists(f"/tmp/{W['token']}"):
            os.unlink(f"/tmp/{W['token']}")

# attack files.write_system bare=refused
def files_write_system():
    return first([lambda p=p: write(f"{p}/{W['token']}") for p in ("/usr", "/usr/bin", "/usr/lib", "/bin", "/lib", "/etc", "/", "/dev", "/usr/local/bin", "/var", "/opt", "/boot")])

# attack files.change_programs bare=refused
def files_change_programs():
    return first([lambda p=p: os.open(p, os.O_WRONLY) for p in ("/usr/bin/env", "/bin/sh", "/usr/bin/python3", "/etc/passwd", "/etc/ld.so.cache")])

# attack files.change_own_program bare=refused
def files_change_own_program():
    return first([lambda p=p: os.open(p, os.O_WRONLY) for p in ("/proc/self/exe", "/proc/1/exe")])

# attack files.open_by_handle bare=refused
def files_open_by_handle():
    handle = ctypes.create_string_buffer(struct.pack("I", 128) + b"\0" * 132)
    mount = ctypes.c_int()
    call(303, -100, ctypes.c_char_p(b"/usr"), handle, ctypes.byref(mount), 0)
    return call(304, -100, handle, os.O_RDONLY)

# attack files.openat2_magic bare=works
def files_openat2_magic():
    how = ctypes.create_string_buffer(struct.pack("QQQ", os.O_RDONLY, 0, 0))
    fd = call(437, -100, ctypes.c_char_p(f"{OUT}/secret".encode()), how, 24)
    return show(os.read(fd, 4096))

# attack files.swap_while_reading bare=works
def files_swap_while_reading():
    # A name flips between a file inside and a link outwards while another thread reads it.
    if not os.access(WS, os.W_OK):
        base = "/tmp"
    else:
        base = WS
    name, inside = f"{base}/{W['token']}-flip", f"{base}/{W['token']}-in"
    write(inside, b"inside")
    stop = time.monotonic() + 0.2
    def flip():
        while time.monotonic() < stop:
            for target in (inside, f"{OUT}/secret"):
                os.symlink(target, name + "x")
                os.rename(name + "x", name)
    thread = threading.Thread(target=flip)
    thread.start()
    seen = b""
    while time.monotonic() < stop:
        try:
            data = read(name)
            if data != b"inside":
                seen = data
        except OSError:
            pass
    thread.join()
    for path in (name, inside):
        os.unlink(path)
    need(seen, "always inside")
    return show(seen)

# attack files.setuid_chmod bare=works
def files_setuid_chmod():
    write(f"{WS}/planted")
    os.chmod(f"{WS}/planted", 0o4755)
    need(os.stat(f"{WS}/planted").st_mode & 0o6000, "no bits")

# attack files.setgid_chmod bare=works
def files_setgid_chmod():
    write(f"{WS}/planted")
    os.chmod(f"{WS}/planted", 0o2755)
    need(os.stat(f"{WS}/planted").st_mode & 0o6000, "no bits")

# attack files.setuid_fchmod bare=works
def files_setuid_fchmod():
    fd = os.open(f"{WS}/planted", os.O_CREAT | os.O_WRONLY, 0o755)
    os.fchmod(fd, 0o6755)
    need(os.fstat(fd).st_mode & 0o6000, "no bits")

# attack files.setuid_fchmodat2 bare=works
def files_setuid_fchmodat2():
    write(f"{WS}/planted")
    call(452, -100, ctypes.c_char_p(f"{WS}/planted".encode()), 0o6755, 0)
    need(os.stat(f"{WS}/planted").st_mode & 0o6000, "no bits")

# attack files.setuid_open bare=works
def files_setuid_open():
    os.umask(0)
    fd = os.open(f"{WS}/planted", os.O_CREAT | os.O_WRONLY, 0o6755)
    need(os.fstat(fd).st_mode & 0o6000, "no bits")

# attack files.setuid_creat bare=works
def files_setuid_creat():
    os.umask(0)
    fd = call(85, ctypes.c_char_p(f"{WS}/planted".encode()), 0o6755)
    need(os.fstat(fd).st_mode & 0o6000, "no bits")

# attack files.setuid_openat2 bare=works
def files_setuid_openat2():
    os.umask(0)
    how = ctypes.create_string_buffer(struct.pack("QQQ", os.O_RDWR | os.O_CREAT, 0o6755, 0))
    fd = call(437, -100, ctypes.c_char_p(f"{WS}/planted".encode()), how, 24)
    need(os.fstat(fd).st_mode & 0o6000, "no bits")

# attack files.setuid_mknod bare=works
def files_setuid_mknod():
    os.umask(0)
    os.mknod(f"{WS}/planted", stat.S_IFREG | 0o6755)
    need(os.stat(f"{WS}/planted").st_mode & 0o6000, "no bits")

# attack files.setuid_high_bits bare=works
def files_setuid_high_bits():
    write(f"{WS}/planted")
    call(90, ctypes.c_char_p(f"{WS}/planted".encode()), 0o6755 | 1 << 40)
    need(os.stat(f"{WS}/planted").st_mode & 0o6000, "no bits")

# attack files.setgid_directory bare=works
def files_setgid_directory():
    os.mkdir(f"{WS}/planted")
    os.chmod(f"{WS}/planted", 0o2777)
    need(os.stat(f"{WS}/planted").st_mode & 0o6000, "no bits")

# attack files.setuid_tar bare=works
def files_setuid_tar():
    import io, tarfile
    data, info = io.BytesIO(), tarfile.TarInfo("planted")
    info.mode = 0o4755
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.addfile(info)
    data.seek(0)
    subprocess.run(["tar", "-xpf", "-", "-C", WS], input=data.getvalue(), stderr=subprocess.DEVNULL)
    need(os.stat(f"{WS}/planted").st_mode & 0o6000, "no bits")

# attack files.file_capability bare=refused
def files_file_capability():
    write(f"{WS}/planted")
    os.setxattr(f"{WS}/planted", "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 21, 0, 0, 0))

# attack files.device_char bare=refused
def files_device_char():
    os.mknod(f"{WS}/planted", stat.S_IFCHR | 0o666, os.makedev(1, 3))

# attack files.device_block bare=refused
def files_device_block():
    os.mknod(f"{WS}/planted", stat.S_IFBLK | 0o666, os.makedev(254, 0))

# attack files.chown_to_root bare=refused
def files_chown_to_root():
    write(f"{WS}/planted")
    os.chown(f"{WS}/planted", 0, 0)
