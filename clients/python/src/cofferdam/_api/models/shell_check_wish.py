from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ShellCheckWish")


@_attrs_define
class ShellCheckWish:
    """A command of a shell that is asked for again.

    Attributes:
        offset (int): Where its output begins.
        seq (int): Its number.
        max_bytes (int | None | Unset): At most so many bytes of output, at most 4194304. Default: 262144.
        wait_ms (int | None | Unset): Waits so long for its end, in milliseconds, at most 60000. Default: not at all.
    """

    offset: int
    seq: int
    max_bytes: int | None | Unset = UNSET
    wait_ms: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        offset = self.offset

        seq = self.seq

        max_bytes: int | None | Unset
        if isinstance(self.max_bytes, Unset):
            max_bytes = UNSET
        else:
            max_bytes = self.max_bytes

        wait_ms: int | None | Unset
        if isinstance(self.wait_ms, Unset):
            wait_ms = UNSET
        else:
            wait_ms = self.wait_ms

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "offset": offset,
                "seq": seq,
            }
        )
        if max_bytes is not UNSET:
            field_dict["max_bytes"] = max_bytes
        if wait_ms is not UNSET:
            field_dict["wait_ms"] = wait_ms

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        offset = d.pop("offset")

        seq = d.pop("seq")

        def _parse_max_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_bytes = _parse_max_bytes(d.pop("max_bytes", UNSET))

        def _parse_wait_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        wait_ms = _parse_wait_ms(d.pop("wait_ms", UNSET))

        shell_check_wish = cls(
            offset=offset,
            seq=seq,
            max_bytes=max_bytes,
            wait_ms=wait_ms,
        )

        return shell_check_wish
