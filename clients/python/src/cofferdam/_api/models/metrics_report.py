from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.connection_counts import ConnectionCounts


T = TypeVar("T", bound="MetricsReport")


@_attrs_define
class MetricsReport:
    """What a session uses now. Format 1.

    Attributes:
        at_ms (int): When it was looked, in milliseconds since 1970.
        connections (ConnectionCounts): Connections of a sandbox, as far as they are kept. Questions for names that were
            refused count.
        processes (int): The processes of its sandbox, the first one and those that watch over commands included; 0
            where
            there is no sandbox now.
        session (str): The id of the session.
        cpu_ms (float | None | Unset): Processor time that the sandbox used so far, in milliseconds.
        memory_bytes (int | None | Unset): The memory that it holds, in bytes: as its control group counts, what it has
            in memory of files
            included; without a group the sum over its processes, in which what they share counts for each.
        peak_memory_bytes (int | None | Unset): The most that it held at once, in bytes; known of a control group alone.
    """

    at_ms: int
    connections: ConnectionCounts
    processes: int
    session: str
    cpu_ms: float | None | Unset = UNSET
    memory_bytes: int | None | Unset = UNSET
    peak_memory_bytes: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at_ms = self.at_ms

        connections = self.connections.to_dict()

        processes = self.processes

        session = self.session

        cpu_ms: float | None | Unset
        if isinstance(self.cpu_ms, Unset):
            cpu_ms = UNSET
        else:
            cpu_ms = self.cpu_ms

        memory_bytes: int | None | Unset
        if isinstance(self.memory_bytes, Unset):
            memory_bytes = UNSET
        else:
            memory_bytes = self.memory_bytes

        peak_memory_bytes: int | None | Unset
        if isinstance(self.peak_memory_bytes, Unset):
            peak_memory_bytes = UNSET
        else:
            peak_memory_bytes = self.peak_memory_bytes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at_ms": at_ms,
                "connections": connections,
                "processes": processes,
                "session": session,
            }
        )
        if cpu_ms is not UNSET:
            field_dict["cpu_ms"] = cpu_ms
        if memory_bytes is not UNSET:
            field_dict["memory_bytes"] = memory_bytes
        if peak_memory_bytes is not UNSET:
            field_dict["peak_memory_bytes"] = peak_memory_bytes

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.connection_counts import ConnectionCounts  # noqa: PLC0415

        d = dict(src_dict)
        at_ms = d.pop("at_ms")

        connections = ConnectionCounts.from_dict(d.pop("connections"))

        processes = d.pop("processes")

        session = d.pop("session")

        def _parse_cpu_ms(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        cpu_ms = _parse_cpu_ms(d.pop("cpu_ms", UNSET))

        def _parse_memory_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        memory_bytes = _parse_memory_bytes(d.pop("memory_bytes", UNSET))

        def _parse_peak_memory_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        peak_memory_bytes = _parse_peak_memory_bytes(d.pop("peak_memory_bytes", UNSET))

        metrics_report = cls(
            at_ms=at_ms,
            connections=connections,
            processes=processes,
            session=session,
            cpu_ms=cpu_ms,
            memory_bytes=memory_bytes,
            peak_memory_bytes=peak_memory_bytes,
        )

        metrics_report.additional_properties = d
        return metrics_report

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
