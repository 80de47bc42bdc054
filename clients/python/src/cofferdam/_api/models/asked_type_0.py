from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="AskedType0")


@_attrs_define
class AskedType0:
    """Runs a command in a shell.

    Attributes:
        text (str): The command.
        type_ (Literal['run']):
        takes_input (bool | Unset): Whether it reads what comes as input; otherwise nothing. Default: False.
    """

    text: str
    type_: Literal["run"]
    takes_input: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        text = self.text

        type_ = self.type_

        takes_input = self.takes_input

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "text": text,
                "type": type_,
            }
        )
        if takes_input is not UNSET:
            field_dict["takes_input"] = takes_input

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        text = d.pop("text")

        type_ = cast(Literal["run"], d.pop("type"))
        if type_ != "run":
            raise ValueError(f"type must match const 'run', got '{type_}'")

        takes_input = d.pop("takes_input", UNSET)

        asked_type_0 = cls(
            text=text,
            type_=type_,
            takes_input=takes_input,
        )

        return asked_type_0
