from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.lines_shown import LinesShown
    from ..models.truncation import Truncation


T = TypeVar("T", bound="Window")


@_attrs_define
class Window:
    """A part of a text. Format 1.

    Attributes:
        content (str): The lines, each with its number from 1 and a bar before it, as `7|text`.
        size_bytes (int): How many bytes the text has.
        total_lines (int): How many lines the text has.
        truncated (bool): Whether a line is missing before, behind, or at the end of the last one.
        lines_shown (LinesShown | None | Unset): Which of them these are; null if there are none.
        truncation (None | Truncation | Unset): Why the window ends before the text, and where to go on; null if it does
            not.
    """

    content: str
    size_bytes: int
    total_lines: int
    truncated: bool
    lines_shown: LinesShown | None | Unset = UNSET
    truncation: None | Truncation | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.lines_shown import LinesShown  # noqa: PLC0415
        from ..models.truncation import Truncation  # noqa: PLC0415

        content = self.content

        size_bytes = self.size_bytes

        total_lines = self.total_lines

        truncated = self.truncated

        lines_shown: dict[str, Any] | None | Unset
        if isinstance(self.lines_shown, Unset):
            lines_shown = UNSET
        elif isinstance(self.lines_shown, LinesShown):
            lines_shown = self.lines_shown.to_dict()
        else:
            lines_shown = self.lines_shown

        truncation: dict[str, Any] | None | Unset
        if isinstance(self.truncation, Unset):
            truncation = UNSET
        elif isinstance(self.truncation, Truncation):
            truncation = self.truncation.to_dict()
        else:
            truncation = self.truncation

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "content": content,
                "size_bytes": size_bytes,
                "total_lines": total_lines,
                "truncated": truncated,
            }
        )
        if lines_shown is not UNSET:
            field_dict["lines_shown"] = lines_shown
        if truncation is not UNSET:
            field_dict["truncation"] = truncation

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.lines_shown import LinesShown  # noqa: PLC0415
        from ..models.truncation import Truncation  # noqa: PLC0415

        d = dict(src_dict)
        content = d.pop("content")

        size_bytes = d.pop("size_bytes")

        total_lines = d.pop("total_lines")

        truncated = d.pop("truncated")

        def _parse_lines_shown(data: object) -> LinesShown | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                lines_shown_type_0 = LinesShown.from_dict(data)

                return lines_shown_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LinesShown | None | Unset, data)

        lines_shown = _parse_lines_shown(d.pop("lines_shown", UNSET))

        def _parse_truncation(data: object) -> None | Truncation | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                truncation_type_0 = Truncation.from_dict(data)

                return truncation_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Truncation | Unset, data)

        truncation = _parse_truncation(d.pop("truncation", UNSET))

        window = cls(
            content=content,
            size_bytes=size_bytes,
            total_lines=total_lines,
            truncated=truncated,
            lines_shown=lines_shown,
            truncation=truncation,
        )

        window.additional_properties = d
        return window

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
