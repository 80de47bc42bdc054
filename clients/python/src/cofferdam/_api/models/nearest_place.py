from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.difference import Difference
from ..types import UNSET, Unset

T = TypeVar("T", bound="NearestPlace")


@_attrs_define
class NearestPlace:
    """Where a hunk that fits nowhere comes nearest to it.

    Attributes:
        differs_at (int): The first line of the file that is not as the hunk says.
        differs_in (Difference): In what two lines differ.

            - `text`: In their text.
            - `white_space`: In white space alone.
            - `line_ending`: In how they end: one has a carriage return.
            - `final_newline`: One has no line feed, as only the last line of a file may.
            - `end_of_file`: The file ends before it, or goes on where it has to end.
        line (int): The line of the file where the hunk would begin.
        expected (None | str | Unset): That line as the hunk says, cut at 200 bytes; null where the file has to end.
        found (None | str | Unset): That line as it is, cut at 200 bytes; null behind the end of the file.
    """

    differs_at: int
    differs_in: Difference
    line: int
    expected: None | str | Unset = UNSET
    found: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        differs_at = self.differs_at

        differs_in = self.differs_in.value

        line = self.line

        expected: None | str | Unset
        if isinstance(self.expected, Unset):
            expected = UNSET
        else:
            expected = self.expected

        found: None | str | Unset
        if isinstance(self.found, Unset):
            found = UNSET
        else:
            found = self.found

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "differs_at": differs_at,
                "differs_in": differs_in,
                "line": line,
            }
        )
        if expected is not UNSET:
            field_dict["expected"] = expected
        if found is not UNSET:
            field_dict["found"] = found

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        differs_at = d.pop("differs_at")

        differs_in = Difference(d.pop("differs_in"))

        line = d.pop("line")

        def _parse_expected(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        expected = _parse_expected(d.pop("expected", UNSET))

        def _parse_found(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        found = _parse_found(d.pop("found", UNSET))

        nearest_place = cls(
            differs_at=differs_at,
            differs_in=differs_in,
            line=line,
            expected=expected,
            found=found,
        )

        nearest_place.additional_properties = d
        return nearest_place

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
