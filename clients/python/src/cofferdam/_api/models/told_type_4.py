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

from ..types import UNSET, Unset

T = TypeVar("T", bound="ToldType4")


@_attrs_define
class ToldType4:
    """A command of a shell ended; all its output came before.

    Attributes:
        next_ (int): Where the output of the next one begins.
        seq (int): Its number.
        type_ (Literal['ended']):
        exit_code (int | None | Unset): Its exit code, where that is known still.
    """

    next_: int
    seq: int
    type_: Literal["ended"]
    exit_code: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        next_ = self.next_

        seq = self.seq

        type_ = self.type_

        exit_code: int | None | Unset
        if isinstance(self.exit_code, Unset):
            exit_code = UNSET
        else:
            exit_code = self.exit_code

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "next": next_,
                "seq": seq,
                "type": type_,
            }
        )
        if exit_code is not UNSET:
            field_dict["exit_code"] = exit_code

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        next_ = d.pop("next")

        seq = d.pop("seq")

        type_ = cast(Literal["ended"], d.pop("type"))
        if type_ != "ended":
            raise ValueError(f"type must match const 'ended', got '{type_}'")

        def _parse_exit_code(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        exit_code = _parse_exit_code(d.pop("exit_code", UNSET))

        told_type_4 = cls(
            next_=next_,
            seq=seq,
            type_=type_,
            exit_code=exit_code,
        )

        told_type_4.additional_properties = d
        return told_type_4

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
