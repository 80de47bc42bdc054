from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="SignalWish")


@_attrs_define
class SignalWish:
    """A signal for a command.

    Attributes:
        signal (int): Its number, as in 15 for SIGTERM.
    """

    signal: int

    def to_dict(self) -> dict[str, Any]:
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
        signal = d.pop("signal")

        signal_wish = cls(
            signal=signal,
        )

        return signal_wish
