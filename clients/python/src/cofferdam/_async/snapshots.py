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
from .wire import AsyncWire


class AsyncSnapshots:
    """Points of a copy-on-write sandbox that stay, by number or label."""

    def __init__(self, wire: AsyncWire, sandbox: str) -> None:
        self._wire, self._sandbox = wire, sandbox

    async def list(self) -> list[models.SnapshotReport]:
        """All of them."""
        found = await self._wire.ask(
            snapshots_list.asyncio_detailed, self._sandbox, client=self._wire.api
        )
        return self._wire.done(found).snapshots

    async def create(
        self, label: str | None = None, *, key: str | None = None
    ) -> models.SnapshotReport:
        """Takes one. The same `key` again takes none and gives that, as long as the server lives."""
        body = models.SnapshotWish(label=given(label))
        made = await self._wire.ask(
            snapshots_create.asyncio_detailed,
            self._sandbox,
            client=self._wire.api,
            body=body,
            idempotency_key=given(key),
        )
        return self._wire.done(made)

    async def restore(self, snapshot: int | str) -> models.UndoReport:
        """Goes back to one. Processes end."""
        done = await self._wire.ask(
            snapshots_restore.asyncio_detailed, self._sandbox, str(snapshot), client=self._wire.api
        )
        return self._wire.done(done)

    async def remove(self, snapshot: int | str) -> None:
        """Removes one."""
        done = await self._wire.ask(
            snapshots_remove.asyncio_detailed, self._sandbox, str(snapshot), client=self._wire.api
        )
        self._wire.done(done)

    async def export(self, snapshot: int | str) -> bytes:
        """One as a file for another sandbox."""
        request = snapshots_export._get_kwargs(self._sandbox, str(snapshot))
        return (await self._wire.send(request)).content

    async def import_(self, data: Bytes, label: str | None = None) -> models.SnapshotImported:
        """Takes in what `export` gave. All of it is looked at before it is a snapshot."""
        empty = File(payload=b"")  # type: ignore[arg-type]
        request = snapshots_import._get_kwargs(self._sandbox, body=empty, label=given(label))
        answer = await self._wire.send(request, content=content_of(data))
        with reading():
            return models.SnapshotImported.from_dict(answer.json())
