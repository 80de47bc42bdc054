# use python
def python():
    return 6 * 7

# use shell
def shell():
    out = subprocess.run(["/bin/sh", "-c", "echo a b | tr a-z A-Z"], capture_output=True).stdout
    return need(out == b"A B\n", out)

# use fork_and_wait
def fork_and_wait():
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    return need(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7, "code 7")

# use threads
def threads():
    done = []
    all_threads = [threading.Thread(target=done.append, args=(n,)) for n in range(16)]
    for t in all_threads:
        t.start()
    for t in all_threads:
        t.join()
    return need(len(done) == 16, "16 threads")

# use process_pool
def process_pool():
    import multiprocessing
    with multiprocessing.Pool(2) as pool:
        return need(pool.map(abs, [-1, -2]) == [1, 2], "pool")

# use loopback_server
def loopback_server():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname(), timeout=1)
    peer, _ = server.accept()
    client.sendall(b"hi")
    return need(peer.recv(2) == b"hi", "heard")

# use loopback_udp
def loopback_udp():
    a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    a.bind(("127.0.0.1", 0))
    a.settimeout(1)
    b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    b.sendto(b"hi", a.getsockname())
    return need(a.recv(2) == b"hi", "heard")

# use localhost_name
def localhost_name():
    return need(socket.gethostbyname("localhost").startswith("127."), "localhost")

# use unix_sockets
def unix_sockets():
    a, b = socket.socketpair()
    a.send(b"hi")
    server = socket.socket(socket.AF_UNIX)
    server.bind("/tmp/own.sock")
    os.unlink("/tmp/own.sock")
    return need(b.recv(2) == b"hi", "heard")

# use own_terminal
def own_terminal():
    master, slave = os.openpty()
    os.write(slave, b"hi\n")
    return need(b"hi" in os.read(master, 10) and os.ttyname(slave), "heard")

# use written_code
def written_code():
    if platform.machine() != "x86_64":
        return "another machine"
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(b"\xb8\x2a\x00\x00\x00\xc3")
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return need(function() == 42, "42")

# use devices
def devices():
    write("/dev/null", flags=os.O_WRONLY)
    need(read("/dev/zero", 4) == b"\0" * 4, "zeros")
    return need(len(read("/dev/urandom", 8)) == 8, "random")

# use private_space
def private_space():
    for place in ("/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~")):
        write(f"{place}/own")
        os.unlink(f"{place}/own")
    return "four places"

# use locks
def locks():
    fd = os.open("/tmp/lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    fcntl.lockf(fd, fcntl.LOCK_EX)
    return "locked"

# use hard_links_and_fifos
def hard_links_and_fifos():
    write("/tmp/one")
    os.link("/tmp/one", "/tmp/two")
    os.mkfifo("/tmp/fifo")
    return "made"

# use events
def events():
    os.eventfd(0)
    select.epoll()
    read_end, write_end = os.pipe()
    return "made"

# use signals
def signals():
    seen = []
    signal.signal(signal.SIGUSR1, lambda *a: seen.append(1))
    os.kill(os.getpid(), signal.SIGUSR1)
    return need(seen, "seen")

# use own_proc
def own_proc():
    os.listdir("/proc/self/fd")
    return need(b"python" in read("/proc/self/cmdline"), "own name")

# use who_am_i
def who_am_i():
    import pwd
    return pwd.getpwuid(os.getuid()).pw_name

# use home
def home():
    return need(os.environ["HOME"] and os.path.isdir(os.environ["HOME"]), "home")

# use clock
def clock():
    return time.localtime()

# use system_v_memory
def system_v_memory():
    return call(29, 0, 4096, 0o600)

# use read_workspace
def read_workspace():
    return need(read(f"{WS}/src/main.txt") == b"hello\n", "hello")

# use working_directory
def working_directory():
    return need(os.path.samefile(os.getcwd(), WS), "the workspace")

# use write_workspace write
def write_workspace():
    write(f"{WS}/made")
    os.mkdir(f"{WS}/made-dir")
    os.rename(f"{WS}/made", f"{WS}/made-dir/made")
    os.chmod(f"{WS}/made-dir/made", 0o755)
    shutil.rmtree(f"{WS}/made-dir")
    return "written"

# use run_what_it_wrote write
def run_what_it_wrote():
    write(f"{WS}/program", b"#!/bin/sh\necho ran\n")
    os.chmod(f"{WS}/program", 0o755)
    return need(subprocess.run([f"{WS}/program"], capture_output=True).stdout == b"ran\n", "ran")

# use git_commit write
def git_commit():
    def git(*args):
        r = subprocess.run(["git", "-C", WS, "-c", "user.name=a", "-c", "user.email=a@b", *args], capture_output=True)
        need(r.returncode == 0, (args, r.stderr))
    write(f"{WS}/new-file")
    git("add", "new-file")
    git("commit", "-qm", "one")
    git("checkout", "-qb", "topic")
    return git("status", "--porcelain")

# use git_init_elsewhere write
def git_init_elsewhere():
    r = subprocess.run(["git", "init", "-q", "/tmp/repository"], capture_output=True)
    return need(r.returncode == 0, r.stderr)

# use edit_other_dot_files write
def edit_other_dot_files():
    return write(f"{WS}/.gitignore")
