from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.ending_kind import EndingKind
from ..types import UNSET, Unset

T = TypeVar("T", bound="ShellRan")


@_attrs_define
class ShellRan:
    """A command of a shell. Format 1.

    Attributes:
        is_cut (bool): Whether more was written than is in here.
        offset (int): Where its output begins in that of the shell, in bytes.
        seq (int): Its number, growing within a shell.
        base64 (None | str | Unset): What it wrote in base64, where it is not UTF-8.
        died (EndingKind | None | Unset): How the shell ended; null while it lives.
        exit_code (int | None | Unset): Its exit code; null while it runs, and where the shell died with it.
        text (None | str | Unset): What it wrote, both streams in one, where it is UTF-8.
    """

    is_cut: bool
    offset: int
    seq: int
    base64: None | str | Unset = UNSET
    died: EndingKind | None | Unset = UNSET
    exit_code: int | None | Unset = UNSET
    text: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        is_cut = self.is_cut

        offset = self.offset

        seq = self.seq

        base64: None | str | Unset
        if isinstance(self.base64, Unset):
            base64 = UNSET
        else:
            base64 = self.base64

        died: None | str | Unset
        if isinstance(self.died, Unset):
            died = UNSET
        elif isinstance(self.died, EndingKind):
            died = self.died.value
        else:
            died = self.died

        exit_code: int | None | Unset
        if isinstance(self.exit_code, Unset):
            exit_code = UNSET
        else:
            exit_code = self.exit_code

        text: None | str | Unset
        if isinstance(self.text, Unset):
            text = UNSET
        else:
            text = self.text

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "is_cut": is_cut,
                "offset": offset,
                "seq": seq,
            }
        )
        if base64 is not UNSET:
            field_dict["base64"] = base64
        if died is not UNSET:
            field_dict["died"] = died
        if exit_code is not UNSET:
            field_dict["exit_code"] = exit_code
        if text is not UNSET:
            field_dict["text"] = text

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        is_cut = d.pop("is_cut")

        offset = d.pop("offset")

        seq = d.pop("seq")

        def _parse_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        base64 = _parse_base64(d.pop("base64", UNSET))

        def _parse_died(data: object) -> EndingKind | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                died_type_0 = EndingKind(data)

                return died_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EndingKind | None | Unset, data)

        died = _parse_died(d.pop("died", UNSET))

        def _parse_exit_code(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        exit_code = _parse_exit_code(d.pop("exit_code", UNSET))

        def _parse_text(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        text = _parse_text(d.pop("text", UNSET))

        shell_ran = cls(
            is_cut=is_cut,
            offset=offset,
            seq=seq,
            base64=base64,
            died=died,
            exit_code=exit_code,
            text=text,
        )

        shell_ran.additional_properties = d
        return shell_ran

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
