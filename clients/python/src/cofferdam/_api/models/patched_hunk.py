from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.hunk_outcome import HunkOutcome
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.nearest_place import NearestPlace


T = TypeVar("T", bound="PatchedHunk")


@_attrs_define
class PatchedHunk:
    """What came of one hunk.

    Attributes:
        candidates (list[int]): The lines where it fits alike, at most 16 of them; of one out of order, where it would
            fit.
        outcome (HunkOutcome): What came of a hunk.

            - `fits`: It fits.
            - `already_applied`: What it makes is there already.
            - `not_found`: Its old lines are nowhere.
            - `anchor_not_found`: A line that it is to stand behind is nowhere.
            - `ambiguous`: It fits in several places, and in none that the patch says.
            - `out_of_order`: It fits only before what it has to follow: the hunk before it, or a line that it names.
            - `no_context`: It has neither context nor removed lines, so that nothing says where it belongs.
            - `too_large`: The file or the patch is too large for a search.
        patch_line (int): Where it begins in the patch.
        recounted (bool): Whether the numbers of lines in its head were wrong, and its lines were counted instead.
        line (int | None | Unset): The line of the file where it fits, or fits already.
        nearest (NearestPlace | None | Unset): Where it comes nearest to fitting.
        offset (int | None | Unset): By how many lines that is further down than the patch says.
    """

    candidates: list[int]
    outcome: HunkOutcome
    patch_line: int
    recounted: bool
    line: int | None | Unset = UNSET
    nearest: NearestPlace | None | Unset = UNSET
    offset: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.nearest_place import NearestPlace  # noqa: PLC0415

        candidates = self.candidates

        outcome = self.outcome.value

        patch_line = self.patch_line

        recounted = self.recounted

        line: int | None | Unset
        if isinstance(self.line, Unset):
            line = UNSET
        else:
            line = self.line

        nearest: dict[str, Any] | None | Unset
        if isinstance(self.nearest, Unset):
            nearest = UNSET
        elif isinstance(self.nearest, NearestPlace):
            nearest = self.nearest.to_dict()
        else:
            nearest = self.nearest

        offset: int | None | Unset
        if isinstance(self.offset, Unset):
            offset = UNSET
        else:
            offset = self.offset

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "candidates": candidates,
                "outcome": outcome,
                "patch_line": patch_line,
                "recounted": recounted,
            }
        )
        if line is not UNSET:
            field_dict["line"] = line
        if nearest is not UNSET:
            field_dict["nearest"] = nearest
        if offset is not UNSET:
            field_dict["offset"] = offset

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.nearest_place import NearestPlace  # noqa: PLC0415

        d = dict(src_dict)
        candidates = cast(list[int], d.pop("candidates"))

        outcome = HunkOutcome(d.pop("outcome"))

        patch_line = d.pop("patch_line")

        recounted = d.pop("recounted")

        def _parse_line(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        line = _parse_line(d.pop("line", UNSET))

        def _parse_nearest(data: object) -> NearestPlace | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                nearest_type_0 = NearestPlace.from_dict(data)

                return nearest_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(NearestPlace | None | Unset, data)

        nearest = _parse_nearest(d.pop("nearest", UNSET))

        def _parse_offset(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        offset = _parse_offset(d.pop("offset", UNSET))

        patched_hunk = cls(
            candidates=candidates,
            outcome=outcome,
            patch_line=patch_line,
            recounted=recounted,
            line=line,
            nearest=nearest,
            offset=offset,
        )

        patched_hunk.additional_properties = d
        return patched_hunk

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
