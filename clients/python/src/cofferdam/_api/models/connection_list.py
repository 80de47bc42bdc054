from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.connection_report import ConnectionReport


T = TypeVar("T", bound="ConnectionList")


@_attrs_define
class ConnectionList:
    """The connections of a session. Format 1.

    Attributes:
        connections (list[ConnectionReport]): In the order in which they were decided, questions for names among them.
        next_ (int): From where on the next look goes on.
        session (str): The id of the session.
    """

    connections: list[ConnectionReport]
    next_: int
    session: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        connections = []
        for connections_item_data in self.connections:
            connections_item = connections_item_data.to_dict()
            connections.append(connections_item)

        next_ = self.next_

        session = self.session

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "connections": connections,
                "next": next_,
                "session": session,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.connection_report import ConnectionReport  # noqa: PLC0415

        d = dict(src_dict)
        connections = []
        _connections = d.pop("connections")
        for connections_item_data in _connections:
            connections_item = ConnectionReport.from_dict(connections_item_data)

            connections.append(connections_item)

        next_ = d.pop("next")

        session = d.pop("session")

        connection_list = cls(
            connections=connections,
            next_=next_,
            session=session,
        )

        connection_list.additional_properties = d
        return connection_list

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
