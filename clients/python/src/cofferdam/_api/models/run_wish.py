from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.failure_name import FailureName
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.exec_wish import ExecWish
    from ..models.spec_wish import SpecWish


T = TypeVar("T", bound="RunWish")


@_attrs_define
class RunWish:
    """A command in a sandbox of its own, as a request wants it.

    Attributes:
        capture_bytes (int | None | Unset): How much of each stream is in the answer, in bytes; more is left out and
            counted.
        exec_ (ExecWish | Unset): A command as a request wants it: `argv`, or `shell`.
        on_failure (FailureName | Unset): What becomes of the sandbox of a run that failed.

            - `destroy`: Nothing is kept.
            - `stop`: It is ended; its home directory and what commands wrote are kept.
            - `preserve`: It is paused and kept as it is.
        preflight (list[str] | Unset): Lines of shell that must succeed before.
        sandbox (SpecWish | Unset): What a sandbox may do, as a request wants it. What is not said is as the operator
            decided.
    """

    capture_bytes: int | None | Unset = UNSET
    exec_: ExecWish | Unset = UNSET
    on_failure: FailureName | Unset = UNSET
    preflight: list[str] | Unset = UNSET
    sandbox: SpecWish | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        capture_bytes: int | None | Unset
        if isinstance(self.capture_bytes, Unset):
            capture_bytes = UNSET
        else:
            capture_bytes = self.capture_bytes

        exec_: dict[str, Any] | Unset = UNSET
        if not isinstance(self.exec_, Unset):
            exec_ = self.exec_.to_dict()

        on_failure: str | Unset = UNSET
        if not isinstance(self.on_failure, Unset):
            on_failure = self.on_failure.value

        preflight: list[str] | Unset = UNSET
        if not isinstance(self.preflight, Unset):
            preflight = self.preflight

        sandbox: dict[str, Any] | Unset = UNSET
        if not isinstance(self.sandbox, Unset):
            sandbox = self.sandbox.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if capture_bytes is not UNSET:
            field_dict["capture_bytes"] = capture_bytes
        if exec_ is not UNSET:
            field_dict["exec"] = exec_
        if on_failure is not UNSET:
            field_dict["on_failure"] = on_failure
        if preflight is not UNSET:
            field_dict["preflight"] = preflight
        if sandbox is not UNSET:
            field_dict["sandbox"] = sandbox

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.exec_wish import ExecWish  # noqa: PLC0415
        from ..models.spec_wish import SpecWish  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_capture_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        capture_bytes = _parse_capture_bytes(d.pop("capture_bytes", UNSET))

        _exec_ = d.pop("exec", UNSET)
        exec_: ExecWish | Unset
        if isinstance(_exec_, Unset):
            exec_ = UNSET
        else:
            exec_ = ExecWish.from_dict(_exec_)

        _on_failure = d.pop("on_failure", UNSET)
        on_failure: FailureName | Unset
        if isinstance(_on_failure, Unset):
            on_failure = UNSET
        else:
            on_failure = FailureName(_on_failure)

        preflight = cast(list[str], d.pop("preflight", UNSET))

        _sandbox = d.pop("sandbox", UNSET)
        sandbox: SpecWish | Unset
        if isinstance(_sandbox, Unset):
            sandbox = UNSET
        else:
            sandbox = SpecWish.from_dict(_sandbox)

        run_wish = cls(
            capture_bytes=capture_bytes,
            exec_=exec_,
            on_failure=on_failure,
            preflight=preflight,
            sandbox=sandbox,
        )

        return run_wish
