from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="FileEventReport")


@_attrs_define
class FileEventReport:
    """What `file watch --json` prints, a line each. Format 1.

    Attributes:
        event (str): What happened: `ready`, `created`, `modified`, `attributes`, `removed`, `renamed`, `overflow` or
            `unwatched`.
        session (str): The id of the session.
        directories (int | None | Unset): With `ready`: how many directories are watched.
        directory (bool | None | Unset): Whether it is, or was, a directory.
        from_ (None | str | Unset): Of a renaming, the path before, where it is UTF-8.
        from_base64 (None | str | Unset): The path before in base64, where it is not UTF-8.
        path (None | str | Unset): The path from the workspace on, where it is UTF-8; of a renaming the new one. The
            workspace
            itself is empty.
        path_base64 (None | str | Unset): The path in base64, where it is not UTF-8.
        reason (None | str | Unset): With `unwatched`: why not.
    """

    event: str
    session: str
    directories: int | None | Unset = UNSET
    directory: bool | None | Unset = UNSET
    from_: None | str | Unset = UNSET
    from_base64: None | str | Unset = UNSET
    path: None | str | Unset = UNSET
    path_base64: None | str | Unset = UNSET
    reason: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        event = self.event

        session = self.session

        directories: int | None | Unset
        if isinstance(self.directories, Unset):
            directories = UNSET
        else:
            directories = self.directories

        directory: bool | None | Unset
        if isinstance(self.directory, Unset):
            directory = UNSET
        else:
            directory = self.directory

        from_: None | str | Unset
        if isinstance(self.from_, Unset):
            from_ = UNSET
        else:
            from_ = self.from_

        from_base64: None | str | Unset
        if isinstance(self.from_base64, Unset):
            from_base64 = UNSET
        else:
            from_base64 = self.from_base64

        path: None | str | Unset
        if isinstance(self.path, Unset):
            path = UNSET
        else:
            path = self.path

        path_base64: None | str | Unset
        if isinstance(self.path_base64, Unset):
            path_base64 = UNSET
        else:
            path_base64 = self.path_base64

        reason: None | str | Unset
        if isinstance(self.reason, Unset):
            reason = UNSET
        else:
            reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "event": event,
                "session": session,
            }
        )
        if directories is not UNSET:
            field_dict["directories"] = directories
        if directory is not UNSET:
            field_dict["directory"] = directory
        if from_ is not UNSET:
            field_dict["from"] = from_
        if from_base64 is not UNSET:
            field_dict["from_base64"] = from_base64
        if path is not UNSET:
            field_dict["path"] = path
        if path_base64 is not UNSET:
            field_dict["path_base64"] = path_base64
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        event = d.pop("event")

        session = d.pop("session")

        def _parse_directories(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        directories = _parse_directories(d.pop("directories", UNSET))

        def _parse_directory(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        directory = _parse_directory(d.pop("directory", UNSET))

        def _parse_from_(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        from_ = _parse_from_(d.pop("from", UNSET))

        def _parse_from_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        from_base64 = _parse_from_base64(d.pop("from_base64", UNSET))

        def _parse_path(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        path = _parse_path(d.pop("path", UNSET))

        def _parse_path_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        path_base64 = _parse_path_base64(d.pop("path_base64", UNSET))

        def _parse_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reason = _parse_reason(d.pop("reason", UNSET))

        file_event_report = cls(
            event=event,
            session=session,
            directories=directories,
            directory=directory,
            from_=from_,
            from_base64=from_base64,
            path=path,
            path_base64=path_base64,
            reason=reason,
        )

        file_event_report.additional_properties = d
        return file_event_report

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
