from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.point_report import PointReport


T = TypeVar("T", bound="HistoryReport")


@_attrs_define
class HistoryReport:
    """The history of a session. Format 1.

    Attributes:
        checkpoints (bool): Whether its commands are points.
        omitted (int): How many older ones are not in here.
        points (list[PointReport]): The points, oldest first.
        session (str): The session.
        at (int | None | Unset): The point that it stands at.
    """

    checkpoints: bool
    omitted: int
    points: list[PointReport]
    session: str
    at: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        checkpoints = self.checkpoints

        omitted = self.omitted

        points = []
        for points_item_data in self.points:
            points_item = points_item_data.to_dict()
            points.append(points_item)

        session = self.session

        at: int | None | Unset
        if isinstance(self.at, Unset):
            at = UNSET
        else:
            at = self.at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "checkpoints": checkpoints,
                "omitted": omitted,
                "points": points,
                "session": session,
            }
        )
        if at is not UNSET:
            field_dict["at"] = at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.point_report import PointReport  # noqa: PLC0415

        d = dict(src_dict)
        checkpoints = d.pop("checkpoints")

        omitted = d.pop("omitted")

        points = []
        _points = d.pop("points")
        for points_item_data in _points:
            points_item = PointReport.from_dict(points_item_data)

            points.append(points_item)

        session = d.pop("session")

        def _parse_at(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        at = _parse_at(d.pop("at", UNSET))

        history_report = cls(
            checkpoints=checkpoints,
            omitted=omitted,
            points=points,
            session=session,
            at=at,
        )

        history_report.additional_properties = d
        return history_report

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
