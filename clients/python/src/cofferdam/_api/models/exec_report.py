from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.ending_kind import EndingKind
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.denial import Denial
    from ..models.stream_report import StreamReport
    from ..models.usage_report import UsageReport


T = TypeVar("T", bound="ExecReport")


@_attrs_define
class ExecReport:
    """A command of a session. Format 1.

    Attributes:
        argv (list[str]): Its words; bytes that are not text are replaced.
        detached (bool): Whether it was detached.
        id (str): Its id.
        incarnation (int): The sandbox that it runs in, by the number of the incarnation.
        left (int): How many processes of it go on though it has ended. It was detached; they end with the session,
            or by a signal to it.
        started_ms (int): When it was started, in milliseconds since 1970.
        stderr (StreamReport): How much of a stream there is.
        stdout (StreamReport): How much of a stream there is.
        terminal (bool): Whether it has a terminal; all its output is then standard output.
        usage (UsageReport): What a command used; null where it cannot be known.
        code (int | None | Unset): Its own exit code, where that is another one: it exited when a process of it was
            killed for want of
            memory.
        denials (list[Denial] | Unset): What the sandbox was denied while it ran.
        detail (None | str | Unset): Why it never ran, where it did not.
        ended_ms (int | None | Unset): When it ended, in milliseconds since 1970; null while it runs.
        ending (EndingKind | None | Unset): How it ended.
        exit_code (int | None | Unset): The exit code that stands for its ending.
        killed_descendants (int | None | Unset): How many of its descendants still ran when it ended, and were killed,
            as was said inside; absent
            where nobody said it, and while it runs.
        signal (int | None | Unset): The signal that ended it, where one did.
        stage (None | str | Unset): The step that failed, where the sandbox was not set up for it.
    """

    argv: list[str]
    detached: bool
    id: str
    incarnation: int
    left: int
    started_ms: int
    stderr: StreamReport
    stdout: StreamReport
    terminal: bool
    usage: UsageReport
    code: int | None | Unset = UNSET
    denials: list[Denial] | Unset = UNSET
    detail: None | str | Unset = UNSET
    ended_ms: int | None | Unset = UNSET
    ending: EndingKind | None | Unset = UNSET
    exit_code: int | None | Unset = UNSET
    killed_descendants: int | None | Unset = UNSET
    signal: int | None | Unset = UNSET
    stage: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        argv = self.argv

        detached = self.detached

        id = self.id

        incarnation = self.incarnation

        left = self.left

        started_ms = self.started_ms

        stderr = self.stderr.to_dict()

        stdout = self.stdout.to_dict()

        terminal = self.terminal

        usage = self.usage.to_dict()

        code: int | None | Unset
        if isinstance(self.code, Unset):
            code = UNSET
        else:
            code = self.code

        denials: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.denials, Unset):
            denials = []
            for denials_item_data in self.denials:
                denials_item = denials_item_data.to_dict()
                denials.append(denials_item)

        detail: None | str | Unset
        if isinstance(self.detail, Unset):
            detail = UNSET
        else:
            detail = self.detail

        ended_ms: int | None | Unset
        if isinstance(self.ended_ms, Unset):
            ended_ms = UNSET
        else:
            ended_ms = self.ended_ms

        ending: None | str | Unset
        if isinstance(self.ending, Unset):
            ending = UNSET
        elif isinstance(self.ending, EndingKind):
            ending = self.ending.value
        else:
            ending = self.ending

        exit_code: int | None | Unset
        if isinstance(self.exit_code, Unset):
            exit_code = UNSET
        else:
            exit_code = self.exit_code

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

        stage: None | str | Unset
        if isinstance(self.stage, Unset):
            stage = UNSET
        else:
            stage = self.stage

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "argv": argv,
                "detached": detached,
                "id": id,
                "incarnation": incarnation,
                "left": left,
                "started_ms": started_ms,
                "stderr": stderr,
                "stdout": stdout,
                "terminal": terminal,
                "usage": usage,
            }
        )
        if code is not UNSET:
            field_dict["code"] = code
        if denials is not UNSET:
            field_dict["denials"] = denials
        if detail is not UNSET:
            field_dict["detail"] = detail
        if ended_ms is not UNSET:
            field_dict["ended_ms"] = ended_ms
        if ending is not UNSET:
            field_dict["ending"] = ending
        if exit_code is not UNSET:
            field_dict["exit_code"] = exit_code
        if killed_descendants is not UNSET:
            field_dict["killed_descendants"] = killed_descendants
        if signal is not UNSET:
            field_dict["signal"] = signal
        if stage is not UNSET:
            field_dict["stage"] = stage

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.denial import Denial  # noqa: PLC0415
        from ..models.stream_report import StreamReport  # noqa: PLC0415
        from ..models.usage_report import UsageReport  # noqa: PLC0415

        d = dict(src_dict)
        argv = cast(list[str], d.pop("argv"))

        detached = d.pop("detached")

        id = d.pop("id")

        incarnation = d.pop("incarnation")

        left = d.pop("left")

        started_ms = d.pop("started_ms")

        stderr = StreamReport.from_dict(d.pop("stderr"))

        stdout = StreamReport.from_dict(d.pop("stdout"))

        terminal = d.pop("terminal")

        usage = UsageReport.from_dict(d.pop("usage"))

        def _parse_code(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        code = _parse_code(d.pop("code", UNSET))

        _denials = d.pop("denials", UNSET)
        denials: list[Denial] | Unset = UNSET
        if _denials is not UNSET:
            denials = []
            for denials_item_data in _denials:
                denials_item = Denial.from_dict(denials_item_data)

                denials.append(denials_item)

        def _parse_detail(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        detail = _parse_detail(d.pop("detail", UNSET))

        def _parse_ended_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ended_ms = _parse_ended_ms(d.pop("ended_ms", UNSET))

        def _parse_ending(data: object) -> EndingKind | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ending_type_0 = EndingKind(data)

                return ending_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EndingKind | None | Unset, data)

        ending = _parse_ending(d.pop("ending", UNSET))

        def _parse_exit_code(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        exit_code = _parse_exit_code(d.pop("exit_code", UNSET))

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

        def _parse_stage(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stage = _parse_stage(d.pop("stage", UNSET))

        exec_report = cls(
            argv=argv,
            detached=detached,
            id=id,
            incarnation=incarnation,
            left=left,
            started_ms=started_ms,
            stderr=stderr,
            stdout=stdout,
            terminal=terminal,
            usage=usage,
            code=code,
            denials=denials,
            detail=detail,
            ended_ms=ended_ms,
            ending=ending,
            exit_code=exit_code,
            killed_descendants=killed_descendants,
            signal=signal,
            stage=stage,
        )

        exec_report.additional_properties = d
        return exec_report

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
