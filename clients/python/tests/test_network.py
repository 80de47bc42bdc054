"""What a sandbox may reach, and what reaches it."""

from __future__ import annotations

import http.client
import time
import unittest
from urllib.parse import urlsplit

from served import Served

from cofferdam import Client, CofferdamError, Sandbox, models

# Whoever connects is accepted, and cut off once it is refused.
CONNECT = "import socket; assert socket.create_connection(('b.example.com', 443)).recv(1)"


def _waiting(box: Sandbox) -> models.PermissionReport:
    give_up = time.monotonic() + 60
    while not (found := box.network.approvals()):
        assert time.monotonic() < give_up
        time.sleep(0.02)
    return found[0]


class Networks(unittest.TestCase):
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        served = Served(
            "127.0.0.1:0",
            "--profile",
            "repo-write",
            "--egress",
            "*.example.com:443",
            "--ask",
            "60s",
        )
        cls.addClassCleanup(served.close)
        cls.client = Client(served.url)
        cls.addClassCleanup(cls.client.close)

    def test_rules_change_while_a_sandbox_lives(self) -> None:
        with self.client.sandbox() as box:
            first = box.network.show()
            self.assertEqual(first.allow, ["*.example.com:443"])
            narrow = box.network.set(["a.example.com:443"], ask_ms=0)
            self.assertEqual((narrow.allow, narrow.ask_ms), (["a.example.com:443"], 0))
            self.assertIn("b.example.com:443", box.network.allow("b.example.com:443").allow)
            last = box.network.deny("a.example.com:443")
            self.assertEqual(last.deny, ["a.example.com:443"])
            self.assertGreater(last.version, first.version)
            with self.assertRaises(CofferdamError):
                box.network.allow("*.com")

    def test_what_waits_is_answered_and_told_of(self) -> None:
        with self.client.sandbox() as box:
            box.network.set(["a.example.com:443"])
            exec = box.exec(["python3", "-c", CONNECT])
            waiting = _waiting(box)
            self.assertEqual((waiting.host, waiting.port), ("b.example.com", 443))
            box.network.answer(waiting.id, "deny")
            self.assertNotEqual(exec.wait().exit_code, 0)
            told = [one.decision for one in box.network.connections() if one.host == waiting.host]
            self.assertIn(models.ConnectionDecision.DENIED, told)
            self.assertGreaterEqual(box.metrics().connections.denied, 1)

    def test_a_port_has_an_address_until_it_is_closed(self) -> None:
        with self.client.sandbox() as box:
            box.files.write("index.html", "from inside")
            box.exec(["python3", "-m", "http.server", "3000", "--bind", "127.0.0.1"], detached=True)
            opened = box.ports.open(3000)
            self.assertEqual([one.url for one in box.ports.list()], [opened.url])
            self.assertEqual(_got(opened.url), "from inside")
            box.ports.close(3000)
            self.assertEqual(box.ports.list(), [])

    def test_a_proof_is_made_beside_it(self) -> None:
        with self.client.sandbox() as box:
            proof = box.proof()
            self.assertTrue(proof.checks)
            self.assertNotEqual(proof.overall.value, "Unavailable")


def _got(url: str) -> str:
    """What is there once somebody listens."""
    parts = urlsplit(url)
    give_up = time.monotonic() + 60
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", parts.port)
        connection.request("GET", "/", headers={"Host": parts.netloc})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status == 200:
            return text
        assert time.monotonic() < give_up, text
        time.sleep(0.05)
