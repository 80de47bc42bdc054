# attack limits.fork_bomb bare=unsafe opts=--pids=64
def limits_fork_bomb():
    children = []
    try:
        for _ in range(200):
            pid = os.fork()
            if pid == 0:
                time.sleep(30)
                os._exit(0)
            children.append(pid)
    except OSError as e:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        raise Stopped(f"after {len(children)}: {e}")
    return "200 processes"

# attack limits.thread_bomb bare=unsafe opts=--pids=64
def limits_thread_bomb():
    stop = threading.Event()
    made = 0
    threading.stack_size(65536)
    try:
        for _ in range(200):
            threading.Thread(target=stop.wait, daemon=True).start()
            made += 1
    except RuntimeError as e:
        stop.set()
        raise Stopped(f"after {made}: {e}")
    return "200 threads"

# attack limits.disk_tmp bare=unsafe opts=--disk=16M
def limits_disk_tmp():
    with open("/tmp/fill", "wb") as f:
        for _ in range(64):
            f.write(b"x" * (1 << 20))
            f.flush()
    return "64 MiB"

# attack limits.disk_shm bare=unsafe opts=--disk=16M
def limits_disk_shm():
    with open("/dev/shm/fill", "wb") as f:
        for _ in range(64):
            f.write(b"x" * (1 << 20))
            f.flush()
    return "64 MiB"

# attack limits.disk_home bare=unsafe opts=--disk=16M
def limits_disk_home():
    with open(os.path.expanduser("~/fill"), "wb") as f:
        for _ in range(64):
            f.write(b"x" * (1 << 20))
            f.flush()
    return "64 MiB"

# attack limits.disk_dev bare=unsafe opts=--disk=16M
def limits_disk_dev():
    with open("/dev/fill", "wb") as f:
        for _ in range(64):
            f.write(b"x" * (1 << 20))
            f.flush()
    return "64 MiB"

# attack limits.many_files bare=unsafe opts=--disk=16M
def limits_many_files():
    facts = os.statvfs("/tmp")
    return need(facts.f_files == 0 or facts.f_files > 4 << 20, f"{facts.f_files} files at most")

# attack limits.core_dump bare=works
def limits_core_dump():
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    # One byte is for the kernel a word for none, also where a program takes them.
    return need(hard not in (0, 1), "no core dumps")

# attack limits.raise_files bare=refused
def limits_raise_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard + 1))

# attack limits.priority bare=refused
def limits_priority():
    return os.setpriority(os.PRIO_PROCESS, 0, -20)

# attack limits.real_time bare=refused
def limits_real_time():
    return os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))

# attack limits.locked_memory bare=refused
def limits_locked_memory():
    page = mmap.mmap(-1, 256 << 20)
    address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return call(149, address, 256 << 20)

# attack limits.oom_score bare=refused
def limits_oom_score():
    return write("/proc/self/oom_score_adj", b"-500", os.O_WRONLY)
