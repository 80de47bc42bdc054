from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.truncation_reason import TruncationReason
from ..types import UNSET, Unset

T = TypeVar("T", bound="Truncation")


@_attrs_define
class Truncation:
    """Why a window ends before the text does.

    Attributes:
        bytes_returned (int): How many bytes of the text it has.
        bytes_total (int): How many bytes the text has.
        line_cut (bool): Whether the last line is cut; its rest is in no window.
        reason (TruncationReason): Which limit ended a window.

            - `line_cap`: It has as many lines as were asked for.
            - `size_cap`: It has as many bytes as a window may have.
        next_offset (int | None | Unset): The offset of the next window; null if no line follows.
        resume_hint (None | str | Unset): What to ask for next, in words; null if no line follows.
    """

    bytes_returned: int
    bytes_total: int
    line_cut: bool
    reason: TruncationReason
    next_offset: int | None | Unset = UNSET
    resume_hint: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        bytes_returned = self.bytes_returned

        bytes_total = self.bytes_total

        line_cut = self.line_cut

        reason = self.reason.value

        next_offset: int | None | Unset
        if isinstance(self.next_offset, Unset):
            next_offset = UNSET
        else:
            next_offset = self.next_offset

        resume_hint: None | str | Unset
        if isinstance(self.resume_hint, Unset):
            resume_hint = UNSET
        else:
            resume_hint = self.resume_hint

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "bytes_returned": bytes_returned,
                "bytes_total": bytes_total,
                "line_cut": line_cut,
                "reason": reason,
            }
        )
        if next_offset is not UNSET:
            field_dict["next_offset"] = next_offset
        if resume_hint is not UNSET:
            field_dict["resume_hint"] = resume_hint

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        bytes_returned = d.pop("bytes_returned")

        bytes_total = d.pop("bytes_total")

        line_cut = d.pop("line_cut")

        reason = TruncationReason(d.pop("reason"))

        def _parse_next_offset(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        next_offset = _parse_next_offset(d.pop("next_offset", UNSET))

        def _parse_resume_hint(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        resume_hint = _parse_resume_hint(d.pop("resume_hint", UNSET))

        truncation = cls(
            bytes_returned=bytes_returned,
            bytes_total=bytes_total,
            line_cut=line_cut,
            reason=reason,
            next_offset=next_offset,
            resume_hint=resume_hint,
        )

        truncation.additional_properties = d
        return truncation

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
