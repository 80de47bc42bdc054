from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="StartWish")


@_attrs_define
class StartWish:
    """How the words of an image lead a command.

    Attributes:
        entrypoint (None | str | Unset): A program that leads in place of the image's entry point; empty for none. The
            image's own command
            then stands for nothing.
    """

    entrypoint: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        entrypoint: None | str | Unset
        if isinstance(self.entrypoint, Unset):
            entrypoint = UNSET
        else:
            entrypoint = self.entrypoint

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if entrypoint is not UNSET:
            field_dict["entrypoint"] = entrypoint

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_entrypoint(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        entrypoint = _parse_entrypoint(d.pop("entrypoint", UNSET))

        start_wish = cls(
            entrypoint=entrypoint,
        )

        return start_wish
