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
    from ..models.exec_report import ExecReport


T = TypeVar("T", bound="ToldType0")


@_attrs_define
class ToldType0:
    """The first message of a command.

    Attributes:
        exec_ (ExecReport): A command of a session. Format 1.
        type_ (Literal['attached']):
    """

    exec_: ExecReport
    type_: Literal["attached"]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        exec_ = self.exec_.to_dict()

        type_ = self.type_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "exec": exec_,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.exec_report import ExecReport  # noqa: PLC0415

        d = dict(src_dict)
        exec_ = ExecReport.from_dict(d.pop("exec"))

        type_ = cast(Literal["attached"], d.pop("type"))
        if type_ != "attached":
            raise ValueError(f"type must match const 'attached', got '{type_}'")

        told_type_0 = cls(
            exec_=exec_,
            type_=type_,
        )

        told_type_0.additional_properties = d
        return told_type_0

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
