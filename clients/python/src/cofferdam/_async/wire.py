"""The connection to a server: what every request passes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

import httpx

from .._api import Client as Api
from .._api.models import ProblemReport
from .._api.types import Response
from .._events import Event, EventReader
from .._reading import MISREAD, is_of_answer, misread, reading
from ..errors import (
    CofferdamError,
    NotFoundError,
    OptionNameError,
    OptionValueError,
    ServerError,
    UnavailableError,
    UsageError,
    error_of,
)

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

#: How long a connection may take to be made.
CONNECT_S = 10.0
#: How long a stream may say nothing. A server says every 15 s that it is there.
SILENCE_S = 60.0
#: A stream that ends so often at once, without an event, is given up.
MOST_EMPTY_STREAMS = 10
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


class AsyncPatientTransport(httpx.AsyncBaseTransport):
    """Repeats what a server that went away left unanswered, where repeating changes nothing."""

    def __init__(self, inner: httpx.AsyncBaseTransport, patience_s: float) -> None:
        self._inner = inner
        self._patience_s = patience_s
        # A server that never answered is no server that went away.
        self._has_met = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        give_up = time.monotonic() + self._patience_s
        pause = _FIRST_PAUSE_S
        while True:
            try:
                response = await self._inner.handle_async_request(request)
                self._has_met = True
                assert isinstance(response.stream, httpx.AsyncByteStream)
                response.stream = _AsyncBody(response.stream)
                return response
            except httpx.LocalProtocolError as error:
                # It never left, and never will, however often it is sent.
                raise OptionValueError(
                    f"no request can hold the arguments: {error}",
                    kind="usage",
                    hint="Keys and digests have no line ends, and no spaces at their ends.",
                ) from error
            except httpx.TransportError as error:
                is_over = time.monotonic() + pause > give_up
                if is_over or not self._has_met or not may_repeat(request, error):
                    raise unreachable(error) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _AsyncBody(httpx.AsyncByteStream):
    """The body of an answer, which says in the words of this client where it broke off."""

    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._inner:
                yield piece
        except httpx.TransportError as error:
            raise broken_off(error) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


def may_repeat(request: httpx.Request, error: httpx.TransportError) -> bool:
    """Whether a request that failed so does no more when it is sent again."""
    if isinstance(error, httpx.ConnectError):
        return True
    if isinstance(error, httpx.TimeoutException):
        return False
    is_ensured = request.method == "PUT" and request.url.path.count("/") == 3
    # Other keys are forgotten with the server that may have gone.
    is_keyed = "idempotency-key" in request.headers and request.url.path.endswith("/execs")
    return request.method in ("GET", "HEAD") or is_ensured or is_keyed


class AsyncHttp(httpx.AsyncClient):
    """What sends requests. It sends none whose path leads elsewhere."""

    def build_request(self, method: str, url: httpx.URL | str, **more: Any) -> httpx.Request:
        """A request, if there can be such a one."""
        refuse_leaving(str(url))
        if self.is_closed:
            raise UsageError(
                "the client is closed", kind="usage", hint="Make another, or close it later."
            )
        try:
            return super().build_request(method, url, **more)
        except (TypeError, ValueError, httpx.InvalidURL) as error:
            raise OptionNameError(
                f"no request can hold the arguments: {error}",
                kind="usage",
                hint="See what types the arguments of this method have.",
            ) from error

    async def send(self, request: httpx.Request, **more: Any) -> httpx.Response:
        """Sends it. What is wrong with the answer is an error of this client."""
        try:
            return await super().send(request, **more)
        except httpx.HTTPError as error:
            raise broken_off(error) from error


class AsyncWire:
    """A server as the rest of the client sees it."""

    def __init__(
        self,
        url: str,
        key: str | None,
        reconnect_s: float,
        timeout_s: float | None,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        socket = url.removeprefix("unix:") if url.startswith("unix:") else None
        # Each stream holds a connection; who opens many must not wait for one to end.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        inner = transport or httpx.AsyncHTTPTransport(uds=socket, limits=limits)
        self.http = AsyncHttp(
            base_url="http://localhost" if socket else address(url),
            headers=authorization(key),
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_S),
            transport=AsyncPatientTransport(inner, reconnect_s),
            event_hooks={"response": [_refuse_problems]},
            trust_env=False,
        )
        self.api = Api(base_url="").set_async_httpx_client(self.http)

    async def send(self, request: dict[str, Any], **more: Any) -> httpx.Response:
        """Sends a request that the generated part made, with what it does not know."""
        headers = {**request.pop("headers", {}), **more.pop("headers", {})}
        return await self.http.request(**{**request, **more}, headers=headers)

    async def events(
        self, url: str, params: dict[str, Any], last: str = ""
    ) -> AsyncIterator[Event]:
        """A stream of events. An error that it tells is raised."""
        headers = {"last-event-id": last} if last else {}
        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        async with self.http.stream(
            "GET", url, params=params, headers=headers, timeout=timeout
        ) as response:
            reader = EventReader()
            async for piece in response.aiter_bytes():
                for event in reader.feed(piece):
                    if event.name == "problem":
                        with reading():
                            raise error_of(event.object(), None, None)
                    yield event

    async def resumed(self, url: str, params: dict[str, Any]) -> AsyncIterator[Event]:
        """A stream that is taken up where it broke off, again and again, until nobody asks for more."""
        last, empty = "", 0
        while empty < MOST_EMPTY_STREAMS:
            empty += 1
            begin = time.monotonic()
            try:
                async for event in self.events(url, params, last):
                    last, empty = event.id or last, 0
                    yield event
            except UnavailableError as error:
                # The transport was patient when it connected. What broke later is worth another try, and so
                # is a server that is busy.
                is_busy = error.status == 429 and empty < MOST_EMPTY_STREAMS
                is_unreached = isinstance(error.__cause__, httpx.ConnectError)
                if is_unreached or (error.status is not None and not is_busy):
                    raise
            if time.monotonic() - begin > SILENCE_S / 2:
                empty = 0
            await asyncio.sleep(_FIRST_PAUSE_S * empty)
        raise UnavailableError(f"{url} ends at once each time", kind="unavailable", retryable=True)

    async def ask(self, call: Callable[P, Awaitable[R]], *args: P.args, **named: P.kwargs) -> R:
        """Asks as the generated part does. An answer that it cannot read is an error of this client."""
        try:
            return await call(*args, **named)
        except MISREAD as error:
            if not is_of_answer(error):
                raise
            raise misread(error) from error

    def done(self, response: Response[T | ProblemReport]) -> T:
        """What an answer has; answers with problems were raised before."""
        parsed = response.parsed
        if parsed is None or isinstance(parsed, ProblemReport):
            raise error_of(None, response.status_code, response.headers.get("x-request-id"))
        return parsed


def refuse_leaving(url: str) -> None:
    """Refuses a path with a name in it that every reader of addresses takes for a step up, or for nothing:
    the request would go to another route."""
    names = url.partition("?")[0].split("/")[1:]
    bad = next((name for name in names if name in ("", ".", "..")), None)
    if url.startswith("/") and bad is not None:
        raise NotFoundError(
            f"there is nothing called {bad!r}", kind="not_found", hint="Give a whole name or id."
        )


def address(url: str) -> httpx.URL:
    """The address of a server."""
    try:
        read = httpx.URL(url)
    except (TypeError, ValueError, httpx.InvalidURL) as error:
        raise _no_address(url) from error
    if read.scheme not in ("http", "https") or not read.host or (read.port or 0) > 65535:
        raise _no_address(url)
    return read


def _no_address(url: str) -> UsageError:
    return OptionValueError(
        f"{url!r} is no address of a server",
        kind="usage",
        hint="Write http://HOST:PORT, https://HOST or unix:/PATH.",
    )


def authorization(key: str | None) -> dict[str, str]:
    """The header with a key. What no key can be is refused here, for what refuses it later prints it."""
    key = (key or "").strip()
    if not key:
        return {}
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            "the key has characters that no key has",
            kind="usage",
            hint="Give it as `cofferdam key create` printed it.",
        )
    return {"authorization": f"Bearer {key}"}


def unreachable(error: httpx.TransportError) -> CofferdamError:
    """A server that does not answer."""
    return UnavailableError(
        f"the server does not answer: {error or type(error).__name__}",
        kind="unavailable",
        hint="See that `cofferdam serve` runs there.",
        retryable=True,
    )


def broken_off(error: httpx.HTTPError) -> CofferdamError:
    """An answer that ended before its end: what came of it is not whole."""
    return UnavailableError(
        f"the answer broke off, and what came of it is not whole: {error or type(error).__name__}",
        kind="unavailable",
        hint="Drop what came and ask again. If it breaks off again, ask for less or see the server's log.",
        retryable=True,
    )


async def _refuse_problems(response: httpx.Response) -> None:
    if response.status_code < 300 or response.status_code == 304:
        if not _is_answer(response):
            raise _from_elsewhere(response)
        return
    await response.aread()
    try:
        problem = response.json()
    except ValueError:
        problem = None
    raise error_of(problem, response.status_code, response.headers.get("x-request-id"))


def _is_answer(response: httpx.Response) -> bool:
    # A page comes from what stands before a server, or is in its place.
    return not response.headers.get("content-type", "").startswith("text/html")


def _from_elsewhere(response: httpx.Response) -> CofferdamError:
    return ServerError(
        "the answer is a page, and none of a server of Cofferdam",
        kind="protocol",
        hint="Check the address, and the proxy in front of the server, if there is one.",
        status=response.status_code,
    )
