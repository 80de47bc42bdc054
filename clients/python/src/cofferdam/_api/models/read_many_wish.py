from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ReadManyWish")


@_attrs_define
class ReadManyWish:
    """Files that are read at once.

    Attributes:
        max_bytes (int | None | Unset): Leaves out a file of more bytes.
        paths (list[str] | Unset): The paths.
        paths_base64 (list[str] | Unset): Further paths in base64, which are not UTF-8.
    """

    max_bytes: int | None | Unset = UNSET
    paths: list[str] | Unset = UNSET
    paths_base64: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        max_bytes: int | None | Unset
        if isinstance(self.max_bytes, Unset):
            max_bytes = UNSET
        else:
            max_bytes = self.max_bytes

        paths: list[str] | Unset = UNSET
        if not isinstance(self.paths, Unset):
            paths = self.paths

        paths_base64: list[str] | Unset = UNSET
        if not isinstance(self.paths_base64, Unset):
            paths_base64 = self.paths_base64

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if max_bytes is not UNSET:
            field_dict["max_bytes"] = max_bytes
        if paths is not UNSET:
            field_dict["paths"] = paths
        if paths_base64 is not UNSET:
            field_dict["paths_base64"] = paths_base64

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_max_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_bytes = _parse_max_bytes(d.pop("max_bytes", UNSET))

        paths = cast(list[str], d.pop("paths", UNSET))

        paths_base64 = cast(list[str], d.pop("paths_base64", UNSET))

        read_many_wish = cls(
            max_bytes=max_bytes,
            paths=paths,
            paths_base64=paths_base64,
        )

        return read_many_wish
