from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="LimitsWish")


@_attrs_define
class LimitsWish:
    """How much a sandbox may use.

    Attributes:
        cpu_millis (int | None | Unset): Thousandths of a processor.
        disk_bytes (int | None | Unset): The private writable space, in bytes.
        memory_bytes (int | None | Unset): Memory of all processes together, in bytes.
        pids (int | None | Unset): Processes and threads.
    """

    cpu_millis: int | None | Unset = UNSET
    disk_bytes: int | None | Unset = UNSET
    memory_bytes: int | None | Unset = UNSET
    pids: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        cpu_millis: int | None | Unset
        if isinstance(self.cpu_millis, Unset):
            cpu_millis = UNSET
        else:
            cpu_millis = self.cpu_millis

        disk_bytes: int | None | Unset
        if isinstance(self.disk_bytes, Unset):
            disk_bytes = UNSET
        else:
            disk_bytes = self.disk_bytes

        memory_bytes: int | None | Unset
        if isinstance(self.memory_bytes, Unset):
            memory_bytes = UNSET
        else:
            memory_bytes = self.memory_bytes

        pids: int | None | Unset
        if isinstance(self.pids, Unset):
            pids = UNSET
        else:
            pids = self.pids

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if cpu_millis is not UNSET:
            field_dict["cpu_millis"] = cpu_millis
        if disk_bytes is not UNSET:
            field_dict["disk_bytes"] = disk_bytes
        if memory_bytes is not UNSET:
            field_dict["memory_bytes"] = memory_bytes
        if pids is not UNSET:
            field_dict["pids"] = pids

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_cpu_millis(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        cpu_millis = _parse_cpu_millis(d.pop("cpu_millis", UNSET))

        def _parse_disk_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        disk_bytes = _parse_disk_bytes(d.pop("disk_bytes", UNSET))

        def _parse_memory_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        memory_bytes = _parse_memory_bytes(d.pop("memory_bytes", UNSET))

        def _parse_pids(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        pids = _parse_pids(d.pop("pids", UNSET))

        limits_wish = cls(
            cpu_millis=cpu_millis,
            disk_bytes=disk_bytes,
            memory_bytes=memory_bytes,
            pids=pids,
        )

        return limits_wish
