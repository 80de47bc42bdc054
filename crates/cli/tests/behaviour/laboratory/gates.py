# The gate of a sandbox: what its proxy holds against, and who reaches it.
import array, json, os, shutil, socket, subprocess

from attacks import told
from lab import HERE, rights_of_nobody

ALLOWED = ["ok.test:80", "*.leads.test"]


def copied(lab, name):
    path = os.path.join(lab.workspace, name)
    shutil.copy(os.path.join(HERE, name), path)
    return ["/usr/bin/python3", path]


def refused(said):
    """Neither a page nor a tunnel: an answer of HTTP that says no, one of SOCKS, or none."""
    codes = ("HTTP/1.1 400", "HTTP/1.1 403", "HTTP/1.1 502")
    if said.startswith("HTTP/"):
        return said.startswith(codes)
    socks_refuses = said.startswith("\5\xff") or said[:2] == "\5\0" and (len(said) == 2 or said[3] != "\0")
    return said == "" or said.startswith(" (") or socks_refuses


def judged(lab, said):
    controls = {name: said.pop(name) for name in list(said) if name.startswith("control: ")}
    assert len(said) == 65 and len(controls) == 3, (len(said), len(controls))
    failed = {name: heard for name, heard in controls.items() if "REACHED ok.test" not in heard}
    assert not failed, f"these should be allowed: {failed}"
    through = {name: heard for name, heard in said.items() if "REACHED" in heard or not refused(heard)}
    assert not through, f"these were not refused: {through}"
    seen = lab.seen()
    # Of the attacks nobody heard a word: the requests are those of the controls.
    requests = [one for one in seen if "http" in one]
    assert len(requests) == 3 and all(one["http"] == "ok.test" for one in requests), requests
    strange = [one for one in seen if "host" in one or one.get("packet") == "tcp"
               and (one["to"], one["port"]) not in (("25.1.0.1", 80), ("25.2.0.53", 53))]
    assert not strange, strange
    assert not any("evil" in one.get("asked", "") for one in seen), seen


def proxy(lab):
    words = copied(lab, "battery.py")
    lab.seen()
    judged(lab, told(lab.inside(ALLOWED, *words)))
    # The same from outside, against a gate that stands alone.
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    control, theirs = socket.socketpair()
    log = open(os.path.join(lab.base, "gate.log"), "a")
    gate = subprocess.Popen([*rights_of_nobody(), lab.program, "gate"], pass_fds={theirs.fileno(), 3},
                            preexec_fn=lambda: os.dup2(theirs.fileno(), 3), env={"PATH": os.environ["PATH"]})
    policy = {"version": 1, "allow": ALLOWED, "deny": [], "host_ports": [], "ask_ms": 0}
    order = {"sandbox": "a", "policy": policy, "resolvers": [], "log_bytes": 1 << 20, "descriptors": ["proxy", "log"]}
    rights = array.array("i", [listener.fileno(), log.fileno()])
    control.sendmsg([json.dumps({"order": order}).encode() + b"\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    try:
        judged(lab, told(lab.bare(*words, str(listener.getsockname()[1]))))
    finally:
        theirs.close()
        control.close()
        gate.wait(20)


def apart(lab):
    try:
        two_gates(lab)
    finally:
        gone = lab.cofferdam("rm", "one", "other")
    assert gone.returncode == 0, gone


def two_gates(lab):
    words = copied(lab, "neighbour.py")
    for name, rule in (("one", "ok.test"), ("other", "evil.test")):
        made = lab.cofferdam("create", "--name", name, "--profile", "repo-write", "--egress", rule)
        assert made.returncode == 0, made
    found = {}
    for session, name in (("one", "ok.test"), ("other", "evil.test"), ("one", "evil.test"), ("other", "ok.test")):
        said = told(lab.cofferdam("exec", session, "--", *words, name))
        assert said["gates"] == [], said
        found[session, name] = [where for where, heard in said["heard"].items() if "REACHED" in heard]
    # Each has its own, where it should be, and nobody has the other's.
    assert "127.0.0.1 61002" in found["one", "ok.test"], found
    assert "127.0.0.1 61002" in found["other", "evil.test"], found
    assert found["one", "evil.test"] == found["other", "ok.test"] == [], found
    for session, name in (("one", "ok.test"), ("other", "evil.test")):
        listed = json.loads(lab.cofferdam("audit", session, "--json").stdout)["connections"]
        reached = {one["host"] for one in listed if one["decision"] == "allowed"}
        assert reached == {name}, (session, reached)
