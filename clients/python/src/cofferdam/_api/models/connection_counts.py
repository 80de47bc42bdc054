from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ConnectionCounts")


@_attrs_define
class ConnectionCounts:
    """Connections of a sandbox, as far as they are kept. Questions for names that were refused count.

    Attributes:
        allowed (int): Those that were let through and have ended.
        bytes_down (int): Bytes from outside.
        bytes_up (int): Bytes from inside.
        denied (int): Those that were refused.
        failed (int): Those that were allowed and did not come about.
    """

    allowed: int
    bytes_down: int
    bytes_up: int
    denied: int
    failed: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        allowed = self.allowed

        bytes_down = self.bytes_down

        bytes_up = self.bytes_up

        denied = self.denied

        failed = self.failed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "allowed": allowed,
                "bytes_down": bytes_down,
                "bytes_up": bytes_up,
                "denied": denied,
                "failed": failed,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        allowed = d.pop("allowed")

        bytes_down = d.pop("bytes_down")

        bytes_up = d.pop("bytes_up")

        denied = d.pop("denied")

        failed = d.pop("failed")

        connection_counts = cls(
            allowed=allowed,
            bytes_down=bytes_down,
            bytes_up=bytes_up,
            denied=denied,
            failed=failed,
        )

        connection_counts.additional_properties = d
        return connection_counts

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
