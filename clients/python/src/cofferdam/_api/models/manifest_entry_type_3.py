from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="ManifestEntryType3")


@_attrs_define
class ManifestEntryType3:
    """A directory with all that is in a directory of the host: files, directories, and links that stay
    in the workspace.

        Attributes:
            from_ (str): The directory of the host; relative to the manifest.
            path (str): Where.
            type_ (Literal['copy']):
    """

    from_: str
    path: str
    type_: Literal["copy"]

    def to_dict(self) -> dict[str, Any]:
        from_ = self.from_

        path = self.path

        type_ = self.type_

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "from": from_,
                "path": path,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        from_ = d.pop("from")

        path = d.pop("path")

        type_ = cast(Literal["copy"], d.pop("type"))
        if type_ != "copy":
            raise ValueError(f"type must match const 'copy', got '{type_}'")

        manifest_entry_type_3 = cls(
            from_=from_,
            path=path,
            type_=type_,
        )

        return manifest_entry_type_3
