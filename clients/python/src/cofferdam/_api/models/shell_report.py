from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.exec_report import ExecReport


T = TypeVar("T", bound="ShellReport")


@_attrs_define
class ShellReport:
    """A shell. Format 1.

    Attributes:
        exec_ (ExecReport): A command of a session. Format 1.
        name (str): Its name.
    """

    exec_: ExecReport
    name: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        exec_ = self.exec_.to_dict()

        name = self.name

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "exec": exec_,
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.exec_report import ExecReport  # noqa: PLC0415

        d = dict(src_dict)
        exec_ = ExecReport.from_dict(d.pop("exec"))

        name = d.pop("name")

        shell_report = cls(
            exec_=exec_,
            name=name,
        )

        shell_report.additional_properties = d
        return shell_report

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
