from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ManifestEntryType1")


@_attrs_define
class ManifestEntryType1:
    """A directory.

    Attributes:
        path (str): Where.
        type_ (Literal['directory']):
        mode (None | str | Unset): Its permissions, in octal, at most 777. Without it the usual ones.
    """

    path: str
    type_: Literal["directory"]
    mode: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        type_ = self.type_

        mode: None | str | Unset
        if isinstance(self.mode, Unset):
            mode = UNSET
        else:
            mode = self.mode

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "path": path,
                "type": type_,
            }
        )
        if mode is not UNSET:
            field_dict["mode"] = mode

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        type_ = cast(Literal["directory"], d.pop("type"))
        if type_ != "directory":
            raise ValueError(f"type must match const 'directory', got '{type_}'")

        def _parse_mode(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        mode = _parse_mode(d.pop("mode", UNSET))

        manifest_entry_type_1 = cls(
            path=path,
            type_=type_,
            mode=mode,
        )

        return manifest_entry_type_1
