from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="NetworkWish")


@_attrs_define
class NetworkWish:
    """All rules of a sandbox, as they are to be.

    Attributes:
        allow (list[str] | Unset): What is allowed, as in `crates.io:443`; all of it within what the operator allows.
        ask_ms (int | None | Unset): How long a connection that is not allowed waits to become so, in milliseconds. Left
            out: as it is.
        deny (list[str] | Unset): What is not, even though it is allowed. What the operator denies is denied besides.
    """

    allow: list[str] | Unset = UNSET
    ask_ms: int | None | Unset = UNSET
    deny: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        allow: list[str] | Unset = UNSET
        if not isinstance(self.allow, Unset):
            allow = self.allow

        ask_ms: int | None | Unset
        if isinstance(self.ask_ms, Unset):
            ask_ms = UNSET
        else:
            ask_ms = self.ask_ms

        deny: list[str] | Unset = UNSET
        if not isinstance(self.deny, Unset):
            deny = self.deny

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if allow is not UNSET:
            field_dict["allow"] = allow
        if ask_ms is not UNSET:
            field_dict["ask_ms"] = ask_ms
        if deny is not UNSET:
            field_dict["deny"] = deny

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        allow = cast(list[str], d.pop("allow", UNSET))

        def _parse_ask_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ask_ms = _parse_ask_ms(d.pop("ask_ms", UNSET))

        deny = cast(list[str], d.pop("deny", UNSET))

        network_wish = cls(
            allow=allow,
            ask_ms=ask_ms,
            deny=deny,
        )

        return network_wish
