def host(pid):
    """A process inside may have the same number; the host's has another beginning."""
    data = read(f"/proc/{pid}/stat").decode()
    need(int(data.rsplit(")", 1)[1].split()[19]) == W["victim_start"], "another process")
    return pid

# attack processes.see_victim bare=works
def processes_see_victim():
    return host(W["victim"])

# attack processes.kill_victim bare=works
def processes_kill_victim():
    os.kill(W["victim"], signal.SIGKILL)
    raise Stopped("sent; the host knows whether it hit")

# attack processes.kill_all bare=unsafe
def processes_kill_all():
    # Everything that can be reached. The host sees who is gone.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(-1, signal.SIGTERM)
    raise Stopped("sent; the host knows whether it hit")

# attack processes.stop_victim_by_pidfd bare=works
def processes_stop_victim_by_pidfd():
    fd = os.pidfd_open(W["victim"])
    host(W["victim"])
    signal.pidfd_send_signal(fd, signal.SIGKILL)

# attack processes.limit_victim bare=works
def processes_limit_victim():
    host(W["victim"])
    return resource.prlimit(W["victim"], resource.RLIMIT_NOFILE, (3, 3))

# attack processes.renice_victim bare=works
def processes_renice_victim():
    os.setpriority(os.PRIO_PROCESS, W["victim"], 19)
    host(W["victim"])

# attack processes.trace_victim bare=refused
def processes_trace_victim():
    return in_child(lambda: (host(W["victim"]), call(101, 0x4206, W["victim"], 0, 0))[1])

# attack processes.read_victim_environment bare=works
def processes_read_victim_environment():
    host(W["victim"])
    return show(read(f"/proc/{W['victim']}/environ"))

# attack processes.count_processes bare=works
def processes_count_processes():
    found = [p for p in os.listdir("/proc") if p.isdigit()]
    return need(len(found) > 12, f"{len(found)} processes")

# attack processes.kernel_threads bare=works
def processes_kernel_threads():
    return need(read("/proc/2/comm").strip() == b"kthreadd", "not there")

# attack processes.lock_table bare=works
def processes_lock_table():
    import fcntl
    with open("lock-of-its-own", "w") as own:
        fcntl.flock(own, fcntl.LOCK_EX)
        return need(read("/proc/locks").strip(), "empty")

# attack processes.init_environment bare=refused
def processes_init_environment():
    return show(read("/proc/1/environ")) if read("/proc/1/environ") else need(False, "empty")

# attack processes.init_memory bare=refused
def processes_init_memory():
    return os.open("/proc/1/mem", os.O_RDONLY)

# attack processes.init_memory_call bare=refused
def processes_init_memory_call():
    word = ctypes.create_string_buffer(8)
    vector = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(word), 8))
    try:
        return call(310, 1, vector, 1, vector, 1, 0)
    except OSError as e:
        if e.errno == errno.EFAULT:
            return "may read it"
        raise

# attack processes.init_descriptors bare=refused
def processes_init_descriptors():
    return os.listdir("/proc/1/fd")

# attack processes.init_maps bare=refused
def processes_init_maps():
    return need(read("/proc/1/maps"), "empty")

# attack processes.init_program bare=refused
def processes_init_program():
    return os.readlink("/proc/1/exe")

# attack processes.init_trace bare=refused
def processes_init_trace():
    return in_child(lambda: call(101, 0x4206, 1, 0, 0))

# attack processes.init_take_descriptor bare=refused
def processes_init_take_descriptor():
    fd = os.pidfd_open(1)
    return first([lambda n=n: call(438, fd, n, 0) for n in range(12)])

# attack processes.init_kill bare=refused
def processes_init_kill():
    # A sandbox whose process 1 can be killed from inside ends without an ending.
    os.kill(1, signal.SIGKILL)
    os.kill(1, signal.SIGSTOP)
    time.sleep(0.05)
    os.kill(1, 0)
    raise Stopped("process 1 lives")

# attack processes.survive_setsid bare=works
def processes_survive_setsid():
    if os.fork() == 0:
        os.setsid()
        os.execv("/bin/sleep", [W["token"], "60"])
    time.sleep(0.05)
    raise Stopped("left behind; the host looks for it")

# attack processes.survive_double_fork bare=works
def processes_survive_double_fork():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for n in range(3):
                os.close(n)
            os.open("/dev/null", os.O_RDWR)
            os.dup(0)
            os.dup(0)
            os.execv("/bin/sleep", [W["token"], "60"])
        os._exit(0)
    os.wait()
    time.sleep(0.05)
    raise Stopped("left behind; the host looks for it")

# attack processes.survive_nohup bare=works
def processes_survive_nohup():
    subprocess.Popen(["/bin/sh", "-c", f"nohup sh -c 'sleep 60; : {W['token']}' >/dev/null 2>&1 &"])
    time.sleep(0.1)
    raise Stopped("left behind; the host looks for it")

# attack processes.survive_ignoring bare=works
def processes_survive_ignoring():
    if os.fork() == 0:
        for n in range(1, 32):
            if n not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(n, signal.SIG_IGN)
        os.setsid()
        os.execv("/bin/sleep", [W["token"], "60"])
    time.sleep(0.05)
    raise Stopped("left behind; the host looks for it")

# attack processes.survive_holding_output bare=works
def processes_survive_holding_output():
    # The child keeps the pipe: the result must not wait for it either.
    if os.fork() == 0:
        os.execv("/bin/sleep", [W["token"], "60"])
    raise Stopped("left behind; the host looks for it")

# attack processes.survive_many bare=works
def processes_survive_many():
    for _ in range(40):
        if os.fork() == 0:
            os.setsid()
            os.execv("/bin/sleep", [W["token"], "60"])
    raise Stopped("left behind; the host looks for them")

# attack processes.survive_stopped bare=works
def processes_survive_stopped():
    if os.fork() == 0:
        os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    time.sleep(0.05)
    raise Stopped("left behind; the host looks for it")

# attack processes.survive_forking bare=unsafe
def processes_survive_forking():
    # Two that take turns: whoever kills one at a time loses.
    if os.fork() == 0:
        os.setsid()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if os.fork() != 0:
                os._exit(0)
            time.sleep(0.0005)
        os._exit(0)
    time.sleep(0.05)
    raise Stopped("left behind; the host looks for it")

def terminal():
    master, slave = os.openpty()
    return slave

def on_terminal(act):
    slave = terminal()
    def inner():
        os.setsid()
        fcntl.ioctl(slave, 0x540e, 0)
        return act(slave)
    return in_child(inner)

# attack processes.push_input bare=works
def processes_push_input():
    return on_terminal(lambda fd: call(16, fd, 0x5412, ctypes.c_char_p(b"x")))

# attack processes.push_input_high_bits bare=works
def processes_push_input_high_bits():
    return on_terminal(lambda fd: call(16, fd, 0x5412 | 1 << 32, ctypes.c_char_p(b"x")))

# attack processes.paste bare=works
def processes_paste():
    return on_terminal(lambda fd: reached(16, fd, 0x541c, ctypes.c_char_p(b"\3")))

# attack processes.paste_high_bits bare=works
def processes_paste_high_bits():
    return on_terminal(lambda fd: reached(16, fd, 0x541c | 1 << 32, ctypes.c_char_p(b"\3")))

# attack processes.callers_terminal bare=refused
def processes_callers_terminal():
    return os.open("/dev/tty", os.O_RDWR)

# attack processes.host_terminals bare=refused
def processes_host_terminals():
    found = [n for n in os.listdir("/dev/pts") if n.isdigit()]
    return first([lambda n=n: os.open(f"/dev/pts/{n}", os.O_RDWR | os.O_NOCTTY) for n in found])

# attack processes.system_v_of_host bare=works
def processes_system_v_of_host():
    return call(29, W["shared_memory"], 0, 0)
