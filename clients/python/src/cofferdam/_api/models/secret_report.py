from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="SecretReport")


@_attrs_define
class SecretReport:
    """A secret, without its value. Format 1.

    Attributes:
        changed_ms (int): When it got the value that it has, in milliseconds since 1970.
        created_ms (int): When it was added first, in milliseconds since 1970.
        name (str): Its name.
    """

    changed_ms: int
    created_ms: int
    name: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        changed_ms = self.changed_ms

        created_ms = self.created_ms

        name = self.name

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "changed_ms": changed_ms,
                "created_ms": created_ms,
                "name": name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        changed_ms = d.pop("changed_ms")

        created_ms = d.pop("created_ms")

        name = d.pop("name")

        secret_report = cls(
            changed_ms=changed_ms,
            created_ms=created_ms,
            name=name,
        )

        secret_report.additional_properties = d
        return secret_report

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
