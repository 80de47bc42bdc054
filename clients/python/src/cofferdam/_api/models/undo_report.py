from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.point_effects import PointEffects


T = TypeVar("T", bound="UndoReport")


@_attrs_define
class UndoReport:
    """What an undo did, or would do. Format 1.

    Attributes:
        commands (int): How many commands ran in it.
        dry_run (bool): Whether nothing was done.
        effects (PointEffects): What changed between two points.
        left (int): How many processes went on in it that commands had left.
        processes_ended (bool): Whether all processes of the session were ended. They are not where nothing is to be
            changed.
        session (str): The session.
        to (int): The point that it stands at now.
        from_ (int | None | Unset): The point that it stood at.
        in_copy (bool | Unset): Whether the session works in a copy of the workspace. Of what landed it sees what the
            point has, and its next
            `apply` would take the rest back.
        landed (int | Unset): How many changes `apply` has landed since the point was made. They are in the workspace
            itself and stay there,
            so that the session sees them still, unless it works in a copy. Default: 0.
        lost (None | str | Unset): Why what was there before could not be kept.
    """

    commands: int
    dry_run: bool
    effects: PointEffects
    left: int
    processes_ended: bool
    session: str
    to: int
    from_: int | None | Unset = UNSET
    in_copy: bool | Unset = UNSET
    landed: int | Unset = 0
    lost: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        commands = self.commands

        dry_run = self.dry_run

        effects = self.effects.to_dict()

        left = self.left

        processes_ended = self.processes_ended

        session = self.session

        to = self.to

        from_: int | None | Unset
        if isinstance(self.from_, Unset):
            from_ = UNSET
        else:
            from_ = self.from_

        in_copy = self.in_copy

        landed = self.landed

        lost: None | str | Unset
        if isinstance(self.lost, Unset):
            lost = UNSET
        else:
            lost = self.lost

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "commands": commands,
                "dry_run": dry_run,
                "effects": effects,
                "left": left,
                "processes_ended": processes_ended,
                "session": session,
                "to": to,
            }
        )
        if from_ is not UNSET:
            field_dict["from"] = from_
        if in_copy is not UNSET:
            field_dict["in_copy"] = in_copy
        if landed is not UNSET:
            field_dict["landed"] = landed
        if lost is not UNSET:
            field_dict["lost"] = lost

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.point_effects import PointEffects  # noqa: PLC0415

        d = dict(src_dict)
        commands = d.pop("commands")

        dry_run = d.pop("dry_run")

        effects = PointEffects.from_dict(d.pop("effects"))

        left = d.pop("left")

        processes_ended = d.pop("processes_ended")

        session = d.pop("session")

        to = d.pop("to")

        def _parse_from_(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        from_ = _parse_from_(d.pop("from", UNSET))

        in_copy = d.pop("in_copy", UNSET)

        landed = d.pop("landed", UNSET)

        def _parse_lost(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        lost = _parse_lost(d.pop("lost", UNSET))

        undo_report = cls(
            commands=commands,
            dry_run=dry_run,
            effects=effects,
            left=left,
            processes_ended=processes_ended,
            session=session,
            to=to,
            from_=from_,
            in_copy=in_copy,
            landed=landed,
            lost=lost,
        )

        undo_report.additional_properties = d
        return undo_report

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
