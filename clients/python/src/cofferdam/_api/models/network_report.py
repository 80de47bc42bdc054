from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="NetworkReport")


@_attrs_define
class NetworkReport:
    """What a session may reach. Format 1.

    Attributes:
        allow (list[str]): What is allowed, as it is written.
        ask_ms (int): How long a connection that is not allowed waits to become so, in milliseconds; 0: not at all.
        deny (list[str]): What is not, even though it is allowed.
        host_ports (list[int]): Ports of the host's own loopback that are reached as `host.cofferdam.internal`.
        session (str): The id of the session.
        version (int): Which edition of the rules this is; it grows with each change of a sandbox.
        way_out (bool): Whether it has a way out at all. Where it has none it gets none.
    """

    allow: list[str]
    ask_ms: int
    deny: list[str]
    host_ports: list[int]
    session: str
    version: int
    way_out: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        allow = self.allow

        ask_ms = self.ask_ms

        deny = self.deny

        host_ports = self.host_ports

        session = self.session

        version = self.version

        way_out = self.way_out

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "allow": allow,
                "ask_ms": ask_ms,
                "deny": deny,
                "host_ports": host_ports,
                "session": session,
                "version": version,
                "way_out": way_out,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        allow = cast(list[str], d.pop("allow"))

        ask_ms = d.pop("ask_ms")

        deny = cast(list[str], d.pop("deny"))

        host_ports = cast(list[int], d.pop("host_ports"))

        session = d.pop("session")

        version = d.pop("version")

        way_out = d.pop("way_out")

        network_report = cls(
            allow=allow,
            ask_ms=ask_ms,
            deny=deny,
            host_ports=host_ports,
            session=session,
            version=version,
            way_out=way_out,
        )

        network_report.additional_properties = d
        return network_report

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
