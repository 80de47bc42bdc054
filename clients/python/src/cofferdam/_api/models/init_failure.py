from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.ending_kind import EndingKind
from ..types import UNSET, Unset

T = TypeVar("T", bound="InitFailure")


@_attrs_define
class InitFailure:
    """What failed while a session was prepared.

    Attributes:
        at_ms (int): When, in milliseconds since 1970.
        command (str): The command, for people.
        output (str): Its output, or beginning and end of it, standard error last; bytes that are not text are replaced.
        ending (EndingKind | None | Unset): How it ended; null where it could not be tried.
        exit_code (int | None | Unset): The exit code that stands for its ending; null where it could not be tried.
    """

    at_ms: int
    command: str
    output: str
    ending: EndingKind | None | Unset = UNSET
    exit_code: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at_ms = self.at_ms

        command = self.command

        output = self.output

        ending: None | str | Unset
        if isinstance(self.ending, Unset):
            ending = UNSET
        elif isinstance(self.ending, EndingKind):
            ending = self.ending.value
        else:
            ending = self.ending

        exit_code: int | None | Unset
        if isinstance(self.exit_code, Unset):
            exit_code = UNSET
        else:
            exit_code = self.exit_code

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at_ms": at_ms,
                "command": command,
                "output": output,
            }
        )
        if ending is not UNSET:
            field_dict["ending"] = ending
        if exit_code is not UNSET:
            field_dict["exit_code"] = exit_code

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at_ms = d.pop("at_ms")

        command = d.pop("command")

        output = d.pop("output")

        def _parse_ending(data: object) -> EndingKind | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ending_type_0 = EndingKind(data)

                return ending_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EndingKind | None | Unset, data)

        ending = _parse_ending(d.pop("ending", UNSET))

        def _parse_exit_code(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        exit_code = _parse_exit_code(d.pop("exit_code", UNSET))

        init_failure = cls(
            at_ms=at_ms,
            command=command,
            output=output,
            ending=ending,
            exit_code=exit_code,
        )

        init_failure.additional_properties = d
        return init_failure

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
