from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ToolOutcome")


@_attrs_define
class ToolOutcome:
    """What a call of a tool came to; an error is one too. Format 1.

    Attributes:
        is_error (bool): Whether what was asked for was not done.
        structured (Any): The same for a program, and whole.
        text (str): Short, for a model.
    """

    is_error: bool
    structured: Any
    text: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        is_error = self.is_error

        structured = self.structured

        text = self.text

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "is_error": is_error,
                "structured": structured,
                "text": text,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        is_error = d.pop("is_error")

        structured = d.pop("structured")

        text = d.pop("text")

        tool_outcome = cls(
            is_error=is_error,
            structured=structured,
            text=text,
        )

        tool_outcome.additional_properties = d
        return tool_outcome

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
