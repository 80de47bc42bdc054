from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.layer_change import LayerChange


T = TypeVar("T", bound="DiscardedChanges")


@_attrs_define
class DiscardedChanges:
    """What `discard --json` prints. Format 1.

    Attributes:
        commands (int): How many commands ran in it.
        discarded (list[LayerChange]): What the session had changed and has not any more, or would not.
        dry_run (bool): Whether nothing was done.
        left (int): How many processes went on in it that commands had left.
        processes_ended (bool): Whether all processes of the session were ended for it.
        session (str): The id of the session.
    """

    commands: int
    discarded: list[LayerChange]
    dry_run: bool
    left: int
    processes_ended: bool
    session: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        commands = self.commands

        discarded = []
        for discarded_item_data in self.discarded:
            discarded_item = discarded_item_data.to_dict()
            discarded.append(discarded_item)

        dry_run = self.dry_run

        left = self.left

        processes_ended = self.processes_ended

        session = self.session

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "commands": commands,
                "discarded": discarded,
                "dry_run": dry_run,
                "left": left,
                "processes_ended": processes_ended,
                "session": session,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.layer_change import LayerChange  # noqa: PLC0415

        d = dict(src_dict)
        commands = d.pop("commands")

        discarded = []
        _discarded = d.pop("discarded")
        for discarded_item_data in _discarded:
            discarded_item = LayerChange.from_dict(discarded_item_data)

            discarded.append(discarded_item)

        dry_run = d.pop("dry_run")

        left = d.pop("left")

        processes_ended = d.pop("processes_ended")

        session = d.pop("session")

        discarded_changes = cls(
            commands=commands,
            discarded=discarded,
            dry_run=dry_run,
            left=left,
            processes_ended=processes_ended,
            session=session,
        )

        discarded_changes.additional_properties = d
        return discarded_changes

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
