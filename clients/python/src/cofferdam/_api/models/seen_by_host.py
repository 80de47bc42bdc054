from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.ending_kind import EndingKind
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.denial import Denial
    from ..models.files_seen import FilesSeen
    from ..models.omitted import Omitted
    from ..models.stream_report import StreamReport


T = TypeVar("T", bound="SeenByHost")


@_attrs_define
class SeenByHost:
    """What the host saw by itself.

    Attributes:
        denials (list[Denial]): What was denied.
        ended_ms (int): When it ended, in milliseconds since 1970.
        files (FilesSeen): What was done to the workspace between the start of a command and its receipt.
        processes_left (int): How many processes of it went on when the receipt was made.
        started_ms (int): When it was started, in milliseconds since 1970.
        stderr (StreamReport): How much of a stream there is.
        stdout (StreamReport): How much of a stream there is.
        cause (EndingKind | None | Unset): Why the host ended it, or which limit it failed by; null where neither is so.
        omitted (None | Omitted | Unset): How many bytes of its output the answer that the receipt is in leaves out;
            null in a receipt
            that is asked for by itself.
    """

    denials: list[Denial]
    ended_ms: int
    files: FilesSeen
    processes_left: int
    started_ms: int
    stderr: StreamReport
    stdout: StreamReport
    cause: EndingKind | None | Unset = UNSET
    omitted: None | Omitted | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.omitted import Omitted  # noqa: PLC0415

        denials = []
        for denials_item_data in self.denials:
            denials_item = denials_item_data.to_dict()
            denials.append(denials_item)

        ended_ms = self.ended_ms

        files = self.files.to_dict()

        processes_left = self.processes_left

        started_ms = self.started_ms

        stderr = self.stderr.to_dict()

        stdout = self.stdout.to_dict()

        cause: None | str | Unset
        if isinstance(self.cause, Unset):
            cause = UNSET
        elif isinstance(self.cause, EndingKind):
            cause = self.cause.value
        else:
            cause = self.cause

        omitted: dict[str, Any] | None | Unset
        if isinstance(self.omitted, Unset):
            omitted = UNSET
        elif isinstance(self.omitted, Omitted):
            omitted = self.omitted.to_dict()
        else:
            omitted = self.omitted

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "denials": denials,
                "ended_ms": ended_ms,
                "files": files,
                "processes_left": processes_left,
                "started_ms": started_ms,
                "stderr": stderr,
                "stdout": stdout,
            }
        )
        if cause is not UNSET:
            field_dict["cause"] = cause
        if omitted is not UNSET:
            field_dict["omitted"] = omitted

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.denial import Denial  # noqa: PLC0415
        from ..models.files_seen import FilesSeen  # noqa: PLC0415
        from ..models.omitted import Omitted  # noqa: PLC0415
        from ..models.stream_report import StreamReport  # noqa: PLC0415

        d = dict(src_dict)
        denials = []
        _denials = d.pop("denials")
        for denials_item_data in _denials:
            denials_item = Denial.from_dict(denials_item_data)

            denials.append(denials_item)

        ended_ms = d.pop("ended_ms")

        files = FilesSeen.from_dict(d.pop("files"))

        processes_left = d.pop("processes_left")

        started_ms = d.pop("started_ms")

        stderr = StreamReport.from_dict(d.pop("stderr"))

        stdout = StreamReport.from_dict(d.pop("stdout"))

        def _parse_cause(data: object) -> EndingKind | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                cause_type_0 = EndingKind(data)

                return cause_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EndingKind | None | Unset, data)

        cause = _parse_cause(d.pop("cause", UNSET))

        def _parse_omitted(data: object) -> None | Omitted | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                omitted_type_0 = Omitted.from_dict(data)

                return omitted_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Omitted | Unset, data)

        omitted = _parse_omitted(d.pop("omitted", UNSET))

        seen_by_host = cls(
            denials=denials,
            ended_ms=ended_ms,
            files=files,
            processes_left=processes_left,
            started_ms=started_ms,
            stderr=stderr,
            stdout=stdout,
            cause=cause,
            omitted=omitted,
        )

        seen_by_host.additional_properties = d
        return seen_by_host

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
