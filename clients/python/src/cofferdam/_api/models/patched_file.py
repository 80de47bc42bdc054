from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.patch_action import PatchAction
from ..models.patch_note import PatchNote
from ..models.patch_outcome import PatchOutcome
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.patch_refusal import PatchRefusal
    from ..models.patched_hunk import PatchedHunk


T = TypeVar("T", bound="PatchedFile")


@_attrs_define
class PatchedFile:
    """What came of one section of a patch.

    Attributes:
        action (PatchAction): What is done to a file.

            - `modify`: It is changed where it stands.
            - `create`: It is made.
            - `delete`: It is removed.
            - `rename`: It gets another name.
            - `copy`: Another one like it is made.
        added (int): Lines that come.
        hunks (list[PatchedHunk]): Each of its hunks.
        notes (list[PatchNote]): What was done that the patch does not say word for word.
        outcome (PatchOutcome): What came of a patch.

            - `fits`: All of it fits.
            - `already_applied`: All of it was applied before; nothing is left to do.
            - `refused`: Some of it does not fit, so that nothing is done.
        patch_line (int): Where the section begins in the patch.
        path (str): The file that it is about when it is done.
        removed (int): Lines that go.
        from_ (None | str | Unset): The file that it was, for one that is renamed or copied.
        refusal (None | PatchRefusal | Unset): Why it is refused, where that is not the fault of a hunk.
    """

    action: PatchAction
    added: int
    hunks: list[PatchedHunk]
    notes: list[PatchNote]
    outcome: PatchOutcome
    patch_line: int
    path: str
    removed: int
    from_: None | str | Unset = UNSET
    refusal: None | PatchRefusal | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.patch_refusal import PatchRefusal  # noqa: PLC0415

        action = self.action.value

        added = self.added

        hunks = []
        for hunks_item_data in self.hunks:
            hunks_item = hunks_item_data.to_dict()
            hunks.append(hunks_item)

        notes = []
        for notes_item_data in self.notes:
            notes_item = notes_item_data.value
            notes.append(notes_item)

        outcome = self.outcome.value

        patch_line = self.patch_line

        path = self.path

        removed = self.removed

        from_: None | str | Unset
        if isinstance(self.from_, Unset):
            from_ = UNSET
        else:
            from_ = self.from_

        refusal: dict[str, Any] | None | Unset
        if isinstance(self.refusal, Unset):
            refusal = UNSET
        elif isinstance(self.refusal, PatchRefusal):
            refusal = self.refusal.to_dict()
        else:
            refusal = self.refusal

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "action": action,
                "added": added,
                "hunks": hunks,
                "notes": notes,
                "outcome": outcome,
                "patch_line": patch_line,
                "path": path,
                "removed": removed,
            }
        )
        if from_ is not UNSET:
            field_dict["from"] = from_
        if refusal is not UNSET:
            field_dict["refusal"] = refusal

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.patch_refusal import PatchRefusal  # noqa: PLC0415
        from ..models.patched_hunk import PatchedHunk  # noqa: PLC0415

        d = dict(src_dict)
        action = PatchAction(d.pop("action"))

        added = d.pop("added")

        hunks = []
        _hunks = d.pop("hunks")
        for hunks_item_data in _hunks:
            hunks_item = PatchedHunk.from_dict(hunks_item_data)

            hunks.append(hunks_item)

        notes = []
        _notes = d.pop("notes")
        for notes_item_data in _notes:
            notes_item = PatchNote(notes_item_data)

            notes.append(notes_item)

        outcome = PatchOutcome(d.pop("outcome"))

        patch_line = d.pop("patch_line")

        path = d.pop("path")

        removed = d.pop("removed")

        def _parse_from_(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        from_ = _parse_from_(d.pop("from", UNSET))

        def _parse_refusal(data: object) -> None | PatchRefusal | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                refusal_type_0 = PatchRefusal.from_dict(data)

                return refusal_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PatchRefusal | Unset, data)

        refusal = _parse_refusal(d.pop("refusal", UNSET))

        patched_file = cls(
            action=action,
            added=added,
            hunks=hunks,
            notes=notes,
            outcome=outcome,
            patch_line=patch_line,
            path=path,
            removed=removed,
            from_=from_,
            refusal=refusal,
        )

        patched_file.additional_properties = d
        return patched_file

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
