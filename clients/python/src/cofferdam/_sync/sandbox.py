# Made from _async/sandbox.py by blocking.py; change that one.
"""One sandbox."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from .._giving_up import KilledIfGivenUp
from .._reading import reading
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
from .execs import Exec
from .files import Files
from .network import Network, Ports
from .shells import Shell
from .snapshots import Snapshots
from .terminals import Terminal
from .wire import Wire

#: How much of each stream `run` keeps unless it is told otherwise.
CAPTURED_BYTES = 16 << 20


class Sandbox:
    """A sandbox of this caller. It stays until it is deleted, with its files, whoever looks at it."""

    def __init__(
        self, wire: Wire, report: models.SessionReport, *, is_made_now: bool = True
    ) -> None:
        self._wire = wire
        #: What the server last said of it; `refresh` asks again.
        self.report = report
        #: Whether it was made by the call that this came from.
        self.is_made_now = is_made_now
        self.files = Files(wire, report.id)
        self.snapshots = Snapshots(wire, report.id)
        self.network = Network(wire, report.id)
        self.ports = Ports(wire, report.id)

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

    def refresh(self) -> models.SessionReport:
        """Asks how it stands."""
        found = self._wire.ask(sandboxes_show.sync_detailed, self.id, client=self._wire.api)
        self.report = self._wire.done(found)
        return self.report

    def metrics(self) -> models.MetricsReport:
        """What it uses now, as the host sees it. Wakes nothing."""
        found = self._wire.ask(
            sandboxes_sandbox_metrics.sync_detailed, self.id, client=self._wire.api
        )
        return self._wire.done(found)

    def proof(self) -> models.ProbeReport:
        """Attacks a sandbox that is made as this one is, beside controls. Takes some seconds."""
        found = self._wire.ask(
            sandboxes_sandbox_proof.sync_detailed, self.id, client=self._wire.api
        )
        return self._wire.done(found)

    def pause(self) -> None:
        """Puts it to sleep: memory is kept, and nothing in it takes processor time."""
        done = self._wire.ask(sandboxes_pause.sync_detailed, self.id, client=self._wire.api)
        self.report = self._wire.done(done)

    def resume(self) -> None:
        """Wakes it, or makes a new sandbox for it where the old one was lost."""
        done = self._wire.ask(sandboxes_resume.sync_detailed, self.id, client=self._wire.api)
        self.report = self._wire.done(done)

    def stop(self) -> None:
        """Ends its processes. Its files stay, and `resume` goes on with them."""
        done = self._wire.ask(sandboxes_stop.sync_detailed, self.id, client=self._wire.api)
        self.report = self._wire.done(done)

    def extend(self, by_ms: int) -> None:
        """Lets it live so much longer."""
        body = models.ExtendWish(by_ms=by_ms)
        done = self._wire.ask(
            sandboxes_extend.sync_detailed, self.id, client=self._wire.api, body=body
        )
        self.report = self._wire.done(done)

    def delete(self, *, missing_ok: bool = False) -> None:
        """Removes it, with its processes and its own files. Its workspace on the host stays."""
        try:
            self._wire.ask(sandboxes_delete.sync_detailed, self.id, client=self._wire.api)
        except NotFoundError:
            if not missing_ok:
                raise

    def exec(
        self, command: Command, *, key: str | None = None, **options: Unpack[ExecOptions]
    ) -> Exec:
        """Starts a command: words, or a line of shell. The same `key` again, of at most 255 bytes,
        starts nothing and gives the command that it started; so does the same `id`."""
        wish = wish_of(models.ExecWish, {**checked(ExecOptions, options), **command_of(command)})
        # An id is a key by itself.
        once = key or (None if options.get("id") else uuid4().hex)
        started = self._wire.ask(
            execs_start.sync_detailed,
            self.id,
            client=self._wire.api,
            body=wish,
            idempotency_key=given(once),
        )
        return Exec(self._wire, self.id, self._wire.done(started))

    def terminal(
        self,
        command: Command = ("/bin/sh",),
        *,
        rows: int = 24,
        columns: int = 80,
        key: str | None = None,
        **options: Unpack[ExecOptions],
    ) -> Terminal:
        """Starts a command at a terminal of its own, an interactive shell unless another is given, and sits
        down before it."""
        options["terminal"] = {"rows": rows, "columns": columns}
        options["stdin"] = True
        return self._seated(command, key, options)

    def _seated(self, command: Command, key: str | None, options: ExecOptions) -> Terminal:
        return self.terminal_of(self.exec(command, key=key, **options))

    def terminal_of(self, exec: Exec, offset: int = 0) -> Terminal:
        """The terminal of a command that was started with one, told from a place on."""
        return Terminal(self._wire, self.id, exec, offset)

    def run(
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
        starting = KilledIfGivenUp(lambda: self.exec(command, key=key, **options))
        with starting as started:
            for part in started.output():
                gathering.take(part)
        return gathering.ran(started.report)

    def execs(self) -> list[Exec]:
        """Its commands, oldest first."""
        found = self._wire.ask(execs_list.sync_detailed, self.id, client=self._wire.api)
        reports = self._wire.done(found).execs
        return [Exec(self._wire, self.id, report) for report in reports]

    def get_exec(self, exec_id: str) -> Exec:
        """A command that was started before, by its id."""
        found = self._wire.ask(execs_show.sync_detailed, self.id, exec_id, client=self._wire.api)
        return Exec(self._wire, self.id, self._wire.done(found))

    def shell(self, name: str = "main") -> Shell:
        """A shell that keeps directory and variables; the one of this name, if it lives."""
        opened = self._wire.ask(shells_open.sync_detailed, self.id, name, client=self._wire.api)
        return Shell(self._wire, self.id, self._wire.done(opened))

    def shells(self) -> list[Shell]:
        """Its shells, dead ones included."""
        found = self._wire.ask(shells_list.sync_detailed, self.id, client=self._wire.api)
        reports = self._wire.done(found).shells
        return [Shell(self._wire, self.id, report) for report in reports]

    def events(self, after: int = 0, *, follow: bool = True) -> Iterator[models.EventReport]:
        """What happened to it since the event of a number, and with `follow` what happens."""
        if follow:
            asked = {"after": after, "sandbox": self.id}
            for event in self._wire.resumed("/v1/events/stream", asked):
                with reading():
                    told = models.EventReport.from_dict(event.object())
                yield told
        while not follow:
            found = self._wire.ask(
                events_list.sync_detailed, client=self._wire.api, after=after, sandbox=self.id
            )
            reports = self._wire.done(found).events
            for report in reports:
                after = report.seq
                yield report
            if not reports:
                return

    def diff(
        self, points: str | None = None, *, path: Path | None = None
    ) -> list[models.LayerChange]:
        """What it changed in its copy-on-write workspace, or between two points, as in ``3..7``."""
        found = self._wire.ask(
            layers_diff.sync_detailed,
            self.id,
            client=self._wire.api,
            range_=given(points),
            **_place(path),
        )
        return self._wire.done(found).changes

    def patch(self, points: str | None = None, *, path: Path | None = None) -> bytes:
        """The same as a patch that ``git apply`` takes."""
        request = layers_diff._get_kwargs(self.id, range_=given(points), **_place(path))
        answer = self._wire.send(request, headers={"accept": "text/x-diff"})
        return answer.content

    def hunks(self, *, path: Path | None = None, texts: bool = False) -> list[models.LayerHunks]:
        """What it changed part by part, each with the hash that `apply` takes; with `texts` the text of
        what has no parts, too."""
        found = self._wire.ask(
            layers_hunks.sync_detailed,
            self.id,
            client=self._wire.api,
            texts=texts,
            **_place(path),
        )
        return self._wire.done(found).changes

    def apply(
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
        done = self._wire.ask(layers_apply.sync_detailed, self.id, client=self._wire.api, body=body)
        assert isinstance(done.parsed, models.AppliedChanges)
        return done.parsed

    def discard(
        self, paths: Sequence[Path] = (), *, dry_run: bool = False
    ) -> models.DiscardedChanges:
        """Forgets what it changed."""
        body = wish_of(models.DiscardWish, {**places(paths), "dry_run": dry_run})
        done = self._wire.ask(
            layers_discard.sync_detailed, self.id, client=self._wire.api, body=body
        )
        return self._wire.done(done)

    def history(self, limit: int | None = None) -> models.HistoryReport:
        """The points of its history."""
        found = self._wire.ask(
            layers_history.sync_detailed, self.id, client=self._wire.api, limit=given(limit)
        )
        return self._wire.done(found)

    def undo(
        self,
        count: int | None = None,
        *,
        to: int | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> models.UndoReport:
        """Goes back before the last command, or the last `count`, or to a point. Its processes end."""
        body = models.UndoWish(count=given(count), to=given(to), force=force, dry_run=dry_run)
        done = self._wire.ask(layers_undo.sync_detailed, self.id, client=self._wire.api, body=body)
        return self._wire.done(done)

    def fork(self, name: str, point: int | str | None = None, *, key: str | None = None) -> Sandbox:
        """Another sandbox that begins as this one is, or as it was at a point. The same `key` again
        makes nothing and gives the one that was made, as long as the server lives."""
        body = models.ForkWish(name=name, point=given(None if point is None else str(point)))
        made = self._wire.ask(
            layers_fork.sync_detailed,
            self.id,
            client=self._wire.api,
            body=body,
            idempotency_key=given(key),
        )
        return Sandbox(self._wire, self._wire.done(made))

    def snapshot(
        self, label: str | None = None, *, key: str | None = None
    ) -> models.SnapshotReport:
        """Makes a point that stays until it is removed."""
        return self.snapshots.create(label, key=key)


def _place(path: Path | None) -> Any:
    return {} if path is None else place(path)
