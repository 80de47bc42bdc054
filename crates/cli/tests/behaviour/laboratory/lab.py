# A laboratory of two networks: the host, in which the real program runs, and the internet, which is all
# the rest. To be started in a network and a mount namespace of its own, with the right to arrange them.
import ctypes, json, os, shutil, socket, subprocess, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
OWN, OWN6, OTHER, MARK = "25.0.0.2", "2fff::2", "25.1.0.2", "25.3.0.1"
TLS_NAMES = ["ok.test", "front.test", "evil.test", "both.test", "six.test", "alias.test", "mixed.test"]
TOOLS = ["curl", "wget", "git", "pip", "npm", "cargo", "go", "apt", "node", "jvm", "python", "psql"]


def call(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def rights_of_nobody():
    """Words before a command that is to have the rights of the person alone."""
    if os.getuid() == 0:
        return []
    return ["setpriv", "--ambient-caps=-all", "--inh-caps=-all", "--"]


class Lab:
    def __init__(self, base, program):
        self.base, self.program, self.witness = base, program, os.path.join(base, "witness")
        os.makedirs(base, exist_ok=True)
        self.workspace = os.path.join(base, "workspace")
        os.makedirs(self.workspace)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.authority()
        self.internet, self.place, self.marks = None, 0, 0

    def authority(self):
        at = lambda name: os.path.join(self.base, name)
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        quiet = {"cwd": self.base}
        call("openssl", "req", "-x509", *key, "-days", "9", "-subj", "/CN=Laboratory", "-keyout", "ca.key",
             "-out", "ca.pem", "-addext", "keyUsage=critical,keyCertSign", **quiet)
        call("openssl", "req", *key, "-subj", "/CN=laboratory", "-keyout", "leaf.key", "-out", "leaf.csr", **quiet)
        names = TLS_NAMES + [f"{tool}.test" for tool in TOOLS] + ["*.rebind.test", "*.leads.test"]
        with open(at("leaf.ext"), "w") as file:
            file.write("subjectAltName=" + ",".join(f"DNS:{name}" for name in names) + "\n")
            file.write("extendedKeyUsage=serverAuth\nbasicConstraints=critical,CA:FALSE\n")
        call("openssl", "x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "9",
             "-CAcreateserial", "-extfile", "leaf.ext", "-out", "leaf.pem", **quiet)
        self.trust = os.path.join(self.workspace, "ca.pem")
        shutil.copy(at("ca.pem"), self.trust)

    def start(self):
        call("ip", "link", "set", "lo", "up")
        words = ["unshare", "--net", "--mount", "--", "/usr/bin/python3", os.path.join(HERE, "internet.py"), self.base]
        self.internet = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.internet.stdout.readline() == "there\n"
        call("ip", "link", "add", "up0", "type", "veth", "peer", "name", "down0", "netns", str(self.internet.pid))
        call("ip", "link", "set", "up0", "up")
        call("ip", "addr", "add", f"{OWN}/24", "dev", "up0")
        call("ip", "-6", "addr", "add", f"{OWN6}/64", "dev", "up0", "nodad")
        self.internet.stdin.write("go\n")
        self.internet.stdin.flush()
        assert self.internet.stdout.readline() == "ready\n"
        call("ip", "route", "add", "default", "via", "25.0.0.1")
        call("ip", "-6", "route", "add", "default", "via", "2fff::1")
        # Whoever asks for an echo may, without any right.
        with open("/proc/sys/net/ipv4/ping_group_range", "w") as file:
            file.write(f"{os.getgid()} {os.getgid()}")
        self.instead("/etc/resolv.conf", "nameserver 25.2.0.53\n")
        self.instead("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n25.1.0.1 listed.test\n10.0.0.1 inner.test\n")
        for port in (80, 8077):
            self.serve_here(port)
        return self

    def instead(self, path, text):
        """Puts a file in the place of another, for this laboratory alone."""
        mine = os.path.join(self.base, os.path.basename(path))
        with open(mine, "w") as file:
            file.write(text)
        os.chmod(mine, 0o644)
        there = os.path.realpath(path).encode()
        if self.libc.mount(mine.encode(), there, None, 4096, None):
            raise OSError(ctypes.get_errno(), f"mount {path}")

    def serve_here(self, port):
        """A service of the host's own, on every address that it has."""
        sock = socket.socket(socket.AF_INET6)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(("::", port))
        sock.listen(64)

        def serve():
            while True:
                stream, _ = sock.accept()
                with open(self.witness, "a") as file:
                    file.write(json.dumps({"host": port, "to": stream.getsockname()[0]}) + "\n")
                threading.Thread(target=self.greet, args=(stream,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()

    @staticmethod
    def greet(stream):
        with stream:
            stream.settimeout(5)
            try:
                stream.recv(4096)
                body = b"REACHED the host\n"
                head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
                stream.sendall(head + body)
            except OSError:
                pass

    def nothing_of(self, name):
        """Nothing was sent to a name, nor was anybody asked for it."""
        about = [one for one in self.seen() if name in json.dumps(one) or one.get("to") == OTHER]
        assert not about, about

    def seen(self):
        """What was witnessed since this was asked last."""
        self.marks += 1
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mark:
            mark.sendto(b"", (MARK, self.marks))
        seen, give_up = [], time.monotonic() + 20
        # What is written down after the mark was sent after it.
        while not any(one.get("to") == MARK and one["port"] == self.marks for one in seen):
            assert time.monotonic() < give_up, "the witness is silent"
            with open(self.witness) as file:
                file.seek(self.place)
                lines = file.read()
            whole = lines[:lines.rfind("\n") + 1]
            self.place += len(whole)
            seen += map(json.loads, whole.splitlines())
            time.sleep(0.005)
        return [one for one in seen if one.get("to") != MARK]

    def room(self, name):
        """A workspace like the laboratory's, for one who works in it beside others."""
        room = os.path.join(self.base, "room-" + name)
        shutil.copytree(self.workspace, room)
        return room

    def bare(self, *words, within=120, at=None):
        """A command on the host, outside of any sandbox, with the rights of the person."""
        # Nothing that would change which authority a tool trusts, or where it asks.
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "LC_ALL") if name in os.environ}
        environment["COFFERDAM_HOME"] = os.environ.get("COFFERDAM_HOME", os.path.join(self.base, "state"))
        return subprocess.run([*rights_of_nobody(), *words], capture_output=True, text=True, timeout=within,
                              stdin=subprocess.DEVNULL, cwd=at or self.workspace, env=environment)

    def cofferdam(self, *words, within=120, at=None):
        return self.bare(self.program, *words, within=within, at=at)

    def inside(self, rules, *words, within=120, at=None):
        options = [word for rule in rules for word in ("--egress", rule)]
        return self.cofferdam("run", "--profile", "repo-write", *options, "--", *words, within=within, at=at)

    def end(self):
        if self.internet:
            self.internet.stdin.close()
            try:
                self.internet.wait(10)
            finally:
                self.internet.kill()
