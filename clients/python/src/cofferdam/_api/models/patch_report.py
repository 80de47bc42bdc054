from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.patch_format import PatchFormat
from ..models.patch_outcome import PatchOutcome

if TYPE_CHECKING:
    from ..models.patched_file import PatchedFile


T = TypeVar("T", bound="PatchReport")


@_attrs_define
class PatchReport:
    """What a patch does, or why it does nothing, file by file and hunk by hunk. Format 1.

    Lines count from 1. Bytes that are not text are replaced in what is shown.

        Attributes:
            files (list[PatchedFile]): Each section, in the order in which they are applied.
            format_ (PatchFormat): What a patch is written in.

                - `unified`: Unified diffs, of git or of `diff -u`.
                - `envelope`: The envelope that begins with `*** Begin Patch`.
            outcome (PatchOutcome): What came of a patch.

                - `fits`: All of it fits.
                - `already_applied`: All of it was applied before; nothing is left to do.
                - `refused`: Some of it does not fit, so that nothing is done.
            reversed_ (bool): Whether it was applied backwards.
    """

    files: list[PatchedFile]
    format_: PatchFormat
    outcome: PatchOutcome
    reversed_: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        files = []
        for files_item_data in self.files:
            files_item = files_item_data.to_dict()
            files.append(files_item)

        format_ = self.format_.value

        outcome = self.outcome.value

        reversed_ = self.reversed_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "files": files,
                "format": format_,
                "outcome": outcome,
                "reversed": reversed_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.patched_file import PatchedFile  # noqa: PLC0415

        d = dict(src_dict)
        files = []
        _files = d.pop("files")
        for files_item_data in _files:
            files_item = PatchedFile.from_dict(files_item_data)

            files.append(files_item)

        format_ = PatchFormat(d.pop("format"))

        outcome = PatchOutcome(d.pop("outcome"))

        reversed_ = d.pop("reversed")

        patch_report = cls(
            files=files,
            format_=format_,
            outcome=outcome,
            reversed_=reversed_,
        )

        patch_report.additional_properties = d
        return patch_report

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
