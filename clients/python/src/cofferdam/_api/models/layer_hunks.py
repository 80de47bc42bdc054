from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.hunk_text import HunkText
    from ..models.layer_change import LayerChange


T = TypeVar("T", bound="LayerHunks")


@_attrs_define
class LayerHunks:
    """A change with its parts. Format 1.

    Attributes:
        change (LayerChange): A change of a copy-on-write session. Format 1.
        hunks (list[HunkText]): Its parts, numbered from 0; none where it lands as a whole or not at all.
        sha256 (str): What tells this state of the change, in hexadecimal, by which it or its parts are chosen.
        whole (HunkText | None | Unset): The text of a change without parts, where that is asked for and has at most 1
            MiB.
    """

    change: LayerChange
    hunks: list[HunkText]
    sha256: str
    whole: HunkText | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.hunk_text import HunkText  # noqa: PLC0415

        change = self.change.to_dict()

        hunks = []
        for hunks_item_data in self.hunks:
            hunks_item = hunks_item_data.to_dict()
            hunks.append(hunks_item)

        sha256 = self.sha256

        whole: dict[str, Any] | None | Unset
        if isinstance(self.whole, Unset):
            whole = UNSET
        elif isinstance(self.whole, HunkText):
            whole = self.whole.to_dict()
        else:
            whole = self.whole

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "change": change,
                "hunks": hunks,
                "sha256": sha256,
            }
        )
        if whole is not UNSET:
            field_dict["whole"] = whole

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.hunk_text import HunkText  # noqa: PLC0415
        from ..models.layer_change import LayerChange  # noqa: PLC0415

        d = dict(src_dict)
        change = LayerChange.from_dict(d.pop("change"))

        hunks = []
        _hunks = d.pop("hunks")
        for hunks_item_data in _hunks:
            hunks_item = HunkText.from_dict(hunks_item_data)

            hunks.append(hunks_item)

        sha256 = d.pop("sha256")

        def _parse_whole(data: object) -> HunkText | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                whole_type_0 = HunkText.from_dict(data)

                return whole_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(HunkText | None | Unset, data)

        whole = _parse_whole(d.pop("whole", UNSET))

        layer_hunks = cls(
            change=change,
            hunks=hunks,
            sha256=sha256,
            whole=whole,
        )

        layer_hunks.additional_properties = d
        return layer_hunks

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
