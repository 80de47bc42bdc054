# Made from _async/execs.py by blocking.py; change that one.
"""A command of a sandbox."""

from __future__ import annotations

import codecs
import signal as signals
import time
from collections.abc import Iterator
from typing import Literal

from .. import models
from .._api.api.execs import (
    execs_output,
    execs_receipt,
    execs_resize,
    execs_show,
    execs_signal,
    execs_stdin,
    execs_wait,
)
from .._api.models.execs_output_stream import ExecsOutputStream
from .._api.types import File
from .._reading import reading
from .._values import Bytes, Output, as_bytes, content_of, signal_of, word
from ..errors import WaitTimeout
from .wire import Wire

_LONGEST_WAIT_S = 60.0


class Exec:
    """A command. It goes on whether anybody looks at it or not, and what it wrote can be read after its
    end."""

    def __init__(self, wire: Wire, sandbox: str, report: models.ExecReport) -> None:
        self._wire, self._sandbox = wire, sandbox
        #: What the server last said of it; `refresh` asks again.
        self.report = report

    @property
    def id(self) -> str:
        """Its id in its sandbox."""
        return self.report.id

    @property
    def exit_code(self) -> int | None:
        """Its exit code, once the end was seen."""
        return self.report.exit_code if isinstance(self.report.exit_code, int) else None

    @property
    def has_ended(self) -> bool:
        """Whether the end was seen."""
        return isinstance(self.report.ended_ms, int)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.report.argv}>"

    def refresh(self) -> models.ExecReport:
        """Asks how it stands."""
        found = self._wire.ask(
            execs_show.sync_detailed, self._sandbox, self.id, client=self._wire.api
        )
        self.report = self._wire.done(found)
        return self.report

    def wait(self, timeout_s: float | None = None) -> models.ExecReport:
        """Waits for its end; with a time, `WaitTimeout` where that is over before, which is a
        `TimeoutError`."""
        give_up = None if timeout_s is None else time.monotonic() + timeout_s
        goes_on = "false"
        while True:
            left = _LONGEST_WAIT_S if give_up is None else give_up - time.monotonic()
            wait_ms = int(1000 * max(0.0, min(left, _LONGEST_WAIT_S)))
            found = self._wire.ask(
                execs_wait.sync_detailed,
                self._sandbox,
                self.id,
                client=self._wire.api,
                timeout_ms=wait_ms,
                # Who paused the sandbox meanwhile means it.
                cofferdam_goes_on=goes_on,
            )
            goes_on = "true"
            self.report = self._wire.done(found)
            if self.has_ended:
                return self.report
            if give_up is not None and time.monotonic() >= give_up:
                raise WaitTimeout(
                    f"the command {self.id} has not ended within {timeout_s} s",
                    kind="timed_out",
                    hint="Wait longer, or kill it.",
                    retryable=True,
                )

    def receipt(self) -> models.Receipt:
        """What it did, once it has ended; what it did to files where it was started with `receipt`."""
        found = self._wire.ask(
            execs_receipt.sync_detailed, self._sandbox, self.id, client=self._wire.api
        )
        receipt = self._wire.done(found)
        assert isinstance(receipt, models.Receipt)
        return receipt

    def output(self, stdout: int = 0, stderr: int = 0) -> Iterator[Output]:
        """What it writes as it comes, from these places on, to its end. A server that goes away in the
        middle is waited for, and nothing is missed or told twice. Then `report` has the end."""
        url = f"/v1/sandboxes/{self._sandbox}/execs/{self.id}/stream"
        for event in self._wire.resumed(url, {"stdout": stdout, "stderr": stderr}):
            if event.name == "output":
                with reading():
                    part = Output.of(models.LogPart.from_dict(event.object()))
                yield part
            elif event.name == "end":
                with reading():
                    self.report = models.ExecReport.from_dict(event.object())
                return

    def lines(self, stream: Literal["stdout", "stderr"] = "stdout") -> Iterator[str]:
        """One of its streams line by line, without line feeds."""
        word(ExecsOutputStream, "stream", stream)
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        rest = ""
        for part in self.output():
            if part.stream == stream:
                *lines, rest = (rest + decoder.decode(part.data)).split("\n")
                for line in lines:
                    yield line
        rest += decoder.decode(b"", final=True)
        if rest:
            yield rest

    def read(
        self, stream: Literal["stdout", "stderr"] = "stdout", offset: int = 0, limit: int = 262144
    ) -> bytes:
        """What there is of a stream from a place on, of at most 256 KiB; nothing where nothing is yet."""
        found = self._wire.ask(
            execs_output.sync_detailed,
            self._sandbox,
            self.id,
            client=self._wire.api,
            stream=word(ExecsOutputStream, "stream", stream),
            offset=offset,
            limit=limit,
        )
        part = self._wire.done(found)
        return as_bytes(part.text, part.base64)

    def send(self, data: Bytes | str, *, close: bool = False) -> None:
        """Sends input to a command that was started with `stdin` or a terminal."""
        content = content_of(data)
        empty = File(payload=b"")  # type: ignore[arg-type]
        request = execs_stdin._get_kwargs(self._sandbox, self.id, body=empty, close=close)
        self._wire.send(request, content=content)

    def close_input(self) -> None:
        """Ends its input."""
        self.send(b"", close=True)

    def signal(self, signal: int | str = signals.SIGTERM) -> None:
        """Sends it a signal, by its number or its name; if it has ended, to all that it left."""
        body = models.SignalWish(signal=signal_of(signal))
        self._wire.ask(
            execs_signal.sync_detailed, self._sandbox, self.id, client=self._wire.api, body=body
        )

    def kill(self) -> None:
        """Kills it."""
        self.signal(signals.SIGKILL)

    def resize(self, rows: int, columns: int) -> None:
        """Gives its terminal a new size."""
        body = models.SizeWish(rows=rows, columns=columns)
        self._wire.ask(
            execs_resize.sync_detailed, self._sandbox, self.id, client=self._wire.api, body=body
        )
