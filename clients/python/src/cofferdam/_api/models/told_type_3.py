from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ToldType3")


@_attrs_define
class ToldType3:
    """A command of a shell began.

    Attributes:
        offset (int): Where its output begins.
        seq (int): Its number.
        type_ (Literal['began']):
    """

    offset: int
    seq: int
    type_: Literal["began"]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        offset = self.offset

        seq = self.seq

        type_ = self.type_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "offset": offset,
                "seq": seq,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        offset = d.pop("offset")

        seq = d.pop("seq")

        type_ = cast(Literal["began"], d.pop("type"))
        if type_ != "began":
            raise ValueError(f"type must match const 'began', got '{type_}'")

        told_type_3 = cls(
            offset=offset,
            seq=seq,
            type_=type_,
        )

        told_type_3.additional_properties = d
        return told_type_3

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
