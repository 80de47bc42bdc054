from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.basis import Basis
from ..models.degree import Degree

T = TypeVar("T", bound="Enforced")


@_attrs_define
class Enforced:
    """How far each axis is enforced, and why not further.

    Attributes:
        basis (Basis): What an [`Enforced`] is known from.

            - `planned`: It was derived from host facts before anything ran.
            - `applied`: It was applied, and confirmed by the host.
            - `probed`: It was attacked from inside, and held.
        environment (Degree): How far one axis is enforced.

            - `none`: Not at all.
            - `partial`: Some promises of the axis hold, others do not.
            - `full`: Every promise of the axis holds.
        files (Degree): How far one axis is enforced.

            - `none`: Not at all.
            - `partial`: Some promises of the axis hold, others do not.
            - `full`: Every promise of the axis holds.
        limits (Degree): How far one axis is enforced.

            - `none`: Not at all.
            - `partial`: Some promises of the axis hold, others do not.
            - `full`: Every promise of the axis holds.
        network (Degree): How far one axis is enforced.

            - `none`: Not at all.
            - `partial`: Some promises of the axis hold, others do not.
            - `full`: Every promise of the axis holds.
        processes (Degree): How far one axis is enforced.

            - `none`: Not at all.
            - `partial`: Some promises of the axis hold, others do not.
            - `full`: Every promise of the axis holds.
        reasons (list[str]): Why an axis is not full: one sentence each, led by the axis and a colon.
    """

    basis: Basis
    environment: Degree
    files: Degree
    limits: Degree
    network: Degree
    processes: Degree
    reasons: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        basis = self.basis.value

        environment = self.environment.value

        files = self.files.value

        limits = self.limits.value

        network = self.network.value

        processes = self.processes.value

        reasons = self.reasons

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "basis": basis,
                "environment": environment,
                "files": files,
                "limits": limits,
                "network": network,
                "processes": processes,
                "reasons": reasons,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        basis = Basis(d.pop("basis"))

        environment = Degree(d.pop("environment"))

        files = Degree(d.pop("files"))

        limits = Degree(d.pop("limits"))

        network = Degree(d.pop("network"))

        processes = Degree(d.pop("processes"))

        reasons = cast(list[str], d.pop("reasons"))

        enforced = cls(
            basis=basis,
            environment=environment,
            files=files,
            limits=limits,
            network=network,
            processes=processes,
            reasons=reasons,
        )

        enforced.additional_properties = d
        return enforced

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
