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

T = TypeVar("T", bound="ManifestEntryType0")


@_attrs_define
class ManifestEntryType0:
    """A regular file, whose bytes are said in one of three ways.

    Attributes:
        path (str): Where.
        type_ (Literal['file']):
        base64 (None | str | Unset): What it holds, in base64.
        from_ (None | str | Unset): A regular file of the host that holds it, and no link; relative to the manifest.
        mode (None | str | Unset): Its permissions, in octal, at most 777. Without it 644, or 755 where `from` can be
            executed.
        text (None | str | Unset): What it holds, as text.
    """

    path: str
    type_: Literal["file"]
    base64: None | str | Unset = UNSET
    from_: None | str | Unset = UNSET
    mode: None | str | Unset = UNSET
    text: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        type_ = self.type_

        base64: None | str | Unset
        if isinstance(self.base64, Unset):
            base64 = UNSET
        else:
            base64 = self.base64

        from_: None | str | Unset
        if isinstance(self.from_, Unset):
            from_ = UNSET
        else:
            from_ = self.from_

        mode: None | str | Unset
        if isinstance(self.mode, Unset):
            mode = UNSET
        else:
            mode = self.mode

        text: None | str | Unset
        if isinstance(self.text, Unset):
            text = UNSET
        else:
            text = self.text

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "path": path,
                "type": type_,
            }
        )
        if base64 is not UNSET:
            field_dict["base64"] = base64
        if from_ is not UNSET:
            field_dict["from"] = from_
        if mode is not UNSET:
            field_dict["mode"] = mode
        if text is not UNSET:
            field_dict["text"] = text

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        type_ = cast(Literal["file"], d.pop("type"))
        if type_ != "file":
            raise ValueError(f"type must match const 'file', got '{type_}'")

        def _parse_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        base64 = _parse_base64(d.pop("base64", UNSET))

        def _parse_from_(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        from_ = _parse_from_(d.pop("from", UNSET))

        def _parse_mode(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        mode = _parse_mode(d.pop("mode", UNSET))

        def _parse_text(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        text = _parse_text(d.pop("text", UNSET))

        manifest_entry_type_0 = cls(
            path=path,
            type_=type_,
            base64=base64,
            from_=from_,
            mode=mode,
            text=text,
        )

        return manifest_entry_type_0
