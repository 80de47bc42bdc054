from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.ending_kind import EndingKind
from ..types import UNSET, Unset

T = TypeVar("T", bound="EndingReport")


@_attrs_define
class EndingReport:
    """How a command ended.

    Attributes:
        kind (EndingKind): The stable names of endings.

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
        code (int | None | Unset): Its exit code, where it exited.
        detail (None | str | Unset): Why it never ran, where it did not.
        signal (int | None | Unset): The signal that ended it, where one did.
        stage (None | str | Unset): What could not be done, where it never ran.
    """

    kind: EndingKind
    code: int | None | Unset = UNSET
    detail: None | str | Unset = UNSET
    signal: int | None | Unset = UNSET
    stage: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind.value

        code: int | None | Unset
        if isinstance(self.code, Unset):
            code = UNSET
        else:
            code = self.code

        detail: None | str | Unset
        if isinstance(self.detail, Unset):
            detail = UNSET
        else:
            detail = self.detail

        signal: int | None | Unset
        if isinstance(self.signal, Unset):
            signal = UNSET
        else:
            signal = self.signal

        stage: None | str | Unset
        if isinstance(self.stage, Unset):
            stage = UNSET
        else:
            stage = self.stage

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
            }
        )
        if code is not UNSET:
            field_dict["code"] = code
        if detail is not UNSET:
            field_dict["detail"] = detail
        if signal is not UNSET:
            field_dict["signal"] = signal
        if stage is not UNSET:
            field_dict["stage"] = stage

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = EndingKind(d.pop("kind"))

        def _parse_code(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        code = _parse_code(d.pop("code", UNSET))

        def _parse_detail(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        detail = _parse_detail(d.pop("detail", UNSET))

        def _parse_signal(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        signal = _parse_signal(d.pop("signal", UNSET))

        def _parse_stage(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stage = _parse_stage(d.pop("stage", UNSET))

        ending_report = cls(
            kind=kind,
            code=code,
            detail=detail,
            signal=signal,
            stage=stage,
        )

        ending_report.additional_properties = d
        return ending_report

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
