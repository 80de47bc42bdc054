"""Shells, which keep their state from command to command."""

from __future__ import annotations

from .. import models
from .._api.api.shells import (
    shells_check,
    shells_interrupt,
    shells_run,
    shells_terminate,
)
from .._giving_up import AsyncToldIfGivenUp
from .._values import as_bytes
from .wire import AsyncWire

_LONGEST_WAIT_MS = 60_000


class AsyncShell:
    """A shell of a sandbox."""

    def __init__(self, wire: AsyncWire, sandbox: str, report: models.ShellReport) -> None:
        self._wire, self._sandbox = wire, sandbox
        self.report = report

    @property
    def name(self) -> str:
        """Its name."""
        return self.report.name

    async def run(self, text: str) -> tuple[bytes, int | None]:
        """Runs a command in it to its end: what it wrote, and its exit code; `None` where the shell
        died with it. Where this is given up the command is interrupted, and the shell goes on."""
        async with AsyncToldIfGivenUp(self.interrupt):
            return await self._run(text)

    async def _run(self, text: str) -> tuple[bytes, int | None]:
        body = models.ShellRunWish(text=text)
        done = await self._wire.ask(
            shells_run.asyncio_detailed, self._sandbox, self.name, client=self._wire.api, body=body
        )
        ran = self._wire.done(done)
        begin, output = ran.offset, as_bytes(ran.text, ran.base64)
        while ran.is_cut or not _is_over(ran):
            check = models.ShellCheckWish(
                seq=ran.seq, offset=begin + len(output), wait_ms=_LONGEST_WAIT_MS
            )
            looked = await self._wire.ask(
                shells_check.asyncio_detailed,
                self._sandbox,
                self.name,
                client=self._wire.api,
                body=check,
            )
            ran = self._wire.done(looked)
            output += as_bytes(ran.text, ran.base64)
        return output, ran.exit_code if isinstance(ran.exit_code, int) else None

    async def interrupt(self) -> None:
        """Ctrl-C for what runs in it."""
        await self._wire.ask(
            shells_interrupt.asyncio_detailed, self._sandbox, self.name, client=self._wire.api
        )

    async def terminate(self) -> None:
        """Kills it."""
        await self._wire.ask(
            shells_terminate.asyncio_detailed, self._sandbox, self.name, client=self._wire.api
        )


def _is_over(ran: models.ShellRan) -> bool:
    return isinstance(ran.exit_code, int) or isinstance(ran.died, models.EndingKind)
