"""Messages of a WebSocket as bytes, the client's side of RFC 6455. Connections are elsewhere."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_CONTINUED = 0
#: The longest message that is taken in.
MAX_MESSAGE_BYTES = 4 << 20
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class BrokenFrames(Exception):
    """What came is no WebSocket's."""


def fresh_key() -> str:
    """A key for the request that asks for a WebSocket."""
    return base64.b64encode(os.urandom(16)).decode()


def answer_to(key: str) -> str:
    """What a server answers to a key."""
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()


def frame(kind: int, data: bytes) -> bytes:
    """A whole message."""
    length = len(data)
    if length < 126:
        head = bytes([0x80 | kind, 0x80 | length])
    elif length < 1 << 16:
        head = bytes([0x80 | kind, 0x80 | 126]) + length.to_bytes(2)
    else:
        head = bytes([0x80 | kind, 0x80 | 127]) + length.to_bytes(8)
    mask = os.urandom(4)
    return head + mask + _masked(data, mask)


def _masked(data: bytes, mask: bytes) -> bytes:
    length = len(data)
    long_mask = (mask * (length // 4 + 1))[:length]
    return (int.from_bytes(data) ^ int.from_bytes(long_mask)).to_bytes(length)


class FrameReader:
    """Makes messages of bytes, however those are cut."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._kind = _CONTINUED
        self._begun = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The messages that are whole with this, each with its kind."""
        self._rest += data
        while (found := self._next()) is not None:
            is_last, kind, piece = found
            if kind >= CLOSE:
                yield kind, piece
                continue
            if (kind == _CONTINUED) == (self._kind == _CONTINUED):
                raise BrokenFrames("a message begins within another")
            self._kind = self._kind or kind
            self._begun += piece
            if len(self._begun) > MAX_MESSAGE_BYTES:
                raise BrokenFrames(f"a message has more than {MAX_MESSAGE_BYTES} bytes")
            if is_last:
                kind, whole = self._kind, bytes(self._begun)
                self._kind, self._begun = _CONTINUED, bytearray()
                yield kind, whole

    def _next(self) -> tuple[bool, int, bytes] | None:
        rest = self._rest
        if len(rest) < 2:
            return None
        if rest[0] & 0x70 or rest[1] & 0x80:
            raise BrokenFrames("a frame is masked, or of a form that nobody asked for")
        length, head = rest[1], 2
        if length >= 126:
            head = 4 if length == 126 else 10
            if len(rest) < head:
                return None
            length = int.from_bytes(rest[2:head])
        if length > MAX_MESSAGE_BYTES:
            raise BrokenFrames(f"a frame has more than {MAX_MESSAGE_BYTES} bytes")
        if len(rest) < head + length:
            return None
        found = bool(rest[0] & 0x80), rest[0] & 0x0F, bytes(rest[head : head + length])
        del rest[: head + length]
        return found
