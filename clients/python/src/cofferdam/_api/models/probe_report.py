from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.enforcement import Enforcement

if TYPE_CHECKING:
    from ..models.check_report import CheckReport
    from ..models.enforced import Enforced


T = TypeVar("T", bound="ProbeReport")


@_attrs_define
class ProbeReport:
    """What attacks from inside a sandbox came to. Format 1.

    Attributes:
        checks (list[CheckReport]): Each promise that was attacked.
        enforced (Enforced): How far each axis is enforced, and why not further.
        overall (Enforcement): The verdict in one word, as in seed systems that knew three.

            - `FullyEnforced`: Every axis that counts is full.
            - `Partial`: Something holds, something does not.
            - `Unavailable`: Nothing that counts holds.
        profile (str): The profile that was attacked.
    """

    checks: list[CheckReport]
    enforced: Enforced
    overall: Enforcement
    profile: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        checks = []
        for checks_item_data in self.checks:
            checks_item = checks_item_data.to_dict()
            checks.append(checks_item)

        enforced = self.enforced.to_dict()

        overall = self.overall.value

        profile = self.profile

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "checks": checks,
                "enforced": enforced,
                "overall": overall,
                "profile": profile,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.check_report import CheckReport  # noqa: PLC0415
        from ..models.enforced import Enforced  # noqa: PLC0415

        d = dict(src_dict)
        checks = []
        _checks = d.pop("checks")
        for checks_item_data in _checks:
            checks_item = CheckReport.from_dict(checks_item_data)

            checks.append(checks_item)

        enforced = Enforced.from_dict(d.pop("enforced"))

        overall = Enforcement(d.pop("overall"))

        profile = d.pop("profile")

        probe_report = cls(
            checks=checks,
            enforced=enforced,
            overall=overall,
            profile=profile,
        )

        probe_report.additional_properties = d
        return probe_report

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
