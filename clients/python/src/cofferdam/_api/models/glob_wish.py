from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.kind_wish import KindWish
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.scope_wish import ScopeWish


T = TypeVar("T", bound="GlobWish")


@_attrs_define
class GlobWish:
    """Names that are looked for.

    Attributes:
        ignore_case (bool | Unset): Takes capital letters and small ones for the same. Default: False.
        kinds (list[KindWish] | Unset): Finds only what is one of these; anything where there are none.
        limit (int | None | Unset): At most so many names, and never more than 10000.
        path (None | str | Unset): The directory. Default: the workspace.
        path_base64 (None | str | Unset): The directory in base64, where it is not UTF-8.
        patterns (list[str] | Unset): The patterns, of which one has to match the whole path below the directory that is
            searched.
        scope (ScopeWish | Unset): What is passed over in a search. What is called `.git` is in any case.
    """

    ignore_case: bool | Unset = False
    kinds: list[KindWish] | Unset = UNSET
    limit: int | None | Unset = UNSET
    path: None | str | Unset = UNSET
    path_base64: None | str | Unset = UNSET
    patterns: list[str] | Unset = UNSET
    scope: ScopeWish | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        ignore_case = self.ignore_case

        kinds: list[str] | Unset = UNSET
        if not isinstance(self.kinds, Unset):
            kinds = []
            for kinds_item_data in self.kinds:
                kinds_item = kinds_item_data.value
                kinds.append(kinds_item)

        limit: int | None | Unset
        if isinstance(self.limit, Unset):
            limit = UNSET
        else:
            limit = self.limit

        path: None | str | Unset
        if isinstance(self.path, Unset):
            path = UNSET
        else:
            path = self.path

        path_base64: None | str | Unset
        if isinstance(self.path_base64, Unset):
            path_base64 = UNSET
        else:
            path_base64 = self.path_base64

        patterns: list[str] | Unset = UNSET
        if not isinstance(self.patterns, Unset):
            patterns = self.patterns

        scope: dict[str, Any] | Unset = UNSET
        if not isinstance(self.scope, Unset):
            scope = self.scope.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if ignore_case is not UNSET:
            field_dict["ignore_case"] = ignore_case
        if kinds is not UNSET:
            field_dict["kinds"] = kinds
        if limit is not UNSET:
            field_dict["limit"] = limit
        if path is not UNSET:
            field_dict["path"] = path
        if path_base64 is not UNSET:
            field_dict["path_base64"] = path_base64
        if patterns is not UNSET:
            field_dict["patterns"] = patterns
        if scope is not UNSET:
            field_dict["scope"] = scope

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.scope_wish import ScopeWish  # noqa: PLC0415

        d = dict(src_dict)
        ignore_case = d.pop("ignore_case", UNSET)

        _kinds = d.pop("kinds", UNSET)
        kinds: list[KindWish] | Unset = UNSET
        if _kinds is not UNSET:
            kinds = []
            for kinds_item_data in _kinds:
                kinds_item = KindWish(kinds_item_data)

                kinds.append(kinds_item)

        def _parse_limit(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        limit = _parse_limit(d.pop("limit", UNSET))

        def _parse_path(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        path = _parse_path(d.pop("path", UNSET))

        def _parse_path_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        path_base64 = _parse_path_base64(d.pop("path_base64", UNSET))

        patterns = cast(list[str], d.pop("patterns", UNSET))

        _scope = d.pop("scope", UNSET)
        scope: ScopeWish | Unset
        if isinstance(_scope, Unset):
            scope = UNSET
        else:
            scope = ScopeWish.from_dict(_scope)

        glob_wish = cls(
            ignore_case=ignore_case,
            kinds=kinds,
            limit=limit,
            path=path,
            path_base64=path_base64,
            patterns=patterns,
            scope=scope,
        )

        return glob_wish
