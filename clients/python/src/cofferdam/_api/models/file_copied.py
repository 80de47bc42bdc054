from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.file_skipped import FileSkipped


T = TypeVar("T", bound="FileCopied")


@_attrs_define
class FileCopied:
    """What `file cp --recursive --json` prints. Format 1.

    Attributes:
        bytes_ (int): How many bytes the files hold.
        directories (int): How many directories.
        files (int): How many regular files were copied.
        links (int): How many links.
        path (str): The path of the copy; bytes that are not UTF-8 are replaced.
        session (str): The id of the session.
        skipped (list[FileSkipped]): What was skipped; the first of it.
        skipped_more (int): How much more was skipped.
    """

    bytes_: int
    directories: int
    files: int
    links: int
    path: str
    session: str
    skipped: list[FileSkipped]
    skipped_more: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        bytes_ = self.bytes_

        directories = self.directories

        files = self.files

        links = self.links

        path = self.path

        session = self.session

        skipped = []
        for skipped_item_data in self.skipped:
            skipped_item = skipped_item_data.to_dict()
            skipped.append(skipped_item)

        skipped_more = self.skipped_more

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "bytes": bytes_,
                "directories": directories,
                "files": files,
                "links": links,
                "path": path,
                "session": session,
                "skipped": skipped,
                "skipped_more": skipped_more,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.file_skipped import FileSkipped  # noqa: PLC0415

        d = dict(src_dict)
        bytes_ = d.pop("bytes")

        directories = d.pop("directories")

        files = d.pop("files")

        links = d.pop("links")

        path = d.pop("path")

        session = d.pop("session")

        skipped = []
        _skipped = d.pop("skipped")
        for skipped_item_data in _skipped:
            skipped_item = FileSkipped.from_dict(skipped_item_data)

            skipped.append(skipped_item)

        skipped_more = d.pop("skipped_more")

        file_copied = cls(
            bytes_=bytes_,
            directories=directories,
            files=files,
            links=links,
            path=path,
            session=session,
            skipped=skipped,
            skipped_more=skipped_more,
        )

        file_copied.additional_properties = d
        return file_copied

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
