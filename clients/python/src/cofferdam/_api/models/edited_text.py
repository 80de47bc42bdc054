from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.edit_outcome import EditOutcome

T = TypeVar("T", bound="EditedText")


@_attrs_define
class EditedText:
    """What came of one edit.

    Attributes:
        already (list[int]): Where the old text is nowhere: lines where the new one stands already; at most 16.
        kept_line_endings (bool): The edit's line endings were made those of the file.
        lines (list[int]): The lines where these begin, in the file as the edits before it have made it; at most 16.
        outcome (EditOutcome): What came of an edit.

            - `applies`: It applies.
            - `not_found`: The old text is nowhere.
            - `ambiguous`: The old text stands in several places, and the edit means the only one.
        places (int): How many places have the old text.
        similar (list[int]): Where the old text is nowhere: lines that are its first one but for white space; at most
            16.
    """

    already: list[int]
    kept_line_endings: bool
    lines: list[int]
    outcome: EditOutcome
    places: int
    similar: list[int]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        already = self.already

        kept_line_endings = self.kept_line_endings

        lines = self.lines

        outcome = self.outcome.value

        places = self.places

        similar = self.similar

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "already": already,
                "kept_line_endings": kept_line_endings,
                "lines": lines,
                "outcome": outcome,
                "places": places,
                "similar": similar,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        already = cast(list[int], d.pop("already"))

        kept_line_endings = d.pop("kept_line_endings")

        lines = cast(list[int], d.pop("lines"))

        outcome = EditOutcome(d.pop("outcome"))

        places = d.pop("places")

        similar = cast(list[int], d.pop("similar"))

        edited_text = cls(
            already=already,
            kept_line_endings=kept_line_endings,
            lines=lines,
            outcome=outcome,
            places=places,
            similar=similar,
        )

        edited_text.additional_properties = d
        return edited_text

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
