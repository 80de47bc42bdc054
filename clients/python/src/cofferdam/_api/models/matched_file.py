from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.matched_line import MatchedLine


T = TypeVar("T", bound="MatchedFile")


@_attrs_define
class MatchedFile:
    """A file with matches.

    Attributes:
        binary (bool): Whether it holds a zero byte. Then its lines are not told.
        cut (bool): Whether there may be more than a limit let through.
        lines (list[MatchedLine]): The lines that match, and those around them.
        matches (int): How many lines match; 1 of a binary file and with `--files-with-matches`.
        path (None | str | Unset): The path, where it is UTF-8.
        path_base64 (None | str | Unset): The path in base64, where it is not UTF-8.
    """

    binary: bool
    cut: bool
    lines: list[MatchedLine]
    matches: int
    path: None | str | Unset = UNSET
    path_base64: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        binary = self.binary

        cut = self.cut

        lines = []
        for lines_item_data in self.lines:
            lines_item = lines_item_data.to_dict()
            lines.append(lines_item)

        matches = self.matches

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

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "binary": binary,
                "cut": cut,
                "lines": lines,
                "matches": matches,
            }
        )
        if path is not UNSET:
            field_dict["path"] = path
        if path_base64 is not UNSET:
            field_dict["path_base64"] = path_base64

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.matched_line import MatchedLine  # noqa: PLC0415

        d = dict(src_dict)
        binary = d.pop("binary")

        cut = d.pop("cut")

        lines = []
        _lines = d.pop("lines")
        for lines_item_data in _lines:
            lines_item = MatchedLine.from_dict(lines_item_data)

            lines.append(lines_item)

        matches = d.pop("matches")

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

        matched_file = cls(
            binary=binary,
            cut=cut,
            lines=lines,
            matches=matches,
            path=path,
            path_base64=path_base64,
        )

        matched_file.additional_properties = d
        return matched_file

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
