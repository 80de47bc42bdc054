from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="PortWish")


@_attrs_define
class PortWish:
    """A port that is to have an address.

    Attributes:
        port (int): The port inside, from 1 to 65535.
    """

    port: int

    def to_dict(self) -> dict[str, Any]:
        port = self.port

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "port": port,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        port = d.pop("port")

        port_wish = cls(
            port=port,
        )

        return port_wish
