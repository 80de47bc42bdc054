from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.error_body import ErrorBody
    from ..models.file_content import FileContent


T = TypeVar("T", bound="OneContent")


@_attrs_define
class OneContent:
    """One file of several: its content or an error.

    Attributes:
        path (str): The path; bytes that are not UTF-8 are replaced.
        content (FileContent | None | Unset): What was read.
        error (ErrorBody | None | Unset): Why nothing was.
    """

    path: str
    content: FileContent | None | Unset = UNSET
    error: ErrorBody | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.error_body import ErrorBody  # noqa: PLC0415
        from ..models.file_content import FileContent  # noqa: PLC0415

        path = self.path

        content: dict[str, Any] | None | Unset
        if isinstance(self.content, Unset):
            content = UNSET
        elif isinstance(self.content, FileContent):
            content = self.content.to_dict()
        else:
            content = self.content

        error: dict[str, Any] | None | Unset
        if isinstance(self.error, Unset):
            error = UNSET
        elif isinstance(self.error, ErrorBody):
            error = self.error.to_dict()
        else:
            error = self.error

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "path": path,
            }
        )
        if content is not UNSET:
            field_dict["content"] = content
        if error is not UNSET:
            field_dict["error"] = error

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.error_body import ErrorBody  # noqa: PLC0415
        from ..models.file_content import FileContent  # noqa: PLC0415

        d = dict(src_dict)
        path = d.pop("path")

        def _parse_content(data: object) -> FileContent | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                content_type_0 = FileContent.from_dict(data)

                return content_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FileContent | None | Unset, data)

        content = _parse_content(d.pop("content", UNSET))

        def _parse_error(data: object) -> ErrorBody | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                error_type_0 = ErrorBody.from_dict(data)

                return error_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ErrorBody | None | Unset, data)

        error = _parse_error(d.pop("error", UNSET))

        one_content = cls(
            path=path,
            content=content,
            error=error,
        )

        one_content.additional_properties = d
        return one_content

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
