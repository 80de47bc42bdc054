from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.export_manifest import ExportManifest
    from ..models.snapshot_report import SnapshotReport


T = TypeVar("T", bound="SnapshotImported")


@_attrs_define
class SnapshotImported:
    """What came in. Format 1.

    Attributes:
        manifest (ExportManifest): What an exported snapshot says of itself. Format 1.
        same_directory (bool): Whether it lay on the very directory that is the workspace of this session. What a
            snapshot does
            not hold is as the workspace has it.
        same_path (bool): Whether it lay on a workspace of the same path.
        session (str): The id of the session.
        snapshot (SnapshotReport): A snapshot of a session. Format 1.
    """

    manifest: ExportManifest
    same_directory: bool
    same_path: bool
    session: str
    snapshot: SnapshotReport
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        manifest = self.manifest.to_dict()

        same_directory = self.same_directory

        same_path = self.same_path

        session = self.session

        snapshot = self.snapshot.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "manifest": manifest,
                "same_directory": same_directory,
                "same_path": same_path,
                "session": session,
                "snapshot": snapshot,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.export_manifest import ExportManifest  # noqa: PLC0415
        from ..models.snapshot_report import SnapshotReport  # noqa: PLC0415

        d = dict(src_dict)
        manifest = ExportManifest.from_dict(d.pop("manifest"))

        same_directory = d.pop("same_directory")

        same_path = d.pop("same_path")

        session = d.pop("session")

        snapshot = SnapshotReport.from_dict(d.pop("snapshot"))

        snapshot_imported = cls(
            manifest=manifest,
            same_directory=same_directory,
            same_path=same_path,
            session=session,
            snapshot=snapshot,
        )

        snapshot_imported.additional_properties = d
        return snapshot_imported

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
