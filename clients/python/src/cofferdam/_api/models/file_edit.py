from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.edit_report import EditReport


T = TypeVar("T", bound="FileEdit")


@_attrs_define
class FileEdit:
    """Edits that were applied, or were not. Format 1.

    Attributes:
        changed (bool): Whether it was changed.
        path (str): The file.
        report (EditReport): What edits do, or why they do nothing. Format 1. Lines count from 1.
        session (str): The id of the session.
        sha256 (str): The SHA-256 of what it holds now.
    """

    changed: bool
    path: str
    report: EditReport
    session: str
    sha256: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        changed = self.changed

        path = self.path

        report = self.report.to_dict()

        session = self.session

        sha256 = self.sha256

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "changed": changed,
                "path": path,
                "report": report,
                "session": session,
                "sha256": sha256,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.edit_report import EditReport  # noqa: PLC0415

        d = dict(src_dict)
        changed = d.pop("changed")

        path = d.pop("path")

        report = EditReport.from_dict(d.pop("report"))

        session = d.pop("session")

        sha256 = d.pop("sha256")

        file_edit = cls(
            changed=changed,
            path=path,
            report=report,
            session=session,
            sha256=sha256,
        )

        file_edit.additional_properties = d
        return file_edit

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
