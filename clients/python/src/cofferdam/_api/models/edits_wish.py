from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.edit_wish import EditWish


T = TypeVar("T", bound="EditsWish")


@_attrs_define
class EditsWish:
    """Texts of a file that are to be replaced.

    Attributes:
        dry_run (bool | Unset): Says what would be done, and changes nothing. Default: False.
        edits (list[EditWish] | Unset): The edits, one applied after the other.
        path (None | str | Unset): The file.
        path_base64 (None | str | Unset): The file in base64, where its path is not UTF-8.
    """

    dry_run: bool | Unset = False
    edits: list[EditWish] | Unset = UNSET
    path: None | str | Unset = UNSET
    path_base64: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        dry_run = self.dry_run

        edits: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.edits, Unset):
            edits = []
            for edits_item_data in self.edits:
                edits_item = edits_item_data.to_dict()
                edits.append(edits_item)

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

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if dry_run is not UNSET:
            field_dict["dry_run"] = dry_run
        if edits is not UNSET:
            field_dict["edits"] = edits
        if path is not UNSET:
            field_dict["path"] = path
        if path_base64 is not UNSET:
            field_dict["path_base64"] = path_base64

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.edit_wish import EditWish  # noqa: PLC0415

        d = dict(src_dict)
        dry_run = d.pop("dry_run", UNSET)

        _edits = d.pop("edits", UNSET)
        edits: list[EditWish] | Unset = UNSET
        if _edits is not UNSET:
            edits = []
            for edits_item_data in _edits:
                edits_item = EditWish.from_dict(edits_item_data)

                edits.append(edits_item)

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

        edits_wish = cls(
            dry_run=dry_run,
            edits=edits,
            path=path,
            path_base64=path_base64,
        )

        return edits_wish
