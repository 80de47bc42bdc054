from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="ExtendWish")


@_attrs_define
class ExtendWish:
    """How much longer a lease is to be.

    Attributes:
        by_ms (int): So much, in milliseconds.
    """

    by_ms: int

    def to_dict(self) -> dict[str, Any]:
        by_ms = self.by_ms

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "by_ms": by_ms,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        by_ms = d.pop("by_ms")

        extend_wish = cls(
            by_ms=by_ms,
        )

        return extend_wish
