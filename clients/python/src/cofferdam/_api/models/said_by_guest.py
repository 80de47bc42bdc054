from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.ending_kind import EndingKind
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.usage_report import UsageReport


T = TypeVar("T", bound="SaidByGuest")


@_attrs_define
class SaidByGuest:
    """What the sandbox's first process said.

    Attributes:
        ending (EndingKind): The stable names of endings.

            - `exited`: By `exit`.
            - `signaled`: By a signal.
            - `timed_out`: Out of time.
            - `out_of_memory`: Out of memory.
            - `pids`: Out of processes.
            - `output`: Too much output.
            - `not_started`: The program never ran.
            - `setup_failed`: The sandbox was not set up.
            - `canceled`: The caller gave up.
            - `disk`: The private space was full.
            - `lease`: The session's lease was over.
            - `secret_alarm`: The placeholder of a secret was on its way to a host that the secret is not for.
            - `lost`: The sandbox died and nobody saw how it ended.
        exit_code (int): The exit code that stands for that.
        usage (UsageReport): What a command used; null where it cannot be known.
        killed_descendants (int | None | Unset): How many of its descendants still ran when it ended, and were killed;
            null where nobody said it.
        signal (int | None | Unset): The signal that ended it, where one did.
    """

    ending: EndingKind
    exit_code: int
    usage: UsageReport
    killed_descendants: int | None | Unset = UNSET
    signal: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        ending = self.ending.value

        exit_code = self.exit_code

        usage = self.usage.to_dict()

        killed_descendants: int | None | Unset
        if isinstance(self.killed_descendants, Unset):
            killed_descendants = UNSET
        else:
            killed_descendants = self.killed_descendants

        signal: int | None | Unset
        if isinstance(self.signal, Unset):
            signal = UNSET
        else:
            signal = self.signal

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "ending": ending,
                "exit_code": exit_code,
                "usage": usage,
            }
        )
        if killed_descendants is not UNSET:
            field_dict["killed_descendants"] = killed_descendants
        if signal is not UNSET:
            field_dict["signal"] = signal

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.usage_report import UsageReport  # noqa: PLC0415

        d = dict(src_dict)
        ending = EndingKind(d.pop("ending"))

        exit_code = d.pop("exit_code")

        usage = UsageReport.from_dict(d.pop("usage"))

        def _parse_killed_descendants(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        killed_descendants = _parse_killed_descendants(
            d.pop("killed_descendants", UNSET)
        )

        def _parse_signal(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        signal = _parse_signal(d.pop("signal", UNSET))

        said_by_guest = cls(
            ending=ending,
            exit_code=exit_code,
            usage=usage,
            killed_descendants=killed_descendants,
            signal=signal,
        )

        said_by_guest.additional_properties = d
        return said_by_guest

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
