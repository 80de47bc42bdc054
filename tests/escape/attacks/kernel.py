NEWNS, NEWUSER, NEWPID, NEWNET = 0x20000, 0x10000000, 0x20000000, 0x40000000
NEWTIME, NEWCGROUP, NEWUTS, NEWIPC = 0x80, 0x2000000, 0x4000000, 0x8000000

def clone(flags):
    pid = call(56, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid

# attack kernel.unshare_user bare=works
def kernel_unshare_user():
    return in_child(lambda: call(272, NEWUSER))

# attack kernel.unshare_user_mount bare=works
def kernel_unshare_user_mount():
    return in_child(lambda: call(272, NEWUSER | NEWNS))

# attack kernel.unshare_user_network bare=works
def kernel_unshare_user_network():
    return in_child(lambda: call(272, NEWUSER | NEWNET))

# attack kernel.unshare_mount bare=refused
def kernel_unshare_mount():
    return in_child(lambda: call(272, NEWNS))

# attack kernel.unshare_pid bare=refused
def kernel_unshare_pid():
    return in_child(lambda: call(272, NEWPID))

# attack kernel.unshare_network bare=refused
def kernel_unshare_network():
    return in_child(lambda: call(272, NEWNET))

# attack kernel.unshare_others bare=refused
def kernel_unshare_others():
    return first([lambda f=f: in_child(lambda: call(272, f)) for f in (NEWTIME, NEWCGROUP, NEWUTS, NEWIPC)])

# attack kernel.unshare_high_bits bare=works
def kernel_unshare_high_bits():
    try:
        return in_child(lambda: call(272, NEWUSER | 1 << 40))
    except Stopped as e:
        if "Errno 22" in str(e):
            return "reached the kernel"
        raise

# attack kernel.clone_user bare=works
def kernel_clone_user():
    return clone(NEWUSER)

# attack kernel.clone_user_all bare=works
def kernel_clone_user_all():
    return clone(NEWUSER | NEWNS | NEWPID | NEWNET)

# attack kernel.clone3_user bare=works
def kernel_clone3_user():
    args = ctypes.create_string_buffer(struct.pack("8Q", NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0))
    pid = call(435, args, 64)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)

# attack kernel.namespaces_by_tool bare=works
def kernel_namespaces_by_tool():
    r = subprocess.run(["unshare", "-Ur", "id", "-u"], capture_output=True)
    need(r.returncode == 0, r.stderr)

# attack kernel.nested_escape bare=works
def kernel_nested_escape():
    # The whole chain: namespaces of its own, a writable view, and the protected file through it.
    handle = os.open(f"{WS}/.git", os.O_RDONLY | os.O_DIRECTORY)
    def act():
        call(272, NEWUSER | NEWNS)
        fd = os.open("config", os.O_WRONLY | os.O_APPEND, dir_fd=handle)
        os.write(fd, b"attacked")
    return in_child(act)

# attack kernel.setns bare=refused
def kernel_setns():
    return first([lambda n=n: call(308, os.open(f"/proc/self/ns/{n}", os.O_RDONLY), 0) for n in ("mnt", "net", "pid", "uts", "ipc")])

# attack kernel.setns_of_init bare=refused
def kernel_setns_of_init():
    return call(308, os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)

# attack kernel.mount bare=unsafe
def kernel_mount():
    return call(165, ctypes.c_char_p(b"t"), ctypes.c_char_p(b"/tmp"), ctypes.c_char_p(b"tmpfs"), 0, 0)

# attack kernel.mount_bind bare=unsafe
def kernel_mount_bind():
    return call(165, ctypes.c_char_p(b"/usr"), ctypes.c_char_p(b"/tmp"), 0, 4096, 0)

# attack kernel.remount_writable bare=unsafe
def kernel_remount_writable():
    return first([lambda p=p: call(165, 0, ctypes.c_char_p(p.encode()), 0, 32 | 4096, 0) for p in ("/", "/usr", WS, f"{WS}/.git/hooks", "/proc")])

# attack kernel.unmount bare=unsafe
def kernel_unmount():
    return first([lambda p=p: call(166, ctypes.c_char_p(p.encode()), 2) for p in ("/", "/proc", f"{WS}/.git/hooks", f"{WS}/.git", WS, "/proc/kcore")])

# attack kernel.open_tree bare=refused
def kernel_open_tree():
    return call(428, -100, ctypes.c_char_p(b"/"), 0x8001)

# attack kernel.move_mount bare=unsafe
def kernel_move_mount():
    return call(429, -100, ctypes.c_char_p(b"/tmp"), -100, ctypes.c_char_p(b"/usr"), 0)

# attack kernel.fsopen bare=refused
def kernel_fsopen():
    return call(430, ctypes.c_char_p(b"tmpfs"), 0)

# attack kernel.fsmount bare=refused
def kernel_fsmount():
    return reached(432, -1, 0, 0)

# attack kernel.fspick bare=refused
def kernel_fspick():
    return call(433, -100, ctypes.c_char_p(b"/"), 0)

# attack kernel.mount_setattr bare=unsafe
def kernel_mount_setattr():
    attributes = ctypes.create_string_buffer(struct.pack("4Q", 0, 1, 0, 0))
    return call(442, -100, ctypes.c_char_p(b"/usr"), 0, attributes, 32)

# attack kernel.pivot_root bare=unsafe
def kernel_pivot_root():
    return call(155, ctypes.c_char_p(b"/tmp"), ctypes.c_char_p(b"/tmp"))

# attack kernel.chroot bare=refused
def kernel_chroot():
    return in_child(lambda: os.chroot("/tmp"))

# attack kernel.capabilities bare=works
def kernel_capabilities():
    text = read("/proc/self/status").decode()
    found = [line for line in text.splitlines() if line.startswith("Cap") and int(line.split()[1], 16)]
    return need(found, "all sets are empty")

# attack kernel.raise_capability bare=refused
def kernel_raise_capability():
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    sets = ctypes.create_string_buffer(struct.pack("6I", 1 << 21, 1 << 21, 1 << 21, 0, 0, 0))
    return call(126, header, sets)

# attack kernel.no_new_privileges bare=works
def kernel_no_new_privileges():
    return need(b"NoNewPrivs:\t0" in read("/proc/self/status"), "it is on")

# attack kernel.no_filter bare=works
def kernel_no_filter():
    return need(b"Seccomp:\t2" not in read("/proc/self/status"), "a filter is on")

# attack kernel.host_root_behind bare=works
def kernel_host_root_behind():
    return first([lambda m=m: need(any(l.split()[1] == "0" for l in read(f"/proc/self/{m}").decode().splitlines()), "no host id 0") for m in ("uid_map", "gid_map")])

# attack kernel.become_root bare=refused
def kernel_become_root():
    return in_child(lambda: os.setresuid(0, 0, 0))

# attack kernel.setuid_program bare=refused
def kernel_setuid_program():
    # A program that is set-id on the host gains nothing.
    for path in ("/usr/bin/su", "/bin/su", "/usr/bin/sudo", "/usr/bin/passwd", "/usr/bin/mount"):
        if os.path.exists(path) and os.stat(path).st_mode & 0o4000:
            r = subprocess.run(["/bin/sh", "-c", f"{path} --version >/dev/null 2>&1; grep CapEff /proc/self/status"], capture_output=True)
            need(int(r.stdout.split()[1], 16), f"{path} gained nothing")
            return path
    raise Stopped("no set-id program")

# attack kernel.keyctl bare=works
def kernel_keyctl():
    return reached(250, 0, -3, 0)

# attack kernel.add_key bare=works
def kernel_add_key():
    return reached(248, ctypes.c_char_p(b"user"), ctypes.c_char_p(b"a"), ctypes.c_char_p(b"b"), 1, -2)

# attack kernel.request_key bare=works
def kernel_request_key():
    return reached(249, 0, 0, 0, 0)

# attack kernel.bpf bare=refused
def kernel_bpf():
    return first([lambda c=c: reached(321, c, ctypes.create_string_buffer(128), 128) for c in (0, 5, 18)])

# attack kernel.perf_event bare=works
def kernel_perf_event():
    attributes = ctypes.create_string_buffer(struct.pack("IIQQQQQ", 1, 64, 0, 0, 0, 0, 0b1100000).ljust(64, b"\0"))
    return reached(298, attributes, 0, -1, -1, 0)

# attack kernel.userfaultfd bare=works
def kernel_userfaultfd():
    return reached(323, 1)

# attack kernel.io_uring_setup bare=works
def kernel_io_uring_setup():
    return reached(425, 1, ctypes.create_string_buffer(120))

# attack kernel.io_uring_enter bare=works
def kernel_io_uring_enter():
    return reached(426, -1, 0, 0, 0, 0)

# attack kernel.io_uring_register bare=works
def kernel_io_uring_register():
    return reached(427, -1, 0, 0, 0)

# attack kernel.personality bare=works
def kernel_personality():
    return reached(135, 0x400000)

# attack kernel.modify_ldt bare=works
def kernel_modify_ldt():
    return reached(154, 0, 0, 0)

# attack kernel.kcmp bare=works
def kernel_kcmp():
    return reached(312, os.getpid(), os.getpid(), 2, 0, 0)

# attack kernel.fanotify bare=works
def kernel_fanotify():
    return reached(300, 0x200, 0)

# attack kernel.x32 bare=refused
def kernel_x32():
    return in_child(lambda: reached(0x40000000 + 39))

# attack kernel.ia32 bare=works
def kernel_ia32():
    # push rbx; mov eax, 20; int 0x80; pop rbx; ret
    code = b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    def act():
        answer = function()
        need(answer > 0, f"answer {answer}")
        return answer
    return in_child(act)

# attack kernel.ia32_socketcall bare=unsafe
def kernel_ia32_socketcall():
    # The 32-bit door to sockets, which filters of families forgot: socketcall(SOCKET, {AF_ALG …}).
    low = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, prot=7)
    base = ctypes.addressof(ctypes.c_char.from_buffer(low))
    low[256:268] = struct.pack("III", 38, 5, 0)
    low[0:23] = b"\x53\xb8\x66\x00\x00\x00\xbb\x01\x00\x00\x00\xb9" + struct.pack("I", base + 256) + b"\xcd\x80\x5b\xc3\x90\x90\x90"
    function = ctypes.CFUNCTYPE(ctypes.c_int)(base)
    def act():
        answer = function()
        need(answer >= 0, f"answer {answer}")
        return answer
    return in_child(act)

# attack kernel.modules bare=refused
def kernel_modules():
    return first([lambda n=n, a=a: reached(n, *a) for n, a in ((175, (0, 0, 0)), (313, (-1, 0, 0)), (176, (0, 0)))])

# attack kernel.kexec_reboot_swap bare=unsafe
def kernel_kexec_reboot_swap():
    return first([lambda n=n, a=a: reached(n, *a) for n, a in ((246, (0, 99, 0, 0)), (169, (0, 0, 0, 0)), (167, (0, 0)), (163, (0,)))])

# attack kernel.kernel_log bare=refused
def kernel_kernel_log():
    return first([lambda: reached(103, 10, 0, 0), lambda: read("/proc/kmsg"), lambda: read("/dev/kmsg")])

# attack kernel.io_ports bare=refused
def kernel_io_ports():
    return first([lambda: reached(172, 3), lambda: reached(173, 0x80, 1, 1)])

# attack kernel.quota bare=works
def kernel_quota():
    return reached(179, -1, 0, 0, 0)

# attack kernel.move_pages bare=works
def kernel_move_pages():
    return reached(279, 0x3fffffff, 1, 0, 0, 0, 0)

# attack kernel.host_name bare=unsafe
def kernel_host_name():
    return first([lambda: reached(170, ctypes.c_char_p(b"x"), 1), lambda: reached(171, ctypes.c_char_p(b"x"), 1)])

# attack kernel.clock bare=unsafe
def kernel_clock():
    return time.clock_settime(time.CLOCK_REALTIME, time.time())

# attack kernel.settings bare=refused
def kernel_settings():
    names = ("kernel/core_pattern", "kernel/modprobe", "vm/overcommit_memory", "kernel/hostname", "net/ipv4/ip_forward", "user/max_user_namespaces", "fs/file-max")
    return first([lambda n=n: os.open(f"/proc/sys/{n}", os.O_WRONLY) for n in names])

# attack kernel.sysrq bare=refused
def kernel_sysrq():
    return os.open("/proc/sysrq-trigger", os.O_WRONLY)

# attack kernel.secret_files bare=works
def kernel_secret_files():
    return first([lambda n=n: need(read(f"/proc/{n}"), "empty") for n in ("kcore", "keys", "timer_list", "sched_debug", "kmsg", "latency_stats")])

# attack kernel.cgroup_files bare=works
def kernel_cgroup_files():
    return need([l for l in read("/proc/self/mountinfo").decode().splitlines() if " - cgroup" in l], "none")

# attack kernel.proc_mount bare=unsafe
def kernel_proc_mount():
    return call(165, ctypes.c_char_p(b"proc"), ctypes.c_char_p(b"/tmp"), ctypes.c_char_p(b"proc"), 0, 0)
