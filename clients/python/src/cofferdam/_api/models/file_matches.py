from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.file_left_out import FileLeftOut
    from ..models.matched_file import MatchedFile


T = TypeVar("T", bound="FileMatches")


@_attrs_define
class FileMatches:
    """What `file grep --json` prints. Format 1.

    Attributes:
        files (list[MatchedFile]): The files with matches, in the order of names.
        files_searched (int): How many files were searched.
        left_out (list[FileLeftOut]): What was not searched or not told.
        matches (int): How many lines match in all of them.
        session (str): The id of the session.
    """

    files: list[MatchedFile]
    files_searched: int
    left_out: list[FileLeftOut]
    matches: int
    session: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        files = []
        for files_item_data in self.files:
            files_item = files_item_data.to_dict()
            files.append(files_item)

        files_searched = self.files_searched

        left_out = []
        for left_out_item_data in self.left_out:
            left_out_item = left_out_item_data.to_dict()
            left_out.append(left_out_item)

        matches = self.matches

        session = self.session

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "files": files,
                "files_searched": files_searched,
                "left_out": left_out,
                "matches": matches,
                "session": session,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.file_left_out import FileLeftOut  # noqa: PLC0415
        from ..models.matched_file import MatchedFile  # noqa: PLC0415

        d = dict(src_dict)
        files = []
        _files = d.pop("files")
        for files_item_data in _files:
            files_item = MatchedFile.from_dict(files_item_data)

            files.append(files_item)

        files_searched = d.pop("files_searched")

        left_out = []
        _left_out = d.pop("left_out")
        for left_out_item_data in _left_out:
            left_out_item = FileLeftOut.from_dict(left_out_item_data)

            left_out.append(left_out_item)

        matches = d.pop("matches")

        session = d.pop("session")

        file_matches = cls(
            files=files,
            files_searched=files_searched,
            left_out=left_out,
            matches=matches,
            session=session,
        )

        file_matches.additional_properties = d
        return file_matches

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
