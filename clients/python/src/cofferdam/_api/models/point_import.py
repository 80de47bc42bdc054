from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="PointImport")


@_attrs_define
class PointImport:
    """Where an imported snapshot comes from, as its file says.

    Attributes:
        made_ms (int): When it was taken, in milliseconds since 1970.
        workspace (str): The workspace that it lay on.
    """

    made_ms: int
    workspace: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        made_ms = self.made_ms

        workspace = self.workspace

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "made_ms": made_ms,
                "workspace": workspace,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        made_ms = d.pop("made_ms")

        workspace = d.pop("workspace")

        point_import = cls(
            made_ms=made_ms,
            workspace=workspace,
        )

        point_import.additional_properties = d
        return point_import

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
