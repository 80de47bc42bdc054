"""A server, and the sandboxes of one caller on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self, Unpack
from uuid import uuid4

import httpx

from .. import models
from .._api import Client as Api
from .._api.api.events import events_audit, events_list
from .._api.api.run import run as run_once
from .._api.api.sandboxes import (
    sandboxes_create,
    sandboxes_ensure,
    sandboxes_list,
    sandboxes_show,
)
from .._api.api.secrets import secrets_list, secrets_put, secrets_remove
from .._api.api.server import server_ready
from .._api.api.tools import tools_call, tools_list
from .._api.types import File
from .._giving_up import AsyncMaking
from .._reading import reading
from .._values import (
    Bytes,
    Command,
    Ran,
    RunOptions,
    SandboxOptions,
    checked,
    content_of,
    given,
    labels_of,
    run_of,
    wish_of,
)
from ..errors import CofferdamError
from .sandbox import AsyncSandbox
from .wire import AsyncWire


class AsyncClient:
    """A server of `cofferdam serve`: its address, ``http://…`` or ``unix:/path``, and a key.

    A server that goes away and comes back within `reconnect_s` is waited for, and what can be repeated
    without doing more is repeated: questions, `ensure`, and commands, each of which has a key of its own.
    An answer takes as long as what it is the answer to, unless `timeout_s` says otherwise.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:7070",
        *,
        key: str | None = None,
        reconnect_s: float = 10.0,
        timeout_s: float | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._wire = AsyncWire(url, key, reconnect_s, timeout_s, transport)

    @property
    def api(self) -> Api:
        """The generated client, for what has no method here: ``cofferdam.api`` has a function for each
        operation of the server's document."""
        return self._wire.api

    async def close(self) -> None:
        """Ends the connections. Sandboxes and commands go on."""
        await self._wire.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def create(
        self,
        name: str | None = None,
        *,
        key: str | None = None,
        **options: Unpack[SandboxOptions],
    ) -> AsyncSandbox:
        """Makes a sandbox, which stays until it is deleted. A name that is taken is a `ConflictError`.
        The same `key` again makes nothing and gives the one that was made, as long as the server lives."""
        wish = wish_of(models.SandboxWish, checked(SandboxOptions, options, name=name))
        made = await self._wire.ask(
            sandboxes_create.asyncio_detailed,
            client=self.api,
            body=wish,
            idempotency_key=given(key),
        )
        return AsyncSandbox(self._wire, self._wire.done(made))

    async def ensure(self, name: str, **options: Unpack[SandboxOptions]) -> AsyncSandbox:
        """The sandbox of a name, ready; made if there is none."""
        wish = wish_of(models.SandboxWish, checked(SandboxOptions, options))
        made = await self._wire.ask(
            sandboxes_ensure.asyncio_detailed, name, client=self.api, body=wish
        )
        return AsyncSandbox(self._wire, self._wire.done(made), is_made_now=made.status_code == 201)

    async def get(self, sandbox: str) -> AsyncSandbox:
        """The sandbox of a name or an id."""
        found = await self._wire.ask(sandboxes_show.asyncio_detailed, sandbox, client=self.api)
        return AsyncSandbox(self._wire, self._wire.done(found))

    async def sandboxes(
        self, labels: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncSandbox]:
        """Every sandbox of this caller that has all these labels, page after page."""
        label = given(labels_of(labels))
        cursor: str | None = None
        while True:
            found = await self._wire.ask(
                sandboxes_list.asyncio_detailed, client=self.api, label=label, cursor=given(cursor)
            )
            page = self._wire.done(found)
            for report in page.sessions:
                yield AsyncSandbox(self._wire, report)
            if not isinstance(page.next_cursor, str):
                return
            cursor = page.next_cursor

    def sandbox(
        self, name: str | None = None, *, keep: bool = False, **options: Unpack[SandboxOptions]
    ) -> AsyncUsing:
        """A sandbox for a block. At its end it is deleted if it was made for the block, unless `keep`; also
        where the block is given up before it began."""
        checked(SandboxOptions, options)
        return AsyncUsing(self, name, keep, options)

    async def run(
        self, command: Command, *, key: str | None = None, **options: Unpack[RunOptions]
    ) -> Ran:
        """Runs a command in a sandbox of its own, which is gone at the end, and when this is given up.
        The same `key` again runs nothing and gives what came of it, as long as the server lives."""
        body = wish_of(models.RunWish, run_of(command, options))
        ran = await self._wire.ask(
            run_once.asyncio_detailed, client=self.api, body=body, idempotency_key=given(key)
        )
        return Ran.of(self._wire.done(ran))

    async def events(
        self, after: int = 0, *, sandbox: str | None = None, follow: bool = True
    ) -> AsyncIterator[models.EventReport]:
        """What happened since the event of a number, and then what happens, without an end; without
        `follow` up to now. Keep the `seq` of the last one to go on there another day."""
        if follow:
            asked: dict[str, Any] = {"after": after}
            if sandbox is not None:
                asked["sandbox"] = sandbox
            async for event in self._wire.resumed("/v1/events/stream", asked):
                with reading():
                    told = models.EventReport.from_dict(event.object())
                yield told
        while not follow:
            found = await self._wire.ask(
                events_list.asyncio_detailed, client=self.api, after=after, sandbox=given(sandbox)
            )
            events = self._wire.done(found).events
            for report in events:
                after = report.seq
                yield report
            if not events:
                return

    async def audit(self, after: int = 0) -> list[models.AuditReport]:
        """What callers changed, after the entry of a number."""
        found = await self._wire.ask(events_audit.asyncio_detailed, client=self.api, after=after)
        return self._wire.done(found).entries

    async def secrets(self) -> list[models.SecretReport]:
        """The secrets of this caller, by name. Nobody is told a value."""
        found = await self._wire.ask(secrets_list.asyncio_detailed, client=self._wire.api)
        return self._wire.done(found).secrets

    async def put_secret(self, name: str, value: Bytes | str) -> models.SecretReport:
        """Adds a secret, or gives one that is there another value."""
        content = content_of(value)
        empty = File(payload=b"")  # type: ignore[arg-type]
        answer = await self._wire.send(secrets_put._get_kwargs(name, body=empty), content=content)
        with reading():
            return models.SecretReport.from_dict(answer.json())

    async def remove_secret(self, name: str) -> None:
        """Removes a secret. Commands that have it keep it until they end."""
        await self._wire.ask(secrets_remove.asyncio_detailed, name, client=self._wire.api)

    async def tools(self, pack: str) -> models.ToolList:
        """The tools of a pack, with a text for a system prompt."""
        found = await self._wire.ask(tools_list.asyncio_detailed, pack, client=self.api)
        return self._wire.done(found)

    async def call_tool(
        self, pack: str, tool: str, arguments: Mapping[str, Any]
    ) -> models.ToolOutcome:
        """Calls a tool. One that fails is an outcome with `is_error`, and raises nothing."""
        body = wish_of(models.ToolArguments, arguments)
        called = await self._wire.ask(
            tools_call.asyncio_detailed, pack, tool, client=self.api, body=body
        )
        return self._wire.done(called)

    async def ready(self) -> bool:
        """Whether the server takes requests now."""
        try:
            await self._wire.ask(server_ready.asyncio_detailed, client=self.api)
        except CofferdamError:
            return False
        return True


class AsyncUsing:
    """A sandbox for a block, see `AsyncClient.sandbox`."""

    def __init__(
        self, client: AsyncClient, name: str | None, keep: bool, options: SandboxOptions
    ) -> None:
        self._client, self._name, self._keep, self._options = client, name, keep, options
        self._sandbox: AsyncSandbox | None = None

    async def __aenter__(self) -> AsyncSandbox:
        # With it the same is made again, where the answer to the first request is lost.
        self._key = uuid4().hex
        self._sandbox = await AsyncMaking(self._make, self._take_back).made()
        return self._sandbox

    async def _make(self) -> AsyncSandbox:
        if self._name is None:
            return await self._client.create(key=self._key, **self._options)
        return await self._client.ensure(self._name, **self._options)

    async def _take_back(self, sandbox: AsyncSandbox) -> None:
        # One that is to be kept can be found by its name; without one nobody knows of it.
        if sandbox.is_made_now and not (self._keep and self._name):
            await sandbox.delete(missing_ok=True)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._sandbox is not None and self._sandbox.is_made_now and not self._keep:
            await self._sandbox.delete(missing_ok=True)
