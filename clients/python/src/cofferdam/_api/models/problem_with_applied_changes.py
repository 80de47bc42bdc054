from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.applied_changes import AppliedChanges


T = TypeVar("T", bound="ProblemWithAppliedChanges")


@_attrs_define
class ProblemWithAppliedChanges:
    """An error as a problem document, with what was found out. Format 1.

    Attributes:
        kind (str): The kind's stable name.
        message (str): What happened.
        retryable (bool): Whether the same request may succeed later without any change.
        status (int): The status of the answer.
        title (str): The kind in words.
        type_ (str): What the kind is described by; `about:blank`, for the kind says all of it.
        hint (None | str | Unset): What to do.
        result (AppliedChanges | None | Unset): What was found out, and what was done. Absent where the request was
            refused before anything was
            looked at.
    """

    kind: str
    message: str
    retryable: bool
    status: int
    title: str
    type_: str
    hint: None | str | Unset = UNSET
    result: AppliedChanges | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.applied_changes import AppliedChanges  # noqa: PLC0415

        kind = self.kind

        message = self.message

        retryable = self.retryable

        status = self.status

        title = self.title

        type_ = self.type_

        hint: None | str | Unset
        if isinstance(self.hint, Unset):
            hint = UNSET
        else:
            hint = self.hint

        result: dict[str, Any] | None | Unset
        if isinstance(self.result, Unset):
            result = UNSET
        elif isinstance(self.result, AppliedChanges):
            result = self.result.to_dict()
        else:
            result = self.result

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "message": message,
                "retryable": retryable,
                "status": status,
                "title": title,
                "type": type_,
            }
        )
        if hint is not UNSET:
            field_dict["hint"] = hint
        if result is not UNSET:
            field_dict["result"] = result

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.applied_changes import AppliedChanges  # noqa: PLC0415

        d = dict(src_dict)
        kind = d.pop("kind")

        message = d.pop("message")

        retryable = d.pop("retryable")

        status = d.pop("status")

        title = d.pop("title")

        type_ = d.pop("type")

        def _parse_hint(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        hint = _parse_hint(d.pop("hint", UNSET))

        def _parse_result(data: object) -> AppliedChanges | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                result_type_0 = AppliedChanges.from_dict(data)

                return result_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(AppliedChanges | None | Unset, data)

        result = _parse_result(d.pop("result", UNSET))

        problem_with_applied_changes = cls(
            kind=kind,
            message=message,
            retryable=retryable,
            status=status,
            title=title,
            type_=type_,
            hint=hint,
            result=result,
        )

        problem_with_applied_changes.additional_properties = d
        return problem_with_applied_changes

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
