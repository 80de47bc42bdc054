from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.said_by_guest import SaidByGuest
    from ..models.seen_by_host import SeenByHost


T = TypeVar("T", bound="Receipt")


@_attrs_define
class Receipt:
    """What one command did. A part of [`RunReport`](crate::RunReport).

    Attributes:
        said_by_guest (SaidByGuest): What the sandbox's first process said.
        seen_by_host (SeenByHost): What the host saw by itself.
    """

    said_by_guest: SaidByGuest
    seen_by_host: SeenByHost
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        said_by_guest = self.said_by_guest.to_dict()

        seen_by_host = self.seen_by_host.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "said_by_guest": said_by_guest,
                "seen_by_host": seen_by_host,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.said_by_guest import SaidByGuest  # noqa: PLC0415
        from ..models.seen_by_host import SeenByHost  # noqa: PLC0415

        d = dict(src_dict)
        said_by_guest = SaidByGuest.from_dict(d.pop("said_by_guest"))

        seen_by_host = SeenByHost.from_dict(d.pop("seen_by_host"))

        receipt = cls(
            said_by_guest=said_by_guest,
            seen_by_host=seen_by_host,
        )

        receipt.additional_properties = d
        return receipt

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
