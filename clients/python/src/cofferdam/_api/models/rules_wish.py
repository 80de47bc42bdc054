from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="RulesWish")


@_attrs_define
class RulesWish:
    """Rules.

    Attributes:
        rules (list[str]): As in `crates.io:443`.
    """

    rules: list[str]

    def to_dict(self) -> dict[str, Any]:
        rules = self.rules

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "rules": rules,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        rules = cast(list[str], d.pop("rules"))

        rules_wish = cls(
            rules=rules,
        )

        return rules_wish
