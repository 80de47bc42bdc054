from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ForkWish")


@_attrs_define
class ForkWish:
    """Another session that is to begin as this one is.

    Attributes:
        name (str): Its name.
        point (None | str | Unset): The number of a point, or the label of a snapshot, where it begins. Default: as it
            is now.
    """

    name: str
    point: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        point: None | str | Unset
        if isinstance(self.point, Unset):
            point = UNSET
        else:
            point = self.point

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if point is not UNSET:
            field_dict["point"] = point

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        def _parse_point(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        point = _parse_point(d.pop("point", UNSET))

        fork_wish = cls(
            name=name,
            point=point,
        )

        return fork_wish
