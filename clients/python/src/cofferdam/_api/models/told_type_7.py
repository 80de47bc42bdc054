from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.ending_kind import EndingKind

T = TypeVar("T", bound="ToldType7")


@_attrs_define
class ToldType7:
    """The shell ended. Nothing follows.

    Attributes:
        ending (EndingKind): The stable names of endings.

            - `exited`: By `exit`.
            - `signaled`: By a signal.
            - `timed_out`: Out of time.
            - `out_of_memory`: Out of memory.
            - `pids`: Out of processes.
            - `output`: Too much output.
            - `not_started`: The program never ran.
            - `setup_failed`: The sandbox was not set up.
            - `canceled`: The caller gave up.
            - `disk`: The private space was full.
            - `lease`: The session's lease was over.
            - `secret_alarm`: The placeholder of a secret was on its way to a host that the secret is not for.
            - `lost`: The sandbox died and nobody saw how it ended.
        type_ (Literal['died']):
    """

    ending: EndingKind
    type_: Literal["died"]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        ending = self.ending.value

        type_ = self.type_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "ending": ending,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        ending = EndingKind(d.pop("ending"))

        type_ = cast(Literal["died"], d.pop("type"))
        if type_ != "died":
            raise ValueError(f"type must match const 'died', got '{type_}'")

        told_type_7 = cls(
            ending=ending,
            type_=type_,
        )

        told_type_7.additional_properties = d
        return told_type_7

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
