# Starts gates. Each scene fails by an exception.
import array, json, os, socket, subprocess, sys, tempfile, threading

SCENE, PROGRAM = sys.argv[1:3]


def listening():
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen(16)
    return made


def server():
    made = listening()

    def serve():
        while True:
            stream, _ = made.accept()
            stream.recv(4096)
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            stream.close()

    threading.Thread(target=serve, daemon=True).start()
    return made.getsockname()[1]


class Gate:
    def __init__(self, allow):
        self.control, theirs = socket.socketpair()
        self.proxy = listening()
        self.log = tempfile.NamedTemporaryFile("a+")
        keep = theirs.detach()

        def place():
            os.dup2(keep, 3, inheritable=True)

        self.process = subprocess.Popen(
            [PROGRAM, "gate"], env={}, preexec_fn=place, close_fds=False,
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        os.close(keep)
        order = {"order": {
            "sandbox": "a", "policy": self.policy(1, allow), "resolvers": [],
            "log_bytes": 65536, "descriptors": ["proxy", "log"],
        }}
        beside = array.array("i", [self.proxy.fileno(), self.log.fileno()])
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, beside)]
        self.control.sendmsg([json.dumps(order).encode() + b"\n"], rights)

    @staticmethod
    def policy(version, allow):
        return {"version": version, "allow": allow, "deny": [], "host_ports": [], "ask_ms": 0}

    def get(self, port, host="127.0.0.1"):
        with socket.create_connection(self.proxy.getsockname()) as stream:
            stream.settimeout(30)
            head = f"GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
            stream.sendall(head.encode())
            said = b""
            while piece := stream.recv(4096):
                said += piece
            return said.decode()

    def ends(self):
        self.control.close()
        code = self.process.wait(30)
        assert code == 0, (code, self.process.stderr.read())


def serves():
    port, other = server(), server()
    gate = Gate([f"127.0.0.1:{port}"])
    assert gate.get(port).endswith("hello")
    said = gate.get(other)
    assert said.startswith("HTTP/1.1 403 "), said
    assert f"allow it with: --egress 127.0.0.1:{other}\n" in said, said
    # The host's own list of names is read, and what it leads to is checked.
    said = gate.get(port, "localhost")
    assert said.startswith("HTTP/1.1 403 "), said
    policy = Gate.policy(2, [f"127.0.0.1:{port}", f"127.0.0.1:{other}", f"localhost:{port}"])
    gate.control.sendall(json.dumps({"policy": policy}).encode() + b"\n")
    while not gate.get(other).endswith("hello"):
        pass
    assert gate.get(port, "localhost").endswith("hello")
    gate.ends()
    reports = [json.loads(line) for line in open(gate.log.name)]
    assert reports[0]["decision"] == "allowed" and reports[0]["bytes_down"] == 43, reports[0]
    assert reports[1]["decision"] == "denied" and reports[1]["port"] == other, reports[1]


def ends():
    port = server()
    gate = Gate([f"127.0.0.1:{port}"])
    assert gate.get(port).endswith("hello")
    address = gate.proxy.getsockname()
    gate.proxy.close()
    gate.ends()
    try:
        socket.create_connection(address)
    except ConnectionRefusedError:
        pass
    else:
        raise AssertionError("somebody still listens")
    gate = Gate(["*.com"])
    assert gate.process.wait(30) == 1
    assert b"is no message" in gate.process.stderr.read()


def closed():
    port = server()
    gate = Gate([f"127.0.0.1:{port}"])
    assert gate.get(port).endswith("hello")
    pid = gate.process.pid
    owner = os.stat(f"/proc/{pid}/fd").st_uid
    assert owner == 0, owner
    if os.getuid() != 0:
        for name in ("environ", "mem", "maps", "fd"):
            try:
                os.listdir(f"/proc/{pid}/{name}") if name == "fd" else open(f"/proc/{pid}/{name}", "rb").read(1)
            except PermissionError:
                continue
            raise AssertionError(f"{name} can be read")
        open(f"/proc/{os.getpid()}/maps", "rb").read(1)
    gate.ends()


def alone():
    done = subprocess.run([PROGRAM, "gate"], capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    assert done.returncode == 1, done
    assert b"started by Cofferdam itself" in done.stderr, done
    done = subprocess.run([PROGRAM, "gate", "--help"], capture_output=True, timeout=30)
    assert done.returncode == 2, done
    done = subprocess.run([PROGRAM, "--help"], capture_output=True, timeout=30)
    assert done.returncode == 0 and b"  gate" not in done.stdout, done


globals()[SCENE]()
