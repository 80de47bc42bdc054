from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="LogPart")


@_attrs_define
class LogPart:
    """A part of what a command wrote. Format 1.

    Attributes:
        next_offset (int): Where the next part begins.
        offset (int): Where it begins; later than asked for where the beginning was dropped.
        stream (str): The stream: `stdout` or `stderr`.
        base64 (None | str | Unset): What was written in base64, where it is not UTF-8.
        text (None | str | Unset): What was written, where it is UTF-8.
    """

    next_offset: int
    offset: int
    stream: str
    base64: None | str | Unset = UNSET
    text: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        next_offset = self.next_offset

        offset = self.offset

        stream = self.stream

        base64: None | str | Unset
        if isinstance(self.base64, Unset):
            base64 = UNSET
        else:
            base64 = self.base64

        text: None | str | Unset
        if isinstance(self.text, Unset):
            text = UNSET
        else:
            text = self.text

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "next_offset": next_offset,
                "offset": offset,
                "stream": stream,
            }
        )
        if base64 is not UNSET:
            field_dict["base64"] = base64
        if text is not UNSET:
            field_dict["text"] = text

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        next_offset = d.pop("next_offset")

        offset = d.pop("offset")

        stream = d.pop("stream")

        def _parse_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        base64 = _parse_base64(d.pop("base64", UNSET))

        def _parse_text(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        text = _parse_text(d.pop("text", UNSET))

        log_part = cls(
            next_offset=next_offset,
            offset=offset,
            stream=stream,
            base64=base64,
            text=text,
        )

        log_part.additional_properties = d
        return log_part

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
