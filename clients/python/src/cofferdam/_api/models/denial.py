from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.connection_how import ConnectionHow
from ..types import UNSET, Unset

T = TypeVar("T", bound="Denial")


@_attrs_define
class Denial:
    """A destination that was denied.

    Attributes:
        count (int): How often.
        how (ConnectionHow): How a connection came.

            - `transparent`: By itself, knowing of no proxy.
            - `connect`: By CONNECT.
            - `http`: As a plain request of HTTP to the proxy.
            - `socks5`: By SOCKS5.
            - `dns`: A question for a name: no connection.
        port (int): The port. 0 where only the name was asked for.
        address (None | str | Unset): The address that was asked for, or that the name led to.
        host (None | str | Unset): The name that was asked for; null where an address was.
        reason (None | str | Unset): Why.
        remedy (None | str | Unset): What would allow it, as it is written on the command line.
        request (None | str | Unset): What it waited by to be allowed, in vain; null where it did not wait.
        rule (None | str | Unset): The rule that decided; null where none did.
    """

    count: int
    how: ConnectionHow
    port: int
    address: None | str | Unset = UNSET
    host: None | str | Unset = UNSET
    reason: None | str | Unset = UNSET
    remedy: None | str | Unset = UNSET
    request: None | str | Unset = UNSET
    rule: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        count = self.count

        how = self.how.value

        port = self.port

        address: None | str | Unset
        if isinstance(self.address, Unset):
            address = UNSET
        else:
            address = self.address

        host: None | str | Unset
        if isinstance(self.host, Unset):
            host = UNSET
        else:
            host = self.host

        reason: None | str | Unset
        if isinstance(self.reason, Unset):
            reason = UNSET
        else:
            reason = self.reason

        remedy: None | str | Unset
        if isinstance(self.remedy, Unset):
            remedy = UNSET
        else:
            remedy = self.remedy

        request: None | str | Unset
        if isinstance(self.request, Unset):
            request = UNSET
        else:
            request = self.request

        rule: None | str | Unset
        if isinstance(self.rule, Unset):
            rule = UNSET
        else:
            rule = self.rule

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "count": count,
                "how": how,
                "port": port,
            }
        )
        if address is not UNSET:
            field_dict["address"] = address
        if host is not UNSET:
            field_dict["host"] = host
        if reason is not UNSET:
            field_dict["reason"] = reason
        if remedy is not UNSET:
            field_dict["remedy"] = remedy
        if request is not UNSET:
            field_dict["request"] = request
        if rule is not UNSET:
            field_dict["rule"] = rule

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        count = d.pop("count")

        how = ConnectionHow(d.pop("how"))

        port = d.pop("port")

        def _parse_address(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        address = _parse_address(d.pop("address", UNSET))

        def _parse_host(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        host = _parse_host(d.pop("host", UNSET))

        def _parse_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reason = _parse_reason(d.pop("reason", UNSET))

        def _parse_remedy(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        remedy = _parse_remedy(d.pop("remedy", UNSET))

        def _parse_request(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        request = _parse_request(d.pop("request", UNSET))

        def _parse_rule(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        rule = _parse_rule(d.pop("rule", UNSET))

        denial = cls(
            count=count,
            how=how,
            port=port,
            address=address,
            host=host,
            reason=reason,
            remedy=remedy,
            request=request,
            rule=rule,
        )

        denial.additional_properties = d
        return denial

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
