from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.patch_refusal_kind import PatchRefusalKind

T = TypeVar("T", bound="PatchRefusal")


@_attrs_define
class PatchRefusal:
    """Why a section is refused, where that is not the fault of a hunk.

    Attributes:
        kind (PatchRefusalKind): The closed set of reasons. A caller decides by these, never by a message.

            - `not_found`: The file is not there.
            - `exists`: Something is there already.
            - `wrong_kind`: What is there is of another kind than the patch says.
            - `no_directory`: A link, or something else that is no directory, is on the way.
            - `content_differs`: The file holds something else than what is to be deleted.
            - `bad_link`: A symbolic link would be empty, or lead out of the workspace.
            - `too_large`: Something would be larger than a limit allows.
        message (str): The reason, as a lowercase fragment.
    """

    kind: PatchRefusalKind
    message: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind.value

        message = self.message

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "message": message,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = PatchRefusalKind(d.pop("kind"))

        message = d.pop("message")

        patch_refusal = cls(
            kind=kind,
            message=message,
        )

        patch_refusal.additional_properties = d
        return patch_refusal

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
