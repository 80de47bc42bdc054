from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.connection_how import ConnectionHow
from ..models.permission_kind import PermissionKind
from ..models.permission_state import PermissionState
from ..types import UNSET, Unset

T = TypeVar("T", bound="PermissionReport")


@_attrs_define
class PermissionReport:
    """Something that waits to be allowed, or did so lately. Format 1.

    Attributes:
        allow (str): What would allow it, as it is written on the command line: `--egress example.com:443`. That may be
            more than what is asked for: see `leads_to`.
        id (str): What `approve` takes.
        kind (PermissionKind): What waits.

            - `connection`: A connection, which goes on when it is allowed.
            - `request`: A request that was made before there is a connection.
        port (int): The port.
        requested_ms (int): Since when, in milliseconds since 1970.
        session (str): The id of the session.
        state (PermissionState): How it stands.

            - `waiting`: It waits for an answer.
            - `approved`: It alone was let through.
            - `allowed`: The rules of the session allow it.
            - `denied`: Somebody said no.
            - `timed_out`: Nobody answered in time.
            - `gone`: It gave up, or its sandbox ended.
        until_ms (int): Until when it can be answered, in milliseconds since 1970.
        address (None | str | Unset): The address that is asked for; null where a name is.
        host (None | str | Unset): The name that is asked for; null where an address is.
        how (ConnectionHow | None | Unset): How the connection came; null where there is none yet.
        leads_to (None | str | Unset): The address that would be opened, where that is none of the public network: the
            name that is asked
            for leads there, or it is asked for itself. Absent otherwise.
        notice (None | str | Unset): The same in words for the person who answers: which address of which sort of
            network would be
            opened, and by which rule.
        reason (None | str | Unset): Why it is not allowed; of a request, why it was made, in words from inside.
    """

    allow: str
    id: str
    kind: PermissionKind
    port: int
    requested_ms: int
    session: str
    state: PermissionState
    until_ms: int
    address: None | str | Unset = UNSET
    host: None | str | Unset = UNSET
    how: ConnectionHow | None | Unset = UNSET
    leads_to: None | str | Unset = UNSET
    notice: None | str | Unset = UNSET
    reason: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        allow = self.allow

        id = self.id

        kind = self.kind.value

        port = self.port

        requested_ms = self.requested_ms

        session = self.session

        state = self.state.value

        until_ms = self.until_ms

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

        how: None | str | Unset
        if isinstance(self.how, Unset):
            how = UNSET
        elif isinstance(self.how, ConnectionHow):
            how = self.how.value
        else:
            how = self.how

        leads_to: None | str | Unset
        if isinstance(self.leads_to, Unset):
            leads_to = UNSET
        else:
            leads_to = self.leads_to

        notice: None | str | Unset
        if isinstance(self.notice, Unset):
            notice = UNSET
        else:
            notice = self.notice

        reason: None | str | Unset
        if isinstance(self.reason, Unset):
            reason = UNSET
        else:
            reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "allow": allow,
                "id": id,
                "kind": kind,
                "port": port,
                "requested_ms": requested_ms,
                "session": session,
                "state": state,
                "until_ms": until_ms,
            }
        )
        if address is not UNSET:
            field_dict["address"] = address
        if host is not UNSET:
            field_dict["host"] = host
        if how is not UNSET:
            field_dict["how"] = how
        if leads_to is not UNSET:
            field_dict["leads_to"] = leads_to
        if notice is not UNSET:
            field_dict["notice"] = notice
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        allow = d.pop("allow")

        id = d.pop("id")

        kind = PermissionKind(d.pop("kind"))

        port = d.pop("port")

        requested_ms = d.pop("requested_ms")

        session = d.pop("session")

        state = PermissionState(d.pop("state"))

        until_ms = d.pop("until_ms")

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

        def _parse_how(data: object) -> ConnectionHow | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                how_type_0 = ConnectionHow(data)

                return how_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ConnectionHow | None | Unset, data)

        how = _parse_how(d.pop("how", UNSET))

        def _parse_leads_to(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        leads_to = _parse_leads_to(d.pop("leads_to", UNSET))

        def _parse_notice(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        notice = _parse_notice(d.pop("notice", UNSET))

        def _parse_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reason = _parse_reason(d.pop("reason", UNSET))

        permission_report = cls(
            allow=allow,
            id=id,
            kind=kind,
            port=port,
            requested_ms=requested_ms,
            session=session,
            state=state,
            until_ms=until_ms,
            address=address,
            host=host,
            how=how,
            leads_to=leads_to,
            notice=notice,
            reason=reason,
        )

        permission_report.additional_properties = d
        return permission_report

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
