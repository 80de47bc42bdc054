from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ChosenWish")


@_attrs_define
class ChosenWish:
    """Parts of a file's change that are to land, as `diff/hunks` told them.

    Attributes:
        hunks (list[int] | Unset): The parts, by their numbers from 0.
        path (None | str | Unset): The file.
        path_base64 (None | str | Unset): The file in base64, where its path is not UTF-8.
        sha256 (str | Unset): The `sha256` that was told of the change. Default: ''.
        whole (bool | Unset): All of the change in place of parts, also where it has none. Default: False.
    """

    hunks: list[int] | Unset = UNSET
    path: None | str | Unset = UNSET
    path_base64: None | str | Unset = UNSET
    sha256: str | Unset = ""
    whole: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        hunks: list[int] | Unset = UNSET
        if not isinstance(self.hunks, Unset):
            hunks = self.hunks

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

        sha256 = self.sha256

        whole = self.whole

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if hunks is not UNSET:
            field_dict["hunks"] = hunks
        if path is not UNSET:
            field_dict["path"] = path
        if path_base64 is not UNSET:
            field_dict["path_base64"] = path_base64
        if sha256 is not UNSET:
            field_dict["sha256"] = sha256
        if whole is not UNSET:
            field_dict["whole"] = whole

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        hunks = cast(list[int], d.pop("hunks", UNSET))

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

        sha256 = d.pop("sha256", UNSET)

        whole = d.pop("whole", UNSET)

        chosen_wish = cls(
            hunks=hunks,
            path=path,
            path_base64=path_base64,
            sha256=sha256,
            whole=whole,
        )

        return chosen_wish
