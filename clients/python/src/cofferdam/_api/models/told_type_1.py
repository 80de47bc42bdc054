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
    from ..models.shell_report import ShellReport


T = TypeVar("T", bound="ToldType1")


@_attrs_define
class ToldType1:
    """The first message of a shell.

    Attributes:
        shell (ShellReport): A shell. Format 1.
        type_ (Literal['open']):
    """

    shell: ShellReport
    type_: Literal["open"]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shell = self.shell.to_dict()

        type_ = self.type_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shell": shell,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.shell_report import ShellReport  # noqa: PLC0415

        d = dict(src_dict)
        shell = ShellReport.from_dict(d.pop("shell"))

        type_ = cast(Literal["open"], d.pop("type"))
        if type_ != "open":
            raise ValueError(f"type must match const 'open', got '{type_}'")

        told_type_1 = cls(
            shell=shell,
            type_=type_,
        )

        told_type_1.additional_properties = d
        return told_type_1

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
