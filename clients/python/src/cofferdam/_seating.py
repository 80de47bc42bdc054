"""Sitting down before a terminal, for asyncio: awaited it gives the terminal, entered it opens it too."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar


class _AsyncTerminal(Protocol):
    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


T = TypeVar("T", bound=_AsyncTerminal)


class AsyncSeating(Generic[T]):
    """A command that is started at a terminal: `await` it, or write `async with`."""

    def __init__(self, starting: Coroutine[Any, Any, T]) -> None:
        self._starting = starting

    def __await__(self) -> Generator[Any, Any, T]:
        return self._starting.__await__()

    async def __aenter__(self) -> T:
        self._terminal = await self._starting
        return await self._terminal.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._terminal.__aexit__(kind, error, trace)
