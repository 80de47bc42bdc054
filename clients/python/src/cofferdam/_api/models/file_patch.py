from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.patch_report import PatchReport


T = TypeVar("T", bound="FilePatch")


@_attrs_define
class FilePatch:
    """A patch that was applied, or was not. Format 1.

    Attributes:
        changed (bool): Whether files were changed.
        report (PatchReport): What a patch does, or why it does nothing, file by file and hunk by hunk. Format 1.

            Lines count from 1. Bytes that are not text are replaced in what is shown.
        session (str): The id of the session.
    """

    changed: bool
    report: PatchReport
    session: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        changed = self.changed

        report = self.report.to_dict()

        session = self.session

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "changed": changed,
                "report": report,
                "session": session,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.patch_report import PatchReport  # noqa: PLC0415

        d = dict(src_dict)
        changed = d.pop("changed")

        report = PatchReport.from_dict(d.pop("report"))

        session = d.pop("session")

        file_patch = cls(
            changed=changed,
            report=report,
            session=session,
        )

        file_patch.additional_properties = d
        return file_patch

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
