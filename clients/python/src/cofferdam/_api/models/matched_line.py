from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="MatchedLine")


@_attrs_define
class MatchedLine:
    """A line.

    Attributes:
        left_out_bytes (int): How many bytes are left out behind these.
        line (int): Its number, from 1 on.
        base64 (None | str | Unset): The line in base64, where it is not UTF-8.
        column (int | None | Unset): At which of its bytes the first match begins, from 1 on. A line of context has
            none.
        text (None | str | Unset): The line without its end, where it is UTF-8.
    """

    left_out_bytes: int
    line: int
    base64: None | str | Unset = UNSET
    column: int | None | Unset = UNSET
    text: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        left_out_bytes = self.left_out_bytes

        line = self.line

        base64: None | str | Unset
        if isinstance(self.base64, Unset):
            base64 = UNSET
        else:
            base64 = self.base64

        column: int | None | Unset
        if isinstance(self.column, Unset):
            column = UNSET
        else:
            column = self.column

        text: None | str | Unset
        if isinstance(self.text, Unset):
            text = UNSET
        else:
            text = self.text

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "left_out_bytes": left_out_bytes,
                "line": line,
            }
        )
        if base64 is not UNSET:
            field_dict["base64"] = base64
        if column is not UNSET:
            field_dict["column"] = column
        if text is not UNSET:
            field_dict["text"] = text

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        left_out_bytes = d.pop("left_out_bytes")

        line = d.pop("line")

        def _parse_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        base64 = _parse_base64(d.pop("base64", UNSET))

        def _parse_column(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        column = _parse_column(d.pop("column", UNSET))

        def _parse_text(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        text = _parse_text(d.pop("text", UNSET))

        matched_line = cls(
            left_out_bytes=left_out_bytes,
            line=line,
            base64=base64,
            column=column,
            text=text,
        )

        matched_line.additional_properties = d
        return matched_line

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
