from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ExportedWorkspace")


@_attrs_define
class ExportedWorkspace:
    """A workspace that a snapshot lay on.

    Attributes:
        path (str): Its path; bytes that are not text are replaced.
        identity (None | str | Unset): What tells that directory from others, if that could be found out: a SHA-256.
    """

    path: str
    identity: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        identity: None | str | Unset
        if isinstance(self.identity, Unset):
            identity = UNSET
        else:
            identity = self.identity

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "path": path,
            }
        )
        if identity is not UNSET:
            field_dict["identity"] = identity

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        def _parse_identity(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        identity = _parse_identity(d.pop("identity", UNSET))

        exported_workspace = cls(
            path=path,
            identity=identity,
        )

        return exported_workspace
