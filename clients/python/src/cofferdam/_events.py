"""Server-sent events, read from bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """One event of a stream."""

    name: str
    id: str
    data: str

    def object(self) -> dict[str, Any]:
        """What it carries."""
        read: dict[str, Any] = json.loads(self.data)
        return read


class EventReader:
    """Puts events together from pieces of a stream, however it is cut.

    Lines end with line feeds and nothing else: what is a line end to Python, such as U+2028, may stand
    in the middle of JSON.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._begin()

    def _begin(self) -> None:
        self._name, self._id, self._data = "message", "", list[str]()

    def feed(self, piece: bytes) -> list[Event]:
        """The events that this piece completes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        events = []
        for line in lines:
            event = self._take(line.removesuffix(b"\r").decode(errors="replace"))
            if event is not None:
                events.append(event)
        return events

    def _take(self, line: str) -> Event | None:
        if not line:
            found = Event(self._name, self._id, "\n".join(self._data)) if self._data else None
            self._begin()
            return found
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "id":
            self._id = value
        elif field == "data":
            self._data.append(value)
        return None
