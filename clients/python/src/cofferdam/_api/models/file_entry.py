from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="FileEntry")


@_attrs_define
class FileEntry:
    """What `file stat --json` prints, and an entry of `file list --json`. Format 1.

    Attributes:
        kind (str): What it is: `file`, `directory`, `link`, `fifo`, `socket` or `device`.
        links (int): How many names it has.
        mode (str): The permissions, in octal.
        modified_ms (int): When it was changed last, in milliseconds since 1970.
        size (int): Its size in bytes.
        path (None | str | Unset): The path, where it is UTF-8; in a list below the directory that is listed.
        path_base64 (None | str | Unset): The path in base64, where it is not UTF-8.
        target (None | str | Unset): Where a link leads, as it says; bytes that are not UTF-8 are replaced.
    """

    kind: str
    links: int
    mode: str
    modified_ms: int
    size: int
    path: None | str | Unset = UNSET
    path_base64: None | str | Unset = UNSET
    target: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        links = self.links

        mode = self.mode

        modified_ms = self.modified_ms

        size = self.size

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

        target: None | str | Unset
        if isinstance(self.target, Unset):
            target = UNSET
        else:
            target = self.target

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "links": links,
                "mode": mode,
                "modified_ms": modified_ms,
                "size": size,
            }
        )
        if path is not UNSET:
            field_dict["path"] = path
        if path_base64 is not UNSET:
            field_dict["path_base64"] = path_base64
        if target is not UNSET:
            field_dict["target"] = target

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        links = d.pop("links")

        mode = d.pop("mode")

        modified_ms = d.pop("modified_ms")

        size = d.pop("size")

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

        def _parse_target(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        target = _parse_target(d.pop("target", UNSET))

        file_entry = cls(
            kind=kind,
            links=links,
            mode=mode,
            modified_ms=modified_ms,
            size=size,
            path=path,
            path_base64=path_base64,
            target=target,
        )

        file_entry.additional_properties = d
        return file_entry

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
