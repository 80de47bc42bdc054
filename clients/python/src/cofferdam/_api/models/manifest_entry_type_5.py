from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="ManifestEntryType5")


@_attrs_define
class ManifestEntryType5:
    """A directory of the host that is shown read-only, as it is now and becomes, for as long as the
    session is there. Nothing of it is copied, and what `--read` refuses is refused here. Nothing may be
    at its path but an empty directory.

        Attributes:
            from_ (str): The directory of the host; relative to the manifest. Another one in its place is an error.
            path (str): Where.
            type_ (Literal['mount']):
    """

    from_: str
    path: str
    type_: Literal["mount"]

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

        type_ = cast(Literal["mount"], d.pop("type"))
        if type_ != "mount":
            raise ValueError(f"type must match const 'mount', got '{type_}'")

        manifest_entry_type_5 = cls(
            from_=from_,
            path=path,
            type_=type_,
        )

        return manifest_entry_type_5
