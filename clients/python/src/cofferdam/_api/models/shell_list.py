from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.shell_report import ShellReport


T = TypeVar("T", bound="ShellList")


@_attrs_define
class ShellList:
    """The shells of a session. Format 1.

    Attributes:
        shells (list[ShellReport]): The latest shell of each name, dead ones included.
    """

    shells: list[ShellReport]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shells = []
        for shells_item_data in self.shells:
            shells_item = shells_item_data.to_dict()
            shells.append(shells_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shells": shells,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.shell_report import ShellReport  # noqa: PLC0415

        d = dict(src_dict)
        shells = []
        _shells = d.pop("shells")
        for shells_item_data in _shells:
            shells_item = ShellReport.from_dict(shells_item_data)

            shells.append(shells_item)

        shell_list = cls(
            shells=shells,
        )

        shell_list.additional_properties = d
        return shell_list

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
