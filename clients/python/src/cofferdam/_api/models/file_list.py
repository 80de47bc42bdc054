from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.file_entry import FileEntry


T = TypeVar("T", bound="FileList")


@_attrs_define
class FileList:
    """What `file list --json` prints. Format 1.

    Attributes:
        entries (list[FileEntry]): Its entries, in the order of names, each directory before what is in it.
        path (str): The directory; bytes that are not UTF-8 are replaced.
        session (str): The id of the session.
        next_ (None | str | Unset): What `--after` is for the next page, if there is more and that is UTF-8.
        next_base64 (None | str | Unset): The same in base64, where it is not UTF-8.
    """

    entries: list[FileEntry]
    path: str
    session: str
    next_: None | str | Unset = UNSET
    next_base64: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        entries = []
        for entries_item_data in self.entries:
            entries_item = entries_item_data.to_dict()
            entries.append(entries_item)

        path = self.path

        session = self.session

        next_: None | str | Unset
        if isinstance(self.next_, Unset):
            next_ = UNSET
        else:
            next_ = self.next_

        next_base64: None | str | Unset
        if isinstance(self.next_base64, Unset):
            next_base64 = UNSET
        else:
            next_base64 = self.next_base64

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "entries": entries,
                "path": path,
                "session": session,
            }
        )
        if next_ is not UNSET:
            field_dict["next"] = next_
        if next_base64 is not UNSET:
            field_dict["next_base64"] = next_base64

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.file_entry import FileEntry  # noqa: PLC0415

        d = dict(src_dict)
        entries = []
        _entries = d.pop("entries")
        for entries_item_data in _entries:
            entries_item = FileEntry.from_dict(entries_item_data)

            entries.append(entries_item)

        path = d.pop("path")

        session = d.pop("session")

        def _parse_next_(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        next_ = _parse_next_(d.pop("next", UNSET))

        def _parse_next_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        next_base64 = _parse_next_base64(d.pop("next_base64", UNSET))

        file_list = cls(
            entries=entries,
            path=path,
            session=session,
            next_=next_,
            next_base64=next_base64,
        )

        file_list.additional_properties = d
        return file_list

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
