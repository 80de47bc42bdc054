from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.event_report_data import EventReportData


T = TypeVar("T", bound="EventReport")


@_attrs_define
class EventReport:
    """Something that happened. Format 1.

    Attributes:
        at_ms (int): When, in milliseconds since 1970.
        data (EventReportData): More about it.
        kind (str): What.
        seq (int): Its number, growing over all sessions.
        session (str): The session.
    """

    at_ms: int
    data: EventReportData
    kind: str
    seq: int
    session: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at_ms = self.at_ms

        data = self.data.to_dict()

        kind = self.kind

        seq = self.seq

        session = self.session

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at_ms": at_ms,
                "data": data,
                "kind": kind,
                "seq": seq,
                "session": session,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.event_report_data import EventReportData  # noqa: PLC0415

        d = dict(src_dict)
        at_ms = d.pop("at_ms")

        data = EventReportData.from_dict(d.pop("data"))

        kind = d.pop("kind")

        seq = d.pop("seq")

        session = d.pop("session")

        event_report = cls(
            at_ms=at_ms,
            data=data,
            kind=kind,
            seq=seq,
            session=session,
        )

        event_report.additional_properties = d
        return event_report

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
