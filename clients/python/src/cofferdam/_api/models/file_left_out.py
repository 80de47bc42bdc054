from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="FileLeftOut")


@_attrs_define
class FileLeftOut:
    """Something that was not searched or not told.

    Attributes:
        count (int): How often.
        first (str): Where it was the first time; bytes that are not UTF-8 are replaced.
        why (str): Why: `too_large`, `unreadable`, `too_deep`, `too_many_names`, `too_many_matches`,
            `matches_of_one_file` or `rules`.
    """

    count: int
    first: str
    why: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        count = self.count

        first = self.first

        why = self.why

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "count": count,
                "first": first,
                "why": why,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        count = d.pop("count")

        first = d.pop("first")

        why = d.pop("why")

        file_left_out = cls(
            count=count,
            first=first,
            why=why,
        )

        file_left_out.additional_properties = d
        return file_left_out

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
