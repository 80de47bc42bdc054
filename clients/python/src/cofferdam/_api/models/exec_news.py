from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.exec_report import ExecReport


T = TypeVar("T", bound="ExecNews")


@_attrs_define
class ExecNews:
    """How a command stands, for one who follows it. Format 1.

    Attributes:
        exec_ (ExecReport): A command of a session. Format 1.
        stops (int): How often a signal of job control stopped it; counted where it has a terminal.
        detail (None | str | Unset): Why it never ran, where it did not, as the command has it.
        left (int | None | Unset): How many processes of it go on though it has ended; null once it can leave nothing
            any more.
        not_kept (None | str | Unset): Why its end is no point of the history, told once, where it was to be one.
        stage (None | str | Unset): The step that failed, where the sandbox was not set up for it, as the command has
            it.
    """

    exec_: ExecReport
    stops: int
    detail: None | str | Unset = UNSET
    left: int | None | Unset = UNSET
    not_kept: None | str | Unset = UNSET
    stage: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        exec_ = self.exec_.to_dict()

        stops = self.stops

        detail: None | str | Unset
        if isinstance(self.detail, Unset):
            detail = UNSET
        else:
            detail = self.detail

        left: int | None | Unset
        if isinstance(self.left, Unset):
            left = UNSET
        else:
            left = self.left

        not_kept: None | str | Unset
        if isinstance(self.not_kept, Unset):
            not_kept = UNSET
        else:
            not_kept = self.not_kept

        stage: None | str | Unset
        if isinstance(self.stage, Unset):
            stage = UNSET
        else:
            stage = self.stage

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "exec": exec_,
                "stops": stops,
            }
        )
        if detail is not UNSET:
            field_dict["detail"] = detail
        if left is not UNSET:
            field_dict["left"] = left
        if not_kept is not UNSET:
            field_dict["not_kept"] = not_kept
        if stage is not UNSET:
            field_dict["stage"] = stage

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.exec_report import ExecReport  # noqa: PLC0415

        d = dict(src_dict)
        exec_ = ExecReport.from_dict(d.pop("exec"))

        stops = d.pop("stops")

        def _parse_detail(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        detail = _parse_detail(d.pop("detail", UNSET))

        def _parse_left(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        left = _parse_left(d.pop("left", UNSET))

        def _parse_not_kept(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        not_kept = _parse_not_kept(d.pop("not_kept", UNSET))

        def _parse_stage(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stage = _parse_stage(d.pop("stage", UNSET))

        exec_news = cls(
            exec_=exec_,
            stops=stops,
            detail=detail,
            left=left,
            not_kept=not_kept,
            stage=stage,
        )

        exec_news.additional_properties = d
        return exec_news

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
