# Made from _async/client.py by blocking.py; change that one.
"""A server, and the sandboxes of one caller on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from .._giving_up import Making
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
from .sandbox import Sandbox
from .wire import Wire


class Client:
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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._wire = Wire(url, key, reconnect_s, timeout_s, transport)

    @property
    def api(self) -> Api:
        """The generated client, for what has no method here: ``cofferdam.api`` has a function for each
        operation of the server's document."""
        return self._wire.api

    def close(self) -> None:
        """Ends the connections. Sandboxes and commands go on."""
        self._wire.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def create(
        self,
        name: str | None = None,
        *,
        key: str | None = None,
        **options: Unpack[SandboxOptions],
    ) -> Sandbox:
        """Makes a sandbox, which stays until it is deleted. A name that is taken is a `ConflictError`.
        The same `key` again makes nothing and gives the one that was made, as long as the server lives."""
        wish = wish_of(models.SandboxWish, checked(SandboxOptions, options, name=name))
        made = self._wire.ask(
            sandboxes_create.sync_detailed,
            client=self.api,
            body=wish,
            idempotency_key=given(key),
        )
        return Sandbox(self._wire, self._wire.done(made))

    def ensure(self, name: str, **options: Unpack[SandboxOptions]) -> Sandbox:
        """The sandbox of a name, ready; made if there is none."""
        wish = wish_of(models.SandboxWish, checked(SandboxOptions, options))
        made = self._wire.ask(sandboxes_ensure.sync_detailed, name, client=self.api, body=wish)
        return Sandbox(self._wire, self._wire.done(made), is_made_now=made.status_code == 201)

    def get(self, sandbox: str) -> Sandbox:
        """The sandbox of a name or an id."""
        found = self._wire.ask(sandboxes_show.sync_detailed, sandbox, client=self.api)
        return Sandbox(self._wire, self._wire.done(found))

    def sandboxes(self, labels: Mapping[str, str] | None = None) -> Iterator[Sandbox]:
        """Every sandbox of this caller that has all these labels, page after page."""
        label = given(labels_of(labels))
        cursor: str | None = None
        while True:
            found = self._wire.ask(
                sandboxes_list.sync_detailed, client=self.api, label=label, cursor=given(cursor)
            )
            page = self._wire.done(found)
            for report in page.sessions:
                yield Sandbox(self._wire, report)
            if not isinstance(page.next_cursor, str):
                return
            cursor = page.next_cursor

    def sandbox(
        self, name: str | None = None, *, keep: bool = False, **options: Unpack[SandboxOptions]
    ) -> Using:
        """A sandbox for a block. At its end it is deleted if it was made for the block, unless `keep`; also
        where the block is given up before it began."""
        checked(SandboxOptions, options)
        return Using(self, name, keep, options)

    def run(
        self, command: Command, *, key: str | None = None, **options: Unpack[RunOptions]
    ) -> Ran:
        """Runs a command in a sandbox of its own, which is gone at the end, and when this is given up.
        The same `key` again runs nothing and gives what came of it, as long as the server lives."""
        body = wish_of(models.RunWish, run_of(command, options))
        ran = self._wire.ask(
            run_once.sync_detailed, client=self.api, body=body, idempotency_key=given(key)
        )
        return Ran.of(self._wire.done(ran))

    def events(
        self, after: int = 0, *, sandbox: str | None = None, follow: bool = True
    ) -> Iterator[models.EventReport]:
        """What happened since the event of a number, and then what happens, without an end; without
        `follow` up to now. Keep the `seq` of the last one to go on there another day."""
        if follow:
            asked: dict[str, Any] = {"after": after}
            if sandbox is not None:
                asked["sandbox"] = sandbox
            for event in self._wire.resumed("/v1/events/stream", asked):
                with reading():
                    told = models.EventReport.from_dict(event.object())
                yield told
        while not follow:
            found = self._wire.ask(
                events_list.sync_detailed, client=self.api, after=after, sandbox=given(sandbox)
            )
            events = self._wire.done(found).events
            for report in events:
                after = report.seq
                yield report
            if not events:
                return

    def audit(self, after: int = 0) -> list[models.AuditReport]:
        """What callers changed, after the entry of a number."""
        found = self._wire.ask(events_audit.sync_detailed, client=self.api, after=after)
        return self._wire.done(found).entries

    def secrets(self) -> list[models.SecretReport]:
        """The secrets of this caller, by name. Nobody is told a value."""
        found = self._wire.ask(secrets_list.sync_detailed, client=self._wire.api)
        return self._wire.done(found).secrets

    def put_secret(self, name: str, value: Bytes | str) -> models.SecretReport:
        """Adds a secret, or gives one that is there another value."""
        content = content_of(value)
        empty = File(payload=b"")  # type: ignore[arg-type]
        answer = self._wire.send(secrets_put._get_kwargs(name, body=empty), content=content)
        with reading():
            return models.SecretReport.from_dict(answer.json())

    def remove_secret(self, name: str) -> None:
        """Removes a secret. Commands that have it keep it until they end."""
        self._wire.ask(secrets_remove.sync_detailed, name, client=self._wire.api)

    def tools(self, pack: str) -> models.ToolList:
        """The tools of a pack, with a text for a system prompt."""
        found = self._wire.ask(tools_list.sync_detailed, pack, client=self.api)
        return self._wire.done(found)

    def call_tool(self, pack: str, tool: str, arguments: Mapping[str, Any]) -> models.ToolOutcome:
        """Calls a tool. One that fails is an outcome with `is_error`, and raises nothing."""
        body = wish_of(models.ToolArguments, arguments)
        called = self._wire.ask(tools_call.sync_detailed, pack, tool, client=self.api, body=body)
        return self._wire.done(called)

    def ready(self) -> bool:
        """Whether the server takes requests now."""
        try:
            self._wire.ask(server_ready.sync_detailed, client=self.api)
        except CofferdamError:
            return False
        return True


class Using:
    """A sandbox for a block, see `Client.sandbox`."""

    def __init__(
        self, client: Client, name: str | None, keep: bool, options: SandboxOptions
    ) -> None:
        self._client, self._name, self._keep, self._options = client, name, keep, options
        self._sandbox: Sandbox | None = None

    def __enter__(self) -> Sandbox:
        # With it the same is made again, where the answer to the first request is lost.
        self._key = uuid4().hex
        self._sandbox = Making(self._make, self._take_back).made()
        return self._sandbox

    def _make(self) -> Sandbox:
        if self._name is None:
            return self._client.create(key=self._key, **self._options)
        return self._client.ensure(self._name, **self._options)

    def _take_back(self, sandbox: Sandbox) -> None:
        # One that is to be kept can be found by its name; without one nobody knows of it.
        if sandbox.is_made_now and not (self._keep and self._name):
            sandbox.delete(missing_ok=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._sandbox is not None and self._sandbox.is_made_now and not self._keep:
            self._sandbox.delete(missing_ok=True)
