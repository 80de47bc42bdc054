from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.tool_report import ToolReport


T = TypeVar("T", bound="ToolList")


@_attrs_define
class ToolList:
    """A pack of tools. Format 1.

    Attributes:
        pack (str): Its name.
        preamble (str): What a model should know of the place that it works in, for its system prompt.
        tools (list[ToolReport]): The tools, in the order in which they are best shown.
    """

    pack: str
    preamble: str
    tools: list[ToolReport]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        pack = self.pack

        preamble = self.preamble

        tools = []
        for tools_item_data in self.tools:
            tools_item = tools_item_data.to_dict()
            tools.append(tools_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pack": pack,
                "preamble": preamble,
                "tools": tools,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.tool_report import ToolReport  # noqa: PLC0415

        d = dict(src_dict)
        pack = d.pop("pack")

        preamble = d.pop("preamble")

        tools = []
        _tools = d.pop("tools")
        for tools_item_data in _tools:
            tools_item = ToolReport.from_dict(tools_item_data)

            tools.append(tools_item)

        tool_list = cls(
            pack=pack,
            preamble=preamble,
            tools=tools,
        )

        tool_list.additional_properties = d
        return tool_list

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
