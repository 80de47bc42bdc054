from __future__ import annotations

from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.problem_report import ProblemReport


T = TypeVar("T", bound="ToldType8")


@_attrs_define
class ToldType8:
    """Something that was asked for could not be done.

    Attributes:
        problem (ProblemReport): An error as a problem document. Format 1.
        type_ (Literal['problem']):
    """

    problem: ProblemReport
    type_: Literal["problem"]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        problem = self.problem.to_dict()

        type_ = self.type_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "problem": problem,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.problem_report import ProblemReport  # noqa: PLC0415

        d = dict(src_dict)
        problem = ProblemReport.from_dict(d.pop("problem"))

        type_ = cast(Literal["problem"], d.pop("type"))
        if type_ != "problem":
            raise ValueError(f"type must match const 'problem', got '{type_}'")

        told_type_8 = cls(
            problem=problem,
            type_=type_,
        )

        told_type_8.additional_properties = d
        return told_type_8

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
