from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="UsageReport")


@_attrs_define
class UsageReport:
    """What a command used; null where it cannot be known.

    Attributes:
        cpu_ms (float | None | Unset): Processor time in milliseconds. Of `run` it is that of all its processes where a
            control group
            counts them. Elsewhere, and of a command of a session, it is that of the command and of those of its
            processes that were waited for: what it left in the background is not in it.
        peak_memory_bytes (int | None | Unset): The most memory it held, in bytes.
    """

    cpu_ms: float | None | Unset = UNSET
    peak_memory_bytes: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        cpu_ms: float | None | Unset
        if isinstance(self.cpu_ms, Unset):
            cpu_ms = UNSET
        else:
            cpu_ms = self.cpu_ms

        peak_memory_bytes: int | None | Unset
        if isinstance(self.peak_memory_bytes, Unset):
            peak_memory_bytes = UNSET
        else:
            peak_memory_bytes = self.peak_memory_bytes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if cpu_ms is not UNSET:
            field_dict["cpu_ms"] = cpu_ms
        if peak_memory_bytes is not UNSET:
            field_dict["peak_memory_bytes"] = peak_memory_bytes

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_cpu_ms(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        cpu_ms = _parse_cpu_ms(d.pop("cpu_ms", UNSET))

        def _parse_peak_memory_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        peak_memory_bytes = _parse_peak_memory_bytes(d.pop("peak_memory_bytes", UNSET))

        usage_report = cls(
            cpu_ms=cpu_ms,
            peak_memory_bytes=peak_memory_bytes,
        )

        usage_report.additional_properties = d
        return usage_report

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
