from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="StoppedBy")


@_attrs_define
class StoppedBy:
    """What stopped an attack.

    Attributes:
        layer (str): The layer, as far as it can be told: `view`, `namespace`, `seccomp`, `landlock`,
            `capability`, `permission`, `limit`, `mount` or `unknown`.
        errno (None | str | Unset): The kernel's answer by name, as in `EPERM`; none where the process was killed, or
            where
            there was nothing to find.
    """

    layer: str
    errno: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        layer = self.layer

        errno: None | str | Unset
        if isinstance(self.errno, Unset):
            errno = UNSET
        else:
            errno = self.errno

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "layer": layer,
            }
        )
        if errno is not UNSET:
            field_dict["errno"] = errno

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        layer = d.pop("layer")

        def _parse_errno(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        errno = _parse_errno(d.pop("errno", UNSET))

        stopped_by = cls(
            layer=layer,
            errno=errno,
        )

        stopped_by.additional_properties = d
        return stopped_by

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
