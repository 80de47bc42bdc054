from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="ManifestEntryType2")


@_attrs_define
class ManifestEntryType2:
    """A symbolic link to something in the workspace.

    Attributes:
        path (str): Where.
        target (str): Where it leads, as it says.
        type_ (Literal['link']):
    """

    path: str
    target: str
    type_: Literal["link"]

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        target = self.target

        type_ = self.type_

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "path": path,
                "target": target,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        target = d.pop("target")

        type_ = cast(Literal["link"], d.pop("type"))
        if type_ != "link":
            raise ValueError(f"type must match const 'link', got '{type_}'")

        manifest_entry_type_2 = cls(
            path=path,
            target=target,
            type_=type_,
        )

        return manifest_entry_type_2
