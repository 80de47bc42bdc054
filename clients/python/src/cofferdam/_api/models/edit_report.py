from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.edited_text import EditedText


T = TypeVar("T", bound="EditReport")


@_attrs_define
class EditReport:
    """What edits do, or why they do nothing. Format 1. Lines count from 1.

    Attributes:
        applies (bool): Whether all of them apply; if not, none does.
        edits (list[EditedText]): Each edit that was looked at, in order. The first that is refused is the last.
        replacements (int): How many places are replaced in all.
    """

    applies: bool
    edits: list[EditedText]
    replacements: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        applies = self.applies

        edits = []
        for edits_item_data in self.edits:
            edits_item = edits_item_data.to_dict()
            edits.append(edits_item)

        replacements = self.replacements

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "applies": applies,
                "edits": edits,
                "replacements": replacements,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.edited_text import EditedText  # noqa: PLC0415

        d = dict(src_dict)
        applies = d.pop("applies")

        edits = []
        _edits = d.pop("edits")
        for edits_item_data in _edits:
            edits_item = EditedText.from_dict(edits_item_data)

            edits.append(edits_item)

        replacements = d.pop("replacements")

        edit_report = cls(
            applies=applies,
            edits=edits,
            replacements=replacements,
        )

        edit_report.additional_properties = d
        return edit_report

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
