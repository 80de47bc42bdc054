from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="AskedType2")


@_attrs_define
class AskedType2:
    """Standard input of a command ends.

    Attributes:
        type_ (Literal['close']):
    """

    type_: Literal["close"]

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        type_ = cast(Literal["close"], d.pop("type"))
        if type_ != "close":
            raise ValueError(f"type must match const 'close', got '{type_}'")

        asked_type_2 = cls(
            type_=type_,
        )

        return asked_type_2
