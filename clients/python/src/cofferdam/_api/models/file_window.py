from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.window import Window


T = TypeVar("T", bound="FileWindow")


@_attrs_define
class FileWindow:
    """A part of a text file. Format 1.

    Attributes:
        path (str): The file.
        session (str): The id of the session.
        window (Window): A part of a text. Format 1.
    """

    path: str
    session: str
    window: Window
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        session = self.session

        window = self.window.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "path": path,
                "session": session,
                "window": window,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.window import Window  # noqa: PLC0415

        d = dict(src_dict)
        path = d.pop("path")

        session = d.pop("session")

        window = Window.from_dict(d.pop("window"))

        file_window = cls(
            path=path,
            session=session,
            window=window,
        )

        file_window.additional_properties = d
        return file_window

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
