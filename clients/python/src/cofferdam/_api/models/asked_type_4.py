from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="AskedType4")


@_attrs_define
class AskedType4:
    """Sends a signal to a command.

    Attributes:
        signal (int | str): Its name, as in TERM or SIGTERM, or its number, as in 15.
        type_ (Literal['signal']):
    """

    signal: int | str
    type_: Literal["signal"]

    def to_dict(self) -> dict[str, Any]:
        signal: int | str
        signal = self.signal

        type_ = self.type_

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "signal": signal,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_signal(data: object) -> int | str:
            return cast(int | str, data)

        signal = _parse_signal(d.pop("signal"))

        type_ = cast(Literal["signal"], d.pop("type"))
        if type_ != "signal":
            raise ValueError(f"type must match const 'signal', got '{type_}'")

        asked_type_4 = cls(
            signal=signal,
            type_=type_,
        )

        return asked_type_4
