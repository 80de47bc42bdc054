"""What becomes of a command or a sandbox when whoever waits for it gives up, as by the cancelling of a
task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from .errors import CofferdamError

#: How long what is given up may take to be killed, or deleted, while whoever gave it up waits.
KILL_S = 10.0
#: What is still taken back after that. The loop by itself would not hold it.
_TAKING_BACK = set[asyncio.Task[None]]()


class _AsyncKillable(Protocol):
    async def kill(self) -> None: ...


class _Killable(Protocol):
    def kill(self) -> None: ...


A = TypeVar("A", bound=_AsyncKillable)
K = TypeVar("K", bound=_Killable)
T = TypeVar("T")


def _is_given_up(kind: type[BaseException] | None) -> bool:
    """Whether a block ended neither by itself nor by an error: by a cancelling or by Ctrl-C."""
    return kind is not None and not issubclass(kind, Exception)


class AsyncKilledIfGivenUp(Generic[A]):
    """Starts a command for a block, and kills it where the block is given up, though it may still be
    starting."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, A]]) -> None:
        self._start = start

    async def __aenter__(self) -> A:
        # Once it is asked for it may run, whoever hears the answer.
        self._started = asyncio.ensure_future(self._start())
        try:
            return await asyncio.shield(self._started)
        except BaseException as error:
            if _is_given_up(type(error)):
                await asyncio.shield(self._kill())
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if _is_given_up(kind):
            await asyncio.shield(self._kill())

    async def _kill(self) -> None:
        try:
            async with asyncio.timeout(KILL_S):
                await (await self._started).kill()
        except (CofferdamError, TimeoutError):
            # It has ended, or nobody can be told: what was asked for is the giving up.
            pass


class KilledIfGivenUp(Generic[K]):
    """Starts a command for a block, and kills it where the block is given up, though it may still be
    starting. What starts it gives the same command when it is called again."""

    def __init__(self, start: Callable[[], K]) -> None:
        self._start = start

    def __enter__(self) -> K:
        try:
            return self._start()
        except BaseException as error:
            if _is_given_up(type(error)):
                self._kill()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if _is_given_up(kind):
            self._kill()

    def _kill(self) -> None:
        try:
            # The answer to the first one may have been lost with the request; the command was not.
            self._start().kill()
        except CofferdamError:
            pass


class AsyncMaking(Generic[T]):
    """Makes something, and takes it back where it is given up meanwhile: a server ends what it began,
    whoever hears the answer."""

    def __init__(
        self, make: Callable[[], Coroutine[Any, Any, T]], take_back: Callable[[T], Awaitable[None]]
    ) -> None:
        self._make, self._take_back = make, take_back

    async def made(self) -> T:
        """What was made."""
        making = asyncio.ensure_future(self._make())
        try:
            return await asyncio.shield(making)
        except BaseException as error:
            if _is_given_up(type(error)):
                task = asyncio.ensure_future(self._taken_back(making))
                _TAKING_BACK.add(task)
                task.add_done_callback(_TAKING_BACK.discard)
                # Waiting for it leaves it alone, also where it takes longer.
                await asyncio.wait({task}, timeout=KILL_S)
            raise

    async def _taken_back(self, making: asyncio.Future[T]) -> None:
        try:
            await self._take_back(await making)
        except CofferdamError:
            # It was not made, or nobody can be told.
            pass


class Making(Generic[T]):
    """The same without `await`. What makes it gives the same when it is called again."""

    def __init__(self, make: Callable[[], T], take_back: Callable[[T], None]) -> None:
        self._make, self._take_back = make, take_back

    def made(self) -> T:
        """What was made."""
        try:
            return self._make()
        except BaseException as error:
            if _is_given_up(type(error)):
                self._ask_again_and_take_back()
            raise

    def _ask_again_and_take_back(self) -> None:
        try:
            # Its id came with the answer that nobody heard.
            self._take_back(self._make())
        except CofferdamError:
            pass


class AsyncToldIfGivenUp:
    """Tells somebody where a block is given up."""

    def __init__(self, tell: Callable[[], Awaitable[None]]) -> None:
        self._tell = tell

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if _is_given_up(kind):
            await asyncio.shield(self._say())

    async def _say(self) -> None:
        try:
            async with asyncio.timeout(KILL_S):
                await self._tell()
        except (CofferdamError, TimeoutError):
            pass


class ToldIfGivenUp:
    """The same without `await`."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if _is_given_up(kind):
            try:
                self._tell()
            except CofferdamError:
                pass
