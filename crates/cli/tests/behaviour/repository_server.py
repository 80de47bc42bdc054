"""Serves a directory to those who know the password. Writes what it was asked to a file."""

import base64
import functools
import http.server
import os
import sys
import time

directory, expected, log = sys.argv[1], sys.stdin.readline().strip(), sys.argv[2]


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        given = self.headers.get("Authorization", "")
        with open(log, "a") as file:
            file.write(f"{self.path} {given}\n")
        if self.path.startswith("/away/"):
            self.send_response(302)
            self.send_header("Location", self.path.replace("/away/", "/"))
            self.end_headers()
        elif given == "Basic " + base64.b64encode(expected.encode()).decode():
            while not os.path.exists(log + ".go"):
                time.sleep(0.01)
            super().do_GET()
        else:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="r"')
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            plain = base64.b64decode(given.removeprefix("Basic "))
            self.wfile.write(b"you said " + given.encode() + b" which is " + plain)

    def log_message(self, *words):
        pass


handler = functools.partial(Handler, directory=directory)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
print(server.server_address[1], flush=True)
server.serve_forever()
