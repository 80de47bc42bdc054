from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.layer_tier import LayerTier
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.denial import Denial
    from ..models.ending_report import EndingReport
    from ..models.enforced import Enforced
    from ..models.omitted import Omitted
    from ..models.receipt import Receipt
    from ..models.usage_report import UsageReport


T = TypeVar("T", bound="RunReport")


@_attrs_define
class RunReport:
    """What came of one command. Format 1.

    Attributes:
        denials (list[Denial]): What was denied, as the host saw it.
        duration_ms (float): From start to end, in milliseconds.
        ending (EndingReport): How a command ended.
        enforced (Enforced): How far each axis is enforced, and why not further.
        exit_code (int): The exit code that stands for it.
        omitted (Omitted): Bytes dropped over the limit of output.
        usage (UsageReport): What a command used; null where it cannot be known.
        exec_ (None | str | Unset): Its id in that session.
        hint (None | str | Unset): What to do, where it never ran and that is known.
        killed_descendants (int | None | Unset): How many processes that a command of a session left in the background
            were ended with it.
        new_control_files (list[str] | None | Unset): Control files that appeared in the workspace, relative to it. They
            are looked for when the
            sandbox ends: absent for a command of a session, whose event of this name tells them then, and
            where the sandbox was kept or lost.
        receipt (None | Receipt | Unset): What it did, where that was asked for.
        session (None | str | Unset): The session that it ran in, where it ran in one.
        stderr (None | str | Unset): Standard error, where it is UTF-8.
        stderr_base64 (None | str | Unset): Standard error in base64, where it is not UTF-8.
        stdout (None | str | Unset): Standard output, where it is UTF-8.
        stdout_base64 (None | str | Unset): Standard output in base64, where it is not UTF-8.
        tier (LayerTier | None | Unset): What made the layer of its workspace, where that was copy-on-write and went
            with it.
        tier_why (None | str | Unset): Why that was no overlay, where nobody asked for a copy.
    """

    denials: list[Denial]
    duration_ms: float
    ending: EndingReport
    enforced: Enforced
    exit_code: int
    omitted: Omitted
    usage: UsageReport
    exec_: None | str | Unset = UNSET
    hint: None | str | Unset = UNSET
    killed_descendants: int | None | Unset = UNSET
    new_control_files: list[str] | None | Unset = UNSET
    receipt: None | Receipt | Unset = UNSET
    session: None | str | Unset = UNSET
    stderr: None | str | Unset = UNSET
    stderr_base64: None | str | Unset = UNSET
    stdout: None | str | Unset = UNSET
    stdout_base64: None | str | Unset = UNSET
    tier: LayerTier | None | Unset = UNSET
    tier_why: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.receipt import Receipt  # noqa: PLC0415

        denials = []
        for denials_item_data in self.denials:
            denials_item = denials_item_data.to_dict()
            denials.append(denials_item)

        duration_ms = self.duration_ms

        ending = self.ending.to_dict()

        enforced = self.enforced.to_dict()

        exit_code = self.exit_code

        omitted = self.omitted.to_dict()

        usage = self.usage.to_dict()

        exec_: None | str | Unset
        if isinstance(self.exec_, Unset):
            exec_ = UNSET
        else:
            exec_ = self.exec_

        hint: None | str | Unset
        if isinstance(self.hint, Unset):
            hint = UNSET
        else:
            hint = self.hint

        killed_descendants: int | None | Unset
        if isinstance(self.killed_descendants, Unset):
            killed_descendants = UNSET
        else:
            killed_descendants = self.killed_descendants

        new_control_files: list[str] | None | Unset
        if isinstance(self.new_control_files, Unset):
            new_control_files = UNSET
        elif isinstance(self.new_control_files, list):
            new_control_files = self.new_control_files

        else:
            new_control_files = self.new_control_files

        receipt: dict[str, Any] | None | Unset
        if isinstance(self.receipt, Unset):
            receipt = UNSET
        elif isinstance(self.receipt, Receipt):
            receipt = self.receipt.to_dict()
        else:
            receipt = self.receipt

        session: None | str | Unset
        if isinstance(self.session, Unset):
            session = UNSET
        else:
            session = self.session

        stderr: None | str | Unset
        if isinstance(self.stderr, Unset):
            stderr = UNSET
        else:
            stderr = self.stderr

        stderr_base64: None | str | Unset
        if isinstance(self.stderr_base64, Unset):
            stderr_base64 = UNSET
        else:
            stderr_base64 = self.stderr_base64

        stdout: None | str | Unset
        if isinstance(self.stdout, Unset):
            stdout = UNSET
        else:
            stdout = self.stdout

        stdout_base64: None | str | Unset
        if isinstance(self.stdout_base64, Unset):
            stdout_base64 = UNSET
        else:
            stdout_base64 = self.stdout_base64

        tier: None | str | Unset
        if isinstance(self.tier, Unset):
            tier = UNSET
        elif isinstance(self.tier, LayerTier):
            tier = self.tier.value
        else:
            tier = self.tier

        tier_why: None | str | Unset
        if isinstance(self.tier_why, Unset):
            tier_why = UNSET
        else:
            tier_why = self.tier_why

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "denials": denials,
                "duration_ms": duration_ms,
                "ending": ending,
                "enforced": enforced,
                "exit_code": exit_code,
                "omitted": omitted,
                "usage": usage,
            }
        )
        if exec_ is not UNSET:
            field_dict["exec"] = exec_
        if hint is not UNSET:
            field_dict["hint"] = hint
        if killed_descendants is not UNSET:
            field_dict["killed_descendants"] = killed_descendants
        if new_control_files is not UNSET:
            field_dict["new_control_files"] = new_control_files
        if receipt is not UNSET:
            field_dict["receipt"] = receipt
        if session is not UNSET:
            field_dict["session"] = session
        if stderr is not UNSET:
            field_dict["stderr"] = stderr
        if stderr_base64 is not UNSET:
            field_dict["stderr_base64"] = stderr_base64
        if stdout is not UNSET:
            field_dict["stdout"] = stdout
        if stdout_base64 is not UNSET:
            field_dict["stdout_base64"] = stdout_base64
        if tier is not UNSET:
            field_dict["tier"] = tier
        if tier_why is not UNSET:
            field_dict["tier_why"] = tier_why

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.denial import Denial  # noqa: PLC0415
        from ..models.ending_report import EndingReport  # noqa: PLC0415
        from ..models.enforced import Enforced  # noqa: PLC0415
        from ..models.omitted import Omitted  # noqa: PLC0415
        from ..models.receipt import Receipt  # noqa: PLC0415
        from ..models.usage_report import UsageReport  # noqa: PLC0415

        d = dict(src_dict)
        denials = []
        _denials = d.pop("denials")
        for denials_item_data in _denials:
            denials_item = Denial.from_dict(denials_item_data)

            denials.append(denials_item)

        duration_ms = d.pop("duration_ms")

        ending = EndingReport.from_dict(d.pop("ending"))

        enforced = Enforced.from_dict(d.pop("enforced"))

        exit_code = d.pop("exit_code")

        omitted = Omitted.from_dict(d.pop("omitted"))

        usage = UsageReport.from_dict(d.pop("usage"))

        def _parse_exec_(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        exec_ = _parse_exec_(d.pop("exec", UNSET))

        def _parse_hint(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        hint = _parse_hint(d.pop("hint", UNSET))

        def _parse_killed_descendants(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        killed_descendants = _parse_killed_descendants(
            d.pop("killed_descendants", UNSET)
        )

        def _parse_new_control_files(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                new_control_files_type_0 = cast(list[str], data)

                return new_control_files_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        new_control_files = _parse_new_control_files(d.pop("new_control_files", UNSET))

        def _parse_receipt(data: object) -> None | Receipt | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                receipt_type_0 = Receipt.from_dict(data)

                return receipt_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Receipt | Unset, data)

        receipt = _parse_receipt(d.pop("receipt", UNSET))

        def _parse_session(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        session = _parse_session(d.pop("session", UNSET))

        def _parse_stderr(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stderr = _parse_stderr(d.pop("stderr", UNSET))

        def _parse_stderr_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stderr_base64 = _parse_stderr_base64(d.pop("stderr_base64", UNSET))

        def _parse_stdout(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stdout = _parse_stdout(d.pop("stdout", UNSET))

        def _parse_stdout_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stdout_base64 = _parse_stdout_base64(d.pop("stdout_base64", UNSET))

        def _parse_tier(data: object) -> LayerTier | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                tier_type_0 = LayerTier(data)

                return tier_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LayerTier | None | Unset, data)

        tier = _parse_tier(d.pop("tier", UNSET))

        def _parse_tier_why(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        tier_why = _parse_tier_why(d.pop("tier_why", UNSET))

        run_report = cls(
            denials=denials,
            duration_ms=duration_ms,
            ending=ending,
            enforced=enforced,
            exit_code=exit_code,
            omitted=omitted,
            usage=usage,
            exec_=exec_,
            hint=hint,
            killed_descendants=killed_descendants,
            new_control_files=new_control_files,
            receipt=receipt,
            session=session,
            stderr=stderr,
            stderr_base64=stderr_base64,
            stdout=stdout,
            stdout_base64=stdout_base64,
            tier=tier,
            tier_why=tier_why,
        )

        run_report.additional_properties = d
        return run_report

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
