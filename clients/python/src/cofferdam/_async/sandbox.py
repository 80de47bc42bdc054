"""One sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Unpack
from uuid import uuid4

from .. import models
from .._api.api.events import events_list
from .._api.api.execs import execs_list, execs_show, execs_start
from .._api.api.layers import (
    layers_apply,
    layers_diff,
    layers_discard,
    layers_fork,
    layers_history,
    layers_hunks,
    layers_undo,
)
from .._api.api.sandboxes import (
    sandboxes_delete,
    sandboxes_extend,
    sandboxes_pause,
    sandboxes_resume,
    sandboxes_sandbox_metrics,
    sandboxes_sandbox_proof,
    sandboxes_show,
    sandboxes_stop,
)
from .._api.api.shells import shells_list, shells_open
from .._giving_up import AsyncKilledIfGivenUp
from .._reading import reading
from .._seating import AsyncSeating
from .._values import (
    Command,
    ExecOptions,
    Gathering,
    Path,
    Ran,
    checked,
    command_of,
    given,
    place,
    places,
    wish_of,
)
from ..errors import NotFoundError
from .execs import AsyncExec
from .files import AsyncFiles
from .network import AsyncNetwork, AsyncPorts
from .shells import AsyncShell
from .snapshots import AsyncSnapshots
from .terminals import AsyncTerminal
from .wire import AsyncWire

#: How much of each stream `run` keeps unless it is told otherwise.
CAPTURED_BYTES = 16 << 20


class AsyncSandbox:
    """A sandbox of this caller. It stays until it is deleted, with its files, whoever looks at it."""

    def __init__(
        self, wire: AsyncWire, report: models.SessionReport, *, is_made_now: bool = True
    ) -> None:
        self._wire = wire
        #: What the server last said of it; `refresh` asks again.
        self.report = report
        #: Whether it was made by the call that this came from.
        self.is_made_now = is_made_now
        self.files = AsyncFiles(wire, report.id)
        self.snapshots = AsyncSnapshots(wire, report.id)
        self.network = AsyncNetwork(wire, report.id)
        self.ports = AsyncPorts(wire, report.id)

    @property
    def id(self) -> str:
        """Its id, which no other ever has."""
        return self.report.id

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""
        return self.report.name if isinstance(self.report.name, str) else None

    @property
    def phase(self) -> models.Phase:
        """Its state when the server last spoke of it."""
        return self.report.phase

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name or self.id} {self.phase.value}>"

    async def refresh(self) -> models.SessionReport:
        """Asks how it stands."""
        found = await self._wire.ask(
            sandboxes_show.asyncio_detailed, self.id, client=self._wire.api
        )
        self.report = self._wire.done(found)
        return self.report

    async def metrics(self) -> models.MetricsReport:
        """What it uses now, as the host sees it. Wakes nothing."""
        found = await self._wire.ask(
            sandboxes_sandbox_metrics.asyncio_detailed, self.id, client=self._wire.api
        )
        return self._wire.done(found)

    async def proof(self) -> models.ProbeReport:
        """Attacks a sandbox that is made as this one is, beside controls. Takes some seconds."""
        found = await self._wire.ask(
            sandboxes_sandbox_proof.asyncio_detailed, self.id, client=self._wire.api
        )
        return self._wire.done(found)

    async def pause(self) -> None:
        """Puts it to sleep: memory is kept, and nothing in it takes processor time."""
        done = await self._wire.ask(
            sandboxes_pause.asyncio_detailed, self.id, client=self._wire.api
        )
        self.report = self._wire.done(done)

    async def resume(self) -> None:
        """Wakes it, or makes a new sandbox for it where the old one was lost."""
        done = await self._wire.ask(
            sandboxes_resume.asyncio_detailed, self.id, client=self._wire.api
        )
        self.report = self._wire.done(done)

    async def stop(self) -> None:
        """Ends its processes. Its files stay, and `resume` goes on with them."""
        done = await self._wire.ask(sandboxes_stop.asyncio_detailed, self.id, client=self._wire.api)
        self.report = self._wire.done(done)

    async def extend(self, by_ms: int) -> None:
        """Lets it live so much longer."""
        body = models.ExtendWish(by_ms=by_ms)
        done = await self._wire.ask(
            sandboxes_extend.asyncio_detailed, self.id, client=self._wire.api, body=body
        )
        self.report = self._wire.done(done)

    async def delete(self, *, missing_ok: bool = False) -> None:
        """Removes it, with its processes and its own files. Its workspace on the host stays."""
        try:
            await self._wire.ask(sandboxes_delete.asyncio_detailed, self.id, client=self._wire.api)
        except NotFoundError:
            if not missing_ok:
                raise

    async def exec(
        self, command: Command, *, key: str | None = None, **options: Unpack[ExecOptions]
    ) -> AsyncExec:
        """Starts a command: words, or a line of shell. The same `key` again, of at most 255 bytes,
        starts nothing and gives the command that it started; so does the same `id`."""
        wish = wish_of(models.ExecWish, {**checked(ExecOptions, options), **command_of(command)})
        # An id is a key by itself.
        once = key or (None if options.get("id") else uuid4().hex)
        started = await self._wire.ask(
            execs_start.asyncio_detailed,
            self.id,
            client=self._wire.api,
            body=wish,
            idempotency_key=given(once),
        )
        return AsyncExec(self._wire, self.id, self._wire.done(started))

    def terminal(
        self,
        command: Command = ("/bin/sh",),
        *,
        rows: int = 24,
        columns: int = 80,
        key: str | None = None,
        **options: Unpack[ExecOptions],
    ) -> AsyncSeating[AsyncTerminal]:
        """Starts a command at a terminal of its own, an interactive shell unless another is given, and sits
        down before it."""
        options["terminal"] = {"rows": rows, "columns": columns}
        options["stdin"] = True
        return AsyncSeating(self._seated(command, key, options))

    async def _seated(
        self, command: Command, key: str | None, options: ExecOptions
    ) -> AsyncTerminal:
        return self.terminal_of(await self.exec(command, key=key, **options))

    def terminal_of(self, exec: AsyncExec, offset: int = 0) -> AsyncTerminal:
        """The terminal of a command that was started with one, told from a place on."""
        return AsyncTerminal(self._wire, self.id, exec, offset)

    async def run(
        self,
        command: Command,
        *,
        capture_bytes: int = CAPTURED_BYTES,
        **options: Unpack[ExecOptions],
    ) -> Ran:
        """Runs a command to its end, with what it writes: so much of each stream, the rest is counted.
        Where this is given up, as by Ctrl-C or the cancelling of its task, the command is killed."""
        gathering = Gathering(capture_bytes)
        key = None if options.get("id") else uuid4().hex
        starting = AsyncKilledIfGivenUp(lambda: self.exec(command, key=key, **options))
        async with starting as started:
            async for part in started.output():
                gathering.take(part)
        return gathering.ran(started.report)

    async def execs(self) -> list[AsyncExec]:
        """Its commands, oldest first."""
        found = await self._wire.ask(execs_list.asyncio_detailed, self.id, client=self._wire.api)
        reports = self._wire.done(found).execs
        return [AsyncExec(self._wire, self.id, report) for report in reports]

    async def get_exec(self, exec_id: str) -> AsyncExec:
        """A command that was started before, by its id."""
        found = await self._wire.ask(
            execs_show.asyncio_detailed, self.id, exec_id, client=self._wire.api
        )
        return AsyncExec(self._wire, self.id, self._wire.done(found))

    async def shell(self, name: str = "main") -> AsyncShell:
        """A shell that keeps directory and variables; the one of this name, if it lives."""
        opened = await self._wire.ask(
            shells_open.asyncio_detailed, self.id, name, client=self._wire.api
        )
        return AsyncShell(self._wire, self.id, self._wire.done(opened))

    async def shells(self) -> list[AsyncShell]:
        """Its shells, dead ones included."""
        found = await self._wire.ask(shells_list.asyncio_detailed, self.id, client=self._wire.api)
        reports = self._wire.done(found).shells
        return [AsyncShell(self._wire, self.id, report) for report in reports]

    async def events(
        self, after: int = 0, *, follow: bool = True
    ) -> AsyncIterator[models.EventReport]:
        """What happened to it since the event of a number, and with `follow` what happens."""
        if follow:
            asked = {"after": after, "sandbox": self.id}
            async for event in self._wire.resumed("/v1/events/stream", asked):
                with reading():
                    told = models.EventReport.from_dict(event.object())
                yield told
        while not follow:
            found = await self._wire.ask(
                events_list.asyncio_detailed, client=self._wire.api, after=after, sandbox=self.id
            )
            reports = self._wire.done(found).events
            for report in reports:
                after = report.seq
                yield report
            if not reports:
                return

    async def diff(
        self, points: str | None = None, *, path: Path | None = None
    ) -> list[models.LayerChange]:
        """What it changed in its copy-on-write workspace, or between two points, as in ``3..7``."""
        found = await self._wire.ask(
            layers_diff.asyncio_detailed,
            self.id,
            client=self._wire.api,
            range_=given(points),
            **_place(path),
        )
        return self._wire.done(found).changes

    async def patch(self, points: str | None = None, *, path: Path | None = None) -> bytes:
        """The same as a patch that ``git apply`` takes."""
        request = layers_diff._get_kwargs(self.id, range_=given(points), **_place(path))
        answer = await self._wire.send(request, headers={"accept": "text/x-diff"})
        return answer.content

    async def hunks(
        self, *, path: Path | None = None, texts: bool = False
    ) -> list[models.LayerHunks]:
        """What it changed part by part, each with the hash that `apply` takes; with `texts` the text of
        what has no parts, too."""
        found = await self._wire.ask(
            layers_hunks.asyncio_detailed,
            self.id,
            client=self._wire.api,
            texts=texts,
            **_place(path),
        )
        return self._wire.done(found).changes

    async def apply(
        self,
        paths: Sequence[Path] = (),
        *,
        hunks: Sequence[models.ChosenWish] = (),
        dry_run: bool = False,
    ) -> models.AppliedChanges:
        """Lands what it changed in the workspace. What stays behind because it was edited there
        meanwhile is a `ConflictError`, whose `result` lists both."""
        fields: dict[str, Any] = {**places(paths), "dry_run": dry_run}
        if hunks:
            fields["hunks"] = [hunk.to_dict() for hunk in hunks]
        body = wish_of(models.ApplyWish, fields)
        done = await self._wire.ask(
            layers_apply.asyncio_detailed, self.id, client=self._wire.api, body=body
        )
        assert isinstance(done.parsed, models.AppliedChanges)
        return done.parsed

    async def discard(
        self, paths: Sequence[Path] = (), *, dry_run: bool = False
    ) -> models.DiscardedChanges:
        """Forgets what it changed."""
        body = wish_of(models.DiscardWish, {**places(paths), "dry_run": dry_run})
        done = await self._wire.ask(
            layers_discard.asyncio_detailed, self.id, client=self._wire.api, body=body
        )
        return self._wire.done(done)

    async def history(self, limit: int | None = None) -> models.HistoryReport:
        """The points of its history."""
        found = await self._wire.ask(
            layers_history.asyncio_detailed, self.id, client=self._wire.api, limit=given(limit)
        )
        return self._wire.done(found)

    async def undo(
        self,
        count: int | None = None,
        *,
        to: int | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> models.UndoReport:
        """Goes back before the last command, or the last `count`, or to a point. Its processes end."""
        body = models.UndoWish(count=given(count), to=given(to), force=force, dry_run=dry_run)
        done = await self._wire.ask(
            layers_undo.asyncio_detailed, self.id, client=self._wire.api, body=body
        )
        return self._wire.done(done)

    async def fork(
        self, name: str, point: int | str | None = None, *, key: str | None = None
    ) -> AsyncSandbox:
        """Another sandbox that begins as this one is, or as it was at a point. The same `key` again
        makes nothing and gives the one that was made, as long as the server lives."""
        body = models.ForkWish(name=name, point=given(None if point is None else str(point)))
        made = await self._wire.ask(
            layers_fork.asyncio_detailed,
            self.id,
            client=self._wire.api,
            body=body,
            idempotency_key=given(key),
        )
        return AsyncSandbox(self._wire, self._wire.done(made))

    async def snapshot(
        self, label: str | None = None, *, key: str | None = None
    ) -> models.SnapshotReport:
        """Makes a point that stays until it is removed."""
        return await self.snapshots.create(label, key=key)


def _place(path: Path | None) -> Any:
    return {} if path is None else place(path)
