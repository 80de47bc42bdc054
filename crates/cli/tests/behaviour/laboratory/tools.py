# Tools that people use, as they are, in a sandbox that may reach one host: what each fetches from there
# arrives, and from another host it does not. None of them knows of a gate.
import concurrent.futures, glob, hashlib, os, shutil, subprocess

from lab import call

# Of each: the programs that it needs, what it does with HOST, and what it then says.
FETCHING = {
    "curl": (["curl"], """
        curl -sS --cacert ca.pem https://HOST/ && curl -sS http://HOST/ && curl -sS -6 https://HOST/ --cacert ca.pem
    """, "REACHED HOST\nREACHED HOST\nREACHED HOST\n"),
    "curl-proxy": (["curl"], """
        for proxy in http://127.0.0.1:61002 socks5h://127.0.0.1:61002; do
            curl -sS -x $proxy --cacert ca.pem https://HOST/ && curl -sS -x $proxy http://HOST/ || exit 1
        done
    """, "REACHED HOST\n" * 4),
    "wget": (["wget"], """
        wget -qO- --tries=1 --ca-certificate=ca.pem https://HOST/ && wget -qO- --tries=1 http://HOST/
    """, "REACHED HOST\nREACHED HOST\n"),
    "git-https": (["git"], """
        export GIT_SSL_CAINFO=$PWD/ca.pem GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a.test
        export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a.test
        git clone -q https://HOST/git/thing.git PLACE && cat PLACE/README && cd PLACE &&
        head -c 3000000 /dev/urandom >big && git add big && git commit -qm big &&
        git push -q origin HEAD:refs/heads/pushed-PLACE && git fetch -q && git branch -r --list origin/pushed-PLACE &&
        git ls-remote -q http://HOST/git/thing.git main | cut -f2
    """, "REACHED\n  origin/pushed-PLACE\nrefs/heads/main\n"),
    "git-ssh": (["git", "ssh", "/usr/sbin/dropbear"], """
        chmod 600 key
        export GIT_SSH_COMMAND="ssh -F none -i $PWD/key -o BatchMode=yes -o UserKnownHostsFile=$PWD/known"
        git clone -q git@HOST:thing.git PLACE && cat PLACE/README
    """, "REACHED\n"),
}

PACKAGES = {
    "pip": (["/usr/bin/python3"], """
        export PIP_CERT=$PWD/ca.pem PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
        unset PIP_FIND_LINKS PIP_INDEX_URL
        /usr/bin/python3 WHEEL/pip install -q --retries 0 --target PLACE --index-url https://HOST/simple labthing >&2 &&
        PYTHONPATH=PLACE /usr/bin/python3 -c 'import labthing; print(labthing.said)'
    """, "REACHED\n"),
    "npm": (["npm", "node"], """
        mkdir PLACE && cd PLACE && echo '{"name": "a", "version": "1.0.0"}' >package.json
        export npm_config_cafile=$PWD/../ca.pem npm_config_fetch_retries=0
        npm install --silent --no-audit --no-fund --no-update-notifier --registry https://HOST/ labthing >&2 &&
        node -p 'require("labthing")'
    """, "REACHED\n"),
    "cargo": (["cargo", "rustc"], """
        mkdir -p PLACE/src PLACE/.cargo && cd PLACE && touch src/lib.rs
        printf '[package]\\nname = "a"\\nversion = "1.0.0"\\n[dependencies]\\nlabthing = "1"\\n' >Cargo.toml
        printf '[source.crates-io]\\nreplace-with = "lab"\\n[source.lab]\\nregistry = "sparse+https://HOST/index/"\\n' \\
            >.cargo/config.toml
        export CARGO_HTTP_CAINFO=$PWD/../ca.pem CARGO_NET_RETRY=0 CARGO_TERM_QUIET=true
        cargo fetch && cat "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/labthing-1.0.0/src/lib.rs
    """, "// REACHED\n"),
    "go": (["go"], """
        mkdir PLACE && cd PLACE && printf 'module a\\ngo 1.19\\nrequire lab.test/thing v1.0.0\\n' >go.mod
        export SSL_CERT_FILE=$PWD/../ca.pem GOPROXY=https://HOST GOSUMDB=off GOFLAGS='-mod=mod -modcacherw'
        export GOTOOLCHAIN=local
        go mod download && cat $(go env GOMODCACHE)/lab.test/thing@v1.0.0/thing.go
    """, "package thing // REACHED\n"),
    "apt": (["apt-get", "dpkg-deb"], """
        for way in http https; do
            at=$PWD/PLACE-$way && mkdir -p $at/lists/partial $at/archives/partial && touch $at/status
            echo "deb [trusted=yes] $way://HOST/apt ./" >$at/sources && cat >$at/config <<END
        Dir::Etc::sourcelist "$at/sources"; Dir::Etc::sourceparts "-"; Dir::State "$at"; Dir::State::status "$at/status";
        Dir::Cache "$at"; Dir::Cache::archives "$at/archives"; APT::Sandbox::User ""; APT::Update::Error-Mode "any";
        Acquire::Retries "0"; Acquire::https::CAInfo "$PWD/ca.pem"; Acquire::Languages "none";
END
            export APT_CONFIG=$at/config
            apt-get -q update >&2 && (cd $at && apt-get -q download labthing labother >&2 && ls *.deb) || exit 1
        done
    """, "labother_1.0_all.deb\nlabthing_1.0_all.deb\n" * 2),
}

LANGUAGES = {
    "node": (["node"], """
        NODE_EXTRA_CA_CERTS=$PWD/ca.pem node -e '
            fetch("https://HOST/").then((said) => said.text()).then((text) => process.stdout.write(text))
            .then(() => fetch("http://HOST/")).then((said) => said.text()).then((text) => process.stdout.write(text))
            .catch((error) => { console.error(error); process.exit(1); })'
    """, "REACHED HOST\nREACHED HOST\n"),
    "jvm": (["java", "keytool"], """
        java -Djavax.net.ssl.trustStore=trust.p12 -Djavax.net.ssl.trustStorePassword=laboratory Fetch.java https://HOST/
    """, "REACHED HOST\n200\n"),
    "python-requests": (["/usr/bin/python3", "requests"], """
        REQUESTS_CA_BUNDLE=$PWD/ca.pem /usr/bin/python3 -c '
import requests
with requests.Session() as session:
    print(session.get("https://HOST/").text + session.get("http://HOST/").text, end="")'
    """, "REACHED HOST\nREACHED HOST\n"),
    "python-aiohttp": (["/usr/bin/python3", "aiohttp"], """
        SSL_CERT_FILE=$PWD/ca.pem /usr/bin/python3 -c '
import aiohttp, asyncio
async def get():
    async with aiohttp.ClientSession() as session:
        for address in ("https://HOST/", "http://HOST/"):
            async with session.get(address) as said:
                print(await said.text(), end="")
asyncio.run(get())'
    """, "REACHED HOST\nREACHED HOST\n"),
    "psql": (["psql"], """
        psql "host=HOST user=a dbname=b sslmode=disable" -Atc 'select 1' &&
        psql "host=HOST user=a dbname=b sslmode=verify-full sslrootcert=ca.pem" -Atc 'select 1'
    """, "REACHED\nREACHED\n"),
}

# Those that honour a proxy, told of one: what a kernel that cannot redirect leaves.
PROXIES = """
        for name in http_proxy https_proxy HTTP_PROXY HTTPS_PROXY; do export $name=http://127.0.0.1:61002; done
"""
HONOURING = ["wget", "git-https", "pip", "npm", "cargo", "go", "apt", "python-requests"]
EVERY = {**FETCHING, **PACKAGES, **LANGUAGES}
# A proxy is told the port with the name, which a question for the name alone does not have.
PROXIED = {name: (needs, PROXIES + script, wanted, "denied: evil.test:" + ("80" if name == "apt" else "443"))
           for name, (needs, script, wanted) in EVERY.items() if name in HONOURING}

FETCH_JAVA = """
import java.net.URI;
import java.net.http.*;

public class Fetch {
    public static void main(String[] words) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(words[0])).build();
        System.out.print(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
        System.out.println(((java.net.HttpURLConnection) URI.create(words[0]).toURL().openConnection()).getResponseCode());
    }
}
"""


def has(lab, need):
    if need in ("requests", "aiohttp"):
        return lab.bare("/usr/bin/python3", "-c", f"import {need}").returncode == 0
    if need == "go" or need in ("cargo", "rustc", "java"):
        # What stands for it may have nothing behind it.
        words = [need, "version"] if need == "go" else [need, "--version"]
        return shutil.which(need) is not None and lab.bare(*words).returncode == 0
    return shutil.which(need) is not None


def repository(lab):
    bare, work = os.path.join(lab.base, "remote", "thing.git"), os.path.join(lab.base, "work")
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": lab.base}
    for name in ("AUTHOR", "COMMITTER"):
        environment.update({f"GIT_{name}_NAME": "a", f"GIT_{name}_EMAIL": "a@a.test"})
    call("git", "init", "-q", "-b", "main", "--bare", bare, env=environment)
    call("git", "init", "-q", "-b", "main", work, env=environment)
    with open(os.path.join(work, "README"), "w") as file:
        file.write("REACHED\n")
    call("git", "-C", work, "add", ".", env=environment)
    call("git", "-C", work, "commit", "-qm", "first", env=environment)
    call("git", "-C", work, "push", "-q", bare, "main", env=environment)


def keys(lab):
    if not has(lab, "/usr/sbin/dropbear"):
        return
    ours, theirs = os.path.join(lab.base, "key"), os.path.join(lab.base, "host_key")
    # Not by ssh-keygen, which wants whoever calls it to be on the list of users.
    public = {}
    for key in (ours, theirs):
        made = call("dropbearkey", "-t", "ed25519", "-f", key)
        public[key] = next(line for line in made.splitlines() if line.startswith("ssh-ed25519"))
    call("dropbearconvert", "dropbear", "openssh", ours, os.path.join(lab.workspace, "key"))
    with open(os.path.join(lab.workspace, "known"), "w") as file:
        file.write(f"*.test {public[theirs]}\n")
    home = os.path.join(lab.base, "remote", ".ssh")
    os.makedirs(home, 0o700)
    with open(os.path.join(home, "authorized_keys"), "w") as file:
        file.write(public[ours] + "\n")


def mirror(lab):
    if not has(lab, "dpkg-deb"):
        return
    place = os.path.join(lab.base, "apt")
    os.mkdir(place)
    with open(os.path.join(place, "Packages"), "w") as packages:
        for name in ("labthing", "labother"):
            control = (f"Package: {name}\nVersion: 1.0\nArchitecture: all\n"
                       "Maintainer: Nobody <nobody@example.com>\nDescription: a thing\n")
            tree = os.path.join(lab.base, name)
            os.makedirs(os.path.join(tree, "DEBIAN"), 0o755)
            with open(os.path.join(tree, "DEBIAN/control"), "w") as file:
                file.write(control)
            deb = os.path.join(place, f"{name}_1.0_all.deb")
            call("dpkg-deb", "--root-owner-group", "-b", tree, deb)
            with open(deb, "rb") as file:
                data = file.read()
            packages.write(f"{control}Filename: ./{name}_1.0_all.deb\nSize: {len(data)}\n"
                           f"SHA256: {hashlib.sha256(data).hexdigest()}\n\n")


def prepare(lab):
    """What the tools find: on the servers, and in the workspace."""
    os.makedirs(os.path.join(lab.base, "remote"))
    if has(lab, "git"):
        repository(lab)
    keys(lab)
    mirror(lab)
    with open(os.path.join(lab.workspace, "Fetch.java"), "w") as file:
        file.write(FETCH_JAVA)
    if has(lab, "keytool"):
        call("keytool", "-importcert", "-noprompt", "-alias", "lab", "-file", lab.trust, "-storetype", "PKCS12",
             "-keystore", os.path.join(lab.workspace, "trust.p12"), "-storepass", "laboratory")


def pip():
    """The package of pip that Python carries with it, which runs as it is."""
    places = ("/usr/share/python-wheels", "/usr/lib/python3/dist-packages/ensurepip/_bundled",
              "/usr/lib/python3*/ensurepip/_bundled")
    found = [path for place in places for path in glob.glob(f"{place}/pip-*.whl")]
    return found[0] if found else None


def play(lab, name, needs, script, wanted, told="denied: evil.test"):
    missing = [need for need in needs if not has(lab, need)]
    if name == "pip" and not pip():
        missing = ["pip"]
    if missing:
        print(f"skipped: tool-{name}: {' and '.join(missing)} cannot be used here")
        return
    host = name.split("-")[0] + ".test"
    # Each runs alone: what one of them denies is not taken for the other's. And in a workspace of its own: a
    # repository that one makes is a workspace's to protect for the next.
    texts, room = {}, lab.room(name)
    for arm, where in (("allowed", host), ("denied", "evil.test")):
        text = script.replace("HOST", where).replace("PLACE", f"{name}-{arm}").replace("WHEEL", pip() or "")
        texts[where] = lab.inside([host], "sh", "-c", text, at=room)
    good, bad = texts[host], texts["evil.test"]
    wanted = wanted.replace("HOST", host).replace("PLACE", f"{name}-allowed")
    assert (good.returncode, good.stdout) == (0, wanted), (name, good)
    assert ": denied: " not in good.stderr, (name, good)
    assert bad.returncode != 0 and "REACHED" not in bad.stdout, (name, bad)
    assert told in bad.stderr and "--egress evil.test" in bad.stderr, (name, bad)


def scene(tools):
    def run(lab):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            playing = {name: pool.submit(play, lab, name, *tool) for name, tool in tools.items()}
        failed = {name: one.exception() for name, one in playing.items() if one.exception()}
        assert not failed, "\n".join(f"{name}: {why}" for name, why in failed.items())
        lab.nothing_of("evil.test")

    return run
