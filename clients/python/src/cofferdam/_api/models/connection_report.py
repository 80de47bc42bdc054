from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.connection_decision import ConnectionDecision
from ..models.connection_how import ConnectionHow
from ..types import UNSET, Unset

T = TypeVar("T", bound="ConnectionReport")


@_attrs_define
class ConnectionReport:
    """One connection. A line of a gate's log.

    Attributes:
        at_ms (int): When it came, in milliseconds since 1970.
        bytes_down (int): Bytes from outside.
        bytes_up (int): Bytes from inside.
        decision (ConnectionDecision): What became of a connection.

            - `allowed`: It was let through.
            - `denied`: It was refused.
            - `failed`: It was allowed, and did not come about.
            - `asked`: It waits to be allowed. Another line with the same id says how that went.
        duration_ms (int): How long it lasted.
        how (ConnectionHow): How a connection came.

            - `transparent`: By itself, knowing of no proxy.
            - `connect`: By CONNECT.
            - `http`: As a plain request of HTTP to the proxy.
            - `socks5`: By SOCKS5.
            - `dns`: A question for a name: no connection.
        id (int): Its number among those of this gate.
        policy_version (int): The edition of the policy that decided.
        port (int): The port that was asked for. 0 for a question for a name.
        address (None | str | Unset): The address that was asked for, or that the name led to; null where it came to
            none.
        execs (list[str] | None | Unset): The ids of the commands that ran when it came, or had left processes that did,
            as the host saw it:
            one of them asked for it, and which is not known where there are several. Empty where its command
            had ended before the gate took it on. Null for what a gate says of itself, and where there is one
            command alone.
        host (None | str | Unset): The name that was asked for, as it was asked; null where an address was.
        reason (None | str | Unset): Why it was refused or failed.
        remedy (None | str | Unset): What would allow it, as it is written on the command line: `--egress
            example.com:443`.
        request (None | str | Unset): What it waits by, or waited by last: `approve` takes it. Null for one that did not
            wait.
        rule (None | str | Unset): The rule that decided, as it is written; null where no rule did.
    """

    at_ms: int
    bytes_down: int
    bytes_up: int
    decision: ConnectionDecision
    duration_ms: int
    how: ConnectionHow
    id: int
    policy_version: int
    port: int
    address: None | str | Unset = UNSET
    execs: list[str] | None | Unset = UNSET
    host: None | str | Unset = UNSET
    reason: None | str | Unset = UNSET
    remedy: None | str | Unset = UNSET
    request: None | str | Unset = UNSET
    rule: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at_ms = self.at_ms

        bytes_down = self.bytes_down

        bytes_up = self.bytes_up

        decision = self.decision.value

        duration_ms = self.duration_ms

        how = self.how.value

        id = self.id

        policy_version = self.policy_version

        port = self.port

        address: None | str | Unset
        if isinstance(self.address, Unset):
            address = UNSET
        else:
            address = self.address

        execs: list[str] | None | Unset
        if isinstance(self.execs, Unset):
            execs = UNSET
        elif isinstance(self.execs, list):
            execs = self.execs

        else:
            execs = self.execs

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
                "at_ms": at_ms,
                "bytes_down": bytes_down,
                "bytes_up": bytes_up,
                "decision": decision,
                "duration_ms": duration_ms,
                "how": how,
                "id": id,
                "policy_version": policy_version,
                "port": port,
            }
        )
        if address is not UNSET:
            field_dict["address"] = address
        if execs is not UNSET:
            field_dict["execs"] = execs
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
        at_ms = d.pop("at_ms")

        bytes_down = d.pop("bytes_down")

        bytes_up = d.pop("bytes_up")

        decision = ConnectionDecision(d.pop("decision"))

        duration_ms = d.pop("duration_ms")

        how = ConnectionHow(d.pop("how"))

        id = d.pop("id")

        policy_version = d.pop("policy_version")

        port = d.pop("port")

        def _parse_address(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        address = _parse_address(d.pop("address", UNSET))

        def _parse_execs(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                execs_type_0 = cast(list[str], data)

                return execs_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        execs = _parse_execs(d.pop("execs", UNSET))

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

        connection_report = cls(
            at_ms=at_ms,
            bytes_down=bytes_down,
            bytes_up=bytes_up,
            decision=decision,
            duration_ms=duration_ms,
            how=how,
            id=id,
            policy_version=policy_version,
            port=port,
            address=address,
            execs=execs,
            host=host,
            reason=reason,
            remedy=remedy,
            request=request,
            rule=rule,
        )

        connection_report.additional_properties = d
        return connection_report

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
