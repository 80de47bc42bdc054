from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ScopeWish")


@_attrs_define
class ScopeWish:
    """What is passed over in a search. What is called `.git` is in any case.

    Attributes:
        exclude (list[str] | Unset): Passes over files and directories that one of these matches.
        hidden (bool | Unset): Searches names that begin with a dot too. Default: False.
        include (list[str] | Unset): Searches only files that one of these matches, as a line of a .gitignore would.
        no_ignore (bool | Unset): Searches what a .gitignore excludes too. Default: False.
    """

    exclude: list[str] | Unset = UNSET
    hidden: bool | Unset = False
    include: list[str] | Unset = UNSET
    no_ignore: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        exclude: list[str] | Unset = UNSET
        if not isinstance(self.exclude, Unset):
            exclude = self.exclude

        hidden = self.hidden

        include: list[str] | Unset = UNSET
        if not isinstance(self.include, Unset):
            include = self.include

        no_ignore = self.no_ignore

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if exclude is not UNSET:
            field_dict["exclude"] = exclude
        if hidden is not UNSET:
            field_dict["hidden"] = hidden
        if include is not UNSET:
            field_dict["include"] = include
        if no_ignore is not UNSET:
            field_dict["no_ignore"] = no_ignore

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        exclude = cast(list[str], d.pop("exclude", UNSET))

        hidden = d.pop("hidden", UNSET)

        include = cast(list[str], d.pop("include", UNSET))

        no_ignore = d.pop("no_ignore", UNSET)

        scope_wish = cls(
            exclude=exclude,
            hidden=hidden,
            include=include,
            no_ignore=no_ignore,
        )

        return scope_wish
