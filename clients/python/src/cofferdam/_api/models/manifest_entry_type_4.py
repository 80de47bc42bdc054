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

T = TypeVar("T", bound="ManifestEntryType4")


@_attrs_define
class ManifestEntryType4:
    """What an archive of the host holds: files, directories, and links that stay in the workspace. A tar
    archive, plain or packed by gzip, xz or Zstandard.

        Attributes:
            from_ (str): The archive, a regular file of the host and no link; relative to the manifest.
            path (str): The directory that it is unpacked in.
            type_ (Literal['archive']):
            sha256 (None | str | Unset): Its SHA-256, 64 hexadecimal digits. Another archive is an error, and nothing is
                unpacked.
            strip_components (int | Unset): How many leading names of each path in it are left out. What has no more is left
                out whole.
    """

    from_: str
    path: str
    type_: Literal["archive"]
    sha256: None | str | Unset = UNSET
    strip_components: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from_ = self.from_

        path = self.path

        type_ = self.type_

        sha256: None | str | Unset
        if isinstance(self.sha256, Unset):
            sha256 = UNSET
        else:
            sha256 = self.sha256

        strip_components = self.strip_components

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "from": from_,
                "path": path,
                "type": type_,
            }
        )
        if sha256 is not UNSET:
            field_dict["sha256"] = sha256
        if strip_components is not UNSET:
            field_dict["strip_components"] = strip_components

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        from_ = d.pop("from")

        path = d.pop("path")

        type_ = cast(Literal["archive"], d.pop("type"))
        if type_ != "archive":
            raise ValueError(f"type must match const 'archive', got '{type_}'")

        def _parse_sha256(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        sha256 = _parse_sha256(d.pop("sha256", UNSET))

        strip_components = d.pop("strip_components", UNSET)

        manifest_entry_type_4 = cls(
            from_=from_,
            path=path,
            type_=type_,
            sha256=sha256,
            strip_components=strip_components,
        )

        return manifest_entry_type_4
