from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="SizeWish")


@_attrs_define
class SizeWish:
    """The size of a terminal.

    Attributes:
        columns (int): Characters in a line.
        rows (int): Lines.
    """

    columns: int
    rows: int

    def to_dict(self) -> dict[str, Any]:
        columns = self.columns

        rows = self.rows

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "columns": columns,
                "rows": rows,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        columns = d.pop("columns")

        rows = d.pop("rows")

        size_wish = cls(
            columns=columns,
            rows=rows,
        )

        return size_wish
