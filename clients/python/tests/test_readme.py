"""Every block of the README runs, against a real server."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from served import Served

import cofferdam

README = Path(__file__).parent.parent / "README.md"


def blocks(served: Served) -> list[str]:
    """The blocks, with what stands here for what is the reader's own. Each of that is in them."""
    text = README.read_text()
    for theirs, ours in [
        ("npm test", "true"),
        ("vi notes", "read line; echo $line"),
        ('"make fix"', '"mkdir -p src && echo fixed >src/made"'),
        ("/srv/project", str(served.workspace)),
    ]:
        assert theirs in text, f"the README has no {theirs} any more"
        text = text.replace(theirs, ours)
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


class Readme(unittest.TestCase):
    def setUp(self) -> None:
        self.served = Served()
        self.addCleanup(self.served.close)

    def run_block(self, block: str, **known: Any) -> str:
        """What a block prints."""
        at_served = functools.partial(cofferdam.Client, self.served.url)
        said = io.StringIO()
        with mock.patch("cofferdam.Client", at_served), contextlib.redirect_stdout(said):
            exec(compile(block, str(README), "exec"), known)
        return said.getvalue()

    def test_each_block_runs(self) -> None:
        first, commands, layers = blocks(self.served)
        self.assertEqual(self.run_block(first), "hello\n")
        with cofferdam.Client(self.served.url) as client:
            with client.sandbox() as box:
                said = self.run_block(commands, client=client, box=box)
                self.assertTrue(said.startswith("input"), said)
                self.assertIn("hello", said)
            said = self.run_block(layers, client=client)
            self.assertIn("+fixed", said)


if __name__ == "__main__":
    unittest.main()
