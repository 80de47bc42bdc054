from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.file_seen import FileSeen


T = TypeVar("T", bound="FilesSeen")


@_attrs_define
class FilesSeen:
    """What was done to the workspace between the start of a command and its receipt.

    Attributes:
        added (list[FileSeen]): What was not there before.
        beside (list[str]): Commands that ran at the same time, by their ids: what is listed may be theirs.
        changed (list[FileSeen]): What was there and is other now.
        omitted (int): How many paths are not listed, for there are too many.
        removed (list[FileSeen]): What is not there any more, as it was.
        not_seen (None | str | Unset): Why nobody looked; null where somebody did.
    """

    added: list[FileSeen]
    beside: list[str]
    changed: list[FileSeen]
    omitted: int
    removed: list[FileSeen]
    not_seen: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        added = []
        for added_item_data in self.added:
            added_item = added_item_data.to_dict()
            added.append(added_item)

        beside = self.beside

        changed = []
        for changed_item_data in self.changed:
            changed_item = changed_item_data.to_dict()
            changed.append(changed_item)

        omitted = self.omitted

        removed = []
        for removed_item_data in self.removed:
            removed_item = removed_item_data.to_dict()
            removed.append(removed_item)

        not_seen: None | str | Unset
        if isinstance(self.not_seen, Unset):
            not_seen = UNSET
        else:
            not_seen = self.not_seen

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "added": added,
                "beside": beside,
                "changed": changed,
                "omitted": omitted,
                "removed": removed,
            }
        )
        if not_seen is not UNSET:
            field_dict["not_seen"] = not_seen

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.file_seen import FileSeen  # noqa: PLC0415

        d = dict(src_dict)
        added = []
        _added = d.pop("added")
        for added_item_data in _added:
            added_item = FileSeen.from_dict(added_item_data)

            added.append(added_item)

        beside = cast(list[str], d.pop("beside"))

        changed = []
        _changed = d.pop("changed")
        for changed_item_data in _changed:
            changed_item = FileSeen.from_dict(changed_item_data)

            changed.append(changed_item)

        omitted = d.pop("omitted")

        removed = []
        _removed = d.pop("removed")
        for removed_item_data in _removed:
            removed_item = FileSeen.from_dict(removed_item_data)

            removed.append(removed_item)

        def _parse_not_seen(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        not_seen = _parse_not_seen(d.pop("not_seen", UNSET))

        files_seen = cls(
            added=added,
            beside=beside,
            changed=changed,
            omitted=omitted,
            removed=removed,
            not_seen=not_seen,
        )

        files_seen.additional_properties = d
        return files_seen

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
