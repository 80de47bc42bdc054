"""A server for tests: the program that TEST_COFFERDAM_BIN names, with a state of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAM = os.environ.get("TEST_COFFERDAM_BIN", "cofferdam")
SOON_S = 60.0


class Served:
    """A server with a workspace. It ends with its sandboxes."""

    def __init__(self, listen: str = "127.0.0.1:0", *options: str) -> None:
        self.options = options
        self.base = Path(tempfile.mkdtemp(prefix="cofferdam-python-", dir="/tmp"))
        self.workspace = self.base / "workspace"
        self.workspace.mkdir()
        # Long before the first layer, so that it is no edit since.
        (self.workspace / "kept").write_text("old\n")
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith("COFFERDAM_")
        }
        self.env = {**kept, "COFFERDAM_HOME": str(self.base / "state")}
        self.url = ""
        self.start(listen.replace("BASE", str(self.base)))

    def start(self, listen: str) -> None:
        """Starts the server, and waits until it listens."""
        log = self.base / "log"
        allowed = ["--allow-workspace", str(self.workspace), *self.options]
        words = [PROGRAM, "serve", "--listen", listen, *allowed]
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                words, env=self.env, cwd=self.workspace, stdin=subprocess.DEVNULL, stderr=out
            )
        give_up = time.monotonic() + SOON_S
        while "listening on " not in (said := log.read_text()):
            assert self.process.poll() is None, said
            assert time.monotonic() < give_up, said
            time.sleep(0.01)
        self.url = said.split("listening on ")[1].split()[0]

    def kill(self) -> None:
        """Kills it as a crash would."""
        self.process.kill()
        self.process.wait()

    def again(self) -> None:
        """Starts one where it was."""
        self.start(self.url.removeprefix("http://"))

    def say(self, *words: str) -> str:
        """What the command line says."""
        done = subprocess.run(
            [PROGRAM, *words], env=self.env, cwd=self.workspace, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def close(self) -> None:
        """Ends it and all that it made."""
        self.process.terminate()
        self.process.wait()
        listed = self.say("ls", "--json")
        ids = [session["id"] for session in json.loads(listed)["sessions"]]
        if ids:
            self.say("rm", *ids)
        shutil.rmtree(self.base)
