# Made from _async/snapshots.py by blocking.py; change that one.
"""The snapshots of a sandbox."""

from __future__ import annotations

from .. import models
from .._api.api.snapshots import (
    snapshots_create,
    snapshots_export,
    snapshots_import,
    snapshots_list,
    snapshots_remove,
    snapshots_restore,
)
from .._api.types import File
from .._reading import reading
from .._values import Bytes, content_of, given
from .wire import Wire


class Snapshots:
    """Points of a copy-on-write sandbox that stay, by number or label."""

    def __init__(self, wire: Wire, sandbox: str) -> None:
        self._wire, self._sandbox = wire, sandbox

    def list(self) -> list[models.SnapshotReport]:
        """All of them."""
        found = self._wire.ask(snapshots_list.sync_detailed, self._sandbox, client=self._wire.api)
        return self._wire.done(found).snapshots

    def create(self, label: str | None = None, *, key: str | None = None) -> models.SnapshotReport:
        """Takes one. The same `key` again takes none and gives that, as long as the server lives."""
        body = models.SnapshotWish(label=given(label))
        made = self._wire.ask(
            snapshots_create.sync_detailed,
            self._sandbox,
            client=self._wire.api,
            body=body,
            idempotency_key=given(key),
        )
        return self._wire.done(made)

    def restore(self, snapshot: int | str) -> models.UndoReport:
        """Goes back to one. Processes end."""
        done = self._wire.ask(
            snapshots_restore.sync_detailed, self._sandbox, str(snapshot), client=self._wire.api
        )
        return self._wire.done(done)

    def remove(self, snapshot: int | str) -> None:
        """Removes one."""
        done = self._wire.ask(
            snapshots_remove.sync_detailed, self._sandbox, str(snapshot), client=self._wire.api
        )
        self._wire.done(done)

    def export(self, snapshot: int | str) -> bytes:
        """One as a file for another sandbox."""
        request = snapshots_export._get_kwargs(self._sandbox, str(snapshot))
        return (self._wire.send(request)).content

    def import_(self, data: Bytes, label: str | None = None) -> models.SnapshotImported:
        """Takes in what `export` gave. All of it is looked at before it is a snapshot."""
        empty = File(payload=b"")  # type: ignore[arg-type]
        request = snapshots_import._get_kwargs(self._sandbox, body=empty, label=given(label))
        answer = self._wire.send(request, content=content_of(data))
        with reading():
            return models.SnapshotImported.from_dict(answer.json())
