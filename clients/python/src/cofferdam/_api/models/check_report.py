from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.verdict import Verdict
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.stopped_by import StoppedBy


T = TypeVar("T", bound="CheckReport")


@_attrs_define
class CheckReport:
    """One promise, attacked.

    Attributes:
        attack (str): What the attack met, for people.
        axis (str): The axis it counts for.
        control (str): What the same action met where it must succeed, for people.
        held (bool): Whether the promise held.
        name (str): Its stable name, as in `files.read_outside`.
        promise (str): The promise of SECURITY.md that it belongs to.
        verdict (Verdict): What one check came to.

            - `held`: The attack failed, and the same action succeeded where it must.
            - `broken`: The attack succeeded.
            - `control_failed`: The action failed where it must succeed, so the attack's failure says nothing.
            - `not_tried`: It was not tried.
            - `not_applicable`: It was not tried, and need not be.
        stopped_by (None | StoppedBy | Unset): What stopped the attack.
    """

    attack: str
    axis: str
    control: str
    held: bool
    name: str
    promise: str
    verdict: Verdict
    stopped_by: None | StoppedBy | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.stopped_by import StoppedBy  # noqa: PLC0415

        attack = self.attack

        axis = self.axis

        control = self.control

        held = self.held

        name = self.name

        promise = self.promise

        verdict = self.verdict.value

        stopped_by: dict[str, Any] | None | Unset
        if isinstance(self.stopped_by, Unset):
            stopped_by = UNSET
        elif isinstance(self.stopped_by, StoppedBy):
            stopped_by = self.stopped_by.to_dict()
        else:
            stopped_by = self.stopped_by

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "attack": attack,
                "axis": axis,
                "control": control,
                "held": held,
                "name": name,
                "promise": promise,
                "verdict": verdict,
            }
        )
        if stopped_by is not UNSET:
            field_dict["stopped_by"] = stopped_by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.stopped_by import StoppedBy  # noqa: PLC0415

        d = dict(src_dict)
        attack = d.pop("attack")

        axis = d.pop("axis")

        control = d.pop("control")

        held = d.pop("held")

        name = d.pop("name")

        promise = d.pop("promise")

        verdict = Verdict(d.pop("verdict"))

        def _parse_stopped_by(data: object) -> None | StoppedBy | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                stopped_by_type_0 = StoppedBy.from_dict(data)

                return stopped_by_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StoppedBy | Unset, data)

        stopped_by = _parse_stopped_by(d.pop("stopped_by", UNSET))

        check_report = cls(
            attack=attack,
            axis=axis,
            control=control,
            held=held,
            name=name,
            promise=promise,
            verdict=verdict,
            stopped_by=stopped_by,
        )

        check_report.additional_properties = d
        return check_report

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
