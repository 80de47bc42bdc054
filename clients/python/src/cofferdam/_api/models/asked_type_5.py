from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

T = TypeVar("T", bound="AskedType5")


@_attrs_define
class AskedType5:
    """The terminal of a command has a new size.

    Attributes:
        columns (int): Characters in a line.
        rows (int): Lines.
        type_ (Literal['resize']):
    """

    columns: int
    rows: int
    type_: Literal["resize"]

    def to_dict(self) -> dict[str, Any]:
        columns = self.columns

        rows = self.rows

        type_ = self.type_

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "columns": columns,
                "rows": rows,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        columns = d.pop("columns")

        rows = d.pop("rows")

        type_ = cast(Literal["resize"], d.pop("type"))
        if type_ != "resize":
            raise ValueError(f"type must match const 'resize', got '{type_}'")

        asked_type_5 = cls(
            columns=columns,
            rows=rows,
            type_=type_,
        )

        return asked_type_5
