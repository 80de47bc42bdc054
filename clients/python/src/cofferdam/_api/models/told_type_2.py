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

T = TypeVar("T", bound="ToldType2")


@_attrs_define
class ToldType2:
    """What was written from `from` on to before `to` is not kept any more.

    Attributes:
        from_ (int): The first place that is gone.
        stream (int): The stream: 1 or 2.
        to (int): The first place that is kept.
        type_ (Literal['dropped']):
    """

    from_: int
    stream: int
    to: int
    type_: Literal["dropped"]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from_ = self.from_

        stream = self.stream

        to = self.to

        type_ = self.type_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "from": from_,
                "stream": stream,
                "to": to,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        from_ = d.pop("from")

        stream = d.pop("stream")

        to = d.pop("to")

        type_ = cast(Literal["dropped"], d.pop("type"))
        if type_ != "dropped":
            raise ValueError(f"type must match const 'dropped', got '{type_}'")

        told_type_2 = cls(
            from_=from_,
            stream=stream,
            to=to,
            type_=type_,
        )

        told_type_2.additional_properties = d
        return told_type_2

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
