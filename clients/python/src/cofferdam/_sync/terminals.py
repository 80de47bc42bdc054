# Made from _async/terminals.py by blocking.py; change that one.
"""Terminals: a command that somebody sits before, over a WebSocket."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpcore
import httpx

from .. import _frames as frames
from .. import models
from .._reading import reading
from .._values import Bytes, content_of, signal_of
from ..errors import CofferdamError, ServerError, UnavailableError, error_of
from .execs import Exec
from .wire import CONNECT_S, MOST_EMPTY_STREAMS, SILENCE_S, Wire

#: How much is read at once.
_PIECE_BYTES = 64 << 10
#: What stands before output: the stream, and the place of its first byte.
_HEAD_BYTES = 9
_BROKEN = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError)


class Terminal:
    """The terminal of a command. The command goes on when this is closed, and another one can be opened.

    Iterating over it gives what the command writes, from `offset` on, to its end. Where the connection
    breaks it is made anew, from the place where it was: nothing is missed and nothing is told twice, but
    for what is not kept any more.
    """

    def __init__(self, wire: Wire, sandbox: str, exec: Exec, offset: int = 0) -> None:
        self._wire = wire
        self._url = (
            f"/v1/sandboxes/{quote(sandbox, safe='')}/execs/{quote(exec.id, safe='')}/attach"
        )
        #: The command. Its report has the end, once the end came.
        self.exec = exec
        #: The place of the next byte: whoever comes back another day begins there.
        self.offset = offset
        self._response: httpx.Response | None = None
        self._stream: Any = None
        self._messages: deque[tuple[int, bytes]] = deque()

    def open(self) -> None:
        """Connects. Iterating and sending do it too."""
        self.close()
        key = frames.fresh_key()
        headers = {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": key,
        }
        request = self._wire.http.build_request(
            "GET",
            self._url,
            params={"from": self.offset},
            headers=headers,
            timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
        )
        response = self._wire.http.send(request, stream=True)
        self._response = response
        is_accepted = response.headers.get("sec-websocket-accept") == frames.answer_to(key)
        if response.status_code != 101 or not is_accepted:
            self.close()
            raise ServerError(
                "the server does not talk over a WebSocket",
                kind="protocol",
                hint="Check the proxy in front of the server, if there is one.",
            )
        self._stream = response.extensions["network_stream"]
        self._reader = frames.FrameReader()
        self._messages.clear()

    def close(self) -> None:
        """Leaves the command, which goes on."""
        response, self._response, self._stream = self._response, None, None
        if response is not None:
            response.close()

    def __enter__(self) -> Terminal:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def send(self, data: Bytes | str) -> None:
        """Types something. What was on its way when a connection breaks may be lost."""
        self._say(frames.BINARY, content_of(data))

    def resize(self, rows: int, columns: int) -> None:
        """Gives it a new size."""
        self._ask({"type": "resize", "rows": rows, "columns": columns})

    def signal(self, signal: int | str) -> None:
        """Sends the command a signal, by its number or its name."""
        named = signal_of(signal)
        self._ask({"type": "signal", "signal": named})

    def __iter__(self) -> Iterator[bytes]:
        empty = 0
        while True:
            stream = self._stream
            try:
                if stream is None:
                    empty += 1
                    self.open()
                    stream = self._stream
                kind, message = self._next()
            except (frames.BrokenFrames, *_BROKEN) as error:
                self._drop(stream)
                if empty >= MOST_EMPTY_STREAMS:
                    raise _broken(error) from error
                continue
            if kind == frames.BINARY:
                empty = 0
                self.offset = int.from_bytes(message[1:_HEAD_BYTES]) + len(message) - _HEAD_BYTES
                yield message[_HEAD_BYTES:]
            elif self._is_over(message):
                self.close()
                return

    def _is_over(self, message: bytes) -> bool:
        with reading():
            told = json.loads(message)
            if told["type"] == "problem":
                raise error_of(told["problem"], None, None)
            if told["type"] == "dropped":
                self.offset = told["to"]
            if told["type"] in ("attached", "exited"):
                self.exec.report = models.ExecReport.from_dict(told["exec"])
            return bool(told["type"] == "exited")

    def _next(self) -> tuple[int, bytes]:
        while True:
            while self._messages:
                kind, message = self._messages.popleft()
                if kind == frames.PING:
                    self._pong(message)
                elif kind == frames.CLOSE:
                    raise frames.BrokenFrames("the server hung up")
                elif kind in (frames.BINARY, frames.TEXT):
                    return kind, message
            stream = self._stream
            data = stream and stream.read(_PIECE_BYTES, timeout=SILENCE_S)
            if not data or self._stream is not stream:
                raise frames.BrokenFrames("the server hung up")
            self._messages.extend(self._reader.feed(data))

    def _ask(self, asked: dict[str, Any]) -> None:
        self._say(frames.TEXT, json.dumps(asked).encode())

    def _say(self, kind: int, data: bytes) -> None:
        if self._stream is None:
            self.open()
        stream = self._stream
        try:
            stream.write(frames.frame(kind, data), timeout=SILENCE_S)
        except _BROKEN as error:
            # The next one connects anew.
            self._drop(stream)
            raise _broken(error) from error

    def _pong(self, message: bytes) -> None:
        try:
            self._say(frames.PONG, message)
        except UnavailableError as error:
            raise frames.BrokenFrames("nobody hears that this is there") from error

    def _drop(self, stream: Any) -> None:
        # Somebody may have connected anew meanwhile.
        if self._stream is stream:
            self.close()


def _broken(error: Exception) -> CofferdamError:
    return UnavailableError(
        f"the connection to the command broke: {error or type(error).__name__}",
        kind="unavailable",
        hint="Open its terminal again from the offset where it was.",
        retryable=True,
    )
