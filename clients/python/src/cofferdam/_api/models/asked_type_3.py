from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="AskedType3")


@_attrs_define
class AskedType3:
    """Interrupts the command that runs in a shell, as by Ctrl-C.

    Attributes:
        type_ (Literal['interrupt']):
    """

    type_: Literal["interrupt"]

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
        type_ = cast(Literal["interrupt"], d.pop("type"))
        if type_ != "interrupt":
            raise ValueError(f"type must match const 'interrupt', got '{type_}'")

        asked_type_3 = cls(
            type_=type_,
        )

        return asked_type_3
