from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="SignalWish")


@_attrs_define
class SignalWish:
    """A signal for a command.

    Attributes:
        signal (int | str): Its name, as in TERM or SIGTERM, or its number, as in 15.
    """

    signal: int | str

    def to_dict(self) -> dict[str, Any]:
        signal: int | str
        signal = self.signal

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "signal": signal,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_signal(data: object) -> int | str:
            return cast(int | str, data)

        signal = _parse_signal(d.pop("signal"))

        signal_wish = cls(
            signal=signal,
        )

        return signal_wish
