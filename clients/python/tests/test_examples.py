"""Every example runs, and prints what it says at its top."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

from served import Served

EXAMPLES = Path(__file__).parent.parent / "examples"


class Examples(unittest.TestCase):
    def test_each_prints_what_it_says(self) -> None:
        served = Served()
        self.addCleanup(served.close)
        examples = sorted(EXAMPLES.glob("*.py"))
        self.assertGreaterEqual(len(examples), 3)
        for example in examples:
            with self.subTest(example.name):
                _, _, says = (example.read_text().split('"""')[1]).partition("Prints:\n\n")
                words = [sys.executable, "-B", str(example), served.url, str(served.workspace)]
                done = subprocess.run(words, capture_output=True, text=True, timeout=120)
                self.assertEqual(done.stderr, "")
                expected = "".join(
                    line.removeprefix("    ") + "\n" for line in says.splitlines() if line
                )
                self.assertEqual(done.stdout, expected)


if __name__ == "__main__":
    unittest.main()
