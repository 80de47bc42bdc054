from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.ending_kind import EndingKind

T = TypeVar("T", bound="PointCommand")


@_attrs_define
class PointCommand:
    """A command in a history.

    Attributes:
        argv (list[str]): Its words, as far as they fit; bytes that are not text are replaced.
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
        exit_code (int): The exit code that stands for its ending.
        id (str): Its id.
    """

    argv: list[str]
    ending: EndingKind
    exit_code: int
    id: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        argv = self.argv

        ending = self.ending.value

        exit_code = self.exit_code

        id = self.id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "argv": argv,
                "ending": ending,
                "exit_code": exit_code,
                "id": id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        argv = cast(list[str], d.pop("argv"))

        ending = EndingKind(d.pop("ending"))

        exit_code = d.pop("exit_code")

        id = d.pop("id")

        point_command = cls(
            argv=argv,
            ending=ending,
            exit_code=exit_code,
            id=id,
        )

        point_command.additional_properties = d
        return point_command

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
