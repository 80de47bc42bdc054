from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.point_path import PointPath


T = TypeVar("T", bound="PointEffects")


@_attrs_define
class PointEffects:
    """What changed between two points.

    Attributes:
        added (int): How many paths came.
        changed (int): How many paths are others.
        more (bool): Whether there may be more, which nobody counted.
        paths (list[PointPath]): The first of them.
        removed (int): How many paths are gone.
    """

    added: int
    changed: int
    more: bool
    paths: list[PointPath]
    removed: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        added = self.added

        changed = self.changed

        more = self.more

        paths = []
        for paths_item_data in self.paths:
            paths_item = paths_item_data.to_dict()
            paths.append(paths_item)

        removed = self.removed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "added": added,
                "changed": changed,
                "more": more,
                "paths": paths,
                "removed": removed,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.point_path import PointPath  # noqa: PLC0415

        d = dict(src_dict)
        added = d.pop("added")

        changed = d.pop("changed")

        more = d.pop("more")

        paths = []
        _paths = d.pop("paths")
        for paths_item_data in _paths:
            paths_item = PointPath.from_dict(paths_item_data)

            paths.append(paths_item)

        removed = d.pop("removed")

        point_effects = cls(
            added=added,
            changed=changed,
            more=more,
            paths=paths,
            removed=removed,
        )

        point_effects.additional_properties = d
        return point_effects

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
