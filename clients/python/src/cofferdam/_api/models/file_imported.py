from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="FileImported")


@_attrs_define
class FileImported:
    """What `file import --json` prints. Format 1.

    Attributes:
        bytes_ (int): How many bytes the files hold.
        directories (int): How many directories.
        files (int): How many regular files the archive held.
        links (int): How many links.
        notes (list[str]): What is not as the archive says, in words; the first of it.
        notes_more (int): How much more there was.
        path (str): The directory that it went to; bytes that are not UTF-8 are replaced.
        session (str): The id of the session.
    """

    bytes_: int
    directories: int
    files: int
    links: int
    notes: list[str]
    notes_more: int
    path: str
    session: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        bytes_ = self.bytes_

        directories = self.directories

        files = self.files

        links = self.links

        notes = self.notes

        notes_more = self.notes_more

        path = self.path

        session = self.session

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "bytes": bytes_,
                "directories": directories,
                "files": files,
                "links": links,
                "notes": notes,
                "notes_more": notes_more,
                "path": path,
                "session": session,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        bytes_ = d.pop("bytes")

        directories = d.pop("directories")

        files = d.pop("files")

        links = d.pop("links")

        notes = cast(list[str], d.pop("notes"))

        notes_more = d.pop("notes_more")

        path = d.pop("path")

        session = d.pop("session")

        file_imported = cls(
            bytes_=bytes_,
            directories=directories,
            files=files,
            links=links,
            notes=notes,
            notes_more=notes_more,
            path=path,
            session=session,
        )

        file_imported.additional_properties = d
        return file_imported

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
