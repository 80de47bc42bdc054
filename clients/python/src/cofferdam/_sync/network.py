# Made from _async/network.py by blocking.py; change that one.
"""What a sandbox may reach, and what reaches it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from .. import models
from .._api.api.network import (
    network_allow,
    network_answer,
    network_approvals,
    network_connections,
    network_deny,
    network_set,
    network_show,
)
from .._api.api.ports import ports_close, ports_list, ports_open
from .._values import given, word
from .wire import Wire


class Network:
    """The rules of a sandbox, what waits to be allowed, and what became of its connections."""

    def __init__(self, wire: Wire, sandbox: str) -> None:
        self._wire, self._sandbox = wire, sandbox

    def show(self) -> models.NetworkReport:
        """The rules in force."""
        found = self._wire.ask(network_show.sync_detailed, self._sandbox, client=self._wire.api)
        return self._wire.done(found)

    def set(
        self, allow: Sequence[str] = (), deny: Sequence[str] = (), *, ask_ms: int | None = None
    ) -> models.NetworkReport:
        """Makes these all the rules there are, from the next connection on. None close it."""
        body = models.NetworkWish(allow=list(allow), deny=list(deny), ask_ms=given(ask_ms))
        done = self._wire.ask(
            network_set.sync_detailed, self._sandbox, client=self._wire.api, body=body
        )
        return self._wire.done(done)

    def allow(self, *rules: str) -> models.NetworkReport:
        """Allows more, as in ``crates.io:443``, within what the operator of the server allows."""
        body = models.RulesWish(rules=list(rules))
        done = self._wire.ask(
            network_allow.sync_detailed, self._sandbox, client=self._wire.api, body=body
        )
        return self._wire.done(done)

    def deny(self, *rules: str) -> models.NetworkReport:
        """Denies what is allowed otherwise."""
        body = models.RulesWish(rules=list(rules))
        done = self._wire.ask(
            network_deny.sync_detailed, self._sandbox, client=self._wire.api, body=body
        )
        return self._wire.done(done)

    def approvals(self) -> list[models.PermissionReport]:
        """What waits to be allowed, and what did so lately."""
        found = self._wire.ask(
            network_approvals.sync_detailed, self._sandbox, client=self._wire.api
        )
        return self._wire.done(found).permissions

    def answer(
        self, approval: str, answer: Literal["once", "session", "deny"]
    ) -> models.PermissionReport:
        """Answers something that waits. A key has to have the scope `approve` for it."""
        body = models.AnswerWish(answer=word(models.AnswerName, "answer", answer))
        done = self._wire.ask(
            network_answer.sync_detailed,
            self._sandbox,
            approval,
            client=self._wire.api,
            body=body,
        )
        return self._wire.done(done)

    def connections(self) -> Iterator[models.ConnectionReport]:
        """What became of its connections so far, as far as that is kept, questions for names among them."""
        after = 0
        while True:
            found = self._wire.ask(
                network_connections.sync_detailed,
                self._sandbox,
                client=self._wire.api,
                after=after,
            )
            page = self._wire.done(found)
            for connection in page.connections:
                yield connection
            if page.next_ == after:
                return
            after = page.next_


class Ports:
    """Ports inside a sandbox that have an address."""

    def __init__(self, wire: Wire, sandbox: str) -> None:
        self._wire, self._sandbox = wire, sandbox

    def list(self) -> list[models.PortReport]:
        """All of them."""
        found = self._wire.ask(ports_list.sync_detailed, self._sandbox, client=self._wire.api)
        return self._wire.done(found).ports

    def open(self, port: int) -> models.PortReport:
        """Gives a port an address, web sockets included. Whoever knows its `url` needs no key."""
        body = models.PortWish(port=port)
        done = self._wire.ask(
            ports_open.sync_detailed, self._sandbox, client=self._wire.api, body=body
        )
        return self._wire.done(done)

    def close(self, port: int) -> None:
        """Takes the address from a port. Connections that stand go on."""
        self._wire.ask(ports_close.sync_detailed, self._sandbox, port, client=self._wire.api)
