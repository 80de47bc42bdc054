"""The files of a sandbox's workspace."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import Any, Unpack

from .. import models
from .._api.api.files import (
    files_append,
    files_chmod,
    files_copy,
    files_edit,
    files_export,
    files_glob,
    files_grep,
    files_import,
    files_list,
    files_mkdir,
    files_move,
    files_patch,
    files_read,
    files_remove,
    files_stat,
    files_window,
    files_write,
)
from .._api.types import UNSET, File
from .._reading import reading
from .._values import (
    Bytes,
    Edit,
    GlobOptions,
    GrepOptions,
    Path,
    WatchOptions,
    checked,
    content_of,
    edit_of,
    given,
    place,
    places,
    range_of,
    wish_of,
)
from ..errors import CofferdamError
from .wire import AsyncWire

#: Stands for a body in what the generated part makes, which is then put in.
_BODY = File(payload=b"")  # type: ignore[arg-type]
#: The status where a part of a file begins at its end, or behind it.
_BEGINS_BEHIND = 416


class AsyncFiles:
    """Files, safe against what the sandbox put there. Paths are relative to the workspace."""

    def __init__(self, wire: AsyncWire, sandbox: str) -> None:
        self._wire, self._sandbox = wire, sandbox

    async def read(self, path: Path, *, offset: int = 0, length: int | None = None) -> bytes:
        """The bytes of a file, or a part of them; none where that begins at its end or behind it."""
        part = range_of(offset, length)
        request = files_read._get_kwargs(self._sandbox, hash_=False, **_at(path))
        try:
            answer = await self._wire.send(request, headers={"range": part} if part else {})
        except CofferdamError as error:
            if error.status != _BEGINS_BEHIND:
                raise
            return b""
        return answer.content[:length]

    async def read_text(self, path: Path, encoding: str = "utf-8") -> str:
        """A file as text."""
        return (await self.read(path)).decode(encoding)

    async def download(self, path: Path) -> AsyncIterator[bytes]:
        """A file in pieces. One that changes meanwhile, or a connection that breaks, is an error."""
        request = files_read._get_kwargs(self._sandbox, hash_=False, **_at(path))
        async with self._wire.http.stream(**request) as response:
            async for piece in response.aiter_bytes():
                yield piece

    async def write(
        self,
        path: Path,
        data: Bytes | str | AsyncIterable[bytes],
        *,
        mode: str | None = None,
        parents: bool = True,
        if_match: str | None = None,
        if_absent: bool = False,
    ) -> models.FileDone:
        """Writes a file, whole or not at all. `if_match` is the SHA-256 that it must have now, and with
        `if_absent` nothing may be there."""
        headers = {}
        if if_match is not None:
            headers["if-match"] = f'"{if_match}"'
        if if_absent:
            headers["if-none-match"] = "*"
        content = content_of(data, AsyncIterable)
        if isinstance(content, bytes):
            digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
            headers["content-digest"] = f"sha-256=:{digest}:"
        request = files_write._get_kwargs(
            self._sandbox, body=_BODY, mode=given(mode), parents=parents, **_at(path)
        )
        answer = await self._wire.send(request, headers=headers, content=content)
        with reading():
            return models.FileDone.from_dict(answer.json())

    async def append(
        self, path: Path, data: Bytes | str, *, mode: str | None = None
    ) -> models.FileDone:
        """Adds to the end of a file, which is made where it is missing."""
        content = content_of(data, AsyncIterable)
        request = files_append._get_kwargs(self._sandbox, body=_BODY, mode=given(mode), **_at(path))
        answer = await self._wire.send(request, content=content)
        with reading():
            return models.FileDone.from_dict(answer.json())

    async def remove(self, path: Path, *, recursive: bool = False) -> None:
        """Removes a file; with `recursive` a directory and all in it."""
        await self._wire.ask(
            files_remove.asyncio_detailed,
            self._sandbox,
            client=self._wire.api,
            recursive=recursive,
            **_at(path),
        )

    async def stat(self, path: Path) -> models.FileEntry:
        """What is there. A link is not followed."""
        found = await self._wire.ask(
            files_stat.asyncio_detailed, self._sandbox, client=self._wire.api, **_at(path)
        )
        return self._wire.done(found)

    async def list(self, path: Path = ".", *, depth: int = 1) -> AsyncIterator[models.FileEntry]:
        """What is in a directory, page after page."""
        cursor: dict[str, Any] = {}
        while True:
            found = await self._wire.ask(
                files_list.asyncio_detailed,
                self._sandbox,
                client=self._wire.api,
                depth=depth,
                **_at(path),
                **cursor,
            )
            page = self._wire.done(found)
            for entry in page.entries:
                yield entry
            if isinstance(page.next_, str):
                cursor = {"cursor": page.next_}
            elif isinstance(page.next_base64, str):
                cursor = {"cursor_base64": page.next_base64}
            else:
                return

    async def mkdir(self, path: Path) -> None:
        """Makes a directory and those above it; one that is there is fine."""
        body = wish_of(models.MkdirWish, place(path))
        await self._wire.ask(
            files_mkdir.asyncio_detailed, self._sandbox, client=self._wire.api, body=body
        )

    async def move(self, source: Path, target: Path, *, replace: bool = False) -> None:
        """Gives something another name."""
        fields = {**place(source, "from"), **place(target, "to"), "replace": replace}
        body = wish_of(models.MoveWish, fields)
        await self._wire.ask(
            files_move.asyncio_detailed, self._sandbox, client=self._wire.api, body=body
        )

    async def copy(
        self, source: Path, target: Path, *, recursive: bool = False, replace: bool = False
    ) -> None:
        """Copies a file; with `recursive` a directory."""
        fields = {**place(source, "from"), **place(target, "to")}
        body = wish_of(models.CopyWish, {**fields, "recursive": recursive, "replace": replace})
        await self._wire.ask(
            files_copy.asyncio_detailed, self._sandbox, client=self._wire.api, body=body
        )

    async def chmod(self, path: Path, mode: str) -> None:
        """Sets permissions, in octal."""
        body = wish_of(models.ChmodWish, {**place(path), "mode": mode})
        await self._wire.ask(
            files_chmod.asyncio_detailed, self._sandbox, client=self._wire.api, body=body
        )

    async def glob(
        self, *patterns: str, path: Path | None = None, **options: Unpack[GlobOptions]
    ) -> Sequence[models.FileEntry]:
        """Names that one of the patterns matches."""
        fields = {**checked(GlobOptions, options), "patterns": list(patterns)}
        if path is not None:
            fields.update(place(path))
        body = wish_of(models.GlobWish, fields)
        found = await self._wire.ask(
            files_glob.asyncio_detailed, self._sandbox, client=self._wire.api, body=body
        )
        return self._wire.done(found).entries

    async def grep(
        self, *patterns: str, paths: Sequence[Path] = (), **options: Unpack[GrepOptions]
    ) -> models.FileMatches:
        """Lines that one of the regular expressions matches."""
        fields = {**checked(GrepOptions, options), "patterns": list(patterns), **places(paths)}
        body = wish_of(models.GrepWish, fields)
        found = await self._wire.ask(
            files_grep.asyncio_detailed, self._sandbox, client=self._wire.api, body=body
        )
        return self._wire.done(found)

    async def lines(
        self, path: Path, *, offset: int = 0, limit: int | None = None
    ) -> models.Window:
        """Some lines of a text."""
        found = await self._wire.ask(
            files_window.asyncio_detailed,
            self._sandbox,
            client=self._wire.api,
            offset=offset,
            limit=given(limit),
            **_at(path),
        )
        return self._wire.done(found).window

    async def edit(
        self, path: Path, *edits: Edit, all: bool = False, dry_run: bool = False
    ) -> models.FileEdit:
        """Replaces texts, all or none. What does not apply is a `ConflictError` with a `result`."""
        each = [edit_of(edit, all) for edit in edits]
        body = wish_of(models.EditsWish, {**place(path), "edits": each, "dry_run": dry_run})
        done = await self._wire.ask(
            files_edit.asyncio_detailed, self._sandbox, client=self._wire.api, body=body
        )
        assert isinstance(done.parsed, models.FileEdit)
        return done.parsed

    async def patch(
        self, patch: Bytes | str, *, dry_run: bool = False, reverse: bool = False
    ) -> models.FilePatch:
        """Applies a unified diff, or one of ``*** Begin Patch``, all of it or nothing."""
        content = content_of(patch)
        request = files_patch._get_kwargs(
            self._sandbox, body=_BODY, dry_run=dry_run, reverse=reverse
        )
        answer = await self._wire.send(request, content=content)
        with reading():
            return models.FilePatch.from_dict(answer.json())

    async def export(
        self, path: Path = ".", *, max_bytes: int | None = None
    ) -> AsyncIterator[bytes]:
        """A directory or file as a tar archive, in pieces. One that cannot be whole, or has more bytes of
        files than that, is an error after the pieces that came."""
        bound = UNSET if max_bytes is None else max_bytes
        request = files_export._get_kwargs(self._sandbox, max_bytes=bound, **_at(path))
        async with self._wire.http.stream(**request) as response:
            async for piece in response.aiter_bytes():
                yield piece

    async def import_(
        self, path: Path, archive: Bytes | AsyncIterable[bytes], *, replace: bool = False
    ) -> models.FileImported:
        """Unpacks a tar archive, all of it or nothing."""
        content = content_of(archive, AsyncIterable)
        request = files_import._get_kwargs(self._sandbox, body=_BODY, replace=replace, **_at(path))
        answer = await self._wire.send(request, content=content)
        with reading():
            return models.FileImported.from_dict(answer.json())

    async def watch(
        self, path: Path = ".", **options: Unpack[WatchOptions]
    ) -> AsyncIterator[models.FileEventReport]:
        """What happens to files, from ``ready`` on. A watch that breaks off is an error, for nobody
        knows what happened meanwhile."""
        asked = {**checked(WatchOptions, options), **place(path)}
        url = f"/v1/sandboxes/{self._sandbox}/files/watch"
        async for event in self._wire.events(url, asked):
            with reading():
                told = models.FileEventReport.from_dict(event.object())
            yield told


def _at(path: Path) -> Any:
    return place(path)
