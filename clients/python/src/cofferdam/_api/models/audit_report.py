from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="AuditReport")


@_attrs_define
class AuditReport:
    """The same with its number and its moment. Format 1.

    Attributes:
        action (str): What was done: method and path of the request, without what follows a `?`.
        at_ms (int): When, in milliseconds since 1970.
        request (str): The number of the request, which the answer has in `x-request-id`.
        seq (int): Its number, growing over all owners.
        status (int): The status of the answer; 0 where nobody waited for it.
        key (None | str | Unset): The id of the key that it was done with; null for the local user.
    """

    action: str
    at_ms: int
    request: str
    seq: int
    status: int
    key: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        action = self.action

        at_ms = self.at_ms

        request = self.request

        seq = self.seq

        status = self.status

        key: None | str | Unset
        if isinstance(self.key, Unset):
            key = UNSET
        else:
            key = self.key

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "action": action,
                "at_ms": at_ms,
                "request": request,
                "seq": seq,
                "status": status,
            }
        )
        if key is not UNSET:
            field_dict["key"] = key

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        action = d.pop("action")

        at_ms = d.pop("at_ms")

        request = d.pop("request")

        seq = d.pop("seq")

        status = d.pop("status")

        def _parse_key(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        key = _parse_key(d.pop("key", UNSET))

        audit_report = cls(
            action=action,
            at_ms=at_ms,
            request=request,
            seq=seq,
            status=status,
            key=key,
        )

        audit_report.additional_properties = d
        return audit_report

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
