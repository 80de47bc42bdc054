from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="SnapshotReport")


@_attrs_define
class SnapshotReport:
    """A snapshot of a session. Format 1.

    Attributes:
        bytes_ (int): Bytes of content in it.
        files (int): Files and directories in it.
        made_ms (int): When it was taken, in milliseconds since 1970.
        snapshot (int): Its number: that of a point in the history of its session.
        label (None | str | Unset): What somebody called it.
    """

    bytes_: int
    files: int
    made_ms: int
    snapshot: int
    label: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        bytes_ = self.bytes_

        files = self.files

        made_ms = self.made_ms

        snapshot = self.snapshot

        label: None | str | Unset
        if isinstance(self.label, Unset):
            label = UNSET
        else:
            label = self.label

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "bytes": bytes_,
                "files": files,
                "made_ms": made_ms,
                "snapshot": snapshot,
            }
        )
        if label is not UNSET:
            field_dict["label"] = label

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        bytes_ = d.pop("bytes")

        files = d.pop("files")

        made_ms = d.pop("made_ms")

        snapshot = d.pop("snapshot")

        def _parse_label(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        label = _parse_label(d.pop("label", UNSET))

        snapshot_report = cls(
            bytes_=bytes_,
            files=files,
            made_ms=made_ms,
            snapshot=snapshot,
            label=label,
        )

        snapshot_report.additional_properties = d
        return snapshot_report

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
