from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="ManifestEntryType1")


@_attrs_define
class ManifestEntryType1:
    """A directory.

    Attributes:
        path (str): Where.
        type_ (Literal['directory']):
    """

    path: str
    type_: Literal["directory"]

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        type_ = self.type_

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "path": path,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        type_ = cast(Literal["directory"], d.pop("type"))
        if type_ != "directory":
            raise ValueError(f"type must match const 'directory', got '{type_}'")

        manifest_entry_type_1 = cls(
            path=path,
            type_=type_,
        )

        return manifest_entry_type_1
