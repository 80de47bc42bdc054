from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.layer_change import LayerChange


T = TypeVar("T", bound="AppliedChanges")


@_attrs_define
class AppliedChanges:
    """What `apply --json` prints. Format 1.

    Attributes:
        applied (list[LayerChange]): What landed in the workspace, or would.
        dry_run (bool): Whether nothing was done.
        kept (list[LayerChange]): What did not, each with its `standing`.
        session (str): The id of the session.
    """

    applied: list[LayerChange]
    dry_run: bool
    kept: list[LayerChange]
    session: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        applied = []
        for applied_item_data in self.applied:
            applied_item = applied_item_data.to_dict()
            applied.append(applied_item)

        dry_run = self.dry_run

        kept = []
        for kept_item_data in self.kept:
            kept_item = kept_item_data.to_dict()
            kept.append(kept_item)

        session = self.session

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "applied": applied,
                "dry_run": dry_run,
                "kept": kept,
                "session": session,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.layer_change import LayerChange  # noqa: PLC0415

        d = dict(src_dict)
        applied = []
        _applied = d.pop("applied")
        for applied_item_data in _applied:
            applied_item = LayerChange.from_dict(applied_item_data)

            applied.append(applied_item)

        dry_run = d.pop("dry_run")

        kept = []
        _kept = d.pop("kept")
        for kept_item_data in _kept:
            kept_item = LayerChange.from_dict(kept_item_data)

            kept.append(kept_item)

        session = d.pop("session")

        applied_changes = cls(
            applied=applied,
            dry_run=dry_run,
            kept=kept,
            session=session,
        )

        applied_changes.additional_properties = d
        return applied_changes

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
