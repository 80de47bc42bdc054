from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ToolReport")


@_attrs_define
class ToolReport:
    """A tool, as a model is told of it. Format 1.

    Attributes:
        description (str): What it does, for a model.
        destructive (bool): It may remove or overwrite what cannot be brought back.
        idempotent (bool): Calling it again with the same arguments changes nothing more.
        input_ (Any): What it takes, as a JSON Schema.
        name (str): Its name.
        open_world (bool): It may reach what is outside the sandbox.
        read_only (bool): It changes nothing.
        title (str): A few words for people.
        output (Any | Unset): What it answers where it does not fail, as a JSON Schema.
    """

    description: str
    destructive: bool
    idempotent: bool
    input_: Any
    name: str
    open_world: bool
    read_only: bool
    title: str
    output: Any | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        description = self.description

        destructive = self.destructive

        idempotent = self.idempotent

        input_ = self.input_

        name = self.name

        open_world = self.open_world

        read_only = self.read_only

        title = self.title

        output = self.output

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "description": description,
                "destructive": destructive,
                "idempotent": idempotent,
                "input": input_,
                "name": name,
                "open_world": open_world,
                "read_only": read_only,
                "title": title,
            }
        )
        if output is not UNSET:
            field_dict["output"] = output

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        description = d.pop("description")

        destructive = d.pop("destructive")

        idempotent = d.pop("idempotent")

        input_ = d.pop("input")

        name = d.pop("name")

        open_world = d.pop("open_world")

        read_only = d.pop("read_only")

        title = d.pop("title")

        output = d.pop("output", UNSET)

        tool_report = cls(
            description=description,
            destructive=destructive,
            idempotent=idempotent,
            input_=input_,
            name=name,
            open_world=open_world,
            read_only=read_only,
            title=title,
            output=output,
        )

        tool_report.additional_properties = d
        return tool_report

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
