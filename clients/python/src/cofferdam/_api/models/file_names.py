from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.file_entry import FileEntry
    from ..models.file_left_out import FileLeftOut


T = TypeVar("T", bound="FileNames")


@_attrs_define
class FileNames:
    """What `file glob --json` prints. Format 1.

    Attributes:
        entries (list[FileEntry]): What was found, in the order of names, each directory before what is in it.
        left_out (list[FileLeftOut]): What was not searched or not told.
        session (str): The id of the session.
    """

    entries: list[FileEntry]
    left_out: list[FileLeftOut]
    session: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        entries = []
        for entries_item_data in self.entries:
            entries_item = entries_item_data.to_dict()
            entries.append(entries_item)

        left_out = []
        for left_out_item_data in self.left_out:
            left_out_item = left_out_item_data.to_dict()
            left_out.append(left_out_item)

        session = self.session

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "entries": entries,
                "left_out": left_out,
                "session": session,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.file_entry import FileEntry  # noqa: PLC0415
        from ..models.file_left_out import FileLeftOut  # noqa: PLC0415

        d = dict(src_dict)
        entries = []
        _entries = d.pop("entries")
        for entries_item_data in _entries:
            entries_item = FileEntry.from_dict(entries_item_data)

            entries.append(entries_item)

        left_out = []
        _left_out = d.pop("left_out")
        for left_out_item_data in _left_out:
            left_out_item = FileLeftOut.from_dict(left_out_item_data)

            left_out.append(left_out_item)

        session = d.pop("session")

        file_names = cls(
            entries=entries,
            left_out=left_out,
            session=session,
        )

        file_names.additional_properties = d
        return file_names

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
