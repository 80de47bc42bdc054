from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.chosen_wish import ChosenWish


T = TypeVar("T", bound="ApplyWish")


@_attrs_define
class ApplyWish:
    """What is to land.

    Attributes:
        dry_run (bool | Unset): Says what would land, and does nothing. Default: False.
        hunks (list[ChosenWish] | Unset): Only these parts of files, in place of paths.
        overwrite (bool | Unset): Files and links below `paths` land over what the workspace changed there since, which
            is lost. Default: False.
        paths (list[str] | Unset): Only these paths of the workspace and what is below them; all without them.
        paths_base64 (list[str] | Unset): Further paths in base64, which are not UTF-8.
    """

    dry_run: bool | Unset = False
    hunks: list[ChosenWish] | Unset = UNSET
    overwrite: bool | Unset = False
    paths: list[str] | Unset = UNSET
    paths_base64: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        dry_run = self.dry_run

        hunks: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.hunks, Unset):
            hunks = []
            for hunks_item_data in self.hunks:
                hunks_item = hunks_item_data.to_dict()
                hunks.append(hunks_item)

        overwrite = self.overwrite

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
        if hunks is not UNSET:
            field_dict["hunks"] = hunks
        if overwrite is not UNSET:
            field_dict["overwrite"] = overwrite
        if paths is not UNSET:
            field_dict["paths"] = paths
        if paths_base64 is not UNSET:
            field_dict["paths_base64"] = paths_base64

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.chosen_wish import ChosenWish  # noqa: PLC0415

        d = dict(src_dict)
        dry_run = d.pop("dry_run", UNSET)

        _hunks = d.pop("hunks", UNSET)
        hunks: list[ChosenWish] | Unset = UNSET
        if _hunks is not UNSET:
            hunks = []
            for hunks_item_data in _hunks:
                hunks_item = ChosenWish.from_dict(hunks_item_data)

                hunks.append(hunks_item)

        overwrite = d.pop("overwrite", UNSET)

        paths = cast(list[str], d.pop("paths", UNSET))

        paths_base64 = cast(list[str], d.pop("paths_base64", UNSET))

        apply_wish = cls(
            dry_run=dry_run,
            hunks=hunks,
            overwrite=overwrite,
            paths=paths,
            paths_base64=paths_base64,
        )

        return apply_wish
