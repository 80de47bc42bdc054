from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="FileContent")


@_attrs_define
class FileContent:
    """What `file read --json` prints. Format 1.

    Attributes:
        bytes_ (int): How many bytes were read.
        mode (str): The permissions, in octal.
        modified_ms (int): When it was changed last, in milliseconds since 1970.
        offset (int): Where what was read begins.
        path (str): The path; bytes that are not UTF-8 are replaced.
        session (str): The id of the session.
        size (int): The size of the whole file.
        base64 (None | str | Unset): What was read in base64, where it is not UTF-8.
        sha256 (None | str | Unset): The SHA-256 of the whole file, in hexadecimal.
        text (None | str | Unset): What was read, where it is UTF-8.
    """

    bytes_: int
    mode: str
    modified_ms: int
    offset: int
    path: str
    session: str
    size: int
    base64: None | str | Unset = UNSET
    sha256: None | str | Unset = UNSET
    text: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        bytes_ = self.bytes_

        mode = self.mode

        modified_ms = self.modified_ms

        offset = self.offset

        path = self.path

        session = self.session

        size = self.size

        base64: None | str | Unset
        if isinstance(self.base64, Unset):
            base64 = UNSET
        else:
            base64 = self.base64

        sha256: None | str | Unset
        if isinstance(self.sha256, Unset):
            sha256 = UNSET
        else:
            sha256 = self.sha256

        text: None | str | Unset
        if isinstance(self.text, Unset):
            text = UNSET
        else:
            text = self.text

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "bytes": bytes_,
                "mode": mode,
                "modified_ms": modified_ms,
                "offset": offset,
                "path": path,
                "session": session,
                "size": size,
            }
        )
        if base64 is not UNSET:
            field_dict["base64"] = base64
        if sha256 is not UNSET:
            field_dict["sha256"] = sha256
        if text is not UNSET:
            field_dict["text"] = text

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        bytes_ = d.pop("bytes")

        mode = d.pop("mode")

        modified_ms = d.pop("modified_ms")

        offset = d.pop("offset")

        path = d.pop("path")

        session = d.pop("session")

        size = d.pop("size")

        def _parse_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        base64 = _parse_base64(d.pop("base64", UNSET))

        def _parse_sha256(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        sha256 = _parse_sha256(d.pop("sha256", UNSET))

        def _parse_text(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        text = _parse_text(d.pop("text", UNSET))

        file_content = cls(
            bytes_=bytes_,
            mode=mode,
            modified_ms=modified_ms,
            offset=offset,
            path=path,
            session=session,
            size=size,
            base64=base64,
            sha256=sha256,
            text=text,
        )

        file_content.additional_properties = d
        return file_content

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
