# Attacks on the way out: each works on the host, and from inside not a packet of it leaves.
import json, os, shutil

import naive
from lab import HERE
from names import LEADS, RESOLVER, SERVER, SERVER6

RULES = [f"{name}.test" for name in (
    "ok", "both", "six", "alias", "slow", "long", "listed", "mixed", "silent", "ring", "nobody", "hidden", "inner",
)] + ["*.rebind.test", "*.leads.test"]
OPEN = {"ok.test", "both.test", "six.test", "alias.test", "slow.test", "long.test", "listed.test", "mixed.test"}


def told(done):
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def script(lab):
    path = os.path.join(lab.workspace, "inside.py")
    shutil.copy(os.path.join(HERE, "inside.py"), path)
    return ["/usr/bin/python3", path]


def work_here(lab, what, *words):
    """The control: outside of a sandbox each of them works."""
    said = told(lab.bare(*script(lab), what, *words))
    failed = {name: heard for name, heard in said.items() if "REACHED" not in heard}
    assert not failed, f"unconfined these do not work: {failed}"


def held(lab, rules, what, *words):
    """From inside none of them works, and nobody saw anything but what the rules allow."""
    lab.seen()
    said = told(lab.inside(rules, *script(lab), what, *words))
    worked = {name: heard for name, heard in said.items() if "REACHED" in heard}
    assert not worked, f"from inside these work: {worked}"
    strange = [one for one in lab.seen() if not expected(one)]
    assert not strange, f"{what}: {strange}"
    return said


def expected(one):
    """What the gate itself sends for what may be reached, and no more."""
    to = one.get("to")
    if "asked" in one:
        name = one["asked"]
        allowed = name in RULES or name.endswith((".rebind.test", ".leads.test")) and not name.startswith("c2vj")
        return to == RESOLVER and allowed and one["kind"] in (1, 28)
    if "http" in one:
        name = one["http"].split(":")[0]
        return to in (SERVER, SERVER6) and (name in OPEN or name.endswith(".rebind.test")) \
            and one["tls"] in (None, name)
    if one.get("packet") == "tcp":
        return (to in (SERVER, SERVER6) and one["port"] in (25, 80, 443, 8080)) or (to, one["port"]) == (RESOLVER, 53)
    return one == {"greeted": to} or one == {"packet": "udp", "to": RESOLVER, "port": 53}


def scene(lab):
    naive.serve()
    work_here(lab, "attacks")
    work_here(lab, "names", *LEADS)
    work_here(lab, "addresses", *LEADS)
    # The allowed neighbours work from inside, with the same rules.
    said = told(lab.inside(RULES, *script(lab), "neighbours"))
    failed = {name: heard for name, heard in said.items() if "REACHED" not in heard}
    assert not failed, f"from inside these do not work: {failed}"
    said = held(lab, RULES, "attacks")
    for name in ("fronting by Host", "a name that changes its address", "a redirect to metadata"):
        assert "403" in said[name], (name, said[name])
    held(lab, RULES, "names", *LEADS)
    held(lab, RULES, "nowhere")
    # Whatever is public may be reached, and none of these is.
    held(lab, ["*"], "addresses", *LEADS)
    assert "REACHED" in told(lab.inside(["*"], *script(lab), "addresses", SERVER))[SERVER], "control"
    held(lab, [SERVER], "addresses", *LEADS)
