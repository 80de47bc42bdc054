# The web of the laboratory: one server whatever its name, which says by what name it was asked, and the
# places where tools fetch their things.
import base64, hashlib, http.server, io, json, os, subprocess, tarfile, zipfile

GREETING = "REACHED {}"


class Shops:
    def __init__(self, base, witness):
        self.base, self.witness = base, witness
        self.wheel, self.npm, self.crate, self.module = wheel(), tarball(), crate(), module()

    def serve(self, stream, to, port, name):
        shops = self

        class Page(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 20

            def log_message(self, *_):
                pass

            def version_string(self):
                return "laboratory"

            def body(self):
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = b""
                while length := int(self.rfile.readline(), 16):
                    body += self.rfile.read(length)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def any(self):
                host = (self.headers.get("Host") or "").lower()
                shops.witness({"http": host, "tls": name, "to": to, "port": port, "path": self.path})
                body = self.body()
                status, headers, said = shops.page(self, host, body)
                self.send_response(status)
                for key, value in {"Content-Length": str(len(said)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(said)

            do_GET = do_POST = do_HEAD = do_PUT = any

        Page(stream, (to, port), None)
        stream.close()

    def page(self, request, host, body):
        path = request.path.split("?")[0].replace("/./", "/")
        if path.startswith("http://"):
            host, _, path = path[7:].partition("/")
            path = "/" + path
        where = host.split(":")[0]
        if path.startswith("/git/"):
            return self.git(request, path, body)
        if path == "/to-metadata":
            return 302, {"Location": "http://169.254.169.254/latest/meta-data/secret"}, b""
        if path == "/to-private":
            return 302, {"Location": "http://10.0.0.1/"}, b""
        if path == "/to-loopback":
            return 302, {"Location": "http://127.0.0.1:8077/"}, b""
        if path == "/to-evil":
            return 302, {"Location": "https://evil.test/"}, b""
        known = {**self.pypi(where), **self.packages(where), **self.crates(where), **self.modules(),
                 **self.debs()}
        if path in known:
            kind, said = known[path]
            return 200, {"Content-Type": kind}, said
        if path in ("/", "/latest/meta-data/secret"):
            return 200, {"Content-Type": "text/plain"}, (GREETING.format(host) + "\n").encode()
        return 404, {}, b"there is no such page\n"

    def git(self, request, path, body):
        repository = os.path.join(self.base, "remote")
        query = request.path.partition("?")[2]
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": repository, "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path[4:], "QUERY_STRING": query, "REQUEST_METHOD": request.command,
            "CONTENT_TYPE": request.headers.get("Content-Type") or "", "REMOTE_USER": "somebody",
            "CONTENT_LENGTH": str(len(body)), "GIT_CONFIG_GLOBAL": "/dev/null",
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding") or "",
            "GIT_PROTOCOL": request.headers.get("Git-Protocol") or "",
            "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "http.receivepack",
            "GIT_CONFIG_VALUE_0": "true", "GIT_CONFIG_KEY_1": "safe.directory",
            "GIT_CONFIG_VALUE_1": "*",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True)
        head, _, said = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(headers.pop("Status", "200").split()[0])
        return status, {**headers, "Content-Length": str(len(said))}, said

    def pypi(self, host):
        digest = hashlib.sha256(self.wheel).hexdigest()
        name = "labthing-1.0-py3-none-any.whl"
        page = f'<a href="/files/{name}#sha256={digest}">{name}</a>'
        return {"/simple/labthing/": ("text/html", page.encode()),
                f"/files/{name}": ("application/octet-stream", self.wheel)}

    def packages(self, host):
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(self.npm).digest()).decode()
        address = f"https://{host}/labthing/-/labthing-1.0.0.tgz"
        version = {"name": "labthing", "version": "1.0.0",
                   "dist": {"tarball": address, "integrity": integrity}}
        about = {"name": "labthing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        return {"/labthing": ("application/json", json.dumps(about).encode()),
                "/labthing/-/labthing-1.0.0.tgz": ("application/octet-stream", self.npm)}

    def crates(self, host):
        line = {"name": "labthing", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
                "cksum": hashlib.sha256(self.crate).hexdigest()}
        config = {"dl": f"https://{host}/crates/{{crate}}/{{version}}/download"}
        return {"/index/config.json": ("application/json", json.dumps(config).encode()),
                "/index/la/bt/labthing": ("text/plain", json.dumps(line).encode() + b"\n"),
                "/crates/labthing/1.0.0/download": ("application/octet-stream", self.crate)}

    def modules(self):
        place = "/lab.test/thing/@v/"
        info = json.dumps({"Version": "v1.0.0", "Time": "2020-01-01T00:00:00Z"}).encode()
        return {place + "list": ("text/plain", b"v1.0.0\n"), place + "v1.0.0.info": ("application/json", info),
                place + "v1.0.0.mod": ("text/plain", b"module lab.test/thing\n"),
                place + "v1.0.0.zip": ("application/zip", self.module)}

    def debs(self):
        place = os.path.join(self.base, "apt")
        if not os.path.isdir(place):
            return {}
        known = {}
        for name in os.listdir(place):
            with open(os.path.join(place, name), "rb") as file:
                known[f"/apt/{name}"] = ("application/octet-stream", file.read())
        return known


def zipped(files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


def packed(files):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def wheel():
    about = "labthing-1.0.dist-info"
    return zipped({
        "labthing.py": "said = 'REACHED'\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: labthing\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "labthing.py,,\n",
    })


def tarball():
    return packed({
        "package/package.json": json.dumps({"name": "labthing", "version": "1.0.0", "main": "index.js"}),
        "package/index.js": "module.exports = 'REACHED';\n",
    })


def crate():
    manifest = '[package]\nname = "labthing"\nversion = "1.0.0"\nedition = "2021"\n'
    return packed({"labthing-1.0.0/Cargo.toml": manifest, "labthing-1.0.0/src/lib.rs": "// REACHED\n"})


def module():
    place = "lab.test/thing@v1.0.0/"
    return zipped({place + "go.mod": "module lab.test/thing\n", place + "thing.go": "package thing // REACHED\n"})
