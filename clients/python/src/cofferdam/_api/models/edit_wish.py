from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="EditWish")


@_attrs_define
class EditWish:
    """One replacement.

    Attributes:
        new (str): The text that is to stand there; an empty one removes the old.
        old (str): The text that stands there.
        all_ (bool | Unset): Replaces every place, and not the only one. Default: False.
    """

    new: str
    old: str
    all_: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        new = self.new

        old = self.old

        all_ = self.all_

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "new": new,
                "old": old,
            }
        )
        if all_ is not UNSET:
            field_dict["all"] = all_

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        new = d.pop("new")

        old = d.pop("old")

        all_ = d.pop("all", UNSET)

        edit_wish = cls(
            new=new,
            old=old,
            all_=all_,
        )

        return edit_wish
