from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="DiscardWish")


@_attrs_define
class DiscardWish:
    """What is to be dropped.

    Attributes:
        dry_run (bool | Unset): Says what would be dropped, and does nothing. Default: False.
        paths (list[str] | Unset): Only these paths of the workspace and what is below them; all without them.
        paths_base64 (list[str] | Unset): Further paths in base64, which are not UTF-8.
    """

    dry_run: bool | Unset = False
    paths: list[str] | Unset = UNSET
    paths_base64: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        dry_run = self.dry_run

        paths: list[str] | Unset = UNSET
        if not isinstance(self.paths, Unset):
            paths = self.paths

        paths_base64: list[str] | Unset = UNSET
        if not isinstance(self.paths_base64, Unset):
            paths_base64 = self.paths_base64

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if dry_run is not UNSET:
            field_dict["dry_run"] = dry_run
        if paths is not UNSET:
            field_dict["paths"] = paths
        if paths_base64 is not UNSET:
            field_dict["paths_base64"] = paths_base64

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        dry_run = d.pop("dry_run", UNSET)

        paths = cast(list[str], d.pop("paths", UNSET))

        paths_base64 = cast(list[str], d.pop("paths_base64", UNSET))

        discard_wish = cls(
            dry_run=dry_run,
            paths=paths,
            paths_base64=paths_base64,
        )

        return discard_wish
