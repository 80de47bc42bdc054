"""A registry on this machine that serves one OCI layout.

Arguments: the layout, and any of `basic=NAME:PASSWORD`, `tls=CERTIFICATE,KEY`, `slow` (layers come in
pieces with pauses), `stalls` (a layer stops in the middle, and its rest comes to who asks for that),
`log=FILE` (a line for each request, with what it says of who asks). It prints its port and serves until
it is killed.
"""

import base64
import http.server
import json
import ssl
import sys
import time

layout = sys.argv[1]
options = dict(word.partition("=")[::2] for word in sys.argv[2:])
with open(f"{layout}/index.json") as file:
    manifest = json.load(file)["manifests"][0]
wanted = "Basic " + base64.b64encode(options.get("basic", "").encode()).decode()


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if "stalls" in options and "/blobs/" in self.path and len(body) >= 300_000 and status == 200:
            self.wfile.write(body[:150_000])
            time.sleep(300)
            self.close_connection = True
            return
        if "slow" not in options or "/blobs/" not in self.path or len(body) < 100_000:
            self.wfile.write(body)
            return
        for start in range(0, len(body), 50_000):
            self.wfile.write(body[start:start + 50_000])
            time.sleep(0.2)

    def do_GET(self):
        if "log" in options:
            with open(options["log"], "a") as log:
                log.write(f"{self.path} {self.headers.get('Range', '-')}\n")
        if "basic" in options and self.headers.get("Authorization") != wanted:
            return self.answer(401, b"", WWW_Authenticate='Basic realm="here"')
        if self.path == "/v2/":
            return self.answer(200, b"{}")
        kind, _, what = self.path.rpartition("/")
        if kind.endswith("/manifests") and what in ("v1", manifest["digest"]):
            what = manifest["digest"]
        elif not kind.endswith("/blobs"):
            return self.answer(404, b"{}")
        try:
            with open(f"{layout}/blobs/sha256/{what.removeprefix('sha256:')}", "rb") as file:
                body = file.read()
        except OSError:
            return self.answer(404, b"{}")
        part = self.headers.get("Range")
        if part is None:
            return self.answer(200, body)
        start = int(part.removeprefix("bytes=").removesuffix("-"))
        place = f"bytes {start}-{len(body) - 1}/{len(body)}"
        self.answer(206, body[start:], Content_Range=place)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Who hangs up has a reason."""


server = Server(("127.0.0.1", 0), Registry)
if "tls" in options:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*options["tls"].split(","))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
