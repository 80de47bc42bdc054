from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="UndoWish")


@_attrs_define
class UndoWish:
    """Where a session goes back to.

    Attributes:
        count (int | None | Unset): Takes back so many commands and changes between them. Default: 1.
        dry_run (bool | Unset): Says what would change, and changes nothing in the workspace. Default: False.
        force (bool | Unset): Goes although what the session has now cannot be kept as a point, and is lost. Default:
            False.
        to (int | None | Unset): Goes to the state of this point instead, earlier or later.
    """

    count: int | None | Unset = UNSET
    dry_run: bool | Unset = False
    force: bool | Unset = False
    to: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        count: int | None | Unset
        if isinstance(self.count, Unset):
            count = UNSET
        else:
            count = self.count

        dry_run = self.dry_run

        force = self.force

        to: int | None | Unset
        if isinstance(self.to, Unset):
            to = UNSET
        else:
            to = self.to

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if count is not UNSET:
            field_dict["count"] = count
        if dry_run is not UNSET:
            field_dict["dry_run"] = dry_run
        if force is not UNSET:
            field_dict["force"] = force
        if to is not UNSET:
            field_dict["to"] = to

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_count(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        count = _parse_count(d.pop("count", UNSET))

        dry_run = d.pop("dry_run", UNSET)

        force = d.pop("force", UNSET)

        def _parse_to(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        to = _parse_to(d.pop("to", UNSET))

        undo_wish = cls(
            count=count,
            dry_run=dry_run,
            force=force,
            to=to,
        )

        return undo_wish
