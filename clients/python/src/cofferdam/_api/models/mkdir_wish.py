from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="MkdirWish")


@_attrs_define
class MkdirWish:
    """A directory that is to be there.

    Attributes:
        path (None | str | Unset): Its path.
        path_base64 (None | str | Unset): Its path in base64, where it is not UTF-8.
    """

    path: None | str | Unset = UNSET
    path_base64: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        path: None | str | Unset
        if isinstance(self.path, Unset):
            path = UNSET
        else:
            path = self.path

        path_base64: None | str | Unset
        if isinstance(self.path_base64, Unset):
            path_base64 = UNSET
        else:
            path_base64 = self.path_base64

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if path is not UNSET:
            field_dict["path"] = path
        if path_base64 is not UNSET:
            field_dict["path_base64"] = path_base64

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_path(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        path = _parse_path(d.pop("path", UNSET))

        def _parse_path_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        path_base64 = _parse_path_base64(d.pop("path_base64", UNSET))

        mkdir_wish = cls(
            path=path,
            path_base64=path_base64,
        )

        return mkdir_wish
