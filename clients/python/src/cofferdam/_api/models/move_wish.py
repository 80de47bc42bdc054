from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="MoveWish")


@_attrs_define
class MoveWish:
    """Something that is to have another name.

    Attributes:
        from_ (None | str | Unset): What there is.
        from_base64 (None | str | Unset): The same in base64, where it is not UTF-8.
        replace (bool | Unset): Replaces what is there. Default: False.
        to (None | str | Unset): Its new path; directories above it are made.
        to_base64 (None | str | Unset): The same in base64, where it is not UTF-8.
    """

    from_: None | str | Unset = UNSET
    from_base64: None | str | Unset = UNSET
    replace: bool | Unset = False
    to: None | str | Unset = UNSET
    to_base64: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
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

        replace = self.replace

        to: None | str | Unset
        if isinstance(self.to, Unset):
            to = UNSET
        else:
            to = self.to

        to_base64: None | str | Unset
        if isinstance(self.to_base64, Unset):
            to_base64 = UNSET
        else:
            to_base64 = self.to_base64

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if from_ is not UNSET:
            field_dict["from"] = from_
        if from_base64 is not UNSET:
            field_dict["from_base64"] = from_base64
        if replace is not UNSET:
            field_dict["replace"] = replace
        if to is not UNSET:
            field_dict["to"] = to
        if to_base64 is not UNSET:
            field_dict["to_base64"] = to_base64

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

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

        replace = d.pop("replace", UNSET)

        def _parse_to(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        to = _parse_to(d.pop("to", UNSET))

        def _parse_to_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        to_base64 = _parse_to_base64(d.pop("to_base64", UNSET))

        move_wish = cls(
            from_=from_,
            from_base64=from_base64,
            replace=replace,
            to=to,
            to_base64=to_base64,
        )

        return move_wish
