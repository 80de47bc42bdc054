"""Makes the blocking client from the asynchronous one: the same words without `await`.

python blocking.py src/cofferdam/_async src/cofferdam/_sync
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HEAD = "# Made from {name} by blocking.py; change that one.\n"
WORDS = [
    (r"^from \.\._seating import .*\n", ""),
    (r"\bAsyncSeating\[(\w+)\]", r"\1"),
    (r"\bAsyncSeating\((.*)\)", r"\1"),
    (r"^import asyncio\n", ""),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bawait ", ""),
    (r"^(from collections\.abc import .*)\bAwaitable, ", r"\1"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\basyncio_detailed\b", "sync_detailed"),
    (r"\b(set|get)_async_httpx_client\b", r"\1_httpx_client"),
    (r"\bhandle_async_request\b", "handle_request"),
    (r"\bhttpx\.Async(BaseTransport|HTTPTransport|Client)\b", r"httpx.\1"),
    (r"\bAsyncByteStream\b", "SyncByteStream"),
    (r"\b(_?)Async(Iterator|Iterable)\b", r"\1\2"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\baread\b", "read"),
    (r"\baclose\b", "close"),
    (r"\b__a(enter|exit|iter)__\b", r"__\1__"),
    (r"for asyncio\b", "that blocks"),
    (r"\b(_?)Async([A-Z])", r"\1\2"),
]


def blocking(text: str) -> str:
    """The blocking form of a module."""
    for pattern, words in WORDS:
        text = re.sub(pattern, words, text, flags=re.MULTILINE)
    return text


def main(source: Path, target: Path) -> None:
    """Writes a package anew."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.py")):
        head = HEAD.format(name=f"{source.name}/{path.name}")
        (target / path.name).write_text(head + blocking(path.read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
